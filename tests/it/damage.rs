//! A session whose journal was damaged says so, for good, and nobody else is held up by it.

use std::path::Path;

use redis::Commands as _;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tokio::time::timeout;

use crate::support::{DEADLINE, Person, RedisServer, TestApp, TestSocket};

/// What the REST door answers.
async fn rest(app: &TestApp, person: &Person, method: Method, path: &str) -> (u16, Value) {
    let request = TestApp::http().request(method, app.url(path));
    let answer = request.bearer_auth(&person.key).send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// Why a socket on that session is refused.
async fn refusal(app: &TestApp, person: &Person, session: &str) -> String {
    let auth = json!({ "token": person.key, "sessionId": session });
    TestSocket::try_open(app.address, auth).await.err().unwrap()
}

/// Three commits: a turn, and one that waits for its model.
async fn leave_it_running(app: &TestApp, socket: &mut TestSocket) {
    app.model.will_say("so far so good");
    socket.say("hello").await;
    socket.wait_for_answer().await;
    app.model.will_say("never said whole").stall();
    socket.say("and now?").await;
    app.model.stalled().await;
}

/// A session that ended its turn, and one that waits for its model.
async fn two_sessions(app: &TestApp, person: &Person) -> (String, String) {
    app.model.will_say("fine");
    let mut sound = TestSocket::open(app.address, person, None).await;
    sound.say("hello").await;
    sound.wait_for_answer().await;
    let mut hurt = TestSocket::open(app.address, person, None).await;
    leave_it_running(app, &mut hurt).await;
    (sound.session(), hurt.session())
}

/// After the damage and a restart.
async fn only_the_damaged_one_is_refused(app: &TestApp, ana: &Person, sound: &str, hurt: &str) {
    assert_eq!(refusal(app, ana, hurt).await, "session_unreadable");
    let path = format!("/api/sessions/{hurt}");
    let events = format!("{path}/events?after=0");
    let (status, problem) = rest(app, ana, Method::GET, &events).await;
    assert_eq!(
        (status, &problem["code"]),
        (500, &json!("session_unreadable"))
    );
    assert_eq!(problem["category"], "external");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("damaged") && !detail.contains("try again"),
        "{detail}"
    );
    // A stranger does not learn that there is such a session.
    let eve = app.person("acme").await;
    assert_eq!(refusal(app, &eve, hurt).await, "session_not_found");
    let (status, _) = rest(app, &eve, Method::DELETE, &path).await;
    assert_eq!(status, 404);

    app.model.will_say("still fine").then_say("new and fine");
    let mut socket = TestSocket::open(app.address, ana, Some(sound)).await;
    socket.say("and you?").await;
    assert_eq!(socket.wait_for_answer().await, "still fine");
    let mut fresh = TestSocket::open(app.address, ana, None).await;
    fresh.say("and you?").await;
    assert_eq!(fresh.wait_for_answer().await, "new and fine");

    // Its owner gives it up.
    let (status, body) = rest(app, ana, Method::DELETE, &path).await;
    assert_eq!(status, 204, "{body}");
    assert_eq!(refusal(app, ana, hurt).await, "session_not_found");
}

async fn in_the_file(data: &Path, sql: &str, session: &str) {
    let file = SqliteConnectOptions::new().filename(data.join("sepal.db"));
    let pool = SqlitePool::connect_with(file).await.unwrap();
    let done = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(session);
    assert!(
        done.execute(&pool).await.unwrap().rows_affected() > 0,
        "{sql}"
    );
    pool.close().await;
}

#[tokio::test]
async fn a_damaged_row_is_an_error_of_its_session_only() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let (sound, hurt) = two_sessions(&app, &ana).await;
    let session = hurt.clone();
    let app = app
        .restart_after(async move |data| {
            in_the_file(data, "DELETE FROM snapshots WHERE session = $1", &session).await;
            let damage = "UPDATE journal SET body = x'00ff' WHERE session = $1 AND version = 1";
            in_the_file(data, damage, &session).await;
        })
        .await;
    only_the_damaged_one_is_refused(&app, &ana, &sound, &hurt).await;
}

#[tokio::test]
async fn a_row_that_is_missing_and_a_snapshot_that_is_spoiled_are_told_apart() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let (sound, hurt) = two_sessions(&app, &ana).await;
    let (whole, holed) = (sound.clone(), hurt.clone());
    let app = app
        .restart_after(async move |data| {
            // The journal has everything that a snapshot holds.
            let spoil =
                "UPDATE snapshots SET body = x'00ff', is_compressed = TRUE WHERE session = $1";
            in_the_file(data, spoil, &whole).await;
            in_the_file(data, "DELETE FROM snapshots WHERE session = $1", &holed).await;
            let remove = "DELETE FROM journal WHERE session = $1 AND version = 1";
            in_the_file(data, remove, &holed).await;
        })
        .await;
    only_the_damaged_one_is_refused(&app, &ana, &sound, &hurt).await;
}

#[tokio::test]
async fn a_damaged_journal_in_redis_is_an_error_of_its_session_only() {
    let redis = RedisServer::start();
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none"), ("REDIS_URL", &redis.url())]).await;
    let ana = app.person("acme").await;
    let (sound, hurt) = two_sessions(&app, &ana).await;
    let mut other = redis.connection();
    let of = |kind: &str| format!("mcp:{kind}:{{{}.{hurt}}}", ana.tenant);
    let app = app
        .restart_after(async |_| {
            let _: u64 = other.del(of("conversation")).unwrap();
            let _: u64 = other.del(of("journal")).unwrap();
            let () = other.set(of("journal"), "no stream").unwrap();
            let _: u64 = other
                .zadd("mcp:active", format!("{}.{hurt}", ana.tenant), 9)
                .unwrap();
        })
        .await;
    only_the_damaged_one_is_refused(&app, &ana, &sound, &hurt).await;
}

#[tokio::test]
async fn damage_that_is_found_while_the_session_is_open_ends_its_sockets() {
    let redis = RedisServer::start();
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none"), ("REDIS_URL", &redis.url())]).await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    leave_it_running(&app, &mut socket).await;
    let journal = format!("mcp:journal:{{{}.{}}}", ana.tenant, socket.session());
    let removed: u64 = redis.connection().xdel(journal, &["1-0"]).unwrap();
    assert_eq!(removed, 1);
    // The outcome can never be appended: it is not tried for ever, and whoever watches is told.
    app.model.release();
    let told = socket.wait_for("error").await;
    assert_eq!(told.rest()["code"], "session_unreadable");
    socket.wait_for_end().await;
    assert_eq!(
        refusal(&app, &ana, &socket.session()).await,
        "session_unreadable"
    );
}

#[tokio::test]
async fn a_row_of_the_list_that_a_killed_life_left_behind_is_mended_at_the_next_start() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    app.model.will_say("fine");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let session = socket.session();
    let app = app
        .restart_after(async |data| {
            // As if the life had ended before it wrote the last row.
            let behind =
                "UPDATE sessions SET state = 'running', version = version - 1 WHERE id = $1";
            in_the_file(data, behind, &session).await;
        })
        .await;
    let mended = async {
        loop {
            let (status, list) = rest(&app, &ana, Method::GET, "/api/sessions").await;
            assert_eq!(status, 200, "{list}");
            if list["items"][0]["state"] == "idle" {
                return;
            }
        }
    };
    timeout(DEADLINE, mended).await.unwrap();
}
