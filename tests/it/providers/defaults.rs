//! What new sessions begin with: the first provider that answers, and what people choose instead.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use crate::model_stub::ModelStub;
use crate::servers::{Api, operator};
use crate::support::{Person, TestApp, TestSocket};

/// An installation with the demo alone.
async fn demo() -> TestApp {
    TestApp::start_with(&[("SPL_SANDBOX", "none"), ("LLM_PROVIDER", "scripted")]).await
}

/// What answers in a new session of that person.
async fn model_of(app: &TestApp, person: &Person) -> (String, String) {
    let socket = TestSocket::open(app.address, person, None).await;
    let text = |name: &str| socket.ready[name].as_str().unwrap().to_owned();
    (text("providerId"), text("model"))
}

fn choice(provider: &str, model: &str) -> (String, String) {
    (provider.to_owned(), model.to_owned())
}

async fn add(api: &Api<'_>, id: &str, stub: &ModelStub) -> Value {
    stub.lists(json!({ "object": "list", "data": [{ "id": "stub", "object": "model" }] }));
    let draft = json!({
        "kind": "openai-compatible", "baseUrl": stub.base_url(), "scope": "installation",
    });
    let path = format!("/api/providers/{id}");
    let (status, answer) = api.ask(Method::PUT, &path, &draft).await;
    assert_eq!(status, 201, "{answer}");
    let test = format!("{path}/test");
    api.ask(Method::POST, &test, &Value::Null).await.1
}

#[tokio::test]
async fn the_first_provider_that_answers_serves_new_sessions_and_stays_after_a_restart() {
    let app = demo().await;
    let person = operator(&app, "acme").await;
    let (first, second) = (ModelStub::start().await, ModelStub::start().await);
    assert_eq!(model_of(&app, &person).await.0, "scripted");
    let api = Api::new(&app, &person);

    first.will_say("ok");
    let tried = add(&api, "first", &first).await;
    assert_eq!(tried["ok"], true, "{tried}");
    assert_eq!(tried["isDefault"], true, "{tried}");
    let model = tried["model"].as_str().unwrap().to_owned();
    assert_eq!(model_of(&app, &person).await, choice("first", &model));
    // Who was there before and who comes later gets it too, in every tenant.
    let other = app.person("other").await;
    assert_eq!(model_of(&app, &other).await, choice("first", &model));

    second.will_say("ok");
    let tried = add(&api, "second", &second).await;
    assert_eq!(tried["isDefault"], false, "{tried}");
    assert_eq!(model_of(&app, &person).await, choice("first", &model));

    let app = app.restart().await;
    assert_eq!(model_of(&app, &person).await, choice("first", &model));
    // What is removed serves nobody; the next one that answers takes its place.
    let api = Api::new(&app, &person);
    let gone = Value::Null;
    let (status, _) = api.ask(Method::DELETE, "/api/providers/first", &gone).await;
    assert_eq!(status, 204);
    second.will_say("ok");
    let path = "/api/providers/second/test";
    let (_, tried) = api.ask(Method::POST, path, &Value::Null).await;
    assert_eq!(tried["isDefault"], true, "{tried}");
    assert_eq!(model_of(&app, &person).await.0, "second");
}

#[tokio::test]
async fn what_the_operator_set_stays_when_something_else_answers() {
    let app = TestApp::start().await;
    let person = operator(&app, "acme").await;
    let before = model_of(&app, &person).await;
    let stub = ModelStub::start().await;
    stub.will_say("ok");
    let tried = add(&Api::new(&app, &person), "mine", &stub).await;
    assert_eq!(
        (&tried["ok"], &tried["isDefault"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(model_of(&app, &person).await, before);
}

#[tokio::test]
async fn a_person_chooses_for_themselves_and_an_admin_for_the_tenant() {
    let app = TestApp::start().await;
    let admin = app.person_with("acme", Role::Owner).await;
    let member = app.person_with("acme", Role::Member).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let configured = model_of(&app, &member).await;
    let provider = configured.0.as_str();
    let path = "/api/models/default";
    let set =
        |model: &str, scope: &str| json!({ "provider": provider, "model": model, "scope": scope });
    let (by_admin, by_member) = (Api::new(&app, &admin), Api::new(&app, &member));

    let (status, said) = by_admin
        .ask(Method::PUT, path, &set("for-all", "tenant"))
        .await;
    assert_eq!((status, &said["source"]), (200, &json!("tenant")), "{said}");
    assert_eq!(model_of(&app, &member).await, choice(provider, "for-all"));
    let (status, said) = by_member.ask(Method::PUT, path, &set("mine", "own")).await;
    assert_eq!((status, &said["source"]), (200, &json!("own")), "{said}");
    assert_eq!(
        said["own"],
        json!({ "provider": provider, "model": "mine" })
    );
    assert_eq!(said["tenant"]["model"], "for-all");
    assert_eq!(model_of(&app, &member).await, choice(provider, "mine"));
    assert_eq!(model_of(&app, &admin).await, choice(provider, "for-all"));
    assert_eq!(model_of(&app, &stranger).await, configured);
    assert_eq!(
        by_member.get("/api/models/available").await["model"],
        "mine"
    );

    for scope in ["tenant", "installation"] {
        let (status, _) = by_member.ask(Method::PUT, path, &set("x", scope)).await;
        assert_eq!(status, 403, "{scope}");
        let query = format!("{path}?scope={scope}");
        let (status, _) = by_member.ask(Method::DELETE, &query, &Value::Null).await;
        assert_eq!(status, 403, "{scope}");
    }
    let nobody = json!({ "provider": "nobody", "model": "x" });
    let (status, problem) = by_member.ask(Method::PUT, path, &nobody).await;
    assert_eq!(
        (status, &problem["errors"][0]["field"]),
        (400, &json!("provider"))
    );

    let app = app.restart().await;
    assert_eq!(model_of(&app, &member).await, choice(provider, "mine"));
    let by_member = Api::new(&app, &member);
    let (status, said) = by_member.ask(Method::DELETE, path, &Value::Null).await;
    assert_eq!((status, &said["source"]), (200, &json!("tenant")), "{said}");
    assert_eq!(model_of(&app, &member).await, choice(provider, "for-all"));
}
