//! A request that is sent again with its `Idempotency-Key` does nothing more.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};
use sqlx::Connection as _;

use super::{Answer, Client};
use crate::replicas::Pair;
use crate::support::TestApp;

async fn keyed(client: &Client, key: &str, path: &str, body: &Value) -> Answer {
    let request = client.request(Method::POST, path);
    let request = request.header("idempotency-key", key).json(body);
    Answer::of(request.send().await.unwrap()).await
}

async fn count(client: &Client, path: &str) -> usize {
    let listed = client.get(path).await.ok(200);
    listed["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn the_same_request_is_answered_as_the_first_time() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let body = json!({ "title": "Mine" });
    let first = keyed(&client, "k1", "/api/sessions", &body).await;
    let again = keyed(&client, "\"k1\"", "/api/sessions", &body).await;
    assert_eq!(first.ok(201), again.ok(201));
    assert_eq!(first.header("idempotency-replayed"), "");
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.header("content-type"), "application/json");
    assert_eq!(count(&client, "/api/sessions").await, 1);

    let other = keyed(&client, "k1", "/api/sessions", &json!({ "title": "Yours" })).await;
    other.problem(422, "key_in_use");
    let elsewhere = keyed(&client, "k1", "/api/rules", &body).await;
    elsewhere.problem(422, "key_in_use");
    assert_eq!(count(&client, "/api/sessions").await, 1);

    let ben = Client::with_key(&app, &app.person("acme").await.key);
    keyed(&ben, "k1", "/api/sessions", &body).await.ok(201);
    assert_eq!(count(&ben, "/api/sessions").await, 1, "keys are a person's");
    let eve = Client::with_key(&app, &app.person("globex").await.key);
    let theirs = keyed(&eve, "k1", "/api/sessions", &body).await;
    assert_ne!(
        theirs.ok(201)["id"],
        first.json()["id"],
        "and of their tenant"
    );
    assert_eq!(theirs.header("idempotency-replayed"), "");
    assert_eq!(count(&eve, "/api/sessions").await, 1);

    // What was refused is refused again, and a new key tries anew.
    let wrong = json!({ "title": "" });
    let refused = keyed(&client, "k2", "/api/sessions", &wrong).await;
    refused.problem(400, "invalid_arguments");
    let again = keyed(&client, "k2", "/api/sessions", &wrong).await;
    assert_eq!(again.status, 400);
    assert_eq!(again.header("content-type"), "application/problem+json");
    assert_eq!(again.header("idempotency-replayed"), "true");
    for wrong in ["", "a b", &"x".repeat(256)] {
        let refused = keyed(&client, wrong, "/api/sessions", &body).await;
        refused.problem(400, "invalid_arguments");
    }
    let nobody = keyed(&Client::nobody(&app), "k1", "/api/sessions", &body).await;
    nobody.problem(401, "unauthorized");
}

#[tokio::test]
async fn requests_at_once_with_one_key_do_it_once_at_any_gateway() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "none")]).await;
    let ana = pair.a.person("acme").await;
    let clients = [&pair.a, &pair.b].map(|app| Client::with_key(app, &ana.key));
    let body = json!({ "title": "Mine" });
    for round in 0..5 {
        let key = format!("k{round}");
        let (one, two) = tokio::join!(
            keyed(&clients[0], &key, "/api/sessions", &body),
            keyed(&clients[1], &key, "/api/sessions", &body)
        );
        for answer in [&one, &two] {
            match answer.status {
                201 => {}
                _ => drop(answer.problem(409, "key_in_use")),
            }
        }
        assert!(one.status == 201 || two.status == 201);
        let again = keyed(&clients[1], &key, "/api/sessions", &body).await;
        again.ok(201);
        assert_eq!(count(&clients[0], "/api/sessions").await, round + 1);
    }
}

#[tokio::test]
async fn a_message_with_a_key_is_said_once() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let session = client.post("/api/sessions", json!({})).await.ok(201);
    let at = format!("/api/sessions/{}", session["id"].as_str().unwrap());
    app.model.will_say("fine");
    let body = json!({ "text": "hello" });
    let first = keyed(&client, "m1", &format!("{at}/messages"), &body).await;
    let again = keyed(&client, "m1", &format!("{at}/messages"), &body).await;
    assert_eq!(first.ok(202), again.ok(202));
    let events = client.get(&format!("{at}/events")).await.ok(200);
    let said = events["items"].as_array().unwrap().iter();
    let said = said.filter(|item| item["event"] == "user:message");
    let ids: Vec<&Value> = said
        .map(|item| &item["args"][1]["clientMessageId"])
        .collect();
    assert_eq!(ids.len(), 1);
    assert!(ids[0].as_str().unwrap().starts_with("key_"), "{ids:?}");
}

/// A gateway that died after it had added a rule, and before it answered.
#[tokio::test]
async fn what_an_interrupted_request_has_changed_is_not_done_twice() {
    let app = TestApp::start().await;
    let ana = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ana.key);
    let rule = json!({ "effect": "deny", "scope": "person", "server": "x", "tool": "y" });
    // Holds the gateway where it has added the rule: its answer cannot be kept.
    let database = app.folder.path().join("data/sepal.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database);
    let mut file = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    let lost = "CREATE TRIGGER lost BEFORE UPDATE OF answer ON idempotency_keys BEGIN \
                SELECT RAISE(ABORT, 'the gateway is gone'); END";
    sqlx::query(lost).execute(&mut file).await.unwrap();
    keyed(&client, "r1", "/api/rules", &rule).await.ok(201);
    let fork = client.post("/api/sessions", json!({})).await.ok(201);
    let fork = format!("/api/sessions/{}/fork", fork["id"].as_str().unwrap());
    keyed(&client, "f1", &fork, &json!({})).await.ok(201);
    keyed(&client, "s1", "/api/sessions", &json!({}))
        .await
        .ok(201);
    for (key, path, body) in [("r1", "/api/rules", &rule), ("f1", &fork, &json!({}))] {
        let running = keyed(&client, key, path, body).await;
        let detail = running.problem(409, "key_in_use")["detail"].clone();
        assert!(detail.as_str().unwrap().contains("still"), "{detail}");
    }
    let over = "UPDATE idempotency_keys SET until = CASE WHEN until < 0 THEN -1 ELSE 1 END";
    sqlx::query(over).execute(&mut file).await.unwrap();
    sqlx::query("DROP TRIGGER lost")
        .execute(&mut file)
        .await
        .unwrap();
    for (key, path, body) in [("r1", "/api/rules", &rule), ("f1", &fork, &json!({}))] {
        let interrupted = keyed(&client, key, path, body).await;
        let detail = interrupted.problem(409, "key_in_use")["detail"].clone();
        assert!(detail.as_str().unwrap().contains("new key"), "{detail}");
    }
    let rules = client.get("/api/rules").await.ok(200);
    assert_eq!(rules["rules"].as_array().unwrap().len(), 1, "{rules}");
    // What makes nothing twice is carried out again: it finds the session.
    let again = keyed(&client, "s1", "/api/sessions", &json!({})).await;
    again.ok(200);
    assert_eq!(count(&client, "/api/sessions").await, 3);
    let other = keyed(&client, "r2", "/api/rules", &rule).await;
    other.ok(201);
}

/// What an answer held is nowhere readable.
#[tokio::test]
async fn an_answer_with_a_secret_is_kept_sealed() {
    let app = TestApp::start_with(&[("SPL_OUTGOING_ALLOW", "127.0.0.0/8")]).await;
    let ana = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ana.key);
    let body = json!({ "url": "http://127.0.0.1:9/hook" });
    let first = keyed(&client, "w1", "/api/webhooks", &body).await.ok(201);
    let again = keyed(&client, "w1", "/api/webhooks", &body).await.ok(201);
    assert_eq!(first, again);
    let secret = first["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"));
    let database = app.folder.path().join("data/sepal.db");
    for file in [database.clone(), database.with_extension("db-wal")] {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let found = bytes
            .windows(secret.len())
            .any(|part| part == secret.as_bytes());
        assert!(!found, "{}", file.display());
    }
}

#[tokio::test]
async fn what_a_request_with_a_key_does_is_recorded_of_its_person() {
    let app = TestApp::start().await;
    let ana = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ana.key);
    let rule = json!({ "effect": "deny", "scope": "person", "server": "x", "tool": "y" });
    keyed(&client, "r1", "/api/rules", &rule).await.ok(201);
    let me = client.get("/api/auth/me").await.ok(200);
    let recorded = client.get("/api/audit?act=rule.added").await.ok(200);
    let items = recorded["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{recorded}");
    assert_eq!(items[0]["person"]["id"], me["user"]["id"], "{recorded}");
}

#[tokio::test]
async fn a_user_is_told_how_many_requests_are_left() {
    let app = TestApp::start_with(&[("SPL_LIMIT_REQUESTS_PER_MINUTE", "3")]).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let me = client.get("/api/auth/me").await;
    assert_eq!(me.header("ratelimit"), "\"user\";r=2;t=20");
    assert_eq!(me.header("ratelimit-policy"), "\"user\";q=3;w=60");
    for _ in 0..2 {
        client.get("/api/auth/me").await.ok(200);
    }
    let refused = client.get("/api/auth/me").await;
    refused.problem(429, "too_many_requests");
    assert!(refused.header("ratelimit").starts_with("\"user\";r=0;"));
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=21).contains(&wait), "{wait}");
    let ben = Client::with_key(&app, &app.person("acme").await.key);
    ben.get("/api/auth/me").await.ok(200);
}

#[tokio::test]
async fn short_lists_have_pages() {
    let app = TestApp::start().await;
    let ana = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ana.key);
    for name in ["a", "b", "c"] {
        let server = json!({ "name": name, "scope": "tenant", "config": { "command": "true" } });
        client.post("/api/mcp/add", server).await.ok(201);
        let rule = json!({ "effect": "deny", "scope": "person", "server": name, "tool": "x" });
        client.post("/api/rules", rule).await.ok(201);
    }
    for (path, field) in [
        ("/api/mcp", "items"),
        ("/api/rules", "rules"),
        ("/api/providers", "items"),
    ] {
        let whole = client.get(path).await.ok(200)[field].clone();
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("{path}?limit=1{cursor}")).await.ok(200);
            let items = page[field].as_array().unwrap();
            assert!(items.len() <= 1);
            pages.extend(items.clone());
            let Some(next) = page["nextCursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(Value::Array(pages), whole, "{path}");
    }
    let wrong = client.get("/api/mcp?cursor=x").await;
    wrong.problem(400, "invalid_arguments");
}
