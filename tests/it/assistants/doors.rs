//! Assistants at the other doors, and their budget.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sepal::domain::Role;
use serde_json::json;

use super::{add, refused, start, turn};
use crate::agent_mode::{ask_with, tool_schema};
use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{Server, TestApp, TestSocket, person};

#[tokio::test]
async fn an_mcp_client_chooses_an_assistant_by_name() {
    let app = TestApp::start().await;
    let [ana, ben] = [app.person("acme").await, app.person("acme").await];
    let client = Client::with_key(&app, &ana.key);
    let body = json!({ "name": "Writer", "instructions": "Speak like a pirate." });
    add(&client, "person", body).await;
    // Whoever has none is told of none.
    let schema = tool_schema(&app, &ben.key).await;
    assert_eq!(schema["properties"].get("assistant"), None, "{schema}");
    let schema = tool_schema(&app, &ana.key).await;
    let told = schema["properties"]["assistant"]["description"].to_string();
    assert!(told.contains("Writer"), "{told}");
    app.model.will_say("Arr.");
    let arguments = json!({ "input": "Hello", "assistant": "writer" });
    let answer = ask_with(&app, &ana.key, arguments.clone()).await;
    assert_eq!(answer, ("Arr.".to_owned(), false));
    let asked = app.model.requests().pop().unwrap().body;
    assert!(asked["messages"][0].to_string().contains("pirate"));
    // Somebody else's is no choice.
    let (text, is_error) = ask_with(&app, &ben.key, arguments).await;
    assert!(is_error && text.contains("no assistant `writer`"), "{text}");
    assert_eq!(app.model.requests().len(), 1);
}

#[tokio::test]
async fn a_socket_begins_with_an_assistant_and_stays_with_it() {
    let app = TestApp::start().await;
    let ana = app.person_with("acme", Role::Admin).await;
    let client = Client::with_key(&app, &ana.key);
    let id = add(&client, "team", json!({ "name": "Writer" })).await;
    let other = add(&client, "team", json!({ "name": "Other" })).await;
    let open = async |auth| TestSocket::try_open(app.address, auth).await;
    let auth = json!({ "token": ana.key, "sessionId": "mine", "assistant": id });
    let mut socket = open(auth.clone()).await.unwrap();
    assert_eq!(socket.ready["assistant"]["name"], "Writer");
    turn(&app, &mut socket).await;
    // By its name again, and by its id, it is the same; another assistant is refused.
    assert_eq!(open(auth).await.unwrap().session(), socket.session());
    for session in ["mine".to_owned(), socket.session()] {
        let auth = json!({ "token": ana.key, "sessionId": session, "assistant": other });
        let refused = open(auth).await.err().unwrap();
        assert!(
            refused.contains("not started with that assistant"),
            "{refused}"
        );
    }
    let auth = json!({ "token": ana.key, "assistant": "ast_nothing" });
    let refused = open(auth).await.err().unwrap();
    assert!(refused.starts_with("not_found"), "{refused}");
}

#[tokio::test]
async fn each_session_has_the_budget_of_its_assistant() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("LLM_PROVIDER", "openai"),
        ("OPENAI_API_KEY", "sk"),
        ("SPL_LLM_MODEL", "gpt-4o"),
    ])
    .await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let budget = |limit_usd: f64| json!({ "name": "Thrifty", "budget": { "limitUsd": limit_usd } });
    let id = add(&client, "person", budget(0.000_001)).await;
    let mut socket = start(&app, &ana, &id).await;
    socket.say("hello").await;
    let error = socket.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "budget_exhausted", "{error:?}");
    assert!(error.text().contains("assistant"), "{}", error.text());
    assert_eq!(app.model.requests().len(), 0);
    // A newer version may give more.
    let at = format!("/api/assistants/{id}");
    client.put(&at, budget(1.0)).await.ok(200);
    let taken = socket.ask("session:assistant", &[]).await;
    assert_eq!(taken["ok"], true, "{taken}");
    turn(&app, &mut socket).await;
}

/// The assistant of a session is in its journal: `kill -9` takes nothing of it.
#[tokio::test]
async fn a_killed_gateway_finds_the_assistant_again() {
    let folder = tempfile::TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let server = Server::start_with(&data, &model, &[]);
    let ana = person(&data, &[]);
    let client = Client::at(server.address, &ana.key);
    let body = json!({
        "name": "Writer", "instructions": "Speak like a pirate.",
        "files": [{ "name": "style.txt", "data": STANDARD.encode("Only short words.") }],
    });
    let id = add(&client, "person", body).await;
    let body = json!({ "assistant": id });
    let session = client.post("/api/sessions", body).await.ok(201);
    server.kill();
    let server = Server::start_with(&data, &model, &[]);
    let mut socket = TestSocket::open(server.address, &ana, session["id"].as_str()).await;
    assert_eq!(socket.ready["assistant"]["version"], 1);
    model.will_say("Arr.");
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "Arr.");
    let asked = model.requests().pop().unwrap().body["messages"].to_string();
    assert!(
        asked.contains("pirate") && asked.contains("Only short words."),
        "{asked}"
    );
    let client = Client::at(server.address, &ana.key);
    assert_eq!(
        client.delete(&format!("/api/assistants/{id}")).await.status,
        204
    );
    server.kill();
    let server = Server::start_with(&data, &model, &[]);
    let mut socket = TestSocket::open(server.address, &ana, session["id"].as_str()).await;
    let refusal = refused(&mut socket, "again").await;
    assert!(
        refusal["message"].as_str().unwrap().contains("was deleted"),
        "{refusal}"
    );
}
