//! The whole app on Redis while Redis is stopped, frozen and full: clients are told, stay
//! connected, and everything goes on by itself.

use futures::future::join_all;
use redis::Commands as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::support::{DEADLINE, RedisServer, TestApp, TestSocket};

async fn app_on(redis: &RedisServer) -> TestApp {
    let url = redis.url();
    TestApp::start_with(&[("SPL_SANDBOX", "none"), ("REDIS_URL", &url)]).await
}

/// `/readyz`: the status and what it says of the store.
async fn readiness(app: &TestApp) -> (u16, String) {
    let answer = TestApp::http()
        .get(app.url("/readyz"))
        .send()
        .await
        .unwrap();
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap();
    (status, body["store"].as_str().unwrap().to_owned())
}

async fn ready_again(app: &TestApp) {
    let deadline = Instant::now() + DEADLINE;
    while readiness(app).await.0 != 200 {
        assert!(Instant::now() < deadline, "it does not become ready again");
    }
}

/// Sends a message until it is acknowledged, as the page does; the refusals on the way.
async fn insist(socket: &mut TestSocket, text: &str) -> Vec<Value> {
    let message = [json!(text), json!({ "clientMessageId": text })];
    let mut refusals = Vec::new();
    loop {
        let answer = socket.ask("message", &message).await;
        if answer["ok"] == true {
            return refusals;
        }
        assert_eq!(answer["error"]["code"], "store_unavailable", "{answer}");
        assert_eq!(answer["error"]["retryable"], true, "{answer}");
        refusals.push(answer);
    }
}

/// Asserts S2.8.
#[tokio::test]
async fn a_session_on_redis_is_there_after_a_restart() {
    let redis = RedisServer::start();
    let app = app_on(&redis).await;
    let ana = app.person("acme").await;
    app.model.will_say("Hello").then_say("Again");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    assert_eq!(socket.ready["storage"]["kind"], "redis");
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "Hello");
    let session = socket.session();
    drop(socket);
    let app = app.restart().await;
    let mut socket = TestSocket::open(app.address, &ana, Some(&session)).await;
    assert!(socket.ready["state"].to_string().contains("Hello"));
    socket.say("again").await;
    assert_eq!(socket.wait_for_answer().await, "Again");
}

/// Asserts S2.8.
#[tokio::test]
async fn a_living_session_shows_its_conversation_to_other_programs() {
    let redis = RedisServer::start();
    let app = app_on(&redis).await;
    let ana = app.person("acme").await;
    app.model.will_say("Hello").then_say("Again");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let tag = format!("{{{}.{}}}", ana.tenant, socket.session());
    let (journal, conversation) = (
        format!("mcp:journal:{tag}"),
        format!("mcp:conversation:{tag}"),
    );
    let mut changes = redis.watch(&conversation).await;
    let mut other = redis.connection();
    for text in ["one", "two"] {
        socket.say(text).await;
        socket.wait_for_answer().await;
        let is_whole = async || {
            let head: u64 = other.xlen(&journal).unwrap();
            let shown: Option<u64> = other.hget(&conversation, "version").unwrap();
            shown == Some(head)
        };
        changes.until("the newest commit", is_whole).await;
    }
}

/// Asserts S2.23.
#[tokio::test]
async fn an_answer_that_comes_while_redis_is_away_is_kept_until_it_is_back() {
    let mut redis = RedisServer::start();
    let app = app_on(&redis).await;
    let mut ana = app.socket("acme").await;
    app.model.will_say("A long answer").stall();
    ana.say("hello").await;
    app.model.stalled().await;
    assert_eq!(readiness(&app).await, (200, "ok".to_owned()));

    redis.stop();
    app.model.release();
    app.model.idle().await;
    let refused = ana.ask("message", &[json!("still there?")]).await;
    assert_eq!(refused["error"]["code"], "store_unavailable", "{refused}");
    assert_eq!(refused["error"]["retryable"], true, "{refused}");
    assert_eq!(readiness(&app).await, (503, "Redis is away".to_owned()));
    let none = ana.log.iter().all(|said| said.name != "agent:response");
    assert!(none, "nothing is shown before it is stored");

    redis.restart();
    // Nobody does anything: the outcome is tried again by itself, on the same connection.
    assert_eq!(ana.wait_for_answer().await, "A long answer");
    ready_again(&app).await;
    app.model.will_say("Yes");
    insist(&mut ana, "still there?").await;
    assert_eq!(ana.wait_for_answer().await, "Yes");
}

#[tokio::test]
async fn nothing_is_asked_again_while_nobody_knows_whether_a_stop_was_stored() {
    let redis = RedisServer::start();
    let app = app_on(&redis).await;
    let mut ana = app.socket("acme").await;
    app.model.will_say("A long answer").stall();
    ana.say("hello").await;
    app.model.stalled().await;
    ana.wait_for("agent:delta").await;
    // It takes the stop and says nothing; it has it when it goes on.
    redis.freeze();
    let refused = ana.ask("agent:cancel", &[json!({})]).await;
    assert_eq!(refused["error"]["code"], "store_unavailable", "{refused}");
    redis.thaw();
    // Nobody does anything more.
    let stopped = ana.wait_for("agent:cancelled").await;
    assert_eq!(app.model.requests().len(), 1, "it was asked again");
    let pieces = ana.log.iter().filter(|said| said.name == "agent:delta");
    let shown: String = pieces.filter_map(|said| said.args[0].as_str()).collect();
    assert_eq!(stopped.rest()["text"], shown);
    app.model.will_say("Yes");
    insist(&mut ana, "still there?").await;
    assert_eq!(ana.wait_for_answer().await, "Yes");
}

#[tokio::test]
async fn a_full_redis_is_told_and_the_session_goes_on_when_there_is_room() {
    let redis = RedisServer::start();
    let app = app_on(&redis).await;
    let mut ana = app.socket("acme").await;
    app.model.will_say("One").then_say("Two");
    ana.say("one").await;
    assert_eq!(ana.wait_for_answer().await, "One");
    redis.fill();
    let refused = ana.ask("message", &[json!("two")]).await;
    assert_eq!(refused["error"]["code"], "store_unavailable", "{refused}");
    redis.empty();
    ana.say("two").await;
    assert_eq!(ana.wait_for_answer().await, "Two");
}

/// One person who says one thing after the other until told to stop; how many it were.
async fn talk(mut socket: TestSocket, stop: watch::Receiver<bool>) -> (TestSocket, usize) {
    let mut said = 0;
    while !*stop.borrow() {
        insist(&mut socket, &format!("message {said}")).await;
        socket.wait_for_answer().await;
        said += 1;
    }
    (socket, said)
}

#[tokio::test]
async fn no_turn_is_lost_or_doubled_while_redis_fails_under_load() {
    const PEOPLE: usize = 8;
    let mut redis = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    let app = app_on(&redis).await;
    for _ in 0..10_000 {
        app.model.will_say("Noted");
    }
    let (mut people, mut sockets) = (Vec::new(), Vec::new());
    for _ in 0..PEOPLE {
        let person = app.person("acme").await;
        sockets.push(TestSocket::open(app.address, &person, None).await);
        people.push(person);
    }
    let mut bystander = app.socket("acme").await;
    let (stop, stopped) = watch::channel(false);
    let talking = join_all(sockets.into_iter().map(|it| talk(it, stopped.clone())));
    let breaking = async {
        let app = &app;
        // Some load before, between and after what fails.
        let load = async || app.model.asked_again(2 * PEOPLE).await;
        load().await;
        redis.restart();
        load().await;
        redis.freeze();
        while readiness(app).await.0 == 200 {}
        redis.thaw();
        load().await;
        redis.stop();
        while readiness(app).await.0 == 200 {}
        redis.restart();
        load().await;
        redis.fill();
        // Who waits for an answer is not refused, and that may be everybody: somebody else asks.
        for _ in 0..PEOPLE {
            let refused = bystander.ask("message", &[json!("is there room?")]).await;
            assert_eq!(refused["error"]["code"], "store_unavailable", "{refused}");
        }
        redis.empty();
        load().await;
        stop.send(true).unwrap();
    };
    let (talked, ()) = timeout(DEADLINE * 4, async { tokio::join!(talking, breaking) })
        .await
        .expect("it does not go on");
    for ((socket, said), person) in talked.into_iter().zip(&people) {
        let log = socket.shown();
        let count = |name: &str| log.iter().filter(|(_, event)| event == name).count();
        assert_eq!(count("user:message"), said, "{log:?}");
        assert_eq!(count("agent:response"), said, "{log:?}");
        assert!(
            log.iter().map(|(seq, _)| *seq).eq(1..=log.len() as u64),
            "{log:?}"
        );
        // What was shown is what is stored.
        let again = TestSocket::open(app.address, person, Some(&socket.session())).await;
        let last = &again.ready["seq"];
        assert_eq!(*last, json!(log.len()), "{log:?}");
    }
}
