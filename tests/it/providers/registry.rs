//! Adding, trying, changing and removing providers while the server runs, and who may.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::{KEY, add, admin, compatible, open_app, seen};
use crate::model_stub::{ModelStub, STUB_KEY, Vendor};
use crate::rest::Client;
use crate::support::{TestApp, TestSocket};

/// A stored provider is tried, and refuses.
async fn refuses_in_its_own_words(client: &Client, other: &ModelStub) {
    other.will_fail(
        401,
        &[],
        r#"{"error":{"message":"Your account is closed"}}"#,
    );
    let small = json!({ "model": "small" });
    let tried = client.post("/api/providers/other/test", small).await.json();
    assert_eq!(
        (&tried["ok"], &tried["model"]),
        (&json!(false), &json!("small")),
        "{tried}"
    );
    assert_eq!(tried["error"]["code"], "provider_rejected");
    let words = tried["error"]["message"].as_str().unwrap();
    assert!(words.contains("Your account is closed"), "{words}");
}

#[tokio::test]
async fn a_provider_is_tried_added_used_and_removed_without_a_restart() {
    let app = open_app().await;
    let other = ModelStub::start().await;
    other.lists(json!({ "data": [{ "id": "big" }, { "id": "small" }] }));
    let (person, client) = admin(&app, "acme").await;
    // Tried before it is stored.
    other.will_say("OK");
    let draft = compatible(&other, KEY, &[]);
    let tried = client
        .post("/api/providers/other/test", draft.clone())
        .await
        .json();
    assert_eq!(
        (&tried["ok"], &tried["model"]),
        (&json!(true), &json!("big")),
        "{tried}"
    );
    assert!(
        tried["models"] == json!(["big", "small"]) && tried["latencyMs"].is_u64(),
        "{tried}"
    );
    assert_eq!(seen(&client).await, ["openai-compatible"]);

    let item = add(&client, "other", draft).await;
    let expected = json!({
        "id": "other", "kind": "openai-compatible", "baseUrl": other.base_url(), "api": "auto",
        "hasKey": true, "moreKeys": 0, "fallback": [], "models": [], "contextWindow": null,
        "contextWindows": {}, "maxOutputs": {}, "efforts": {}, "prices": {}, "source": "tenant", "isDefault": false,
    });
    assert_eq!(item, expected);
    assert_eq!(client.get("/api/providers/other").await.json(), expected);
    assert_eq!(seen(&client).await, ["openai-compatible", "other"]);
    refuses_in_its_own_words(&client, &other).await;

    let mut socket = TestSocket::open(app.address, &person, None).await;
    let choice = [json!({ "model": "x", "provider": "other" })];
    assert_eq!(socket.ask("session:model", &choice).await["ok"], true);
    let gone = client.delete("/api/providers/other").await;
    assert_eq!(
        (gone.status, seen(&client).await),
        (204, vec!["openai-compatible".to_owned()])
    );
    // The session says what is wrong, and goes on with another one.
    socket.say("hello").await;
    let failed = socket.wait_for("agent:error").await;
    assert_eq!(failed.rest()["code"], "not_found");
    assert!(failed.text().contains("`other`"), "{}", failed.text());
    let chosen = socket
        .ask("session:model", &[json!({ "model": "stub" })])
        .await;
    assert_eq!(chosen["ok"], true, "{chosen}");
    app.model.will_say("hi");
    assert_eq!(socket.ask("turn:retry", &[json!({})]).await["ok"], true);
    assert_eq!(socket.wait_for_answer().await, "hi");
}

#[tokio::test]
async fn admins_change_what_is_theirs_and_members_only_look() {
    let app = open_app().await;
    let other = ModelStub::start().await;
    let (_, admin) = admin(&app, "acme").await;
    let member = app.person("acme").await;
    let member = Client::with_key(&app, &member.key);
    let root = app.installation_admin("acme").await;
    let root = Client::with_key(&app, &root.key);
    let tenant = compatible(&other, KEY, &["m"]);
    let mut shared = tenant.clone();
    shared["scope"] = json!("installation");
    let refused = async |client: &Client, method: &str, path: &str, body: &Value| {
        let method: reqwest::Method = method.parse().unwrap();
        let answer = client.send(method.clone(), path, Some(body.clone())).await;
        assert_eq!(answer.status, 403, "{method} {path} {}", answer.text);
        assert_eq!(answer.json()["code"], "not_allowed");
    };
    refused(&member, "PUT", "/api/providers/a", &tenant).await;
    refused(&admin, "PUT", "/api/providers/a", &shared).await;
    refused(&root, "PUT", "/api/providers/a", &tenant).await;

    add(&admin, "a", tenant.clone()).await;
    let item = add(&root, "b", shared).await;
    assert_eq!(item["source"], "installation");
    for (client, path) in [(&member, "a"), (&member, "b"), (&admin, "b"), (&root, "a")] {
        let path = format!("/api/providers/{path}");
        let mut body = tenant.clone();
        body["apiKey"].take();
        refused(client, "PUT", &path, &body).await;
        refused(client, "DELETE", &path, &json!({})).await;
    }
    refused(&member, "POST", "/api/providers/a/test", &json!({})).await;
    assert_eq!(seen(&member).await, ["openai-compatible", "a", "b"]);

    // Everybody has what the installation has; a tenant's own stands before it.
    let elsewhere = app.person("elsewhere").await;
    let elsewhere = Client::with_key(&app, &elsewhere.key);
    assert_eq!(seen(&elsewhere).await, ["openai-compatible", "b"]);
    let mut own = tenant.clone();
    own["scope"] = json!("tenant");
    assert_eq!(add(&admin, "b", own).await["source"], "tenant");
    assert_eq!(admin.delete("/api/providers/b").await.status, 204);
    assert_eq!(
        admin.get("/api/providers/b").await.json()["source"],
        "installation"
    );
    assert_eq!(root.delete("/api/providers/b").await.status, 204);
    assert_eq!(seen(&elsewhere).await, ["openai-compatible"]);
}

#[tokio::test]
async fn another_tenant_does_not_see_change_try_or_use_a_provider() {
    let app = open_app().await;
    let other = ModelStub::start().await;
    let (owner, client) = admin(&app, "acme").await;
    add(&client, "ours", compatible(&other, KEY, &["secret-model"])).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let theirs = Client::with_key(&app, &stranger.key);
    let list = theirs.get("/api/providers").await.text;
    assert!(
        !list.contains("ours") && !list.contains("secret-model"),
        "{list}"
    );
    assert_eq!(theirs.get("/api/providers/ours").await.status, 404);
    assert_eq!(theirs.delete("/api/providers/ours").await.status, 404);
    assert_eq!(
        theirs
            .post("/api/providers/ours/test", json!({}))
            .await
            .status,
        404
    );
    let mut socket = TestSocket::open(app.address, &stranger, None).await;
    for choice in [
        json!({ "model": "secret-model", "provider": "ours" }),
        json!({ "provider": "ours" }),
    ] {
        let answer = socket.ask("session:model", &[choice]).await;
        assert_eq!(answer["error"]["field"], "provider", "{answer}");
    }
    // The model's name alone leads to the stranger's own provider.
    let answer = socket
        .ask("session:model", &[json!({ "model": "secret-model" })])
        .await;
    assert_eq!(answer["ok"], true);
    app.model.will_say("mine");
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "mine");
    // One of the same name is another one.
    let own = ModelStub::start().await;
    add(&theirs, "ours", compatible(&own, "k", &["m"])).await;
    let seen = client.get("/api/providers/ours").await.json();
    assert_eq!(seen["models"], json!(["secret-model"]));
    assert_eq!(theirs.delete("/api/providers/ours").await.status, 204);
    other.will_say("still ours");
    let auth = json!({ "token": owner.key });
    let socket = TestSocket::try_open_at(app.address, auth, "&provider=ours");
    let mut socket = socket.await.unwrap();
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "still ours");
    assert!(own.requests().is_empty());
}

#[tokio::test]
async fn what_the_settings_say_is_changed_in_the_settings() {
    let app = open_app().await;
    let (_, client) = admin(&app, "acme").await;
    let own = "/api/providers/openai-compatible";
    let item = client.get(own).await.json();
    let facts = (&item["source"], &item["isDefault"]);
    assert_eq!(facts, (&json!("settings"), &json!(true)));
    let changed = client.put(own, compatible(&app.model, KEY, &[])).await;
    assert_eq!(
        (changed.status, changed.code()),
        (409, "read_only".to_owned())
    );
    let removed = client.delete(own).await;
    assert_eq!(
        (removed.status, removed.code()),
        (409, "read_only".to_owned())
    );
}

#[tokio::test]
async fn what_a_provider_cannot_be_is_said_with_its_field() {
    let app = open_app().await;
    let (_, client) = admin(&app, "acme").await;
    let check = async |id: &str, change: Value, field: &str| {
        let mut body = compatible(&app.model, KEY, &["m"]);
        let changes = change.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(changes);
        for (method, path) in [("PUT", ""), ("POST", "/test")] {
            let path = format!("/api/providers/{id}{path}");
            let answer = client
                .send(method.parse().unwrap(), &path, Some(body.clone()))
                .await;
            let found = (answer.status, answer.json()["errors"][0]["field"].clone());
            assert_eq!(found, (400, json!(field)), "{change} {}", answer.text);
        }
    };
    check("Upper", json!({}), "id").await;
    check("a%20b", json!({}), "id").await;
    check("x", json!({ "kind": "cohere" }), "kind").await;
    check("x", json!({ "baseUrl": null }), "baseUrl").await;
    check("x", json!({ "baseUrl": "ftp://a.example" }), "baseUrl").await;
    check(
        "x",
        json!({ "baseUrl": "https://me:pass@a.example" }),
        "baseUrl",
    )
    .await;
    check("x", json!({ "apiKey": "two words" }), "apiKey").await;
    check("x", json!({ "apiKey": 4711 }), "apiKey").await;
    check("x", json!({ "models": [""] }), "models").await;
    check("x", json!({ "api": "soap" }), "api").await;
    check("x", json!({ "scope": "world" }), "scope").await;
    assert_eq!(seen(&client).await, ["openai-compatible"]);
}

#[tokio::test]
async fn a_tenant_cannot_lead_requests_into_our_own_networks() {
    let app = TestApp::start().await;
    let (person, client) = admin(&app, "acme").await;
    let inside = ModelStub::start().await;
    let port = inside.base_url().rsplit(':').next().unwrap().to_owned();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "169.254.169.254",
        "10.0.0.1",
    ] {
        let body = json!({
            "kind": "openai-compatible", "baseUrl": format!("http://{host}:{port}"), "models": ["m"],
        });
        for (method, path) in [("PUT", "x"), ("POST", "x/test")] {
            let path = format!("/api/providers/{path}");
            let answer = client
                .send(method.parse().unwrap(), &path, Some(body.clone()))
                .await;
            let found = (answer.status, answer.json()["errors"][0]["field"].clone());
            assert_eq!(found, (400, json!("baseUrl")), "{host} {}", answer.text);
        }
    }
    // The installation may.
    let root = app.installation_admin("acme").await;
    let root = Client::with_key(&app, &root.key);
    let mut shared = compatible(&inside, KEY, &["m"]);
    shared["scope"] = json!("installation");
    add(&root, "inside", shared).await;
    inside.will_say("hi");
    let auth = json!({ "token": person.key });
    let socket = TestSocket::try_open_at(app.address, auth, "&model=m");
    let mut socket = socket.await.unwrap();
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "hi");
}

#[tokio::test]
async fn a_stored_address_that_is_no_longer_allowed_is_not_reached() {
    let app = open_app().await;
    let (person, client) = admin(&app, "acme").await;
    let inside = ModelStub::start().await;
    add(&client, "inside", compatible(&inside, KEY, &["m"])).await;
    let app = app.restart_with(&[("SPL_SANDBOX", "none")]).await;
    let auth = json!({ "token": person.key });
    let socket = TestSocket::try_open_at(app.address, auth, "&model=m");
    let mut socket = socket.await.unwrap();
    socket.say("hello").await;
    let failed = socket.wait_for("agent:error").await;
    assert_eq!(failed.rest()["code"], "invalid_arguments");
    assert!(
        failed.text().contains("SPL_OUTGOING_ALLOW"),
        "{}",
        failed.text()
    );
    assert!(inside.requests().is_empty());
}

#[tokio::test]
async fn windows_of_a_provider_and_of_its_models_are_kept_and_used() {
    let app = open_app().await;
    let other = ModelStub::start().await;
    let (person, client) = admin(&app, "acme").await;
    let mut body = compatible(&other, KEY, &["small", "big"]);
    body["contextWindow"] = json!(8_192);
    body["contextWindows"] = json!({"big": 200_000, "gpt-4o": 64_000});
    let item = add(&client, "other", body.clone()).await;
    assert_eq!(item["contextWindow"], 8_192);
    assert_eq!(
        item["contextWindows"],
        json!({"big": 200_000, "gpt-4o": 64_000})
    );
    for wrong in [
        json!(0),
        json!(1_023),
        json!(-1),
        json!("8192"),
        json!(5_000_000_000_u64),
    ] {
        let mut refused = body.clone();
        refused["contextWindow"] = wrong.clone();
        let answer = client.put("/api/providers/other", refused).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text);
        let mut refused = body.clone();
        refused["contextWindows"] = json!({"big": wrong});
        let answer = client.put("/api/providers/other", refused).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text);
    }

    let app = app.restart().await;
    let client = Client::with_key(&app, &person.key);
    let kept = client.get("/api/providers/other").await.json();
    assert_eq!(kept["contextWindows"], item["contextWindows"]);
    let mut socket = TestSocket::open(app.address, &person, None).await;
    for (model, window) in [("small", 8_192), ("big", 200_000), ("gpt-4o", 64_000)] {
        let choice = [json!({ "model": model, "provider": "other" })];
        assert_eq!(socket.ask("session:model", &choice).await["ok"], true);
        let usage = socket.wait_for("session:usage").await;
        let context = &usage.args[0]["context"];
        assert_eq!(context["window"], window, "{model}");
        assert_eq!(context["windowAssumed"], false, "{model}");
    }

    body["contextWindow"].take();
    body["contextWindows"].take();
    assert_eq!(client.put("/api/providers/other", body).await.status, 200);
    let choice = [json!({ "model": "small", "provider": "other" })];
    assert_eq!(socket.ask("session:model", &choice).await["ok"], true);
    let usage = socket.wait_for("session:usage").await;
    assert_eq!(usage.args[0]["context"]["window"], 32_768);
    assert_eq!(usage.args[0]["context"]["windowAssumed"], true);
}

async fn refuses_what_no_model_has(client: &Client, body: &Value) {
    for (field, wrong) in [
        ("prices", json!({"small": {"input": -1.0, "output": 1.0}})),
        ("prices", json!({"small": {"input": 1e7, "output": 1.0}})),
        ("prices", json!({"small": {"input": 1.0}})),
        ("prices", json!({"": {"input": 1.0, "output": 1.0}})),
        ("maxOutputs", json!({"small": 0})),
        ("maxOutputs", json!({"": 9})),
    ] {
        let mut refused = body.clone();
        refused[field] = wrong.clone();
        let answer = client.put("/api/providers/other", refused).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text);
    }
}

#[tokio::test]
async fn how_long_a_cache_keeps_what_it_is_given_is_kept_and_sent() {
    let app = open_app().await;
    let other = ModelStub::start_as(Vendor::Messages).await;
    let (person, client) = admin(&app, "acme").await;
    let mut body = json!({
        "kind": "anthropic", "baseUrl": other.base_url(), "apiKey": STUB_KEY, "scope": "tenant",
        "models": ["claude-opus-4-6"], "cacheTtl": "1h",
    });
    assert_eq!(add(&client, "other", body.clone()).await["cacheTtl"], "1h");
    // Whoever changes something else keeps it.
    body.as_object_mut().unwrap().remove("cacheTtl");
    let again = client.put("/api/providers/other", body.clone()).await;
    assert_eq!(
        (again.status, &again.json()["cacheTtl"]),
        (200, &json!("1h"))
    );
    body["cacheTtl"] = json!("2h");
    let refused = client.put("/api/providers/other", body).await;
    assert_eq!(refused.status, 400, "{}", refused.text);

    let mut socket = TestSocket::open(app.address, &person, None).await;
    let choice = [json!({ "model": "claude-opus-4-6", "provider": "other" })];
    assert_eq!(socket.ask("session:model", &choice).await["ok"], true);
    other.will_say("Cached.");
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "Cached.");
    let sent = other.requests().pop().unwrap().body.to_string();
    assert!(sent.contains(r#""ttl":"1h""#), "{sent}");
}

async fn is_listed_as_was_said(client: &Client) {
    let listed = client.get("/api/models/available").await.json();
    let listed = listed["models"].as_array().unwrap();
    let is_small = |model: &&Value| model["provider"] == "other" && model["id"] == "small";
    let small = listed.iter().find(is_small).unwrap();
    assert_eq!(small["maxOutput"], 1_000, "{small}");
    assert_eq!(small["prices"][0]["input"], 0.5, "{small}");
}

/// S3.11.
#[tokio::test]
async fn prices_and_longest_answers_of_a_provider_are_kept_used_and_listed() {
    let app = open_app().await;
    let other = ModelStub::start().await;
    let (person, client) = admin(&app, "acme").await;
    let mut body = compatible(&other, KEY, &["small", "big"]);
    let prices = json!({
        "small": {"input": 0.5, "output": 2.0}, "gpt-4o": {"input": 1.0, "output": 1.0, "cached": 0.0},
    });
    body["prices"] = prices.clone();
    body["maxOutputs"] = json!({"small": 1_000});
    body["efforts"] = json!({"small": "low", "big": "9000"});
    let item = add(&client, "other", body.clone()).await;
    assert_eq!(
        (&item["prices"], &item["maxOutputs"], &item["efforts"]),
        (&prices, &body["maxOutputs"], &body["efforts"])
    );
    refuses_what_no_model_has(&client, &body).await;
    // Whoever changes something else keeps them.
    let fields = body.as_object_mut().unwrap();
    fields.retain(|name, _| !["prices", "maxOutputs", "efforts"].contains(&name.as_str()));
    assert_eq!(
        client
            .put("/api/providers/other", body.clone())
            .await
            .status,
        200
    );

    let app = app.restart().await;
    let client = Client::with_key(&app, &person.key);
    let kept = client.get("/api/providers/other").await.json();
    assert_eq!(
        (&kept["prices"], &kept["maxOutputs"], &kept["efforts"]),
        (
            &prices,
            &json!({"small": 1_000}),
            &json!({"small": "low", "big": "9000"})
        )
    );
    is_listed_as_was_said(&client).await;

    let mut socket = TestSocket::open(app.address, &person, None).await;
    let choice = [json!({ "model": "small", "provider": "other" })];
    assert_eq!(socket.ask("session:model", &choice).await["ok"], true);
    other.will_say("Priced.");
    socket.say("hello").await;
    let answer = socket.wait_for("agent:response").await;
    let usage = &answer.rest()["usage"];
    let tokens = |name: &str| usage[name].as_f64().unwrap();
    let micro = (tokens("inputTokens") * 0.5 + tokens("outputTokens") * 2.0).ceil();
    assert!(micro > 0.0, "{usage}");
    assert_eq!(answer.rest()["cost"], micro / 1e6, "{}", answer.rest());
    let usage = socket.wait_for("session:usage").await;
    assert_eq!(usage.args[0]["unpricedRequests"], 0, "{usage:?}");

    body["prices"] = json!({});
    assert_eq!(client.put("/api/providers/other", body).await.status, 200);
    other.will_say("Not priced.");
    socket.say("again").await;
    let answer = socket.wait_for("agent:response").await;
    assert_eq!(answer.rest()["cost"], Value::Null, "{}", answer.rest());
}

/// S3.11: the same from the settings.
#[tokio::test]
async fn a_price_and_a_longest_answer_of_the_settings_are_used() {
    let env = [("SPL_SANDBOX", "none"), ("SPL_LLM_MAX_TOKENS", "5000")];
    let app = TestApp::start_tuned(&env, |settings| {
        let model = settings.llm.model.clone();
        for entry in settings.llm.providers.values_mut() {
            let price = sepal::config::ModelPrice {
                input: 1.0,
                output: 0.0,
                cached: None,
                cache_write: None,
                cache_write_long: None,
            };
            entry.prices = [(model.clone(), price)].into();
            entry.max_outputs = [(model.clone(), 700)].into();
        }
    })
    .await;
    app.model.will_say("Priced.");
    let mut socket = app.socket("acme").await;
    socket.say("hello").await;
    let answer = socket.wait_for("agent:response").await;
    let input = answer.rest()["usage"]["inputTokens"].as_f64().unwrap();
    assert_eq!(answer.rest()["cost"], input / 1e6, "{}", answer.rest());
    assert_eq!(app.model.requests()[0].body["max_tokens"], 700);
}

/// People leave `/v1` out, paste quotes and `Bearer`, and lists of models have odd entries.
#[tokio::test]
async fn a_provider_is_found_where_v1_was_left_out_and_its_right_address_is_stored() {
    let app = open_app().await;
    let other = ModelStub::start().await;
    other.lists(json!({ "data": [{ "id": "big" }, { "object": "model" }] }));
    let (person, client) = admin(&app, "acme").await;
    let right = other.base_url();
    let given = right.trim_end_matches("/v1").to_owned();
    let mut draft = compatible(&other, &format!(" \"Bearer {KEY}\"\r\n"), &[]);
    draft["baseUrl"] = json!(format!(" \"{given}/\" "));
    other.will_say("OK");
    let tried = client.post("/api/providers/other/test", draft.clone());
    let tried = tried.await.ok(200);
    assert_eq!(
        (&tried["ok"], &tried["baseUrl"], &tried["models"]),
        (&json!(true), &json!(right), &json!(["big"])),
        "{tried}"
    );
    assert_eq!(
        tried["leftOut"].as_array().map(Vec::len),
        Some(1),
        "{tried}"
    );

    // Without a test it works, too.
    let item = add(&client, "other", draft).await;
    assert_eq!(
        item["baseUrl"].as_str().unwrap().trim_end_matches('/'),
        given
    );
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let choice = [json!({ "model": "big", "provider": "other" })];
    assert_eq!(socket.ask("session:model", &choice).await["ok"], true);
    other.will_say("hi");
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "hi");
    let asked = other.requests().pop().unwrap();
    assert_eq!(asked.authorization, Some(format!("Bearer {KEY}")));

    other.will_say("OK");
    let test = json!({ "model": "big" });
    let tried = client.post("/api/providers/other/test", test).await.ok(200);
    assert_eq!(tried["baseUrl"], right, "{tried}");
    let list = client.get("/api/providers").await.ok(200);
    let stored = json!({ "id": "other", "baseUrl": right, "hasKey": true });
    let items = list["items"].as_array().unwrap();
    let is_stored = |item: &Value| {
        ["id", "baseUrl", "hasKey"]
            .iter()
            .all(|of| item[of] == stored[of])
    };
    assert!(items.iter().any(is_stored), "{list}");
    let problems = client.get("/api/models/available").await.ok(200)["problems"].to_string();
    assert!(problems.contains("has no name"), "{problems}");
}
