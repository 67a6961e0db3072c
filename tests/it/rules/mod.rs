//! Rules about calls, through every door that leads to them.

mod access;
mod approvers;
mod commands;
mod expiry;
mod killed;
mod lasting;
mod reviewer;
mod simulated;
mod two_gateways;

use reqwest::Method;
use serde_json::{Value, json};

use crate::servers::Api;
use crate::support::{TestApp, TestSocket};

/// Asks for a command, and gives the card of it.
async fn asked(app: &TestApp, socket: &mut TestSocket, command: &str) -> Value {
    app.model
        .will_call("execute_command", json!({ "command": command }))
        .then_say("Done");
    socket.say("go").await;
    socket.wait_for_approval().await
}

/// Has a command run that nobody is asked about; the rule that let it.
async fn unasked(app: &TestApp, socket: &mut TestSocket, command: &str) -> Value {
    app.model
        .will_call("execute_command", json!({ "command": command }))
        .then_say("Done");
    socket.say("go").await;
    let decided = socket.wait_for("tool:decided").await.args[0].clone();
    assert_eq!(decided["approved"], true, "{decided}");
    socket.wait_for_answer().await;
    decided["ruleId"].clone()
}

/// The offer of that reach for the call of a card.
async fn offer(api: &Api<'_>, socket: &TestSocket, card: &Value, reach: &str) -> Value {
    let call = card["callId"].as_str().unwrap();
    let path = format!("/api/sessions/{}/calls/{call}/rules", socket.session());
    let offers = api.get(&path).await;
    let offers = offers["offers"].as_array().unwrap().clone();
    let found = offers.iter().find(|offer| offer["reach"] == reach);
    found.cloned().unwrap_or_else(|| panic!("{offers:#?}"))
}

/// What a card sends to stop asking.
fn stop_asking(socket: &TestSocket, card: &Value, when: &Value, scope: &str) -> Value {
    json!({
        "effect": "allow", "scope": scope, "session": socket.session(), "callId": card["callId"],
        "digest": card["digest"], "when": when,
    })
}

pub(crate) async fn given(api: &Api<'_>, body: &Value) -> Value {
    let (status, answer) = api.ask(Method::POST, "/api/rules", body).await;
    assert_eq!(status, 201, "{answer}");
    answer
}
