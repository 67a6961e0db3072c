//! Who makes room in the context of a provider's models, said while the server runs.

use serde_json::{Value, json};

use super::{add, admin, open_app};
use crate::model_stub::{ModelStub, STUB_KEY, Vendor};
use crate::support::TestSocket;

#[tokio::test]
async fn a_vendor_that_compacts_is_told_so_and_what_it_cannot_do_is_refused() {
    let app = open_app().await;
    let other = ModelStub::start_as(Vendor::Messages).await;
    let (person, client) = admin(&app, "acme").await;
    let mut body = json!({
        "kind": "anthropic", "baseUrl": other.base_url(), "apiKey": STUB_KEY, "scope": "tenant",
        "models": ["claude-opus-4-6"],
    });
    let item = add(&client, "other", body.clone()).await;
    assert_eq!(item["compaction"], "sepal", "{item}");
    body["compaction"] = json!("vendor");
    body["compactionThreshold"] = json!(60_000);
    let told = |item: &Value| {
        (
            item["compaction"].clone(),
            item["compactionThreshold"].clone(),
        )
    };
    let expected = (json!("vendor"), json!(60_000));
    let answer = client.put("/api/providers/other", body.clone()).await;
    assert_eq!(told(&answer.json()), expected);
    // Whoever changes something else keeps both.
    let mut rest = body.clone();
    for field in ["compaction", "compactionThreshold"] {
        rest.as_object_mut().unwrap().remove(field);
    }
    let answer = client.put("/api/providers/other", rest).await;
    assert_eq!(told(&answer.json()), expected);
    for (field, wrong, words) in [
        ("compaction", json!("nobody"), "`sepal` or `vendor`"),
        ("compactionThreshold", json!(49_999), "from 50000"),
        ("kind", json!("gemini"), "cannot compact by itself"),
        (
            "kind",
            json!("openai-compatible"),
            "cannot compact by itself",
        ),
    ] {
        let mut refused = body.clone();
        refused[field] = wrong.clone();
        let answer = client.put("/api/providers/other", refused).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text);
        assert!(answer.text.contains(words), "{wrong}: {}", answer.text);
    }
    // Another tenant has a provider of its own, or none.
    let (_, stranger) = admin(&app, "other").await;
    assert_eq!(stranger.get("/api/providers/other").await.status, 404);

    let mut socket = TestSocket::open(app.address, &person, None).await;
    let choice = [json!({ "model": "claude-opus-4-6", "provider": "other" })];
    assert_eq!(socket.ask("session:model", &choice).await["ok"], true);
    other.will_say("Yes.");
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "Yes.");
    let sent = other.requests().pop().unwrap().body;
    let value = sent.pointer("/context_management/edits/0/trigger/value");
    assert_eq!(value, Some(&json!(60_000)), "{sent}");
    body["compactionThreshold"] = Value::Null;
    let answer = client.put("/api/providers/other", body).await;
    assert_eq!(told(&answer.json()), (json!("vendor"), Value::Null));
}
