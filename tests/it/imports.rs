//! Conversations of other programs, taken in through the whole house. The forms themselves are tested
//! beside their parser.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use crate::attachments::upload;
use crate::rest::{Answer, Client};
use crate::support::{TestApp, TestSocket};

const PLAIN: &[(&str, &str)] = &[("SPL_SANDBOX", "none")];

async fn send(client: &Client, file: impl Into<reqwest::Body>) -> Answer {
    let request = client.request(Method::POST, "/api/sessions/import");
    let request = request.header("content-type", "application/octet-stream");
    Answer::of(request.body(file).send().await.unwrap()).await
}

fn message(parent: &str, role: &str, at: u64, text: &str) -> Value {
    json!({
        "parent": parent, "children": [], "message": {
            "author": { "role": role }, "create_time": at, "recipient": "all",
            "content": { "content_type": "text", "parts": [text] },
            "metadata": { "model_slug": "gpt-5" },
        },
    })
}

fn conversation(id: &str) -> Value {
    json!({
        "title": format!("Sails {id}"), "create_time": 1_756_000_000, "conversation_id": id,
        "current_node": "b", "mapping": {
            "a": message("root", "user", 1_756_000_001, "how do I mend a sail"),
            "b": message("a", "assistant", 1_756_000_002, "with a needle"),
        },
    })
}

fn titles(list: &Value) -> Vec<&str> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn conversations_become_sessions_with_title_times_and_messages_and_go_on() {
    let app = TestApp::start_with(PLAIN).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let broken = json!({ "title": "Corrupted", "id": "x" });
    let file = json!([conversation("one"), broken, conversation("two")]).to_string();
    let done = send(&client, file).await.ok(200);
    assert_eq!(titles(&done["imported"]), ["Sails one", "Sails two"]);
    assert_eq!(titles(&done["skipped"]), ["Corrupted"]);
    assert!(
        done["skipped"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("no conversation")
    );

    let session = done["imported"][0]["sessionId"].as_str().unwrap();
    let row = client
        .get(&format!("/api/sessions/{session}"))
        .await
        .ok(200);
    assert_eq!(
        (&row["title"], &row["state"]),
        (&json!("Sails one"), &json!("idle"))
    );
    assert_eq!(row["createdAt"], "2025-08-24T01:46:40.000Z");
    assert_eq!(row["updatedAt"], "2025-08-24T01:46:42.000Z");
    let found = client.get("/api/sessions").await.ok(200);
    assert_eq!(found["items"].as_array().unwrap().len(), 2);

    // It costs nothing, and goes on like any other.
    let mut socket = TestSocket::open(app.address, &ana, Some(session)).await;
    assert_eq!(socket.ready["state"]["usage"]["totalTokens"], 0);
    app.model.will_say("Like this");
    socket.say("show me").await;
    assert_eq!(socket.wait_for_answer().await, "Like this");
    let asked = app.model.requests().pop().unwrap().body;
    let read = asked["messages"].as_array().unwrap().iter();
    let read: Vec<_> = read
        .filter(|message| message["role"] != "system")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(read, ["how do I mend a sail", "with a needle", "show me"]);
    let report = client.get("/api/usage?by=session").await.ok(200);
    assert_eq!(report["totals"]["requests"], 1, "{report}");
}

#[tokio::test]
async fn the_same_file_twice_makes_nothing_twice_and_what_went_on_stays() {
    let app = TestApp::start_with(PLAIN).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let first = json!([conversation("one")]).to_string();
    let done = send(&client, first).await.ok(200);
    let session = done["imported"][0]["sessionId"].clone();
    let both = json!([conversation("one"), conversation("two")]).to_string();
    let done = send(&client, both).await.ok(200);
    assert_eq!(titles(&done["imported"]), ["Sails two"]);
    assert_eq!(done["alreadyThere"][0]["sessionId"], session);
    // Whoever deleted one may want it back.
    let path = format!("/api/sessions/{}", session.as_str().unwrap());
    assert_eq!(client.delete(&path).await.status, 204);
    let again = json!([conversation("one")]).to_string();
    let done = send(&client, again).await.ok(200);
    assert_eq!(done["imported"][0]["sessionId"], session);
}

#[tokio::test]
async fn what_one_imports_is_nobody_elses_whatever_its_id() {
    let app = TestApp::start_with(PLAIN).await;
    let people = [
        app.person("acme").await,
        app.person_with("acme", Role::Owner).await,
        app.person_with("other", Role::Owner).await,
    ];
    let mut sessions = Vec::new();
    for person in &people {
        let client = Client::with_key(&app, &person.key);
        let file = json!([conversation("one")]).to_string();
        let done = send(&client, file).await.ok(200);
        sessions.push(
            done["imported"][0]["sessionId"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    for (person, own) in people.iter().zip(&sessions) {
        let client = Client::with_key(&app, &person.key);
        for session in &sessions {
            let expected = if session == own { 200 } else { 404 };
            let answer = client.get(&format!("/api/sessions/{session}")).await;
            assert_eq!(answer.status, expected, "{}", answer.text);
        }
    }
    let viewer = app.person_with("acme", Role::Viewer).await;
    let viewer = Client::with_key(&app, &viewer.key);
    send(&viewer, "[]").await.problem(403, "not_allowed");
    let nobody = Client::nobody(&app);
    send(&nobody, "[]").await.problem(401, "unauthorized");
}

#[tokio::test]
async fn our_own_export_comes_back_as_a_session() {
    let app = TestApp::start_with(PLAIN).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model
        .will_call("no_such_tool", json!({ "sail": 1 }))
        .then_say("With a needle");
    socket.say("how do I mend a sail").await;
    socket.wait_for_answer().await;
    let path = format!("/api/sessions/{}/export?format=json", socket.session());
    let file = client.get(&path).await;
    let done = send(&client, file.text).await.ok(200);
    assert_eq!(
        titles(&done["imported"]),
        ["how do I mend a sail"],
        "{done}"
    );
    let session = done["imported"][0]["sessionId"].as_str().unwrap();
    let path = format!("/api/sessions/{session}/export?format=md");
    let text = client.get(&path).await.text;
    for part in [
        "how do I mend a sail",
        "Called `no_such_tool` with",
        "\"sail\": 1",
        "With a needle",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// What the export carries comes along, what it lacks or may not come is named.
#[tokio::test]
async fn what_was_attached_comes_along_with_our_own_export() {
    let app = TestApp::start_with(PLAIN).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model.will_say("hello");
    socket.say("hi").await;
    socket.wait_for_answer().await;
    let session = socket.session();
    let mut ids = Vec::new();
    for (name, bytes) in [
        ("notes.txt", b"sail one".to_vec()),
        ("b.txt", b"two".to_vec()),
    ] {
        let item = upload(&client, &session, name, bytes).await.ok(201);
        ids.push(item["id"].clone());
    }
    app.model.will_say("read");
    let said = json!({ "text": "", "attachments": ids });
    assert_eq!(socket.ask("message", &[said]).await["ok"], true);
    socket.wait_for_answer().await;
    let path = format!("/api/sessions/{session}/export?format=json");
    let text = client.get(&path).await.text;
    let mut file: Value = serde_json::from_str(&text).unwrap();
    // One is not what it says it is, and one is not there.
    let wrong = STANDARD.encode([0_u8, 1, 2]);
    file["attachments"][ids[1].as_str().unwrap()] = json!(wrong);

    // It comes back to somebody else of another tenant as theirs, and to her.
    let bob = app.person("other").await;
    for person in [&ana, &bob] {
        let client = Client::with_key(&app, &person.key);
        let done = send(&client, file.to_string()).await.ok(200);
        let new = done["imported"][0]["sessionId"].as_str().unwrap();
        let events = client
            .get(&format!("/api/sessions/{new}/events"))
            .await
            .ok(200);
        let mut events = events["items"].as_array().unwrap().iter();
        let asked = events
            .rfind(|event| event["event"] == "user:message")
            .unwrap();
        let attached = asked["args"][1]["attachments"].as_array().unwrap();
        assert_eq!(attached.len(), 1, "{asked}");
        assert_eq!(attached[0]["name"], "notes.txt");
        let left = asked["args"][0].as_str().unwrap();
        assert!(
            left.contains("[Left out: the file `b.txt`: this kind of file"),
            "{left}"
        );
        let id = attached[0]["id"].as_str().unwrap();
        let path = format!("/api/sessions/{new}/attachments/{id}");
        let kept = client.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(kept.text().await.unwrap(), "sail one");
        let stranger = if person.key == ana.key { &bob } else { &ana };
        let stranger = Client::with_key(&app, &stranger.key);
        let refused = stranger.get(&path).await;
        assert_eq!(refused.status, 404);
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_in_words_and_leaves_nothing() {
    let app = TestApp::start_with(PLAIN).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    for (file, words) in [
        ("hello", "neither JSON nor a zip"),
        ("{\"a\":1}", "none of the exports"),
        ("PK\u{3}\u{4}broken", "archive"),
    ] {
        let problem = send(&client, file).await.problem(400, "invalid_arguments");
        let told = problem["errors"][0]["message"].as_str().unwrap_or_default();
        assert!(told.contains(words), "{problem}");
    }
    let huge = vec![b' '; 64 * 1024 * 1024 + 1];
    send(&client, huge).await.problem(413, "too_large");
    let found = client.get("/api/sessions").await.ok(200);
    assert_eq!(found["items"], json!([]));
}
