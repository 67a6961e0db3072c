//! Redis breaks and comes back; a gateway leaves in good order.

use std::time::Instant;

use serde_json::json;

use super::{Pair, assert_same_stream};
use crate::model_stub::Reply;

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
        let mut kill = redis::cmd("CLIENT");
        kill.arg("KILL").arg("TYPE").arg("pubsub");
        kill.exec(&mut pair.redis.connection()).unwrap();
        pair.a.model.release();
        assert_eq!(asks.wait_for_answer().await, text);
        assert_eq!(hears.wait_for_answer().await, text);
    }
    assert_same_stream(&a, &b);
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
