//! Many requests at once on one budget, through the whole program; and what is left when it is killed.

use std::collections::HashSet;
use std::time::Duration;

use sepal::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{PRICED, all_back, client, counted, set};
use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::postgres::new_database;
use crate::support::{DEADLINE, Said, Server, TestApp, TestSocket, person};

/// As many sessions at once as there is room for in memory.
pub(super) const CROWD: [(&str, &str); 4] = [
    ("SPL_LIMIT_NEW_SESSIONS_PER_USER", "0"),
    ("SPL_LIMIT_SESSIONS_PER_USER", "0"),
    ("SPL_LIMIT_CONNECTIONS_PER_ADDRESS", "0"),
    ("SPL_LLM_MAX_TOKENS", "16000"),
];

/// A model whose answers may have 32,000 tokens: 2 USD for a million tokens in, 8 USD out.
const LONG: [(&str, &str); 2] = [
    ("SPL_LLM_MODEL", "gpt-4.1"),
    ("SPL_LLM_MAX_TOKENS", "32000"),
];

/// Says something in so many new sessions at once.
pub(super) async fn begin(client: &Client, sessions: usize) {
    let begins = (0..sessions).map(|_| async {
        let session = client.post("/api/sessions", json!({})).await.ok(201);
        let id = session["id"].as_str().unwrap().to_owned();
        let messages = format!("/api/sessions/{id}/messages");
        let said = client.post(&messages, json!({ "text": "hello" })).await;
        assert!(said.status < 300, "{}", said.text);
    });
    futures::future::join_all(begins).await;
}

/// Says something in so many sessions at once; waits until all of them are at rest. How many were
/// answered.
async fn say_in(client: &Client, sessions: usize) -> usize {
    begin(client, sessions).await;
    // What looks without a pause takes the processor from those that it waits for.
    let mut looks = tokio::time::interval(Duration::from_millis(200));
    let resting = async {
        loop {
            looks.tick().await;
            let (failed, idle) = tokio::join!(at_rest(client, "failed"), at_rest(client, "idle"));
            if failed.len() + idle.len() == sessions {
                return idle.len();
            }
        }
    };
    tokio::time::timeout(6 * DEADLINE, resting).await.unwrap()
}

/// The sessions in that state.
pub(super) async fn at_rest(client: &Client, state: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/sessions?limit=200&state={state}{cursor}");
        let page = client.get(&path).await.ok(200);
        let items = page["items"].as_array().unwrap();
        found.extend(items.iter().map(|item| item["id"].to_string()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

async fn two_hundred_turns(extra: &[(&str, &str)]) {
    let app = TestApp::start_with(&[&PRICED[..], &CROWD, extra].concat()).await;
    let (_, boss) = client(&app, "acme", Role::Admin).await;
    set(
        &boss,
        json!({"level": "tenant", "period": "month", "limitUsd": 1}),
    )
    .await;
    for _ in 0..200 {
        // 0.00615 USD.
        app.model.will(counted(&"word. ".repeat(400), (60, 600)));
    }
    let answered = say_in(&boss, 200).await;
    let stands = all_back(&boss, "", "tenant").await;
    let used = stands["usedUsd"].as_f64().unwrap();
    assert!((0.95..=1.0).contains(&used), "{stands}");
    let usage = boss.get("/api/usage").await.ok(200);
    assert_eq!(usage["totals"]["costUsd"], stands["usedUsd"], "{usage}");
    assert_eq!(usage["totals"]["requests"], answered, "{usage}");
    app.model.forget_rest();
}

/// S1.12.
#[tokio::test]
async fn two_hundred_turns_at_once_spend_one_dollar_and_no_more() {
    two_hundred_turns(&[]).await;
}

/// S1.12.
#[tokio::test]
async fn two_hundred_turns_at_once_spend_one_dollar_in_postgres_too() {
    let database = new_database().await;
    two_hundred_turns(&[("DATABASE_URL", &database)]).await;
}

/// Each may say 32,000 tokens, which would be 25.60 USD for all of them, and says 300.
async fn a_hundred_long_turns(extra: &[(&str, &str)]) {
    let app = TestApp::start_with(&[&PRICED[..], &CROWD, &LONG, extra].concat()).await;
    let (_, boss) = client(&app, "acme", Role::Admin).await;
    set(
        &boss,
        json!({"level": "tenant", "period": "day", "limitUsd": 25}),
    )
    .await;
    for _ in 0..100 {
        app.model.will(counted("Hello.", (100, 300)));
    }
    assert_eq!(say_in(&boss, 100).await, 100);
    let stands = all_back(&boss, "", "tenant").await;
    assert_eq!(stands["usedUsd"], 0.26, "{stands}");
    let asked = app.model.requests();
    assert_eq!(asked.len(), 100);
    for request in asked {
        assert_eq!(request.body["max_tokens"], 32_000);
    }
}

/// S1.12.
#[tokio::test]
async fn a_hundred_turns_at_once_that_could_become_long_are_all_answered() {
    a_hundred_long_turns(&[]).await;
}

/// S1.12.
#[tokio::test]
async fn a_hundred_turns_at_once_that_could_become_long_are_all_answered_in_postgres_too() {
    let database = new_database().await;
    a_hundred_long_turns(&[("DATABASE_URL", &database)]).await;
}

/// Asserts S1.12: nothing is held beyond its lease, and nothing is counted twice.
#[tokio::test]
async fn a_killed_gateway_holds_nothing_beyond_its_lease() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let env = [&PRICED[..], &[("SPL_CHAT_SESSION_BUDGET", "1")]].concat();
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &[]);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    model.will_say("never to its end").stall();
    socket.say("hello").await;
    socket.wait_for("agent:delta").await;
    let session = socket.session();
    server.kill();
    model.release();
    let before = std::time::SystemTime::now();
    let left = held(&data).await;
    let now = before.duration_since(std::time::UNIX_EPOCH).unwrap();
    let most = now + Duration::from_secs(46);
    assert_eq!(left.len(), 1, "{left:?}");
    let most = i64::try_from(most.as_millis()).unwrap();
    assert!(left.iter().all(|until| *until <= most), "{left:?}");

    model.will(counted("Here again", (100, 10)));
    let server = Server::start_with(&data, &model, &env);
    let client = Client::at(server.address, &ana.key);
    let mut socket = TestSocket::open(server.address, &ana, Some(&session)).await;
    let answered = async {
        loop {
            let usage = client.get("/api/usage").await.ok(200);
            if usage["totals"]["requests"] == 2 {
                return usage;
            }
        }
    };
    let usage: Value = tokio::time::timeout(DEADLINE, answered).await.unwrap();
    let stands = all_back(&client, &format!("?session={session}"), "session").await;
    assert_eq!(stands["usedUsd"], usage["totals"]["costUsd"], "{usage}");
    assert_eq!(held(&data).await, Vec::<i64>::new());
    model.will(counted("And on", (100, 10)));
    socket.say("go on").await;
    let is_last = |said: &Said| said.name == "agent:response" && said.text() == "And on";
    socket.wait_where(is_last).await;
    // An answer is shown as soon as it is stored, and settled after that.
    let after = all_back(&client, &format!("?session={session}"), "session").await;
    assert!(
        after["usedUsd"].as_f64() > stands["usedUsd"].as_f64(),
        "{after}"
    );
}

/// When the leases of all that is held are over.
async fn held(data: &std::path::Path) -> Vec<i64> {
    use sqlx::{ConnectOptions as _, Connection as _};
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(data.join("sepal.db"));
    let mut database = options.connect().await.unwrap();
    let sql = "SELECT until FROM budget_reservations";
    let rows: Vec<(i64,)> = sqlx::query_as(sql).fetch_all(&mut database).await.unwrap();
    database.close().await.unwrap();
    rows.into_iter().map(|(until,)| until).collect()
}
