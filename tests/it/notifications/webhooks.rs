//! Webhooks: signed, once for each batch, tried again, and not lost with a process.

use std::path::Path;
use std::process::Stdio;

use sepal::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::receiver::{Message, Receiver};
use super::{ENV, HUSH, reject, waiting, will_ask};
use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{Server, TestApp, TestSocket, person, sepal};

/// Adds a webhook; its item and its secret.
async fn add(boss: &Client, url: &str, tells_decided: bool) -> (Value, String) {
    let body = json!({ "url": url, "tellsDecided": tells_decided });
    let added = boss.post("/api/webhooks", body).await.ok(201);
    let secret = added["secret"].as_str().unwrap().to_owned();
    (added["webhook"].clone(), secret)
}

async fn listed(boss: &Client) -> Vec<Value> {
    let page = boss.get("/api/webhooks").await.ok(200);
    page["items"].as_array().unwrap().clone()
}

/// All that a message says of the batch of two calls, and nothing else.
fn check_facts(message: &Message, session: &str) {
    let waits = message.json();
    let data = &waits["data"];
    assert_eq!(data["tools"], json!(["list_files"]));
    assert_eq!(data["calls"], 2);
    assert_eq!(data["title"], Value::Null);
    assert!(data["person"].as_str().unwrap().starts_with('p'));
    let url = data["url"].as_str().unwrap();
    assert!(url.ends_with(&format!("/s/{session}")), "{url}");
    assert_eq!(waits["timestamp"], data["waitingSince"]);
    let mut names: Vec<_> = data.as_object().unwrap().keys().cloned().collect();
    names.sort();
    let known = [
        "calls",
        "expiresAt",
        "person",
        "sessionId",
        "title",
        "tools",
        "url",
        "waitingSince",
    ];
    assert_eq!(names, known);
}

#[tokio::test]
async fn a_batch_is_told_once_signed_and_without_arguments() {
    let (app, both, one) = (
        TestApp::start_with(ENV).await,
        Receiver::start().await,
        Receiver::start().await,
    );
    let ana = app.person("acme").await;
    let boss = app.person_with("acme", Role::Admin).await;
    let boss = Client::with_key(&app, &boss.key);
    // What waits before anybody wants to know is not told.
    let (_old, _) = waiting(&app, &ana, 1).await;
    let (_, secret) = add(&boss, &both.url("/hook"), true).await;
    let (_, other) = add(&boss, &one.url("/hook"), false).await;
    assert_ne!(secret, other);

    let (mut socket, cards) = waiting(&app, &ana, 2).await;
    let session = socket.session();
    let told = both.wait_for(1).await;
    one.wait_for(1).await;
    // One of two: the batch still waits. Then it is decided, and the turn ends.
    reject(&app, &ana, &socket, &cards[0]).await;
    app.model.will_say("Then not");
    reject(&app, &ana, &socket, &cards[1]).await;
    socket.wait_for_answer().await;
    both.wait_for(2).await;
    // Whoever wants to know no more is told of the next batch only.
    let (next, _) = waiting(&app, &ana, 1).await;
    let told_of_one = one.wait_for(2).await;
    let told_of_both = both.wait_for(3).await;

    let kinds: Vec<_> = told_of_both.iter().map(Message::kind).collect();
    let expected = [
        "approvals.waiting",
        "approvals.decided",
        "approvals.waiting",
    ];
    assert_eq!(kinds, expected);
    let sessions: Vec<_> = told_of_one
        .iter()
        .map(|message| message.json()["data"]["sessionId"].clone())
        .collect();
    assert_eq!(sessions, [json!(session), json!(next.session())]);
    for message in &told_of_both {
        message.check(&secret);
        assert_eq!(message.path, "/hook");
        assert!(!message.text.contains(HUSH), "{}", message.text);
    }
    for message in &told_of_one {
        message.check(&other);
    }
    assert_ne!(told_of_both[0].id, told_of_both[1].id);

    check_facts(&told[0], &session);
    let items = listed(&boss).await;
    assert_eq!(items[0]["lastStatus"], 204);
    assert_eq!(items[0]["lastError"], Value::Null);
}

#[tokio::test]
async fn what_failed_is_told_again_by_the_same_id_and_no_redirect_is_followed() {
    let (app, receiver) = (TestApp::start_with(ENV).await, Receiver::start().await);
    let ana = app.person("acme").await;
    let boss = app.person_with("acme", Role::Owner).await;
    let boss = Client::with_key(&app, &boss.key);
    let (_, secret) = add(&boss, &receiver.url("/hook"), true).await;
    receiver.will_answer(&[500, 302]);
    let (socket, cards) = waiting(&app, &ana, 1).await;
    let told = receiver.wait_for(3).await;
    for message in &told {
        message.check(&secret);
        assert_eq!((&message.id, &message.text), (&told[0].id, &told[0].text));
        assert_eq!(message.path, "/hook");
    }
    app.model.will_say("Then not");
    reject(&app, &ana, &socket, &cards[0]).await;
    let told = receiver.wait_for(4).await;
    assert_eq!(told[3].kind(), "approvals.decided");
    assert_eq!(listed(&boss).await[0]["failingSince"], Value::Null);
}

#[tokio::test]
async fn an_answer_of_gone_ends_it_until_a_test_succeeds() {
    let (app, receiver) = (TestApp::start_with(ENV).await, Receiver::start().await);
    let boss = app.person_with("acme", Role::Admin).await;
    let client = Client::with_key(&app, &boss.key);
    let (item, secret) = add(&client, &receiver.url("/hook"), false).await;
    let test = format!("/api/webhooks/{}/test", item["id"].as_str().unwrap());
    receiver.will_answer(&[410]);
    let tried = client.post(&test, json!({})).await.ok(200);
    assert_eq!(
        (&tried["ok"], &tried["status"]),
        (&json!(false), &json!(410))
    );
    let gone = &listed(&client).await[0];
    assert_eq!(gone["lastError"], "the answer was 410");
    assert!(gone["disabledAt"].is_string(), "{gone}");

    // Nobody is told while it is so; afterwards, what still waits is.
    let (socket, _) = waiting(&app, &boss, 1).await;
    let tried = client.post(&test, json!({})).await.ok(200);
    assert_eq!(tried["ok"], true);
    assert_eq!(listed(&client).await[0]["disabledAt"], Value::Null);
    let told = receiver.wait_for(3).await;
    let kinds: Vec<_> = told.iter().map(Message::kind).collect();
    assert_eq!(kinds, ["webhook.test", "webhook.test", "approvals.waiting"]);
    for message in &told {
        message.check(&secret);
    }
    assert_eq!(told[2].json()["data"]["sessionId"], socket.session());
}

/// Asserts O1.
#[tokio::test]
async fn a_restart_neither_forgets_nor_repeats() {
    let receiver = Receiver::start().await;
    let mut env = ENV.to_vec();
    env[2] = ("SPL_NOTIFICATIONS_FIRST_RETRY", "0.5");
    let app = TestApp::start_with(&env).await;
    let ana = app.person("acme").await;
    let boss = app.person_with("acme", Role::Admin).await;
    add(
        &Client::with_key(&app, &boss.key),
        &receiver.url("/hook"),
        true,
    )
    .await;
    receiver.will_answer(&[503]);
    let (socket, cards) = waiting(&app, &ana, 1).await;
    let first = receiver.wait_for(1).await;
    // Taken up again at the start, the session waits for the same batch.
    let app = app.restart().await;
    let told = receiver.wait_for(2).await;
    assert_eq!(told[1].id, first[0].id);
    assert_eq!(told[1].facts(), first[0].facts());
    let app = app.restart().await;
    app.model.will_say("Then not");
    reject(&app, &ana, &socket, &cards[0]).await;
    let told = receiver.wait_for(3).await;
    let kinds: Vec<_> = told.iter().map(Message::kind).collect();
    let expected = [
        "approvals.waiting",
        "approvals.waiting",
        "approvals.decided",
    ];
    assert_eq!(kinds, expected);
}

/// A key of an admin, made by the command line beside the server.
fn admin_key(data: &Path) -> String {
    let run = |args: &[&str]| {
        let mut command = sepal(data);
        let output = command
            .arg("admin")
            .args(args)
            .stderr(Stdio::null())
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    run(&["user", "add", "boss", "--tenant", "acme", "--role", "admin"]);
    let key = run(&["key", "add", "test", "--user", "boss", "--tenant", "acme"]);
    key.lines().last().unwrap().to_owned()
}

#[tokio::test]
async fn a_kill_in_the_middle_of_telling_tells_it_again_by_the_same_id() {
    let (receiver, model) = (Receiver::start().await, ModelStub::start().await);
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let server = Server::start_with(&data, &model, ENV);
    let ana = person(&data, &[]);
    let boss = Client::at(server.address, &admin_key(&data));
    let (_, secret) = add(&boss, &receiver.url("/hook"), false).await;
    // It is read and never answered: whether it arrived is not known.
    receiver.will_answer(&[0]);
    will_ask(&model, 1);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("mend").await;
    socket.wait_for_approval().await;
    receiver.wait_for(1).await;
    server.kill();

    let _server = Server::start_with(&data, &model, ENV);
    let told = receiver.wait_for(2).await;
    assert_eq!(told[0].id, told[1].id);
    assert_eq!(told[0].facts(), told[1].facts());
    for message in &told {
        message.check(&secret);
    }
}

#[tokio::test]
async fn an_address_that_is_not_allowed_any_more_is_not_reached() {
    let (app, receiver) = (TestApp::start_with(ENV).await, Receiver::start().await);
    let boss = app.person_with("acme", Role::Admin).await;
    let client = Client::with_key(&app, &boss.key);
    let (item, _) = add(&client, &receiver.url("/hook"), false).await;
    let port = receiver.url("").rsplit(':').next().unwrap().to_owned();
    let by_name = format!("http://localhost:{port}/hook");
    let (named, _) = add(&client, &by_name, false).await;

    let app = app.restart_with(&[("SPL_SANDBOX", "none")]).await;
    let client = Client::with_key(&app, &boss.key);
    for item in [&item, &named] {
        let test = format!("/api/webhooks/{}/test", item["id"].as_str().unwrap());
        let tried = client.post(&test, json!({})).await.ok(200);
        assert_eq!(
            (&tried["ok"], &tried["status"]),
            (&json!(false), &Value::Null)
        );
        let why = tried["error"].as_str().unwrap();
        assert!(why.contains("SPL_OUTGOING_ALLOW"), "{why}");
    }
    assert!(receiver.messages().is_empty());
    for url in [receiver.url("/hook"), format!("http://localhost:{port}/")] {
        let refused = client.post("/api/webhooks", json!({ "url": url })).await;
        let refused = refused.problem(400, "invalid_arguments");
        assert_eq!(refused["errors"][0]["field"], "url");
    }
}
