//! Redis breaks and comes back; a gateway leaves in good order.

use std::time::Instant;

use reqwest::StatusCode;
use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use super::{Pair, assert_same_stream};
use crate::model_stub::Reply;
use crate::support::{DEADLINE, Person, RedisServer, TestApp, TestSocket};

#[tokio::test]
async fn what_was_lost_while_redis_was_away_is_read_when_it_is_back() {
    let mut pair = Pair::start().await;
    let (_, mut a, mut b) = pair.sockets("away").await;
    pair.a.model.will_say("before");
    a.say("one").await;
    a.wait_for_answer().await;
    b.wait_for_answer().await;
    pair.a
        .model
        .will(Reply::say("said while nobody hears"))
        .stall();
    a.say("two").await;
    pair.a.model.stalled().await;
    pair.redis.kill();
    pair.redis.restart();
    pair.a.model.release();
    for socket in [&mut a, &mut b] {
        assert_eq!(socket.wait_for_answer().await, "said while nobody hears");
    }
    assert_same_stream(&a, &b);
}

#[tokio::test]
async fn wakes_that_are_lost_again_and_again_cost_nothing_but_time() {
    let pair = Pair::start().await;
    let (_, mut a, mut b) = pair.sockets("lost").await;
    for round in 0..6 {
        let text = format!("answer {round} in several words");
        pair.a.model.will(Reply::say(&text)).stall();
        let (asks, hears) = if round % 2 == 0 {
            (&mut a, &mut b)
        } else {
            (&mut b, &mut a)
        };
        asks.say("go").await;
        pair.a.model.stalled().await;
        // Every line between the gateways breaks, in the middle of the answer.
        break_lines(&pair.redis);
        pair.a.model.release();
        assert_eq!(asks.wait_for_answer().await, text);
        assert_eq!(hears.wait_for_answer().await, text);
    }
    assert_same_stream(&a, &b);
}

/// Every line breaks on which gateways hear of each other.
fn break_lines(redis: &RedisServer) {
    let mut kill = redis::cmd("CLIENT");
    kill.arg("KILL").arg("TYPE").arg("pubsub");
    kill.exec(&mut redis.connection()).unwrap();
}

/// Redis refuses or allows commands to everybody, as `ACL SETUSER` writes them.
fn let_redis(pair: &Pair, rules: &[&str]) {
    let mut acl = redis::cmd("ACL");
    acl.arg("SETUSER").arg("default").arg(rules);
    acl.exec(&mut pair.redis.connection()).unwrap();
}

#[tokio::test]
async fn a_journal_that_cannot_be_read_when_the_line_is_back_is_read_as_soon_as_it_can_be() {
    let pair = Pair::start().await;
    let (_, mut a, mut b) = pair.sockets("behind").await;
    pair.a.model.will_say("before");
    a.say("one").await;
    assert_eq!(a.wait_for_answer().await, "before");
    assert_eq!(b.wait_for_answer().await, "before");
    // Nothing is told, and nothing can be read.
    let_redis(&pair, &["-publish", "-xrange"]);
    pair.a.model.will_say("not told");
    a.say("two").await;
    assert_eq!(a.wait_for_answer().await, "not told");
    break_lines(&pair.redis);
    refused(&pair.redis, "xrange").await;
    let_redis(&pair, &["+xrange"]);
    assert_eq!(b.wait_for_answer().await, "not told");
    assert_same_stream(&a, &b);
}

/// Waits until Redis has refused that command to somebody.
async fn refused(redis: &RedisServer, command: &str) {
    let mut redis = redis.connection();
    let mut has_refused = || {
        let log: redis::Value = redis::cmd("ACL").arg("LOG").query(&mut redis).unwrap();
        format!("{log:?}").contains(command)
    };
    let deadline = Instant::now() + DEADLINE;
    while !has_refused() {
        assert!(Instant::now() < deadline, "nobody has looked");
        tokio::task::yield_now().await;
    }
}

/// How often a command was given since the figures were set back.
fn calls_of(redis: &RedisServer, command: &str) -> u64 {
    let mut info = redis::cmd("INFO");
    let info: redis::InfoDict = info
        .arg("commandstats")
        .query(&mut redis.connection())
        .unwrap();
    let figures: Option<String> = info.get(&format!("cmdstat_{command}"));
    let calls = figures.as_deref().and_then(|figures| {
        let first = figures.split(',').next()?;
        first.strip_prefix("calls=")?.parse().ok()
    });
    calls.unwrap_or_default()
}

/// Only one session is in memory at each of two gateways: another one that is watched is at rest.
async fn one_at_rest() -> (Pair, TestSocket, TestSocket) {
    let env = [("SPL_SANDBOX", "none"), ("SPL_LIMIT_SESSIONS", "1")];
    let pair = Pair::start_with(&env).await;
    let (person, mut a, mut b) = pair.sockets("resting").await;
    pair.a.model.will_say("before");
    a.say("one").await;
    assert_eq!(a.wait_for_answer().await, "before");
    assert_eq!(b.wait_for_answer().await, "before");
    for app in [&pair.a, &pair.b] {
        // There was no room for this one before the other had left.
        drop(TestSocket::open(app.address, &person, None).await);
    }
    (pair, a, b)
}

#[tokio::test]
async fn a_session_at_rest_that_missed_nothing_stays_at_rest_when_the_line_is_back() {
    let (pair, a, b) = one_at_rest().await;
    let mut reset = redis::cmd("CONFIG");
    reset.arg("RESETSTAT");
    reset.exec(&mut pair.redis.connection()).unwrap();
    for looks in [2, 4] {
        break_lines(&pair.redis);
        let deadline = Instant::now() + DEADLINE;
        while calls_of(&pair.redis, "xlen") < looks {
            assert!(Instant::now() < deadline, "nobody has looked");
            tokio::task::yield_now().await;
        }
    }
    // Whoever is woken reads its snapshot first.
    assert_eq!(calls_of(&pair.redis, "hmget"), 0);
    drop((a, b));
}

#[tokio::test]
async fn what_a_session_at_rest_has_missed_is_shown_when_the_line_is_back() {
    let (pair, mut a, mut b) = one_at_rest().await;
    let_redis(&pair, &["-publish"]);
    pair.a.model.will_say("not told");
    a.say("two").await;
    assert_eq!(a.wait_for_answer().await, "not told");
    // At first nobody can say how long the journal is.
    let_redis(&pair, &["-xlen"]);
    break_lines(&pair.redis);
    refused(&pair.redis, "xlen").await;
    let_redis(&pair, &["+xlen", "+publish"]);
    assert_eq!(b.wait_for_answer().await, "not told");
    assert_same_stream(&a, &b);
}

async fn delete(app: &TestApp, person: &Person, session: &str) -> StatusCode {
    let url = app.url(&format!("/api/sessions/{session}"));
    let asked = TestApp::http().delete(url).bearer_auth(&person.key);
    asked.send().await.unwrap().status()
}

#[tokio::test]
async fn a_list_that_names_another_owner_lets_them_delete_nothing() {
    let pair = Pair::start().await;
    let (ana, mut a, _b) = pair.sockets("hers").await;
    pair.a.model.will_say("hello");
    a.say("hi").await;
    assert_eq!(a.wait_for_answer().await, "hello");
    let bob = pair.a.person("acme").await;
    let his = TestSocket::open(pair.a.address, &bob, None).await;
    let mut records = PgConnection::connect(&pair.database).await.unwrap();
    let rename = "UPDATE sessions SET owner = $1 WHERE id = $2";
    let deadline = Instant::now() + DEADLINE;
    // The row follows its commit in a moment.
    loop {
        let renamed = sqlx::query(rename)
            .bind(his.ready["user"]["id"].as_str().unwrap())
            .bind(a.session())
            .execute(&mut records);
        if renamed.await.unwrap().rows_affected() == 1 {
            break;
        }
        assert!(Instant::now() < deadline, "it is not listed");
    }
    assert_eq!(delete(&pair.a, &bob, &a.session()).await, 404);
    assert_eq!(delete(&pair.b, &bob, &a.session()).await, 404);
    pair.a.model.will_say("still here");
    a.say("and?").await;
    assert_eq!(a.wait_for_answer().await, "still here");
    assert_eq!(delete(&pair.a, &ana, &a.session()).await, 204);
}

#[tokio::test]
async fn a_deletion_that_was_cut_off_is_finished_by_the_next_attempt() {
    let pair = Pair::start().await;
    let (person, mut a, mut b) = pair.sockets("half-gone").await;
    pair.a.model.will_say("hello");
    a.say("hello").await;
    a.wait_for_answer().await;
    b.wait_for_answer().await;
    let http = TestApp::http();
    let list = async |app: &TestApp| {
        let asked = http.get(app.url("/api/sessions")).bearer_auth(&person.key);
        let page: serde_json::Value = asked.send().await.unwrap().json().await.unwrap();
        page["items"].as_array().unwrap().len()
    };
    while list(&pair.b).await == 0 {
        tokio::task::yield_now().await;
    }
    // The store has done it, and whoever asked for it is gone.
    let mut redis = pair.redis.connection();
    let keys: Vec<String> = redis::cmd("KEYS")
        .arg("mcp:*{*}*")
        .query(&mut redis)
        .unwrap();
    redis::cmd("DEL").arg(keys).exec(&mut redis).unwrap();
    // What it has in memory is not looked at: a gateway that begins has nothing there.
    let env = pair.env();
    let env: Vec<(&str, &str)> = env
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let third = TestApp::start_with(&env).await;
    for other in ["acme", "globex"] {
        let other = pair.a.person(other).await;
        assert_eq!(delete(&third, &other, &a.session()).await, 404);
    }
    assert_eq!(list(&pair.a).await, 1, "nobody else finishes it");
    assert_eq!(delete(&third, &person, &a.session()).await, 204);
    assert_eq!(delete(&third, &person, &a.session()).await, 404);
    for socket in [&mut a, &mut b] {
        assert_eq!(
            socket.wait_for("error").await.rest()["code"],
            "session_not_found"
        );
    }
    assert_eq!(list(&pair.a).await, 0);
}

#[tokio::test]
async fn an_orderly_stop_hands_the_session_over_at_once() {
    let pair = Pair::start().await;
    let (_, mut a, mut b) = pair.sockets("hand-over").await;
    pair.a.model.will(Reply::say("cut off here")).stall();
    a.say("go").await;
    pair.a.model.stalled().await;
    b.wait_for("agent:delta").await;
    let Pair {
        a: first,
        b: _second,
        redis: _redis,
        ..
    } = pair;
    first.model.will_say("whole");
    let began = Instant::now();
    let model = first.stop().await;
    let stopped = began.elapsed();
    assert_eq!(b.wait_for_answer().await, "whole");
    // Long before a life without signs would be over.
    let took = began.elapsed().saturating_sub(stopped);
    assert!(took < std::time::Duration::from_secs(2), "{took:?}");
    assert_eq!(super::said(&b), "whole");
    drop(model);
}

#[tokio::test]
async fn files_that_are_elsewhere_are_never_an_empty_workspace() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let (_, mut a, mut b) = pair.sockets("files").await;
    let write = json!({"path": "a.txt", "content": "kept"});
    pair.a.model.will_call("write_file", write).then_say("Done");
    a.say("write").await;
    let card = a.wait_for_approval().await;
    a.approve(&card).await;
    assert_eq!(b.wait_for_answer().await, "Done");
    let Pair {
        a: first,
        b: _second,
        redis: _redis,
        ..
    } = pair;
    let model = first.stop().await;
    model
        .will_call("list_files", json!({"path": "."}))
        .then_say("I see");
    b.say("look").await;
    let card = b.wait_for_approval().await;
    b.approve(&card).await;
    let output = b.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    assert!(output.text().contains("files are kept by"), "{output:?}");
    assert_eq!(b.wait_for_answer().await, "I see");
}
