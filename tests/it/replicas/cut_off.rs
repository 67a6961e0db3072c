//! A gateway that is cut off from Redis begins no call that another one has settled.

use serde_json::json;

use super::{SECRET_KEY, assert_same_stream};
use crate::servers::waiting::Stand;
use crate::servers::{Api, operator, wait_for_health};
use crate::support::postgres::new_database;
use crate::support::{RedisServer, Relay, TestApp, TestSocket};

/// Two gateways on one Redis, the first of them behind a relay.
async fn with_relay() -> (TestApp, TestApp, Relay, RedisServer) {
    let (redis, database) = (RedisServer::start(), new_database().await);
    let relay = Relay::start(redis.address()).await;
    let (held, direct) = (format!("redis://{}/0", relay.address), redis.url());
    let start = async |url: &str, model: Option<&str>| {
        let mut env = vec![
            ("SPL_SANDBOX", "none"),
            ("SPL_REDIS_URL", url),
            ("DATABASE_URL", database.as_str()),
            ("SPL_SECRET_KEY", SECRET_KEY),
        ];
        env.extend(model.map(|model| ("OPENAI_BASE_URL", model)));
        TestApp::start_with(&env).await
    };
    let a = start(&held, None).await;
    let b = start(&direct, Some(&a.model.base_url())).await;
    (a, b, relay, redis)
}

#[tokio::test]
async fn a_gateway_that_is_cut_off_begins_no_call_that_another_one_has_settled() {
    let (a, b, relay, _redis) = with_relay().await;
    let person = operator(&a, "house").await;
    let stand = Stand::start().await;
    let mut here = TestSocket::open(a.address, &person, Some("cut-off")).await;
    let mut there = TestSocket::open(b.address, &person, Some("cut-off")).await;
    Api::new(&a, &person)
        .add("shop", json!({ "url": stand.url }))
        .await;
    wait_for_health(&mut here, "shop", "healthy").await;
    a.model.will_call("order", json!({})).then_say("I see");
    here.say("order").await;
    let card = here.wait_for_approval().await;
    there.wait_for_approval().await;
    // The call has started by the journal, and its server is on the way to be opened.
    let lists = stand.lists();
    stand.close_door();
    here.approve(&card).await;
    stand.knocked().await;
    relay.hold();
    let output = there.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    assert_eq!(there.wait_for_answer().await, "I see");
    // Now the server is open, and nothing tells the first gateway that the call is settled.
    stand.open_door();
    stand.listed_after(lists).await;
    // It says itself that it is cut off, which takes longer than to send a call.
    let refused = here.ask("message", &[json!("still there?")]).await;
    assert_eq!(refused["error"]["code"], "store_unavailable", "{refused}");
    relay.release();
    assert_eq!(here.wait_for_answer().await, "I see");
    assert_same_stream(&here, &there);
    assert_eq!(stand.calls(), 0, "the settled call was begun");

    // And it works as before.
    stand.let_end();
    a.model
        .will_call("order", json!({ "again": 1 }))
        .then_say("Done");
    here.say("again").await;
    let card = here.wait_for_approval().await;
    here.approve(&card).await;
    let output = there.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(here.wait_for_answer().await, "Done");
    assert_eq!(stand.calls(), 1);
}

#[tokio::test]
async fn a_call_waits_while_redis_is_away_for_a_moment_and_then_begins() {
    let (a, _b, relay, _redis) = with_relay().await;
    let person = operator(&a, "house").await;
    let stand = Stand::start().await;
    let mut here = TestSocket::open(a.address, &person, None).await;
    Api::new(&a, &person)
        .add("shop", json!({ "url": stand.url }))
        .await;
    wait_for_health(&mut here, "shop", "healthy").await;
    stand.let_end();
    a.model.will_call("order", json!({})).then_say("Done");
    here.say("order").await;
    let card = here.wait_for_approval().await;
    let lists = stand.lists();
    stand.close_door();
    here.approve(&card).await;
    stand.knocked().await;
    relay.hold();
    stand.open_door();
    stand.listed_after(lists).await;
    relay.release();
    let output = here.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(here.wait_for_answer().await, "Done");
    assert_eq!(stand.calls(), 1);
}
