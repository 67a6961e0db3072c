//! The story: a server wants its person, they connect, the call goes on.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Provider, Someone};
use crate::servers::operator;
use crate::support::{TestApp, TestSocket};

/// An app with the server for everybody, and its owner connected so that its tools are known.
async fn connected(settings: &Value) -> (TestApp, Provider, Someone, TestSocket) {
    let provider = Provider::start(settings);
    let app = TestApp::start().await;
    let owner = operator(&app, "acme").await;
    let someone = Someone::new(app.address, &owner);
    let entry = json!({ "name": "notes", "config": { "url": provider.mcp } });
    let (status, _) = someone.ask(Method::POST, "/api/mcp/add", &entry).await;
    assert_eq!(status, 201);
    let wants = someone
        .wait_for_server("notes", |now| now["status"] == "unauthorized")
        .await;
    assert_eq!(wants["connection"]["state"], "absent", "{wants}");
    assert_eq!(wants["toolCount"], Value::Null);
    someone.connect("notes").await;
    let now = someone
        .wait_for_server("notes", |now| now["toolCount"] == 2)
        .await;
    assert_eq!(now["status"], "healthy", "{now}");
    assert_eq!(now["connection"]["state"], "connected");
    assert_eq!(now["connection"]["scopes"], json!(["read"]));
    let socket = TestSocket::open(app.address, &owner, None).await;
    (app, provider, someone, socket)
}

#[tokio::test]
async fn a_person_connects_and_their_calls_go_with_their_token() {
    let (app, provider, someone, mut socket) = connected(&json!({})).await;
    app.model.will_call("whoami", json!({})).then_say("Done");
    socket.say("who am I?").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "whoami for somebody", "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    assert_eq!(provider.count("registrations").await, 1);
    assert_eq!(provider.count("codes").await, 1);

    // Given back and forgotten: nothing is sent any more.
    let path = "/api/mcp/notes/connect";
    let (status, _) = someone.ask(Method::DELETE, path, &Value::Null).await;
    assert_eq!(status, 204);
    assert!(provider.count("revocations").await >= 1);
    assert_eq!(someone.connection("notes").await, Value::Null);
    assert_eq!(provider.count("strangers").await, 0);
    // They may connect again before a call needs it.
    let now = someone.wait_for_server("notes", |_| true).await;
    assert_eq!(now["connection"]["state"], "absent", "{now}");
}

#[tokio::test]
async fn a_call_of_somebody_who_is_not_connected_waits_until_they_are() {
    let (app, provider, _, _) = connected(&json!({})).await;
    let ben = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ben, None).await;
    let ben = Someone::new(app.address, &ben);
    assert_eq!(ben.connection("notes").await, Value::Null);
    app.model.will_call("whoami", json!({})).then_say("Done");
    socket.say("who am I?").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let told = socket.wait_for("mcpConnection").await;
    assert_eq!(told.args[0], json!({ "name": "notes" }));
    let needed = ben.connection("notes").await;
    assert_eq!(needed["state"], "needed", "{needed}");
    assert_eq!(provider.count("calls").await, 0);

    ben.connect("notes").await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(provider.count("calls").await, 1);
    assert_eq!(ben.connection("notes").await["state"], "connected");
    // One registration serves all people of the installation.
    assert_eq!(provider.count("registrations").await, 1);
}

#[tokio::test]
async fn whoever_does_not_want_to_connect_hears_why_the_call_did_not_run() {
    let (app, provider, _, _) = connected(&json!({})).await;
    let ben = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ben, None).await;
    let ben = Someone::new(app.address, &ben);
    app.model.will_call("whoami", json!({})).then_say("Pity");
    socket.say("who am I?").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for("mcpConnection").await;
    let path = "/api/mcp/notes/connect/dismiss";
    let (status, _) = ben.ask(Method::POST, path, &Value::Null).await;
    assert_eq!(status, 204);
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    assert!(
        output.text().contains("needs to be connected"),
        "{output:?}"
    );
    assert_eq!(socket.wait_for_answer().await, "Pity");
    assert_eq!(provider.count("calls").await, 0);
}

#[tokio::test]
async fn a_server_that_wants_more_asks_for_it_by_name_and_the_call_goes_on() {
    let (app, _provider, someone, mut socket) = connected(&json!({})).await;
    app.model.will_call("publish", json!({})).then_say("Done");
    socket.say("publish").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for("mcpConnection").await;
    let needed = someone.connection("notes").await;
    assert_eq!(needed["state"], "needed", "{needed}");
    assert_eq!(
        (&needed["scopes"], &needed["wants"]),
        (&json!(["read"]), &json!(["write"]))
    );

    someone.connect("notes").await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "publish for somebody", "{output:?}");
    let now = someone.connection("notes").await;
    assert_eq!(now["scopes"], json!(["read", "write"]), "{now}");
}

#[tokio::test]
async fn whoever_does_not_want_to_allow_more_goes_on_with_what_they_allowed() {
    let (app, provider, someone, mut socket) = connected(&json!({})).await;
    app.model.will_call("publish", json!({})).then_say("Pity");
    socket.say("publish").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for("mcpConnection").await;
    let path = "/api/mcp/notes/connect/dismiss";
    let (status, _) = someone.ask(Method::POST, path, &Value::Null).await;
    assert_eq!(status, 204);
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Pity");
    assert_eq!(provider.count("calls").await, 0);
    let now = someone.connection("notes").await;
    assert_eq!(
        (&now["state"], &now["scopes"]),
        (&json!("connected"), &json!(["read"]))
    );
}

#[tokio::test]
async fn a_registered_client_is_used_and_one_may_connect_by_itself() {
    let provider = Provider::start(&json!({}));
    let app = TestApp::start().await;
    let owner = operator(&app, "acme").await;
    let someone = Someone::new(app.address, &owner);
    let entry = json!({
        "name": "notes",
        "config": { "url": provider.mcp, "oauth": {
            "clientId": "registered", "clientSecret": "${secret:CLIENT}",
            "scopes": ["read"], "grant": "client_credentials",
        }},
        "secrets": { "CLIENT": "swordfish-of-the-client" },
    });
    let (status, _) = someone.ask(Method::POST, "/api/mcp/add", &entry).await;
    assert_eq!(status, 201);
    someone
        .wait_for_server("notes", |now| now["toolCount"] == 2)
        .await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    app.model.will_call("whoami", json!({})).then_say("Done");
    socket.say("who am I?").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    assert_eq!(
        socket.wait_for("tool:output").await.text(),
        "whoami for registered"
    );
    assert_eq!(provider.count("registrations").await, 0);
    let (status, refused) = someone
        .ask(Method::POST, "/api/mcp/notes/connect", &json!({}))
        .await;
    assert_eq!(status, 400, "{refused}");
}
