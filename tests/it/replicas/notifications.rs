//! Of two gateways one tells what waits.

use sepal::domain::Role;
use serde_json::json;

use super::Pair;
use crate::notifications::receiver::Receiver;
use crate::rest::Client;
use crate::support::TestSocket;

#[tokio::test]
async fn a_batch_is_told_once_whichever_gateway_notices() {
    let env = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_OUTGOING_ALLOW", "127.0.0.0/8"),
    ];
    let (pair, receiver) = (Pair::start_with(&env).await, Receiver::start().await);
    let boss = pair.a.person_with("acme", Role::Admin).await;
    let at_b = Client::with_key(&pair.b, &boss.key);
    let body = json!({ "url": receiver.url("/hook"), "tellsDecided": true });
    let added = at_b.post("/api/webhooks", body).await.ok(201);
    let secret = added["secret"].as_str().unwrap();
    let mut sessions = Vec::new();
    for at in 0..6 {
        pair.a
            .model
            .will_call("list_files", json!({}))
            .then_say("Done");
        let app = if at % 2 == 0 { &pair.a } else { &pair.b };
        let mut socket = TestSocket::open(app.address, &boss, None).await;
        socket.say("look").await;
        let card = socket.wait_for_approval().await;
        receiver.wait_for(at * 2 + 1).await;
        socket.approve(&card).await;
        socket.wait_for_answer().await;
        receiver.wait_for(at * 2 + 2).await;
        sessions.push(socket.session());
    }
    let told = receiver.messages();
    let expected: Vec<_> = sessions
        .iter()
        .flat_map(|session| {
            ["waiting", "decided"].map(|what| (format!("approvals.{what}"), json!(session)))
        })
        .collect();
    let told_of: Vec<_> = told
        .iter()
        .map(|message| (message.kind(), message.json()["data"]["sessionId"].clone()))
        .collect();
    assert_eq!(told_of, expected);
    // Either of them can open what the other sealed.
    for message in &told {
        message.check(secret);
    }
}
