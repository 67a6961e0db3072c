//! What waits in a session is seen and decided at the gateway that does not run it.

use serde_json::{Value, json};

use super::Pair;
use crate::rest::Client;
use crate::support::TestSocket;

async fn approvals(client: &Client) -> Value {
    client.get("/api/approvals").await.ok(200)
}

#[tokio::test]
async fn a_card_of_the_other_gateway_is_listed_counted_and_decided_here() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let ana = pair.a.person("acme").await;
    let mut list = TestSocket::listen(pair.b.address, &ana).await.unwrap();
    let model = &pair.a.model;
    model.will_call("list_files", json!({})).then_say("Done");
    let mut socket = TestSocket::open(pair.a.address, &ana, None).await;
    socket.say("look").await;
    socket.wait_for_approval().await;
    let session = socket.session();

    // Told at the other gateway, where nobody has opened the session.
    list.wait_where(|said| said.args[0]["id"] == session && said.args[0]["waiting"] == 1)
        .await;
    let [at_a, at_b] = [&pair.a, &pair.b].map(|app| Client::with_key(app, &ana.key));
    assert_eq!(pair.b.sessions.live_count(), 0);
    let page = approvals(&at_b).await;
    assert_eq!(page, approvals(&at_a).await);
    assert_eq!(page["items"][0]["sessionId"], session);
    let counted = at_b.get("/api/approvals/count").await.ok(200);
    assert_eq!(counted["calls"], 1);

    // Nobody else's, at either of them.
    let stranger = pair.a.person("other").await;
    let stranger = Client::with_key(&pair.b, &stranger.key);
    assert_eq!(approvals(&stranger).await["items"], json!([]));
    let card = &page["items"][0]["queue"]["calls"][0];
    let decision = json!({
        "callId": card["callId"], "approved": true, "digest": card["digest"],
    });
    let path = format!("/api/sessions/{session}/approvals");
    stranger
        .post(&path, decision.clone())
        .await
        .problem(404, "session_not_found");

    at_b.post(&path, decision.clone()).await.ok(202);
    assert_eq!(socket.wait_for_answer().await, "Done");
    list.wait_where(|said| said.args[0]["id"] == session && said.args[0]["waiting"] == 0)
        .await;
    for client in [&at_a, &at_b] {
        assert_eq!(approvals(client).await["items"], json!([]));
    }
    // A second yes changes nothing.
    let again = at_a.post(&path, decision).await;
    assert!(matches!(again.status, 202 | 409), "{}", again.text);
    let ran = socket.log.iter().filter(|said| said.name == "tool:started");
    assert_eq!(ran.count(), 1);
}
