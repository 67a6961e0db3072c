//! What is unknown is called unknown: servers that end, fall silent or are lost during a call.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::waiting::Stand;
use super::{Api, operator, shell, wait_for_health};
use crate::support::{Relay, Said, TestApp, TestSocket};

async fn approve_next(socket: &mut TestSocket) -> Value {
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    card
}

#[tokio::test]
async fn a_call_equal_to_one_of_unknown_outcome_is_asked_even_where_a_rule_allows_it() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let call = r#"case "$line" in *die*) exit 3 ;; *) say fine ;; esac"#;
    api.add("aux", shell(call)).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    let allow = json!({ "effect": "allow" });
    let path = "/api/mcp/aux/tools/echo";
    let (status, allowed) = api.ask(Method::PUT, path, &allow).await;
    assert_eq!(status, 200, "{allowed}");
    let die = json!({ "how": "die" });
    app.model
        .will_call("echo", die.clone())
        .then_call("echo", json!({ "how": "live" }))
        .then_call("echo", die)
        .then_say("Done");
    socket.say("go").await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    assert!(output.text().contains("exit code 3"), "{output:?}");
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "fine", "another call runs by the rule");
    let is_asked_or_done =
        |said: &Said| matches!(said.name.as_str(), "tool:approval_required" | "tool:output");
    let next = socket.wait_where(is_asked_or_done).await;
    assert_eq!(next.name, "tool:approval_required", "{next:?}");
    assert_eq!(next.args[0]["why"], "An equal call has an unknown outcome");
    let asked = socket
        .log
        .iter()
        .filter(|said| said.name == "tool:approval_required");
    assert_eq!(asked.count(), 1, "the first two ran by the rule");
    let rejected = socket.decide(&next.args[0], false).await;
    assert_eq!(rejected["ok"], true, "{rejected}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

/// A call of `tool` at a remote server that is lost while it runs.
async fn lost_during(tool: &str, is_trusted: bool, stand: Stand) -> Said {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let relay = Relay::start(stand.address).await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let url = format!("http://{}/mcp", relay.address);
    let config = json!({ "url": url, "trusted": is_trusted });
    Api::new(&app, &person).add("shop", config).await;
    wait_for_health(&mut socket, "shop", "healthy").await;
    app.model.will_call(tool, json!({})).then_say("I see");
    socket.say("go").await;
    approve_next(&mut socket).await;
    stand.begun(1).await;
    drop(relay);
    let output = socket.wait_for("tool:output").await;
    assert_eq!(socket.wait_for_answer().await, "I see");
    output
}

#[tokio::test]
async fn a_call_at_a_remote_server_that_is_lost_is_unknown_unless_it_only_reads() {
    for (tool, is_trusted, expected) in [
        ("order", true, "unknown"),
        ("look", false, "unknown"),
        ("look", true, "failed"),
    ] {
        let stand = Stand::start_plain().await;
        let output = lost_during(tool, is_trusted, stand).await;
        let status = &output.rest()["status"];
        assert_eq!(status, expected, "{tool} {is_trusted}: {output:?}");
    }
    // The answer is asked for again as long as that may help, and not until the time limit.
    let output = lost_during("order", true, Stand::start().await).await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    assert!(output.text().contains("went away"), "{output:?}");
}

#[tokio::test]
async fn a_call_that_was_sent_and_not_answered_in_time_is_unknown_unless_it_only_reads() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let stand = Stand::start().await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let config = json!({ "url": stand.url, "trusted": true, "timeout": 1 });
    Api::new(&app, &person).add("shop", config).await;
    wait_for_health(&mut socket, "shop", "healthy").await;
    for (tool, expected) in [("order", "unknown"), ("look", "failed")] {
        app.model.will_call(tool, json!({})).then_say("I see");
        socket.say("go").await;
        approve_next(&mut socket).await;
        let output = socket.wait_for("tool:output").await;
        assert_eq!(output.rest()["status"], expected, "{output:?}");
        assert!(output.text().contains("no answer within 1 s"), "{output:?}");
        assert_eq!(socket.wait_for_answer().await, "I see");
    }
}

#[tokio::test]
async fn a_call_that_was_never_sent_says_that_it_did_not_run() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let stand = Stand::start().await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    Api::new(&app, &person)
        .add("shop", json!({ "url": stand.url }))
        .await;
    wait_for_health(&mut socket, "shop", "healthy").await;
    drop(stand);
    app.model.will_call("order", json!({})).then_say("I see");
    socket.say("go").await;
    approve_next(&mut socket).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    assert!(output.text().starts_with("not run: "), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "I see");
}
