//! Sessions over REST: the same as over the socket.

use reqwest::Method;
use serde_json::{Value, json};

use super::Client;
use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn a_session_is_created_named_listed_and_deleted() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let created = client
        .post("/api/sessions", json!({ "title": "Taxes" }))
        .await
        .ok(201);
    let id = created["id"].as_str().unwrap();
    assert_eq!(
        (&created["title"], &created["state"], &created["waiting"]),
        (&json!("Taxes"), &json!("idle"), &json!(0))
    );
    let path = format!("/api/sessions/{id}");

    let renamed = client
        .send(Method::PATCH, &path, Some(json!({ "title": "Taxes 2026" })))
        .await;
    assert_eq!(renamed.ok(200)["title"], "Taxes 2026");
    let missing = client.send(Method::PATCH, &path, Some(json!({}))).await;
    assert_eq!(
        missing.problem(400, "invalid_arguments")["errors"][0]["field"],
        "title"
    );
    client.get(&path).await.ok(200);
    let other = client
        .post(
            "/api/sessions",
            json!({ "model": "another", "provider": "nobody" }),
        )
        .await;
    assert_eq!(
        other.problem(400, "invalid_arguments")["errors"][0]["field"],
        "provider"
    );

    let gone = client.send(Method::DELETE, &path, None).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    client.get(&path).await.problem(404, "session_not_found");
    client
        .send(Method::DELETE, &path, None)
        .await
        .problem(404, "session_not_found");
}

#[tokio::test]
async fn what_cannot_be_an_id_is_nobodys_session() {
    let app = TestApp::start().await;
    let client = Client::with_key(&app, &app.person("acme").await.key);
    for id in [
        "ses_00000000000000000000000000000000",
        "ses_x",
        "..%2f..%2fetc",
        "%00",
        "%F0%28",
    ] {
        let path = format!("/api/sessions/{id}");
        client.get(&path).await.problem(404, "session_not_found");
        client
            .get(&format!("{path}/events"))
            .await
            .problem(404, "session_not_found");
        client
            .post(&format!("{path}/messages"), json!({ "text": "x" }))
            .await
            .problem(404, "session_not_found");
    }
}

/// All items, page after page, following the cursor.
async fn pages(
    client: &Client,
    path: &str,
    direction: &str,
    first: u64,
    limit: usize,
) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut from = first.to_string();
    loop {
        let page = client
            .get(&format!("{path}?{direction}={from}&limit={limit}"))
            .await
            .ok(200);
        pages.push(page["items"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(next) => next.clone_into(&mut from),
            None => return pages,
        }
    }
}

/// Asserts S1.5.
#[tokio::test]
async fn the_transcript_in_pages_is_what_the_socket_showed() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    for round in 0..3 {
        app.model.will_say(&format!("answer {round}"));
        socket.say(&format!("question {round}")).await;
        socket.wait_for_answer().await;
    }
    let path = format!("/api/sessions/{}/events", socket.session());
    let whole = pages(&client, &path, "after", 0, 500).await.concat();
    let shown: Vec<(u64, String)> = whole
        .iter()
        .map(|item| {
            (
                item["seq"].as_u64().unwrap(),
                item["event"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(shown, socket.shown());
    assert!(
        whole
            .iter()
            .all(|item| item["at"].is_string() && item["args"].is_array())
    );

    assert_eq!(pages(&client, &path, "after", 0, 2).await.concat(), whole);
    let last = shown.last().unwrap().0 + 1;
    let mut backwards = pages(&client, &path, "before", last, 2).await;
    backwards.reverse();
    assert_eq!(backwards.concat(), whole);
    let between = format!("before={}&after", last - 1);
    let between = pages(&client, &path, &between, 1, 2).await.concat();
    let expected: Vec<&Value> = whole
        .iter()
        .filter(|item| (2..last - 1).contains(&item["seq"].as_u64().unwrap()))
        .collect();
    assert_eq!(between.iter().collect::<Vec<_>>(), expected);
    for query in [
        "limit=0",
        "limit=501",
        "after=-1",
        "before=9007199254740992",
        "limit=x",
    ] {
        let problem = client.get(&format!("{path}?{query}")).await;
        let problem = problem.problem(400, "invalid_arguments");
        assert!(
            problem["errors"][0]["field"].is_string(),
            "{query} {problem}"
        );
    }
}

#[tokio::test]
async fn a_message_and_a_decision_by_post_are_the_sockets_commands() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    app.model
        .will_call("list_files", json!({}))
        .then_say("Nothing there");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let first = client.post("/api/sessions", json!({})).await.ok(201);
    let path = format!("/api/sessions/{}", first["id"].as_str().unwrap());
    let said = json!({ "text": "look", "clientMessageId": "m1" });
    let accepted = client
        .post(&format!("{path}/messages"), said.clone())
        .await
        .ok(202);
    assert_eq!(accepted["ok"], true);
    let again = client.post(&format!("{path}/messages"), said).await.ok(202);
    assert_eq!(
        again["seq"], accepted["seq"],
        "the same message twice is one message"
    );
    socket.vanish();

    socket = TestSocket::open(app.address, &ana, first["id"].as_str()).await;
    let card = socket.wait_for_approval().await;
    let decision = json!({ "callId": card["callId"], "approved": true, "digest": card["digest"] });
    client
        .post(&format!("{path}/approvals"), decision.clone())
        .await
        .ok(202);
    assert_eq!(socket.wait_for_answer().await, "Nothing there");
    // The answer may have been lost on the way: the same decision is a repeat, another one is not.
    client
        .post(&format!("{path}/approvals"), decision)
        .await
        .ok(202);
    let otherwise = json!({ "callId": card["callId"], "approved": false });
    client
        .post(&format!("{path}/approvals"), otherwise)
        .await
        .problem(409, "already_decided");
    let eve = Client::with_key(&app, &app.person("other").await.key);
    let foreign = json!({ "callId": card["callId"], "approved": true });
    eve.post(&format!("{path}/approvals"), foreign)
        .await
        .problem(404, "session_not_found");
    for body in [
        json!({}),
        json!({ "callId": "c" }),
        json!({ "callId": "c", "callIds": [], "approved": true }),
    ] {
        client
            .post(&format!("{path}/approvals"), body)
            .await
            .problem(400, "invalid_arguments");
    }
    client
        .post(&format!("{path}/messages"), json!({ "text": 5 }))
        .await
        .problem(400, "invalid_arguments");
}

/// Asserts S3.18.
#[tokio::test]
async fn the_models_and_the_system_are_described() {
    let app = TestApp::start().await;
    let client = Client::with_key(&app, &app.person("acme").await.key);
    app.model
        .lists(json!({ "object": "list", "data": [{ "id": "stub" }, { "id": "gpt-4o" }] }));
    let models = client.get("/api/models/available").await.ok(200);
    assert_eq!(models["provider"], "openai-compatible");
    let ids: Vec<&Value> = models["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["id"])
        .collect();
    assert_eq!(ids, [&json!("stub"), &json!("gpt-4o")]);
    let system = client.get("/api/system").await.ok(200);
    assert_eq!(
        system["model"],
        json!({ "provider": "openai-compatible", "model": "stub", "scripted": false })
    );
    assert_eq!(system["sandbox"]["kind"], "none");
    assert!(
        system["checks"]
            .as_array()
            .unwrap()
            .iter()
            .any(|check| check["name"] == "store" && check["ok"] == true)
    );
}
