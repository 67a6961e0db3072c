//! Which models there are, and which really answer.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Answer, Client};
use crate::model_stub::{ModelStub, Reply, Vendor};
use crate::support::TestApp;

const AVAILABLE: &str = "/api/models/available";
const CHECK: &str = "/api/models/check";
const PLAIN: (&str, &str) = ("SPL_SANDBOX", "none");

/// A page of the vendor's list.
fn list(vendor: Vendor, ids: &[&str]) -> Value {
    let models: Vec<Value> = ids
        .iter()
        .map(|id| match vendor {
            Vendor::Chat | Vendor::Responses | Vendor::Messages => json!({"id": id}),
            Vendor::Gemini => json!({"name": format!("models/{id}")}),
        })
        .collect();
    match vendor {
        Vendor::Chat | Vendor::Responses | Vendor::Messages => json!({ "data": models }),
        Vendor::Gemini => json!({ "models": models }),
    }
}

async fn client(app: &TestApp, role: Role) -> Client {
    Client::with_key(app, &app.person_with("acme", role).await.key)
}

/// `provider/id` of each model.
fn ids(found: &Value) -> Vec<String> {
    let models = found["models"].as_array().unwrap().iter();
    models
        .map(|model| format!("{}/{}", model["provider"], model["id"]).replace('"', ""))
        .collect()
}

/// Asserts S2.54.
#[tokio::test]
async fn members_may_read_the_list_and_only_admins_may_spend_money() {
    let app = TestApp::start().await;
    app.model.lists(list(Vendor::Chat, &["stub"]));
    let nobody = Client::nobody(&app);
    for path in [AVAILABLE, CHECK, "/api/models/available?probe=true"] {
        nobody.get(path).await.problem(401, "unauthorized");
    }
    for role in [Role::Viewer, Role::Member] {
        let client = client(&app, role).await;
        client.get(AVAILABLE).await.ok(200);
        client
            .get("/api/models/available?refresh&probe=0")
            .await
            .ok(200);
        for path in [
            CHECK,
            "/api/models/available?probe",
            "/api/models/available?probe=1",
        ] {
            client.get(path).await.problem(403, "not_allowed");
        }
        let odd = client.get("/api/models/available?probe=maybe").await;
        odd.problem(400, "invalid_arguments");
    }
    assert!(app.model.requests().is_empty(), "nothing was spent");
    let admin = client(&app, Role::Admin).await;
    app.model.will_say("OK");
    let found = admin.get("/api/models/available?probe").await.ok(200);
    assert_eq!(found["models"][0]["probed"], true);
    // What came of it is told once more.
    let checked = admin.get(CHECK).await.ok(200);
    assert_eq!(checked["providers"][0]["models"][0]["status"], "available");
    assert_eq!(app.model.requests().len(), 1);
}

/// A page of another site starts no such request, it is not repeated within a minute, and it
/// passes the budgets and is listed as what was used, like every other.
#[tokio::test]
async fn a_check_is_paid_for_once_a_minute_and_not_for_other_sites() {
    let app = TestApp::start_with(&[PLAIN]).await;
    let owner = client(&app, Role::Owner).await;
    let from = |site: &'static str| {
        let request = owner.request(Method::GET, CHECK);
        request.header("sec-fetch-site", site).send()
    };
    for site in ["cross-site", "same-site"] {
        let refused = Answer::of(from(site).await.unwrap()).await;
        refused.problem(403, "host_refused");
        let probing = owner.request(Method::GET, "/api/models/available?probe");
        let probing = probing.header("sec-fetch-site", site).send().await.unwrap();
        Answer::of(probing).await.problem(403, "host_refused");
    }
    assert!(app.model.requests().is_empty(), "nothing was spent");
    let budget = |limit: f64| json!({"level": "tenant", "period": "day", "limitUsd": limit});
    assert_eq!(owner.put("/api/budgets", budget(0.0)).await.status, 204);
    let found = owner.get(CHECK).await.ok(200);
    let model = &found["providers"][0]["models"][0];
    assert_eq!(model["status"], "error", "{found}");
    assert!(
        app.model.requests().is_empty(),
        "nothing was spent: {found}"
    );
    let lifted = owner.delete("/api/budgets?level=tenant&period=day").await;
    assert_eq!(lifted.status, 204, "{}", lifted.text);

    app.model.will_say("OK");
    for site in ["same-origin", "none", "same-origin"] {
        let found = Answer::of(from(site).await.unwrap()).await.ok(200);
        let model = &found["providers"][0]["models"][0];
        assert_eq!(model["status"], "available", "{found}");
    }
    // Another tenant pays for its own.
    let stranger = app.person_with("other", Role::Owner).await;
    app.model.will_say("OK");
    Client::with_key(&app, &stranger.key)
        .get(CHECK)
        .await
        .ok(200);
    assert_eq!(app.model.requests().len(), 2);
    let used = owner.get("/api/usage?by=purpose").await.ok(200);
    let rows = used["items"].as_array().unwrap();
    let probes = rows.iter().find(|row| row["purpose"] == "probe");
    assert_eq!(probes.unwrap()["requests"]["requests"], 1, "{used}");
}

/// Asserts S2.54.
#[tokio::test]
async fn every_provider_is_listed_and_one_that_fails_is_named() {
    let other = ModelStub::start().await;
    other.lists(list(
        Vendor::Chat,
        &["gpt-4o", "text-embedding-3-small", "o3"],
    ));
    let base = other.base_url();
    let extra = [
        PLAIN,
        ("OPENAI_API_KEY", "sk"),
        ("OPENAI_BASE_URL", base.as_str()),
    ];
    let app = TestApp::start_as(Vendor::Messages, &extra).await;
    let sonnet = Vendor::Messages.model();
    app.model
        .lists(list(Vendor::Messages, &[sonnet, "claude-x"]));
    let ana = client(&app, Role::Member).await;
    let found = ana.get(AVAILABLE).await.ok(200);
    assert_eq!(
        ids(&found),
        [
            format!("anthropic/{sonnet}"),
            "anthropic/claude-x".to_owned(),
            "openai/gpt-4o".to_owned(),
            "openai/o3".to_owned()
        ]
    );
    assert_eq!(found["provider"], "anthropic");
    assert_eq!(found["model"], sonnet);
    assert_eq!(found["problems"], json!([]));
    let first = &found["models"][0];
    assert_eq!(first["contextWindow"], 200_000);
    assert_eq!(first["prices"][0]["cacheWrite"], 3.75);
    // Of a model that nobody knows, what it lacks is unknown too.
    assert_eq!(first["abilitiesAssumed"], Value::Null);
    assert_eq!(found["models"][1]["abilitiesAssumed"], true);

    // What does not answer in its own form is named; what others list stays.
    app.model.lists(json!("no list"));
    let found = ana.get("/api/models/available?refresh=true").await.ok(200);
    assert_eq!(
        ids(&found),
        [
            format!("anthropic/{sonnet}"),
            "openai/gpt-4o".to_owned(),
            "openai/o3".to_owned()
        ]
    );
    assert_eq!(found["problems"][0]["provider"], "anthropic");
    assert_eq!(found["problems"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_default_that_is_not_listed_is_replaced_in_new_sessions() {
    let app = TestApp::start_as(Vendor::Gemini, &[PLAIN, ("SPL_LLM_MODEL", "gemini-gone")]).await;
    app.model
        .lists(list(Vendor::Gemini, &["gemini-odd", "gemini-3.8-flash"]));
    let person = app.person("acme").await;
    let found = Client::with_key(&app, &person.key)
        .get(AVAILABLE)
        .await
        .ok(200);
    assert_eq!(found["model"], "gemini-3.8-flash");
    let said = found["problems"][0]["problem"].as_str().unwrap();
    assert!(
        said.contains("gemini-gone") && said.contains("gemini-3.8-flash"),
        "{said}"
    );
    let mut ana = app.socket("acme").await;
    assert_eq!(ana.ready["model"], "gemini-3.8-flash", "{}", ana.ready);
    app.model.will_say("hi");
    ana.say("hello").await;
    assert_eq!(ana.wait_for_answer().await, "hi");
    let path = app.model.requests()[0].uri.path().to_owned();
    assert!(path.contains("gemini-3.8-flash"), "{path}");
}

/// Asserts S2.55.
#[tokio::test]
async fn a_check_tells_what_works_what_is_unknown_and_what_is_broken() {
    for vendor in [Vendor::Messages, Vendor::Gemini] {
        let app = TestApp::start_as(vendor, &[PLAIN]).await;
        let admin = client(&app, Role::Admin).await;
        app.model.lists(list(vendor, &[vendor.model(), "gone-9"]));
        app.model.will_say("OK");
        let found = admin.get(CHECK).await.ok(200);
        let provider = &found["providers"][0];
        assert_eq!(provider["kind"], vendor.provider());
        let models = provider["models"].as_array().unwrap();
        let status: Vec<&str> = models
            .iter()
            .map(|m| m["status"].as_str().unwrap())
            .collect();
        assert_eq!(status, ["available", "not_found"], "{found}");
        assert!(models[1]["cause"].as_str().unwrap().contains("gone-9"));
        assert_eq!(app.model.take_refusals().len(), 1);
        let asked = app.model.requests();
        let limits = ["/max_tokens", "/generationConfig/maxOutputTokens"];
        let limits = limits.map(|limit| asked[0].body.pointer(limit).cloned());
        assert!(limits.contains(&Some(json!(1))), "{limits:?}");

        app.model.lists(list(vendor, &[vendor.model()]));
        app.model.will(Reply::fail(500, &[], "<html>down</html>"));
        // Of another tenant: this one is told the same again for a minute.
        let other = app.person_with("other", Role::Admin).await;
        let found = Client::with_key(&app, &other.key).get(CHECK).await.ok(200);
        let model = &found["providers"][0]["models"][0];
        assert_eq!(model["status"], "error", "{found}");
        assert!(model["cause"].as_str().unwrap().contains("down"));
    }
}

#[tokio::test]
async fn a_wrong_key_is_told_in_list_and_check() {
    for vendor in [Vendor::Messages, Vendor::Gemini] {
        let app = TestApp::start_as(vendor, &[PLAIN, ("SPL_LLM_API_KEY", "sk-wrong")]).await;
        app.model.lists(list(vendor, &[vendor.model()]));
        let admin = client(&app, Role::Admin).await;
        let found = admin.get(AVAILABLE).await.ok(200);
        let said = found["problems"][0]["problem"].as_str().unwrap();
        assert!(said.contains("refused the key"), "{found}");
        let found = admin.get(CHECK).await.ok(200);
        let provider = &found["providers"][0];
        assert!(
            provider["error"]
                .as_str()
                .unwrap()
                .contains("refused the key")
        );
        assert_eq!(provider["models"][0]["status"], "error", "{found}");
        assert_eq!(app.model.take_refusals().len(), 1);
        assert!(!found.to_string().contains("sk-wrong"));
    }
}

/// Asserts S3.10.
#[tokio::test]
async fn a_text_is_counted_for_a_model_that_the_caller_may_use() {
    let app = TestApp::start().await;
    let path = |model: &str| format!("/api/models/{model}/tokens");
    let text = json!({"text": "hello world"});
    let nobody = Client::nobody(&app);
    let refused = nobody.post(&path("stub"), text.clone()).await;
    refused.problem(401, "unauthorized");
    // It costs nothing, so everybody who is signed in may ask.
    let ana = client(&app, Role::Viewer).await;
    let counted = ana.post(&path("stub"), text.clone()).await.ok(200);
    assert_eq!(counted, json!({"tokens": 3, "method": "estimated"}));
    assert!(app.model.requests().is_empty(), "no provider is asked");
    for wrong in [
        json!({}),
        json!({"text": 1}),
        json!({"text": "x".repeat((1 << 19) + 1)}),
    ] {
        let answer = ana.post(&path("stub"), wrong).await;
        answer.problem(400, "invalid_arguments");
    }

    // A provider that a tenant added is there for that tenant alone.
    let admin = client(&app, Role::Admin).await;
    let own = json!({"kind": "openai", "apiKey": "sk", "models": ["gpt-4o"]});
    assert_eq!(admin.put("/api/providers/own", own).await.status, 201);
    let of_own = json!({"text": "hello world", "provider": "own"});
    let counted = ana.post(&path("gpt-4o"), of_own.clone()).await.ok(200);
    assert_eq!(counted, json!({"tokens": 2, "method": "exact"}));
    let slashed = ana.post(&path("openai%2Fgpt-4o"), of_own.clone()).await;
    assert_eq!(slashed.ok(200)["method"], "estimated");
    let other = app.person_with("other", Role::Admin).await;
    let other = Client::with_key(&app, &other.key);
    let refused = other.post(&path("gpt-4o"), of_own).await;
    refused.problem(400, "invalid_arguments");
}
