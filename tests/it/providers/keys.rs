//! Keys: what is without one, and that none is ever seen again.

use serde_json::{Value, json};

use super::{KEY, add, admin, compatible, open_app};
use crate::model_stub::ModelStub;
use crate::support::{Log, TestApp, TestSocket};

/// A server whose default provider has no key.
async fn keyless() -> TestApp {
    TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_OUTGOING_ALLOW", "127.0.0.0/8"),
        ("LLM_PROVIDER", "openai"),
        ("OPENAI_BASE_URL", ""),
        ("SPL_LLM_MODEL", ""),
    ])
    .await
}

/// Asserts S2.22.
#[tokio::test]
async fn without_a_key_the_session_says_where_to_add_one_and_goes_on_when_it_is_there() {
    let app = keyless().await;
    let (person, client) = admin(&app, "acme").await;
    let mut socket = TestSocket::connect(app.address, json!({ "token": person.key }), &[])
        .await
        .unwrap();
    let error = socket.wait_for("error").await;
    assert_eq!(error.rest()["code"], "missing_api_key");
    for hint in ["`openai`", "OPENAI_API_KEY", "/admin/providers"] {
        assert!(error.text().contains(hint), "{}", error.text());
    }
    socket.wait_for_end().await;
    assert!(socket.log.iter().all(|said| said.name != "system:ready"));

    let created = client.post("/api/sessions", json!({})).await.json();
    let session = created["id"].as_str().unwrap();
    let messages = format!("/api/sessions/{session}/messages");
    let refused = client.post(&messages, json!({ "text": "hello" })).await;
    assert_eq!(
        (refused.status, refused.code()),
        (409, "missing_api_key".to_owned())
    );
    let item = client.get("/api/providers/openai").await.json();
    assert_eq!(item["hasKey"], false);
    assert!(
        item["problem"].as_str().unwrap().contains("OPENAI_API_KEY"),
        "{item}"
    );

    // The key is added where it is missing, and the same session goes on.
    let model = ModelStub::start().await;
    let mut own = compatible(&model, KEY, &[]);
    own["kind"] = json!("openai");
    add(&client, "openai", own).await;
    let mut socket = TestSocket::open(app.address, &person, Some(session)).await;
    assert_eq!(socket.ready["provider"], "openai");
    model.will_say("hi");
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "hi");
    // Elsewhere it is still missing.
    let other = app.person("other").await;
    let auth = json!({ "token": other.key });
    let refused = TestSocket::try_open(app.address, auth).await.err();
    assert_eq!(refused.as_deref(), Some("missing_api_key"));
}

#[tokio::test]
async fn a_session_with_another_usable_provider_is_let_in() {
    let app = keyless().await;
    let (person, client) = admin(&app, "acme").await;
    let model = ModelStub::start().await;
    add(&client, "other", compatible(&model, KEY, &["big"])).await;
    // New sessions get what can answer; who asks for the other one is told.
    let mut socket = TestSocket::open(app.address, &person, None).await;
    assert_eq!(socket.ready["model"], "big");
    model.will_say("hi");
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "hi");
    let auth = json!({ "token": person.key });
    let refused = TestSocket::try_open_at(app.address, auth, "&provider=openai").await;
    assert_eq!(refused.err().as_deref(), Some("missing_api_key"));
    // In the middle the same: the next message is refused, and a choice mends it.
    let answer = socket
        .ask("session:model", &[json!({ "provider": "openai" })])
        .await;
    assert_eq!(answer["ok"], true, "{answer}");
    let answer = socket.ask("message", &[json!("again")]).await;
    assert_eq!(answer["error"]["code"], "missing_api_key", "{answer}");
    socket
        .ask("session:model", &[json!({ "model": "big" })])
        .await;
    model.will_say("back");
    socket.say("again").await;
    assert_eq!(socket.wait_for_answer().await, "back");
}

#[tokio::test]
async fn the_key_of_the_examples_starts_and_every_answer_says_what_it_is() {
    let env = [
        ("SPL_SANDBOX", "none"),
        ("LLM_PROVIDER", "openai"),
        ("OPENAI_BASE_URL", ""),
        ("OPENAI_API_KEY", "dummy-api-key"),
        ("SPL_LLM_MODEL", ""),
    ];
    let app = TestApp::start_with(&env).await;
    let mut socket = app.socket("acme").await;
    assert_eq!(socket.ready["model"], "gpt-4o");
    socket.say("hello").await;
    let failed = socket.wait_for("agent:error").await;
    let (code, category) = (&failed.rest()["code"], &failed.rest()["category"]);
    assert_eq!(
        (code, category),
        (&json!("missing_api_key"), &json!("validation"))
    );
    assert!(failed.text().contains("dummy-api-key"), "{}", failed.text());
}

#[tokio::test]
async fn a_stored_key_is_kept_removed_and_never_sent_to_another_address() {
    let app = open_app().await;
    let (_, client) = admin(&app, "acme").await;
    let (model, elsewhere) = (ModelStub::start().await, ModelStub::start().await);
    add(&client, "own", compatible(&model, KEY, &["m"])).await;
    let without = |model: &ModelStub| {
        let mut body = compatible(model, "", &["m", "n"]);
        body.as_object_mut().unwrap().remove("apiKey");
        body
    };
    let kept = client
        .put("/api/providers/own", without(&model))
        .await
        .json();
    assert_eq!(
        (&kept["hasKey"], &kept["models"]),
        (&json!(true), &json!(["m", "n"]))
    );
    for (method, path) in [("PUT", ""), ("POST", "/test")] {
        let path = format!("/api/providers/own{path}");
        let body = without(&elsewhere);
        let moved = client
            .send(method.parse().unwrap(), &path, Some(body))
            .await;
        let found = (moved.status, moved.json()["errors"][0]["field"].clone());
        assert_eq!(found, (400, json!("apiKey")), "{}", moved.text);
    }
    assert!(elsewhere.requests().is_empty());
    let mut removed = without(&elsewhere);
    removed["apiKey"] = Value::Null;
    let removed = client.put("/api/providers/own", removed).await.json();
    assert_eq!(removed["hasKey"], false);
}

/// What is said of a provider from its trial to its end, the provider's own words included.
async fn life_of_a_provider(app: &TestApp, model: &ModelStub) -> Vec<String> {
    let (person, client) = admin(app, "acme").await;
    let echo = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let (put, test) = ("/api/providers/own", "/api/providers/own/test");
    let body = compatible(model, KEY, &["big"]);
    let mut said = Vec::new();
    model.will_fail(401, &[], &echo);
    said.push(client.post(test, body.clone()).await.text);
    said.push(client.put(put, body.clone()).await.text);
    model.will_fail(401, &[], &echo);
    said.push(client.post(test, json!({})).await.text);
    for wrong in [
        json!([KEY]),
        json!({ "key": KEY }),
        json!(format!("{KEY} {KEY}")),
    ] {
        let mut body = body.clone();
        body["apiKey"] = wrong;
        said.push(client.put(put, body).await.text);
    }
    let auth = json!({ "token": person.key });
    let socket = TestSocket::try_open_at(app.address, auth, "&provider=own");
    let mut socket = socket.await.unwrap();
    model.will_fail(401, &[], &echo);
    socket.say("hello").await;
    let failed = socket.wait_for("agent:error").await;
    assert!(
        failed.text().contains("Incorrect API key"),
        "{}",
        failed.text()
    );
    said.push(format!("{:?} {:?}", socket.ready, socket.log));
    let events = format!("/api/sessions/{}/events", socket.session());
    let list = "/api/models/available?refresh=true";
    for path in [put, "/api/providers", &events, list, "/api/system"] {
        said.push(client.get(path).await.text);
    }
    said.push(client.delete(put).await.text);
    assert_eq!(client.put(put, body).await.status, 201);
    said
}

#[tokio::test]
async fn a_key_comes_back_in_no_body_event_log_or_file() {
    let log = Log::start();
    let app = open_app().await;
    let model = ModelStub::start().await;
    let mut said = life_of_a_provider(&app, &model).await;
    let logged = log.text();
    assert!(logged.contains("Provider `own` was saved"), "no log");
    said.push(logged);
    for text in &said {
        assert!(!text.contains(KEY), "the key stands in: {text}");
    }
    let sent = model.requests();
    let mut keys = sent.iter().map(|asked| asked.authorization.as_deref());
    assert!(keys.all(|key| key == Some(&format!("Bearer {KEY}"))));
    // At rest it is sealed.
    for entry in std::fs::read_dir(app.folder.path().join("data")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let mut parts = bytes.windows(KEY.len());
            let stands_in = parts.any(|part| part == KEY.as_bytes());
            assert!(!stands_in, "the key stands in {}", path.display());
        }
    }
}
