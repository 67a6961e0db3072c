//! A server that is removed ends in open sessions, whatever it is doing there.

use std::time::Duration;

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::waiting::Stand;
use super::{Api, operator, shell, wait_for_health};
use crate::support::{DEADLINE, Person, TestApp, TestSocket};

/// Whether a process whose command line has these words runs on this machine.
fn runs(words: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(words))
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        while !is_so() {
            looks.tick().await;
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, waiting).await;
    assert!(in_time.is_ok(), "{what}");
}

/// A server whose processes can be told from all others.
fn marked(call: &str) -> (Value, String) {
    let mark = format!("removed-{:016x}", rand::random::<u64>());
    let call = format!("case {mark} in none) ;; esac; {call}");
    (shell(&call), mark)
}

async fn remove(app: &TestApp, person: &Person, name: &str) {
    let path = format!("/api/mcp/{name}");
    let api = Api::new(app, person);
    let removed = api.ask(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(removed, (200, json!({ "ok": true, "name": name })));
}

#[tokio::test]
async fn a_removed_servers_idle_processes_end_in_open_sessions() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let (config, mark) = marked("say fine");
    Api::new(&app, &owner).add("aux", config).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    app.model.will_call("echo", json!({})).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for("tool:output").await.text(), "fine");
    assert_eq!(socket.wait_for_answer().await, "Done");
    assert!(runs(&mark), "the session keeps it for its next call");
    remove(&app, &owner, "aux").await;
    until("its processes end", || !runs(&mark)).await;
}

#[tokio::test]
async fn a_call_of_a_removed_server_is_stopped_and_its_processes_end() {
    let app = TestApp::with_sandbox().await;
    // Entries of the installation are told to everybody by whoever watches their file.
    let person = operator(&app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let (config, mark) = marked("echo hanging >&2; sleep 600");
    let api = Api::new(&app, &person);
    api.add("aux", config).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    app.model
        .will_call("echo", json!({}))
        .then_call("echo", json!({}))
        .then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let hangs = async {
        while !api
            .get("/api/mcp/aux/logs")
            .await
            .to_string()
            .contains("hanging")
        {}
    };
    let in_time = tokio::time::timeout(DEADLINE, hangs).await;
    in_time.expect("the call runs");
    assert!(runs(&mark));
    remove(&app, &person, "aux").await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "cancelled", "{output:?}");
    until("its processes end", || !runs(&mark)).await;
    let output = socket.wait_for("tool:output").await;
    assert!(output.text().contains("no tool `echo`"), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

#[tokio::test]
async fn a_call_of_a_removed_remote_server_is_told_to_stop_and_may_go_on() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let stand = Stand::start().await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let api = Api::new(&app, &person);
    api.add("shop", json!({ "url": stand.url })).await;
    wait_for_health(&mut socket, "shop", "healthy").await;
    app.model.will_call("order", json!({})).then_say("I see");
    socket.say("order").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    stand.begun(1).await;
    remove(&app, &person, "shop").await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    assert!(output.text().contains("it may go on"), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "I see");
    stand.let_end();
    stand.ended(1).await;
}
