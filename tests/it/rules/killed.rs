//! Rules after `kill -9` of the real program.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model_stub::ModelStub;
use crate::support::postgres::new_database;
use crate::support::{Server, TestApp, TestSocket, person};

#[tokio::test]
async fn rules_survive_a_kill() {
    rules_decide_after_a_kill(None).await;
}

#[tokio::test]
async fn rules_survive_a_kill_in_postgres_too() {
    let database = new_database().await;
    rules_decide_after_a_kill(Some(&database)).await;
}

/// A rule of the session allows and one of the person denies; the program is killed as soon as both are
/// acknowledged.
async fn rules_decide_after_a_kill(database: Option<&str>) {
    let env: Vec<_> = database
        .map(|url| ("DATABASE_URL", url))
        .into_iter()
        .collect();
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let ask = |command: &str| {
        let command = json!({ "command": command });
        model.will_call("execute_command", command).then_say("Done");
    };
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    ask("ls; date");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    let session = socket.session();
    let words = |word: &str| json!({ "command": [{ "words": [word] }] });
    let allow = json!({
        "effect": "allow", "scope": "session", "session": session, "when": words("ls"),
    });
    let deny = json!({ "effect": "deny", "scope": "person", "when": words("curl") });
    let url = format!("http://{}/api/rules", server.address);
    for rule in [allow, deny] {
        let request = TestApp::http().post(&url).bearer_auth(&ana.key).json(&rule);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 201);
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["hasApproved"], false, "{answer}");
    }
    server.kill();

    let server = Server::start_with(&data, &model, &env);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    let asked = again.wait_for_approval().await;
    assert_eq!(
        asked["callId"], card["callId"],
        "a part of it is not allowed"
    );
    again.decide(&asked, false).await;
    again.wait_for_answer().await;
    for (command, is_allowed) in [("ls -l", true), ("curl a.example", false)] {
        ask(command);
        again.say("go").await;
        let decided = again.wait_for("tool:decided").await.args[0].clone();
        assert_eq!(decided["approved"], is_allowed, "{command}: {decided}");
        again.wait_for_answer().await;
    }
}
