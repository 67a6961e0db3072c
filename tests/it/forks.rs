//! Forks of sessions and sessions as files, through the whole house.

use reqwest::Method;
use serde_json::{Value, json};

use crate::attachments::{png, upload};
use crate::model_stub::Vendor;
use crate::rest::Client;
use crate::support::{Person, TestApp, TestSocket};

const PLAIN: &[(&str, &str)] = &[("SPL_SANDBOX", "none")];

async fn say(socket: &mut TestSocket, text: &str) -> String {
    socket.say(text).await;
    socket.wait_for_answer().await
}

/// Two questions with their answers.
async fn with_a_past(app: &TestApp) -> (Person, Client, TestSocket) {
    let ana = app.person("acme").await;
    let client = Client::with_key(app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model.will_say("first");
    assert_eq!(say(&mut socket, "one").await, "first");
    app.model.will_say("second");
    assert_eq!(say(&mut socket, "two").await, "second");
    (ana, client, socket)
}

/// `seq` of the message with that text.
fn seq_of(socket: &TestSocket, text: &str) -> u64 {
    let mut said = socket.log.iter();
    let found = said.find(|said| said.name == "user:message" && said.text() == text);
    found.unwrap().seq().unwrap()
}

/// What the model read in its last request, as texts.
fn last_read(app: &TestApp) -> Vec<String> {
    let asked = app.model.requests().pop().unwrap().body;
    let messages = asked["messages"].as_array().unwrap().iter();
    let messages = messages.filter(|message| message["role"] != "system");
    messages
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// A fork that goes on from the second question with other words, as its owner sees it.
async fn edited(app: &TestApp, ana: &Person, socket: &mut TestSocket) -> (String, TestSocket) {
    app.model.will_say("other");
    let from = seq_of(socket, "two") - 1;
    let ask = json!({ "fromSeq": from, "text": "2", "clientMessageId": "m-9" });
    let answer = socket.ask("session:fork", &[ask]).await;
    assert_eq!(answer["ok"], true, "{answer}");
    let forked = answer["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(forked, socket.session());
    let mut fork = TestSocket::open(app.address, ana, Some(&forked)).await;
    if fork.ready["state"]["running"].is_object() {
        assert_eq!(fork.wait_for_answer().await, "other");
    }
    (forked, fork)
}

/// The transcript over REST.
async fn transcript(client: &Client, session: &str) -> Vec<Value> {
    let path = format!("/api/sessions/{session}/events");
    let page = client.get(&path).await.ok(200);
    page["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn an_edited_message_takes_another_way_and_the_old_one_stays() {
    let app = TestApp::start_with(PLAIN).await;
    let (ana, client, mut socket) = with_a_past(&app).await;
    let session = socket.session();
    let (forked, _fork) = edited(&app, &ana, &mut socket).await;
    assert_eq!(last_read(&app), ["one", "first", "2"]);
    let events = transcript(&client, &forked).await;
    let is_own = |event: &Value| event["event"] == "session:forked";
    let own = events.iter().position(is_own).unwrap();
    assert_eq!(events[own]["args"][0]["sessionId"], session.as_str());
    let from = seq_of(&socket, "two") - 1;
    assert_eq!(events[own]["args"][0]["fromSeq"], from);
    // The shared past is the same to the letter, times included.
    let before = transcript(&client, &session).await;
    assert_eq!(before[..own], events[..own]);
    let text = json!(events).to_string();
    assert!(text.contains("other") && !text.contains("second"), "{text}");

    // Nothing was paid twice: its totals are those of its own request.
    let mut totals = Vec::new();
    for id in [&forked, &session] {
        let ready = TestSocket::open(app.address, &ana, Some(id)).await.ready;
        totals.push(ready["state"]["usage"]["totalTokens"].as_u64().unwrap());
    }
    assert!(0 < totals[0] && totals[0] < totals[1], "{totals:?}");
    // The rows say the same of each.
    for (id, total) in [&forked, &session].into_iter().zip(totals) {
        let usage = client
            .get(&format!("/api/usage?session={id}"))
            .await
            .ok(200);
        assert_eq!(usage["totals"]["totalTokens"], total, "{usage}");
    }
}

#[tokio::test]
async fn a_fork_knows_its_family_and_outlives_it() {
    let app = TestApp::start_with(PLAIN).await;
    let (ana, client, mut socket) = with_a_past(&app).await;
    let session = socket.session();
    let (forked, fork) = edited(&app, &ana, &mut socket).await;
    let path = format!("/api/sessions/{forked}/forks");
    let family = client.get(&path).await.ok(200);
    let items = family["items"].as_array().unwrap();
    let ids: Vec<&str> = items.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [session.as_str(), forked.as_str()]);
    let from = seq_of(&socket, "two") - 1;
    assert_eq!(
        items[1]["forkedFrom"],
        json!({ "sessionId": session, "seq": from })
    );
    assert_eq!(items[0]["forkedFrom"], Value::Null);

    let gone = client.delete(&format!("/api/sessions/{session}")).await;
    assert_eq!(gone.status, 204);
    drop((socket, fork));
    let app = app.restart().await;
    let client = Client::with_key(&app, &ana.key);
    let mut fork = TestSocket::open(app.address, &ana, Some(&forked)).await;
    app.model.will_say("more");
    assert_eq!(say(&mut fork, "three").await, "more");
    assert_eq!(last_read(&app), ["one", "first", "2", "other", "three"]);
    let family = client.get(&path).await.ok(200);
    assert_eq!(family["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn another_model_answers_the_same_message_in_a_fork() {
    let app = TestApp::start_with(PLAIN).await;
    let (_, client, socket) = with_a_past(&app).await;
    app.model.will_say("from another");
    let ask = json!({ "fromSeq": seq_of(&socket, "two"), "model": "stub-large" });
    let path = format!("/api/sessions/{}/fork", socket.session());
    let forked = client.post(&path, ask).await.ok(201);
    app.model.asked(3).await;
    let asked = app.model.requests().pop().unwrap().body;
    assert_eq!(asked["model"], "stub-large");
    assert_eq!(last_read(&app), ["one", "first", "two"]);
    assert_eq!(forked["forkedFrom"]["seq"], seq_of(&socket, "two"));
    // Without words and without an open message nothing is asked.
    let path = format!("/api/sessions/{}/fork", socket.session());
    let whole = client.post(&path, json!({})).await.ok(201);
    assert_eq!(whole["state"], "idle");
    assert_eq!(app.model.requests().len(), 3);
}

#[tokio::test]
async fn what_cannot_be_forked_is_refused_and_leaves_nothing() {
    let app = TestApp::start_with(PLAIN).await;
    let (_, client, socket) = with_a_past(&app).await;
    let path = format!("/api/sessions/{}/fork", socket.session());
    for (body, field) in [
        (json!({ "fromSeq": 1_000_000 }), "fromSeq"),
        (json!({ "text": " " }), "text"),
        (
            json!({ "text": "x", "attachments": ["nothing"] }),
            "attachments",
        ),
        (
            json!({ "text": "x", "attachments": ["0".repeat(64)] }),
            "attachments",
        ),
        (json!({ "model": "m", "provider": "nobody" }), "provider"),
    ] {
        let refused = client.post(&path, body.clone()).await;
        let problem = refused.problem(400, "invalid_arguments");
        assert_eq!(problem["errors"][0]["field"], field, "{body} {problem}");
    }
    let refused = client.post(&path, json!({ "fromSeq": -1 })).await;
    refused.problem(400, "invalid_arguments");
    let listed = client.get("/api/sessions").await.ok(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(app.model.requests().len(), 2);
}

/// Asserts S3.19: attachments are taken along.
#[tokio::test]
async fn a_fork_holds_what_is_attached_to_its_past() {
    let app = TestApp::start_as(Vendor::Chat, PLAIN).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model.will_say("hello");
    say(&mut socket, "hi").await;
    let session = socket.session();
    let cat = upload(&client, &session, "cat.png", png(6, 4, [9, 8, 7]))
        .await
        .ok(201);
    app.model.will_say("a cat");
    let said = json!({ "text": "look", "attachments": [cat["id"]] });
    assert_eq!(socket.ask("message", &[said]).await["ok"], true);
    assert_eq!(socket.wait_for_answer().await, "a cat");
    let path = format!("/api/sessions/{session}/fork");
    let forked = client.post(&path, json!({})).await.ok(201);
    let gone = client
        .send(Method::DELETE, &format!("/api/sessions/{session}"), None)
        .await;
    assert_eq!(gone.status, 204);
    let forked = forked["id"].as_str().unwrap();
    let id = cat["id"].as_str().unwrap();
    let path = format!("/api/sessions/{forked}/attachments/{id}");
    let kept = client.request(Method::GET, &path).send().await.unwrap();
    let kept = kept.bytes().await.unwrap().to_vec();
    assert!(image::load_from_memory(&kept).is_ok());
    app.model.will_say("still a cat");
    let path = format!("/api/sessions/{forked}/messages");
    client.post(&path, json!({ "text": "sure?" })).await.ok(202);
    app.model.asked(3).await;
    let asked = app.model.requests().pop().unwrap().body.to_string();
    assert!(asked.contains("data:image/png;base64,"), "{asked}");

    // It is in what is taken away, too.
    let path = format!("/api/sessions/{forked}/export?format=json");
    let exported = client.request(Method::GET, &path).send().await.unwrap();
    let exported: Value = exported.json().await.unwrap();
    let data = exported["attachments"][id].as_str().unwrap();
    assert_eq!(
        data,
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &kept)
    );
    let path = format!("/api/sessions/{forked}/export?format=html");
    let page = client.get(&path).await;
    assert!(
        page.text
            .contains(&format!("src=\"data:image/png;base64,{data}\""))
    );
}

#[tokio::test]
async fn a_session_is_taken_away_as_a_file() {
    let app = TestApp::start_with(PLAIN).await;
    let (_, client, socket) = with_a_past(&app).await;
    let path = format!("/api/sessions/{}/export", socket.session());
    for (format, kind, part) in [
        ("", "text/markdown; charset=utf-8", "\n\nsecond\n"),
        ("?format=md", "text/markdown; charset=utf-8", "# one\n"),
        ("?format=html", "text/html; charset=utf-8", "<p>second</p>"),
        ("?format=json", "application/json", "\"agent:response\""),
    ] {
        let file = client.get(&format!("{path}{format}")).await;
        assert_eq!(file.status, 200, "{}", file.text);
        assert_eq!(file.header("content-type"), kind);
        assert!(file.text.contains(part), "{format} {}", file.text);
        // A page of ours must not run what a model wrote.
        assert!(file.header("content-security-policy").contains("sandbox"));
        assert!(
            file.header("content-disposition")
                .starts_with("attachment; filename*=UTF-8''one.")
        );
        assert_eq!(file.header("x-content-type-options"), "nosniff");
    }
    let refused = client.get(&format!("{path}?format=exe")).await;
    refused.problem(400, "invalid_arguments");
}

/// Neither another tenant nor another person of the same one gets at a session by these doors.
#[tokio::test]
async fn nobody_else_forks_or_takes_away_a_session() {
    let app = TestApp::start_with(PLAIN).await;
    let (_, _, socket) = with_a_past(&app).await;
    let session = socket.session();
    for stranger in [app.person("acme").await, app.person("other").await] {
        let client = Client::with_key(&app, &stranger.key);
        let at = |what: &str| format!("/api/sessions/{session}/{what}");
        client
            .post(&at("fork"), json!({}))
            .await
            .problem(404, "session_not_found");
        client
            .get(&at("forks"))
            .await
            .problem(404, "session_not_found");
        client
            .get(&at("export?format=json"))
            .await
            .problem(404, "session_not_found");
        let listed = client.get("/api/sessions").await.ok(200);
        assert_eq!(listed["items"], json!([]));
    }
}
