//! `sepal replay`: sessions are decided once more from their journals, as the real program does it.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::model_stub::ModelStub;
use crate::support::{Person, Server, TestSocket, person, sepal};

const ENV: [(&str, &str); 1] = [("SPL_SANDBOX", "none")];

/// Runs the program; what it said, and whether it worked.
fn replay(data: &Path, args: &[&str]) -> (bool, String) {
    let output = sepal(data).arg("replay").args(args).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// A session with a question, and a fork of it that asks another one.
async fn with_a_fork(server: &Server, ana: &Person, model: &ModelStub) -> (String, String) {
    let mut socket = TestSocket::open(server.address, ana, None).await;
    model.will_say("first").then_say("second").then_say("other");
    for (question, answer) in [("one", "first"), ("two", "second")] {
        socket.say(question).await;
        assert_eq!(socket.wait_for_answer().await, answer);
    }
    let asked = |said: &&_| is_message(said, "two");
    let seq = socket.log.iter().find(asked).unwrap().seq().unwrap();
    let ask = json!({ "fromSeq": seq - 1, "text": "three", "clientMessageId": "m-9" });
    let answer = socket.ask("session:fork", &[ask]).await;
    assert_eq!(answer["ok"], true, "{answer}");
    let forked = answer["sessionId"].as_str().unwrap().to_owned();
    let mut fork = TestSocket::open(server.address, ana, Some(&forked)).await;
    if fork.ready["state"]["running"].is_object() {
        assert_eq!(fork.wait_for_answer().await, "other");
    }
    (socket.session(), forked)
}

fn is_message(said: &crate::support::Said, text: &str) -> bool {
    said.name == "user:message" && said.text() == text
}

#[tokio::test]
async fn sessions_are_decided_again_to_the_same_state_and_a_fork_shows_what_differs() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let server = Server::start_with(&data, &model, &ENV);
    let ana = person(&data, &ENV);
    let (session, forked) = with_a_fork(&server, &ana, &model).await;

    // The gateway runs on.
    let (is_same, said) = replay(&data, &[&session, "--tenant", "acme", "--against", &forked]);
    assert!(is_same, "{said}");
    assert!(said.contains("The same."), "{said}");
    for line in [
        "-person: two",
        "-model: second",
        "+person: three",
        "+model: other",
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
    assert!(!said.contains("-person: one"), "{said}");
    let (is_same, said) = replay(&data, &["--all"]);
    assert!(is_same, "{said}");
    let words = "2 sessions were decided again, 0 of them otherwise";
    assert!(said.contains(words), "{said}");

    let (is_done, said) = replay(&data, &["ses_0", "--tenant", "acme"]);
    assert!(!is_done && said.contains("ses_"), "{said}");
    // Another tenant has no such session.
    let (is_done, said) = replay(&data, &[&session, "--tenant", "default"]);
    assert!(!is_done && said.contains("no session"), "{said}");
    server.kill();
}
