//! Which of OpenAI's interfaces a provider is spoken to in, as people choose it.

use serde_json::{Value, json};

use super::switching::{choose, thoughtful_call};
use super::{add, admin, open_app};
use crate::model_stub::{ModelStub, Reply, STUB_KEY, Vendor};
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
    // Whoever says nothing of it changes nothing of it.
    let mut same = openai(&newer, "");
    same.as_object_mut().unwrap().remove("api");
    let kept = client.put("/api/providers/newer", same).await.ok(200);
    assert_eq!(kept["api"], "responses");
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

/// The last request that a stand-in saw, as text.
fn last(model: &ModelStub) -> String {
    model.requests().pop().unwrap().body.to_string()
}

#[tokio::test]
async fn a_session_changes_its_interface_in_the_middle_and_thoughts_go_back_to_their_own() {
    let app = open_app().await;
    let (person, client) = admin(&app, "acme").await;
    let newer = ModelStub::start_as(Vendor::Responses).await;
    add(&client, "newer", openai(&newer, "responses")).await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    app.model.will(thoughtful_call()).then_say("first");
    socket.say("one").await;
    assert_eq!(socket.wait_for_answer().await, "first");

    choose(&mut socket, json!({ "model": "gpt-5.1" })).await;
    let calls = [
        ("no_such_tool", json!({})),
        ("no_such_tool", json!({"a": 1})),
    ];
    newer
        .will(Reply::answer("I look", &calls))
        .then_say("second");
    socket.say("two").await;
    let told = socket.wait_for("agent:message").await;
    assert_eq!(told.rest()["reasoning"]["text"], "I need tools", "{told:?}");
    assert_eq!(socket.wait_for_answer().await, "second");
    let text = last(&newer);
    assert!(
        text.contains("first") && !text.contains("hidden thought"),
        "{text}"
    );
    assert!(text.contains("stub-signature"), "{text}");

    let back = json!({ "provider": "openai-compatible", "model": "stub" });
    choose(&mut socket, back).await;
    app.model.will_say("third");
    socket.say("three").await;
    assert_eq!(socket.wait_for_answer().await, "third");
    let text = last(&app.model);
    assert!(
        text.contains("hidden thought") && text.contains("second"),
        "{text}"
    );
    assert!(!text.contains("stub-signature"), "{text}");

    choose(&mut socket, json!({ "model": "gpt-5.1" })).await;
    newer.will_say("fourth");
    socket.say("four").await;
    assert_eq!(socket.wait_for_answer().await, "fourth");
    let text = last(&newer);
    assert!(
        text.contains("stub-signature") && text.contains("third"),
        "{text}"
    );
    let usage = socket
        .wait_where(|said| said.name == "session:usage" && said.args[0]["totalTokens"] == 6 * 18);
    usage.await;
}
