//! How long a turn may go on without a person (S0.58), at the doors of the page and of REST; those of
//! MCP clients stand in `agent_mode`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::rest::Client;
use crate::support::{DEADLINE, TestApp, TestSocket};

async fn impatient() -> TestApp {
    TestApp::start_tuned(&[("SPL_SANDBOX", "none")], |settings| {
        settings.chat.turn_limit = Some(Duration::from_millis(300));
    })
    .await
}

/// S0.58.
#[tokio::test]
async fn a_turn_that_takes_too_long_is_stopped_and_told_and_can_be_tried_again() {
    let app = impatient().await;
    app.model.will_say("never heard").stall();
    let mut ana = app.socket("acme").await;
    ana.say("hello").await;
    let error = ana.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "turn_timeout", "{error:?}");
    assert_eq!(error.rest()["retryable"], true, "{error:?}");
    assert!(error.text().contains("0.3 s"), "{}", error.text());
    assert!(error.text().contains("agent.chat.turn_timeout_s"));
    // The request at the model ends too.
    let idle = tokio::time::timeout(DEADLINE, app.model.idle());
    idle.await.unwrap();
    app.model.will_say("Here.");
    assert_eq!(ana.ask("turn:retry", &[json!({})]).await["ok"], true);
    assert_eq!(ana.wait_for_answer().await, "Here.");
}

/// S0.58.
#[tokio::test]
async fn a_turn_that_was_asked_for_over_rest_has_the_same_limit() {
    let app = impatient().await;
    let person = app.person("acme").await;
    let client = Client::with_key(&app, &person.key);
    let session = client.post("/api/sessions", json!({})).await.json();
    let session = session["id"].as_str().unwrap().to_owned();
    app.model.will_say("never heard").stall();
    let messages = format!("/api/sessions/{session}/messages");
    let said = client.post(&messages, json!({ "text": "hello" })).await;
    assert!(said.status < 300, "{}", said.text);
    let events = format!("/api/sessions/{session}/events");
    let failed = async {
        loop {
            let page = client.get(&events).await.json();
            let items = page["items"].as_array().unwrap().clone();
            if let Some(error) = items.iter().find(|item| item["event"] == "agent:error") {
                return error["args"][1].clone();
            }
        }
    };
    let failed: Value = tokio::time::timeout(DEADLINE, failed).await.unwrap();
    assert_eq!(failed["code"], "turn_timeout", "{failed}");
}

/// S0.58: waiting for a person is no time of the turn, and what they say begins it anew.
#[tokio::test]
async fn a_call_that_runs_too_long_is_stopped_but_a_card_may_wait() {
    // Long enough for a busy machine to start the sandbox and come to the card.
    let app = TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], |settings| {
        settings.chat.turn_limit = Some(Duration::from_secs(3));
    })
    .await;
    let endless = json!({"command": "sleep 600"});
    app.model
        .will(Reply::answer("", &[("execute_command", endless)]));
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, None).await;
    ana.say("wait").await;
    let card = ana.wait_for_approval().await;
    // Another session of the same limit is stopped meanwhile; this one waits for its person.
    app.model.will_say("never heard").stall();
    let mut other = TestSocket::open(app.address, &person, None).await;
    other.say("hello").await;
    other.wait_for("agent:error").await;
    ana.approve(&card).await;
    let output = ana.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "cancelled", "{output:?}");
    let error = ana.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "turn_timeout", "{error:?}");
}
