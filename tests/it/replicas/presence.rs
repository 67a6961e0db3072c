//! What Redis says of a session that is in use: for people and other tools (S2.7).

use std::collections::HashMap;

use redis::Commands as _;
use serde_json::json;

use super::Pair;
use crate::rest::Client;
use crate::support::{DEADLINE, Person, RedisServer, TestApp, TestSocket, docker};

type Fields = HashMap<String, String>;

fn name(person: &Person, session: &str) -> String {
    format!("mcp:session:{{{}.{session}}}", person.tenant)
}

fn fields(redis: &RedisServer, key: &str) -> Fields {
    redis.connection().hgetall(key).unwrap()
}

fn heartbeat(fields: &Fields) -> u64 {
    fields["heartbeat"].parse().unwrap()
}

/// Lets the session call a tool.
async fn use_sandbox(app: &TestApp, socket: &mut TestSocket) {
    let file = json!({ "path": "a.txt", "content": "A" });
    app.model.will_call("write_file", file).then_say("Done");
    socket.say("write").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for_answer().await, "Done");
}

/// Asserts S2.7, O6.
#[tokio::test]
async fn a_session_in_use_is_shown_with_its_sandbox_until_it_is_deleted() {
    let redis = RedisServer::start();
    let env = [("SPL_SANDBOX", "bubblewrap"), ("REDIS_URL", &redis.url())];
    let app = TestApp::start_with(&env).await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let key = name(&ana, &socket.session());
    let mut watch = redis.watch(&key).await;
    use_sandbox(&app, &mut socket).await;

    let has = |field: &str| fields(&redis, &key).contains_key(field);
    watch
        .until("the sandbox", async || has("sandbox") && has("owner"))
        .await;
    let shown = fields(&redis, &key);
    assert!(shown["engine"].starts_with("bubblewrap"), "{shown:?}");
    assert!(shown["sandbox"].starts_with("sbx_"), "{shown:?}");
    assert_eq!(shown.get("container"), None, "bubblewrap has no names");
    let later = TestSocket::open(app.address, &ana, Some(&socket.session())).await;
    assert_eq!(later.ready.get("containerId"), None, "{}", later.ready);
    drop(later);
    let lives: Vec<String> = redis.connection().zrange("mcp:gateways", 0, -1).unwrap();
    assert_eq!(lives, [shown["owner"].clone()]);

    // Nobody connects and nobody says anything: it is in use because somebody watches it.
    let first = heartbeat(&shown);
    let moved = async || heartbeat(&fields(&redis, &key)) > first;
    watch.until("the next heartbeat", moved).await;

    // After an orderly end nothing runs, and the files are where they were.
    let session = socket.session();
    drop(socket);
    let app = app.restart().await;
    let left = fields(&redis, &key);
    assert_eq!((left.get("owner"), left.get("container")), (None, None));
    assert_eq!(left["sandbox"], shown["sandbox"]);

    // While it is open again: a beat that comes late must not bring the hash back.
    let socket = TestSocket::open(app.address, &ana, Some(&session)).await;
    let second = heartbeat(&left);
    let moved = async || heartbeat(&fields(&redis, &key)) > second;
    watch.until("a heartbeat of the new life", moved).await;
    let deleted = TestApp::http().delete(app.url(&format!("/api/sessions/{session}")));
    let deleted = deleted.bearer_auth(&ana.key).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    assert_eq!(fields(&redis, &key), Fields::new());
    drop(socket);
    app.stop().await;
    assert_eq!(fields(&redis, &key), Fields::new());
}

#[tokio::test]
async fn the_hash_goes_with_the_journal_when_its_time_is_over() {
    let redis = RedisServer::start();
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("REDIS_URL", &redis.url()),
        ("HISTORY_TTL_SECONDS", "600"),
    ])
    .await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let key = name(&ana, &socket.session());
    let mut watch = redis.watch(&key).await;
    app.model.will_say("Done");
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let mut other = redis.connection();
    let mut left = async || -> bool { other.pttl::<_, i64>(&key).unwrap() > 500_000 };
    watch.until("a time to live", async || left().await).await;
}

#[tokio::test]
async fn a_session_whose_time_is_over_leaves_the_list_and_one_that_waits_stays() {
    let redis = RedisServer::start();
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("REDIS_URL", &redis.url()),
        ("HISTORY_TTL_SECONDS", "1"),
    ])
    .await;
    let ana = app.person("acme").await;
    let mut waits = TestSocket::open(app.address, &ana, None).await;
    app.model.will_call("list_files", json!({}));
    waits.say("look").await;
    waits.wait_for_approval().await;
    let kept = waits.session();
    let mut over = TestSocket::open(app.address, &ana, None).await;
    let journal = format!("mcp:journal:{{{}.{}}}", ana.tenant, over.session());
    let mut watch = redis.watch(&journal).await;
    app.model.will_say("Done");
    over.say("hello").await;
    over.wait_for_answer().await;
    let mut other = redis.connection();
    let is_gone = async || !other.exists::<_, bool>(&journal).unwrap();
    watch.until("its end", is_gone).await;
    drop((waits, over));

    let app = app.restart().await;
    let client = Client::at(app.address, &ana.key);
    let listed = async || {
        let list = client.get("/api/sessions").await.json();
        let list = list["items"].as_array().unwrap().clone();
        list.iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let only_one = async { while listed().await != [kept.as_str()] {} };
    tokio::time::timeout(DEADLINE, only_one)
        .await
        .expect("the row stays");
}

/// Asserts S2.7.
#[tokio::test]
async fn the_gateway_that_runs_the_session_is_its_owner_and_the_other_one_takes_over() {
    let pair = Pair::start().await;
    let (person, mut a, mut b) = pair.sockets("both").await;
    let key = name(&person, &a.session());
    let mut watch = pair.redis.watch(&key).await;
    pair.a.model.will_say("one").then_say("two");
    let owner = || fields(&pair.redis, &key).get("owner").cloned();
    a.say("one").await;
    for socket in [&mut a, &mut b] {
        assert_eq!(socket.wait_for_answer().await, "one");
    }
    watch.until("an owner", async || owner().is_some()).await;
    let first = owner();
    b.say("two").await;
    assert_eq!(a.wait_for_answer().await, "two");
    let is_other = async || owner().is_some() && owner() != first;
    watch.until("the other owner", is_other).await;
}

#[tokio::test]
async fn a_container_is_shown_by_the_name_that_the_engine_knows() {
    let redis = RedisServer::start();
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", &docker::address()),
        ("SPL_SANDBOX_IMAGE", &docker::image()),
        ("REDIS_URL", &redis.url()),
    ])
    .await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let key = name(&ana, &socket.session());
    let mut watch = redis.watch(&key).await;
    use_sandbox(&app, &mut socket).await;
    let is_shown = async || fields(&redis, &key).contains_key("container");
    watch.until("the container", is_shown).await;
    let shown = fields(&redis, &key);
    let container = format!("sepal-sb-{}", shown["sandbox"]);
    assert_eq!(shown["container"], container);
    let running = docker::lines(&docker::address(), &["ps", "--format", "{{.Names}}"]);
    assert!(running.contains(&container), "{running:?}");
    // Who joins is told as well (`containerId`); before the first call there was none.
    assert_eq!(socket.ready.get("containerId"), None, "{}", socket.ready);
    let session = socket.session();
    let later = TestSocket::open(app.address, &ana, Some(&session)).await;
    assert_eq!(later.ready["containerId"], container, "{}", later.ready);
    drop((socket, later));
    app.stop().await;
    let left = fields(&redis, &key);
    assert_eq!((left.get("owner"), left.get("container")), (None, None));
}
