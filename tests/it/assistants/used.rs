//! Sessions with an assistant: what the model reads, which version they keep, and what ends with the access.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{add, refused, share, start, system, turn};
use crate::rest::Client;
use crate::support::postgres::new_database;
use crate::support::{TestApp, TestSocket};

/// The texts of the messages of people in the newest request.
fn messages(app: &TestApp) -> String {
    let asked = app.model.requests().pop().unwrap().body;
    let all = asked["messages"].as_array().unwrap().iter();
    let users = all.filter(|message| message["role"] == "user");
    users
        .map(|message| message["content"].to_string())
        .collect()
}

#[tokio::test]
async fn a_session_has_what_its_assistant_says() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let body = json!({
        "name": "Writer", "instructions": "Speak like a pirate.", "openings": ["Ahoy"],
        "files": [{ "name": "style.txt", "data": STANDARD.encode("Only short words.") }],
    });
    let id = add(&client, "person", body).await;
    let mut socket = start(&app, &ana, &id).await;
    let shown = &socket.ready["assistant"];
    assert_eq!(shown["name"], "Writer");
    assert_eq!(
        (&shown["version"], &shown["openings"]),
        (&json!(1), &json!(["Ahoy"]))
    );
    assert!(!shown.to_string().contains("pirate"), "{shown}");
    turn(&app, &mut socket).await;
    assert!(
        system(&app).contains("Speak like a pirate."),
        "{}",
        system(&app)
    );
    assert!(
        messages(&app).contains("Only short words."),
        "{}",
        messages(&app)
    );
    // The file came with the first message, and not again.
    turn(&app, &mut socket).await;
    let said = socket.log.iter().filter(|said| said.name == "user:message");
    let attached = said.map(|said| said.rest()["attachments"].as_array().map_or(0, Vec::len));
    assert_eq!(attached.collect::<Vec<_>>(), [1, 0]);
    // Another session of the same person is not touched by it.
    let mut plain = TestSocket::open(app.address, &ana, None).await;
    assert_eq!(plain.ready["assistant"], Value::Null);
    turn(&app, &mut plain).await;
    assert!(!read(&app).contains("pirate"));
}

/// Everything that the model read in the newest request.
fn read(app: &TestApp) -> String {
    let asked = app.model.requests().pop().unwrap().body;
    asked["messages"].to_string()
}

#[tokio::test]
async fn a_session_keeps_its_version_until_its_owner_takes_the_newer_one() {
    keeps_its_version(TestApp::start().await).await;
}

#[tokio::test]
async fn a_session_keeps_its_version_in_postgres_too() {
    let database = new_database().await;
    let env = [("SPL_SANDBOX", "none"), ("DATABASE_URL", &database)];
    keeps_its_version(TestApp::start_with(&env).await).await;
}

async fn keeps_its_version(app: TestApp) {
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let id = add(
        &client,
        "person",
        json!({ "name": "Writer", "instructions": "Speak like a pirate." }),
    )
    .await;
    let mut socket = start(&app, &ana, &id).await;
    turn(&app, &mut socket).await;
    let session = socket.session();
    drop(socket);
    let newer = json!({
        "name": "Writer", "instructions": "Speak like a poet.",
        "files": [{ "name": "b.txt", "data": STANDARD.encode("Roses.") }],
    });
    client
        .put(&format!("/api/assistants/{id}"), newer)
        .await
        .ok(200);

    let app = app.restart().await;
    let client = Client::with_key(&app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, Some(&session)).await;
    assert_eq!(socket.ready["assistant"]["version"], 1);
    turn(&app, &mut socket).await;
    assert!(system(&app).contains("pirate"), "{}", system(&app));

    let path = format!("/api/sessions/{session}/assistant");
    client.post(&path, json!({})).await.ok(202);
    let changed = socket.wait_for("session:changed").await;
    assert_eq!(changed.rest()["assistant"]["version"], 2, "{changed:?}");
    turn(&app, &mut socket).await;
    let read = system(&app);
    assert!(read.contains("poet") && !read.contains("pirate"), "{read}");
    // What the newer version brings along came with the next message.
    assert!(messages(&app).contains("Roses."), "{}", messages(&app));
    // A second press changes nothing.
    client.post(&path, json!({})).await.ok(202);
    let app = app.restart().await;
    let socket = TestSocket::open(app.address, &ana, Some(&session)).await;
    assert_eq!(socket.ready["assistant"]["version"], 2);
    let transcript = socket.ready["state"]["transcript"]["events"].to_string();
    assert_eq!(
        transcript.matches("\"assistant\"").count(),
        1,
        "{transcript}"
    );
}

#[tokio::test]
async fn a_session_without_access_is_read_and_starts_no_turn() {
    let app = TestApp::start().await;
    let [ana, ben] = [app.person("acme").await, app.person("acme").await];
    let [owner, user] = [&ana, &ben].map(|it| Client::with_key(&app, &it.key));
    let id = add(&owner, "person", json!({ "name": "Writer" })).await;
    let everybody = json!([{ "level": "use" }]);
    share(&owner, &id, everybody.clone()).await;
    let mut socket = start(&app, &ben, &id).await;
    turn(&app, &mut socket).await;
    let session = socket.session();
    let path = format!("/api/sessions/{session}/events");

    share(&owner, &id, json!([{ "level": "see" }])).await;
    let refusal = refused(&mut socket, "again").await;
    assert_eq!(refusal["code"], "not_allowed", "{refusal}");
    let text = refusal["message"].as_str().unwrap();
    assert!(
        text.contains("`Writer`") && text.contains("can be read"),
        "{text}"
    );
    let at = format!("/api/sessions/{session}/messages");
    let sent = user.post(&at, json!({ "text": "x" })).await;
    sent.problem(403, "not_allowed");
    user.post(&format!("/api/sessions/{session}/retry"), json!({}))
        .await
        .problem(403, "not_allowed");
    user.get(&path).await.ok(200);

    // Access that comes back brings the session back.
    share(&owner, &id, everybody).await;
    turn(&app, &mut socket).await;

    assert_eq!(
        owner.delete(&format!("/api/assistants/{id}")).await.status,
        204
    );
    let refusal = refused(&mut socket, "again").await;
    assert!(
        refusal["message"].as_str().unwrap().contains("was deleted"),
        "{refusal}"
    );
    let at = format!("/api/sessions/{session}/assistant");
    let update = user.post(&at, json!({})).await;
    update.problem(403, "not_allowed");
    let events = user.get(&path).await.ok(200);
    assert!(events["items"].as_array().unwrap().len() > 3);
    let start = json!({ "assistant": id });
    user.post("/api/sessions", start)
        .await
        .problem(404, "not_found");
    assert_eq!(app.model.requests().len(), 2);
}

#[tokio::test]
async fn a_fork_keeps_the_assistant() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let body = json!({ "name": "Writer", "instructions": "Speak like a pirate." });
    let id = add(&client, "person", body).await;
    let mut socket = start(&app, &ana, &id).await;
    turn(&app, &mut socket).await;
    let path = format!("/api/sessions/{}/fork", socket.session());
    let forked = client.post(&path, json!({})).await;
    let forked = forked.json()["id"].as_str().unwrap().to_owned();
    let mut fork = TestSocket::open(app.address, &ana, Some(&forked)).await;
    assert_eq!(fork.ready["assistant"]["id"], id.as_str());
    turn(&app, &mut fork).await;
    assert!(system(&app).contains("pirate"));
}
