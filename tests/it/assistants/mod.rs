//! Assistants: kept in versions, given to people, and used by sessions, which they only narrow.

mod doors;
mod kept;
mod narrowed;
mod used;

use serde_json::{Value, json};

use crate::rest::Client;
use crate::support::{Person, TestApp, TestSocket};

/// Adds an assistant of that scope, and gives its id.
async fn add(client: &Client, scope: &str, body: Value) -> String {
    let path = format!("/api/assistants?scope={scope}");
    let added = client.post(&path, body).await.ok(201);
    added["id"].as_str().unwrap().to_owned()
}

/// The newest version of an assistant.
async fn read(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/assistants/{id}")).await.ok(200)
}

/// Says who may do what with an assistant.
async fn share(client: &Client, id: &str, entries: Value) {
    let path = format!("/api/assistants/{id}/access");
    client
        .put(&path, json!({ "entries": entries }))
        .await
        .ok(200);
}

/// Starts a session with an assistant, and joins it.
async fn start(app: &TestApp, person: &Person, assistant: &str) -> TestSocket {
    let client = Client::with_key(app, &person.key);
    let body = json!({ "assistant": assistant });
    let session = client.post("/api/sessions", body).await.ok(201);
    TestSocket::open(app.address, person, session["id"].as_str()).await
}

/// One turn without calls.
async fn turn(app: &TestApp, socket: &mut TestSocket) {
    app.model.will_say("Yes");
    socket.say("sure?").await;
    assert_eq!(socket.wait_for_answer().await, "Yes");
}

/// The system prompt of the newest request.
fn system(app: &TestApp) -> String {
    let asked = app.model.requests().pop().unwrap().body;
    let first = &asked["messages"][0];
    assert_eq!(first["role"], "system", "{first}");
    first["content"].as_str().unwrap().to_owned()
}

/// The names of the tools of the newest request, sorted.
fn tools(app: &TestApp) -> Vec<String> {
    let asked = app.model.requests().pop().unwrap().body;
    let tools = asked["tools"].as_array().cloned().unwrap_or_default();
    let names = tools.iter().map(|tool| tool["function"]["name"].clone());
    let mut names: Vec<String> = names
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// The refusal of a message.
async fn refused(socket: &mut TestSocket, text: &str) -> Value {
    let answer = socket.ask("message", &[json!({ "text": text })]).await;
    assert_eq!(answer["ok"], false, "{answer}");
    answer["error"].clone()
}
