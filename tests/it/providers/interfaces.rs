//! Which of OpenAI's interfaces a provider is spoken to in, as people choose it.

use serde_json::{Value, json};

use super::{add, admin, open_app};
use crate::model_stub::{ModelStub, STUB_KEY, Vendor};
use crate::support::TestSocket;

fn openai(model: &ModelStub, api: &str) -> Value {
    json!({"kind": "openai", "baseUrl": model.base_url(), "apiKey": STUB_KEY, "api": api, "models": ["gpt-5.1"]})
}

#[tokio::test]
async fn the_interface_of_an_added_provider_is_a_choice_and_outlives_a_restart() {
    let app = open_app().await;
    let (person, client) = admin(&app, "acme").await;
    let (newer, older) = (
        ModelStub::start_as(Vendor::Responses).await,
        ModelStub::start().await,
    );
    let added = add(&client, "newer", openai(&newer, "responses")).await;
    assert_eq!(added["api"], "responses");
    // What older releases stored is understood.
    let added = add(&client, "older", openai(&older, "chat")).await;
    assert_eq!(added["api"], "chat-completions");
    let added = add(&client, "any", openai(&older, "auto")).await;
    assert_eq!(added["api"], "auto");
    let app = app.restart().await;
    newer.will_say("by Responses");
    older
        .will_say("by Chat Completions")
        .then_say("by Chat Completions");
    for (id, expected) in [
        ("newer", "by Responses"),
        ("older", "by Chat Completions"),
        ("any", "by Chat Completions"),
    ] {
        let auth = json!({ "token": person.key });
        let query = format!("&provider={id}&model=gpt-5.1");
        let mut socket = TestSocket::try_open_at(app.address, auth, &query)
            .await
            .unwrap();
        socket.say("hello").await;
        assert_eq!(socket.wait_for_answer().await, expected, "{id}");
    }
}

#[tokio::test]
async fn an_interface_that_is_none_is_refused_with_those_that_are() {
    let app = open_app().await;
    let (_, client) = admin(&app, "acme").await;
    let model = ModelStub::start().await;
    let refused = client.put("/api/providers/x", openai(&model, "soap")).await;
    let error = &refused.json()["errors"][0];
    assert_eq!((refused.status, &error["field"]), (400, &json!("api")));
    let text = refused.text;
    for known in ["auto", "responses", "chat-completions"] {
        assert!(text.contains(known), "{text}");
    }
    let mut claude = openai(&model, "responses");
    claude["kind"] = json!("anthropic");
    let refused = client.put("/api/providers/x", claude).await;
    assert_eq!(
        refused.json()["errors"][0]["field"],
        "api",
        "{}",
        refused.text
    );
}
