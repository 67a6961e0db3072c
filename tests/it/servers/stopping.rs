//! Stopped means stopped: servers that hear of it and go on all the same.

use std::time::{Duration, Instant};

use sepal::domain::Role;
use serde_json::{Value, json};

use super::waiting::Stand;
use super::{Api, operator, shell, wait_for_health};
use crate::model_stub::Reply;
use crate::support::{Said, TestApp, TestSocket};

/// A call that ends when `go` is there, whatever anybody says meanwhile, and then does what it was
/// asked for.
const OBSTINATE: &str = r#"case "$line" in
  *hang*) echo hanging >&2; until [ -e /workspace/go ]; do sleep 0.05; done
    echo "went on" > /workspace/result; say done ;;
  *moment*) echo hanging >&2; sleep 0.5; say done ;;
  *) say fine ;;
esac"#;

async fn with_obstinate(app: &TestApp) -> (TestSocket, Api<'_>) {
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(app, &owner);
    let mut config = shell(OBSTINATE);
    config["workspace"] = json!("rw");
    api.add("aux", config).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    (socket, api)
}

/// Waits until the call is in the middle of its work.
async fn hangs(api: &Api<'_>) {
    let hanging = async {
        while !api
            .get("/api/mcp/aux/logs")
            .await
            .to_string()
            .contains("hanging")
        {}
    };
    let in_time = tokio::time::timeout(Duration::from_secs(20), hanging).await;
    in_time.expect("the call runs");
}

async fn approve_next(socket: &mut TestSocket) -> Value {
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    card
}

async fn output_of(socket: &mut TestSocket, card: &Value) -> Said {
    let id = card["callId"].clone();
    let is_its = move |said: &Said| said.name == "tool:output" && said.rest()["callId"] == id;
    socket.wait_where(is_its).await
}

#[tokio::test]
async fn an_obstinate_server_over_stdio_is_gone_when_its_call_reads_stopped() {
    let app = TestApp::with_sandbox().await;
    let (mut socket, api) = with_obstinate(&app).await;
    app.model
        .will_call("echo", json!({ "how": "hang" }))
        .then(Reply::answer(
            "Now it may go on",
            &[("write_file", json!({"path": "go", "content": ""}))],
        ))
        .then_call("echo", json!({ "how": "are you" }))
        .then_call("list_files", json!({ "path": "." }))
        .then_say("Done");
    socket.say("go").await;
    let card = approve_next(&mut socket).await;
    hangs(&api).await;
    let asked = json!({ "callId": card["callId"] });
    assert_eq!(socket.ask("tool:cancel", &[asked]).await["ok"], true);
    let output = output_of(&mut socket, &card).await;
    assert_eq!(output.rest()["status"], "cancelled", "{output:?}");
    // What it waited for comes, and a call behind it would be read when it has gone on.
    let card = approve_next(&mut socket).await;
    output_of(&mut socket, &card).await;
    let card = approve_next(&mut socket).await;
    let output = output_of(&mut socket, &card).await;
    assert_eq!(output.text(), "fine", "{output:?}");
    let card = approve_next(&mut socket).await;
    let files = output_of(&mut socket, &card).await;
    assert!(files.text().contains("go"), "{files:?}");
    assert!(!files.text().contains("result"), "it went on: {files:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

#[tokio::test]
async fn a_call_beside_one_whose_server_had_to_be_ended_is_unknown() {
    let app = TestApp::with_sandbox().await;
    let (mut socket, api) = with_obstinate(&app).await;
    let calls = [
        ("echo", json!({ "how": "hang" })),
        ("echo", json!({ "how": "beside it" })),
    ];
    app.model
        .will(Reply::answer("Both", &calls))
        .then_say("I see");
    socket.say("go").await;
    let first = approve_next(&mut socket).await;
    let second = approve_next(&mut socket).await;
    hangs(&api).await;
    let asked = json!({ "callId": first["callId"] });
    assert_eq!(socket.ask("tool:cancel", &[asked]).await["ok"], true);
    let mut outputs = [
        socket.wait_for("tool:output").await,
        socket.wait_for("tool:output").await,
    ];
    outputs.sort_by_key(|said| said.rest()["callId"] == second["callId"]);
    assert_eq!(outputs[0].rest()["status"], "cancelled", "{outputs:?}");
    assert_eq!(outputs[1].rest()["status"], "unknown", "{outputs:?}");
    let text = outputs[1].text();
    assert!(text.contains("another call"), "{text}");
    assert_eq!(socket.wait_for_answer().await, "I see");
}

#[tokio::test]
async fn an_obstinate_server_over_http_may_go_on_and_that_is_said() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let stand = Stand::start().await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let api = Api::new(&app, &person);
    api.add("shop", json!({ "url": stand.url })).await;
    wait_for_health(&mut socket, "shop", "healthy").await;
    app.model.will_call("order", json!({})).then_say("I see");
    socket.say("order").await;
    let card = approve_next(&mut socket).await;
    stand.begun(1).await;
    let asked = json!({ "callId": card["callId"] });
    assert_eq!(socket.ask("tool:cancel", &[asked]).await["ok"], true);
    let output = output_of(&mut socket, &card).await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    let text = output.text();
    assert!(text.contains("told to stop; it may go on"), "{text}");
    let cause = output.rest()["cause"].as_str().unwrap_or_default();
    assert!(cause.ends_with("told to stop; it may go on"), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "I see");
    let read = format!("{:?}", app.model.requests().last().unwrap());
    assert!(read.contains("it may go on"), "the model reads it: {read}");
    // And so it does.
    stand.let_end();
    stand.ended(1).await;
}

#[tokio::test]
async fn a_call_that_is_done_before_it_hears_that_it_is_to_stop_is_done() {
    let app = TestApp::with_sandbox().await;
    let (mut socket, api) = with_obstinate(&app).await;
    app.model
        .will_call("echo", json!({ "how": "for a moment" }))
        .then_call("echo", json!({ "how": "are you" }))
        .then_say("Done");
    socket.say("go").await;
    let card = approve_next(&mut socket).await;
    hangs(&api).await;
    let asked = json!({ "callId": card["callId"] });
    assert_eq!(socket.ask("tool:cancel", &[asked]).await["ok"], true);
    let output = output_of(&mut socket, &card).await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(output.text(), "done");
    // Its server lives on.
    let card = approve_next(&mut socket).await;
    let output = output_of(&mut socket, &card).await;
    assert_eq!(output.text(), "fine", "{output:?}");
    let logs = api.get("/api/mcp/aux/logs").await.to_string();
    // Once when it was listed, once for the session.
    assert_eq!(logs.matches("started").count(), 2, "{logs}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

#[tokio::test]
async fn a_command_is_stopped_at_once_and_its_sandbox_goes_on() {
    let app = TestApp::with_sandbox().await;
    let mut socket = app.socket("acme").await;
    let command = json!({ "command": "echo kept > /tmp/kept; echo started; sleep 25" });
    app.model
        .will_call("execute_command", command)
        .then_call("execute_command", json!({ "command": "cat /tmp/kept" }))
        .then_say("Done");
    socket.say("run").await;
    let card = approve_next(&mut socket).await;
    socket
        .wait_where(|said| {
            said.name == "tool:progress" && said.args[0].to_string().contains("started")
        })
        .await;
    let asked = json!({ "callId": card["callId"] });
    let began = Instant::now();
    assert_eq!(socket.ask("tool:cancel", &[asked]).await["ok"], true);
    let output = output_of(&mut socket, &card).await;
    let took = began.elapsed();
    assert_eq!(output.rest()["status"], "cancelled", "{output:?}");
    // Its server says that it is over; nobody has to wait for the grace time of one that does not.
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    let card = approve_next(&mut socket).await;
    let output = output_of(&mut socket, &card).await;
    assert!(output.text().contains("kept"), "the same place: {output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}
