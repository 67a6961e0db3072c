//! Redis breaks and comes back; a gateway leaves in good order.

use std::time::Instant;

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
