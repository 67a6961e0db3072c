//! Tokens end and are renewed: once, whichever gateways want them.

use reqwest::Method;
use serde_json::json;

use super::{Provider, Someone};
use crate::replicas::Pair;
use crate::servers::operator;
use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn a_token_that_ends_is_renewed_and_a_connection_that_ended_wants_the_person() {
    // Every token is too old as soon as it is there.
    let provider = Provider::start(&json!({ "seconds": 20 }));
    let app = TestApp::start().await;
    let owner = operator(&app, "acme").await;
    let someone = Someone::new(app.address, &owner);
    let entry = json!({ "name": "notes", "config": { "url": provider.mcp } });
    assert_eq!(
        someone.ask(Method::POST, "/api/mcp/add", &entry).await.0,
        201
    );
    someone.connect("notes").await;
    someone
        .wait_for_server("notes", |now| now["toolCount"] == 2)
        .await;
    assert!(provider.count("refreshes").await > 0);
    assert_eq!(provider.count("strangers").await, 0);

    provider.end_all().await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    app.model.will_call("whoami", json!({})).then_say("Done");
    socket.say("who am I?").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
}

#[tokio::test]
async fn two_gateways_renew_a_token_once() {
    let provider = Provider::start(&json!({}));
    let pair = Pair::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_OUTGOING_ALLOW", "127.0.0.1/32"),
    ])
    .await;
    let owner = pair.a.person_with("acme", sepal::domain::Role::Owner).await;
    let (at_a, at_b) = (
        Someone::new(pair.a.address, &owner),
        Someone::new(pair.b.address, &owner),
    );
    let entry = json!({ "name": "notes", "config": { "url": provider.mcp } });
    assert_eq!(at_a.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    // Begun at one gateway, finished at the other.
    let url = at_a.begin("notes", "/").await;
    let answer = at_a.allow(url).await;
    assert_eq!(at_b.finish(&answer).await.0, 200);
    for someone in [&at_a, &at_b] {
        someone
            .wait_for_server("notes", |now| now["toolCount"] == 2)
            .await;
    }
    assert_eq!(provider.count("refreshes").await, 0);

    // The token is refused to both at the same time: each wants a new one.
    provider.end_all().await;
    let test = async |someone: &Someone| {
        let path = "/api/mcp/notes/test";
        let (_, answer) = someone
            .ask(Method::POST, path, &serde_json::Value::Null)
            .await;
        answer
    };
    let (a, b) = tokio::join!(test(&at_a), test(&at_b));
    assert_eq!(
        (&a["ok"], &b["ok"]),
        (&json!(true), &json!(true)),
        "{a} {b}"
    );
    assert_eq!(provider.count("refreshes").await, 1);
    assert_eq!(at_a.connection("notes").await["state"], "connected");
}
