//! Calls that nobody decides in time are rejected, wherever their session is by then.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::asked;
use crate::model_stub::ModelStub;
use crate::replicas::Pair;
use crate::rest::Client;
use crate::support::postgres::new_database;
use crate::support::{Server, TestApp, TestSocket, person, until};

const SANDBOX: (&str, &str) = ("SPL_SANDBOX", "bubblewrap");
const SETTING: &str = "SPL_CHAT_APPROVAL_EXPIRY";

/// The end of a call that expired, as its socket is told.
async fn wait_for_expiry(socket: &mut TestSocket, card: &Value) {
    let decided = socket.wait_for("tool:decided").await.args[0].clone();
    assert_eq!(decided["callId"], card["callId"]);
    assert_eq!(decided["approved"], false, "{decided}");
    let reason = decided["reason"].as_str().unwrap();
    assert!(reason.starts_with("nobody answered within"), "{decided}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

/// How often the journal says that a call was decided.
async fn decisions(client: &Client, session: &str) -> usize {
    let path = format!("/api/sessions/{session}/events?after=0&limit=500");
    let page = client.get(&path).await.ok(200);
    let items = page["items"].as_array().unwrap();
    let names = items.iter().map(|item| item["event"].to_string());
    names.filter(|name| name.contains("tool:decided")).count()
}

/// Asserts O2.
#[tokio::test]
async fn a_call_that_nobody_decides_is_rejected_and_the_turn_goes_on() {
    let app = TestApp::start_with(&[SANDBOX, (SETTING, "1")]).await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let card = asked(&app, &mut socket, "touch late").await;
    assert!(card["expiresAt"].is_string(), "{card}");
    wait_for_expiry(&mut socket, &card).await;
    let read = app.model.requests().pop().unwrap();
    let read = format!("{read:?}");
    assert!(read.contains("nobody answered within 1 second"), "{read}");
    assert!(socket.log.iter().all(|said| said.name != "tool:started"));

    // Whoever comes late learns why; to others there is no such session.
    let late = json!({ "callId": card["callId"], "approved": true, "digest": card["digest"] });
    let path = format!("/api/sessions/{}/approvals", socket.session());
    let client = Client::with_key(&app, &ana.key);
    let answer = client.post(&path, late.clone()).await;
    answer.problem(409, "call_expired");
    let answer = socket.decide(&card, true).await;
    assert_eq!(answer["error"]["code"], "call_expired", "{answer}");
    let other = app.person("other").await;
    let other = Client::with_key(&app, &other.key);
    other
        .post(&path, late)
        .await
        .problem(404, "session_not_found");
}

/// Asserts O1.
#[tokio::test]
async fn a_call_expires_in_a_session_that_is_not_in_memory() {
    let limits = [
        SANDBOX,
        (SETTING, "2"),
        ("SPL_LIMIT_SESSIONS_PER_USER", "1"),
    ];
    let app = TestApp::start_with(&limits).await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    asked(&app, &mut socket, "touch late").await;
    let session = socket.session();
    socket.vanish();
    // Another session takes its room, and leaves soon, as nobody told it anything.
    TestSocket::open(app.address, &ana, None).await.vanish();
    let held = app.sessions.clone();
    until("nothing is in memory", move || held.live_count() == 0).await;
    // The model reads of it without anybody looking.
    app.model.asked(2).await;
    let client = Client::with_key(&app, &ana.key);
    assert_eq!(decisions(&client, &session).await, 1);
}

/// Asserts O1.
#[tokio::test]
async fn of_two_gateways_one_rejects_it_once() {
    let pair = Pair::start_with(&[SANDBOX, (SETTING, "1")]).await;
    let (person, mut a, mut b) = pair.sockets("expiry").await;
    let card = asked(&pair.a, &mut a, "touch late").await;
    for socket in [&mut a, &mut b] {
        wait_for_expiry(socket, &card).await;
    }
    let answer = b.decide(&card, true).await;
    assert_eq!(answer["error"]["code"], "call_expired", "{answer}");
    let client = Client::with_key(&pair.b, &person.key);
    assert_eq!(decisions(&client, &a.session()).await, 1);
}

/// Asserts O1.
#[tokio::test]
async fn a_call_expires_after_a_kill() {
    expires_after_a_kill(None).await;
}

#[tokio::test]
async fn a_call_expires_after_a_kill_in_postgres_too() {
    let database = new_database().await;
    expires_after_a_kill(Some(&database)).await;
}

/// The program is killed before the call expires, and started again with another setting: what the card
/// said holds.
async fn expires_after_a_kill(database: Option<&str>) {
    let mut env = vec![(SETTING, "3")];
    env.extend(database.map(|url| ("DATABASE_URL", url)));
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    model
        .will_call("execute_command", json!({ "command": "touch late" }))
        .then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    let session = socket.session();
    server.kill();

    if let Some(first) = env.first_mut() {
        first.1 = "0";
    }
    let server = Server::start_with(&data, &model, &env);
    model.asked(2).await;
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    let answer = again.decide(&card, true).await;
    assert_eq!(answer["error"]["code"], "call_expired", "{answer}");
    let client = Client::at(server.address, &ana.key);
    assert_eq!(decisions(&client, &session).await, 1);
}
