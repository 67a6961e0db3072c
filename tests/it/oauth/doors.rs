//! Nobody connects for another, and an answer counts once, for who began it.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Provider, Someone};
use crate::servers::operator;
use crate::support::TestApp;

#[tokio::test]
async fn an_answer_counts_once_and_only_for_who_began_it() {
    let provider = Provider::start(&json!({}));
    let app = TestApp::start().await;
    let ana = operator(&app, "acme").await;
    let ana = Someone::new(app.address, &ana);
    let entry = json!({ "name": "notes", "config": { "url": provider.mcp } });
    assert_eq!(ana.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    let ben = Someone::new(app.address, &app.person("acme").await);
    let eve = Someone::new(app.address, &app.person_with("other", Role::Owner).await);

    let url = ana.begin("notes", "/sessions/s?x=1").await;
    // Reading the answer changes nothing, however often.
    let answer = ana.allow(url).await;
    for other in [&ben, &eve] {
        let (status, refused) = other.finish(&answer).await;
        assert_eq!(status, 400, "{refused}");
        assert_eq!(other.connection("notes").await, Value::Null);
    }
    assert_eq!(provider.count("codes").await, 0);
    let mut forged = answer.clone();
    forged.insert("state".to_owned(), "0".repeat(64));
    assert_eq!(ana.finish(&forged).await.0, 400);
    assert_eq!(ana.connection("notes").await, Value::Null);

    let (status, finished) = ana.finish(&answer).await;
    assert_eq!(status, 200, "{finished}");
    assert_eq!(
        finished,
        json!({ "name": "notes", "returnTo": "/sessions/s?x=1" })
    );
    assert_eq!(ana.finish(&answer).await.0, 400, "used up");
    assert_eq!(provider.count("codes").await, 1);
    // What she connected is hers alone.
    for other in [&ben, &eve] {
        assert_eq!(other.connection("notes").await, Value::Null);
    }
    assert_eq!(ana.connection("notes").await["state"], "connected");
    // Nobody else ends it either.
    let path = "/api/mcp/notes/connect";
    assert_eq!(ben.ask(Method::DELETE, path, &Value::Null).await.0, 204);
    assert_eq!(ana.connection("notes").await["state"], "connected");
}

#[tokio::test]
async fn a_connection_is_of_no_use_to_anybody_else_and_nobody_reads_of_it() {
    let provider = Provider::start(&json!({}));
    let app = TestApp::start().await;
    // An entry of the installation, which all tenants use.
    let ana = operator(&app, "acme").await;
    let ana = Someone::new(app.address, &ana);
    let entry = json!({ "name": "notes", "config": { "url": provider.mcp } });
    assert_eq!(ana.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    ana.connect("notes").await;
    ana.wait_for_server("notes", |now| now["toolCount"] == 2)
        .await;
    let (status, tried) = ana
        .ask(Method::POST, "/api/mcp/notes/test", &Value::Null)
        .await;
    assert_eq!((status, &tried["ok"]), (200, &json!(true)), "{tried}");

    let ben = app.person_with("acme", Role::Admin).await;
    let vic = app.person_with("acme", Role::Viewer).await;
    let eve = app.person_with("other", Role::Owner).await;
    let others = [ben, vic, eve].map(|person| Someone::new(app.address, &person));
    for (at, other) in others.iter().enumerate() {
        assert_eq!(other.connection("notes").await, Value::Null, "{at}");
        let (status, report) = other.ask(Method::GET, "/api/mcp/notes", &Value::Null).await;
        assert_eq!(status, 200, "{at}: {report}");
        let own = &report["connection"];
        assert!(
            own.is_null() || (own["state"] == "absent" && own["scopes"] == json!([])),
            "{at}: {report}"
        );
        let (_, list) = other.ask(Method::GET, "/api/mcp", &Value::Null).await;
        assert!(
            !list.to_string().contains(r#""state":"connected""#),
            "{at}: {list}"
        );
        // Whoever tries the server does it with what is their own, which is nothing.
        let (status, tried) = other
            .ask(Method::POST, "/api/mcp/notes/test", &Value::Null)
            .await;
        let is_refused = status == 403 || tried["ok"] == json!(false);
        assert!(is_refused, "{at}: {status} {tried}");
        let path = "/api/mcp/notes/connect";
        let ended = other.ask(Method::DELETE, path, &Value::Null).await.0;
        assert!(matches!(ended, 204 | 403), "{at}: {ended}");
    }
    assert_eq!(ana.connection("notes").await["state"], "connected");
    assert_eq!(provider.count("codes").await, 1);
    assert_eq!(provider.count("calls").await, 0);
    assert_eq!(provider.count("revocations").await, 0);
}

#[tokio::test]
async fn viewers_strangers_and_other_sites_are_sent_away() {
    let provider = Provider::start(&json!({}));
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_OUTGOING_ALLOW", "127.0.0.1/32"),
    ])
    .await;
    let owner = Someone::new(app.address, &app.person_with("acme", Role::Owner).await);
    // A tenant's own.
    let entry = json!({ "name": "notes", "config": { "url": provider.mcp } });
    assert_eq!(owner.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    let viewer = Someone::new(app.address, &app.person_with("acme", Role::Viewer).await);
    let eve = Someone::new(app.address, &app.person_with("other", Role::Owner).await);
    let doors = [
        (Method::POST, "/api/mcp/notes/connect"),
        (Method::DELETE, "/api/mcp/notes/connect"),
        (Method::POST, "/api/mcp/notes/connect/dismiss"),
    ];
    for (method, path) in doors {
        let body = if path.ends_with("/connect") && method == Method::POST {
            json!({})
        } else {
            Value::Null
        };
        assert_eq!(
            viewer.ask(method.clone(), path, &body).await.0,
            403,
            "{path}"
        );
        assert_eq!(eve.ask(method.clone(), path, &body).await.0, 404, "{path}");
        let url = app.url(path);
        let bare = TestApp::http()
            .request(method, url)
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(bare.status(), 401, "{path}");
    }
    for path in ["/api/mcp/oauth/connections", "/api/mcp/oauth/callback"] {
        let request = if path.ends_with("callback") {
            TestApp::http()
                .post(app.url(path))
                .json(&json!({ "state": "x" }))
        } else {
            TestApp::http().get(app.url(path))
        };
        assert_eq!(request.send().await.unwrap().status(), 401, "{path}");
    }
    for elsewhere in ["//evil.test", "https://evil.test", "/\\evil.test"] {
        let body = json!({ "returnTo": elsewhere });
        let (status, refused) = owner
            .ask(Method::POST, "/api/mcp/notes/connect", &body)
            .await;
        assert_eq!(status, 400, "{elsewhere}: {refused}");
    }
    // There is no public address over https here, so there is no document to show.
    let document = TestApp::http()
        .get(app.url("/api/mcp/oauth/client"))
        .send()
        .await;
    assert_eq!(document.unwrap().status(), 404);
}

/// Nothing of what was allowed is there. A look at the server that began before may still ask for it.
async fn assert_lost(someone: &Someone) {
    let now = someone.connection("notes").await;
    let is_asked = now["state"] == "needed" && now["scopes"] == json!([]);
    assert!(now.is_null() || is_asked, "{now}");
}

#[tokio::test]
async fn a_retargeted_or_removed_entry_loses_what_people_allowed() {
    let provider = Provider::start(&json!({}));
    let app = TestApp::start().await;
    let owner = operator(&app, "acme").await;
    let owner = Someone::new(app.address, &owner);
    let entry = json!({ "name": "notes", "config": { "url": provider.mcp } });
    assert_eq!(owner.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    owner.connect("notes").await;
    let url = owner.begin("notes", "/").await;
    let answer = owner.allow(url).await;

    let moved = json!({ "url": format!("{}/", provider.issuer) });
    assert_eq!(
        owner.ask(Method::PATCH, "/api/mcp/notes", &moved).await.0,
        200
    );
    assert_lost(&owner).await;
    // What was begun for the old address does not end at the new one.
    assert_eq!(owner.finish(&answer).await.0, 400);
    assert_eq!(provider.count("codes").await, 1);

    let back = json!({ "url": provider.mcp });
    assert_eq!(
        owner.ask(Method::PATCH, "/api/mcp/notes", &back).await.0,
        200
    );
    assert_lost(&owner).await;
    owner.connect("notes").await;
    assert_eq!(
        owner
            .ask(Method::DELETE, "/api/mcp/notes", &Value::Null)
            .await
            .0,
        200
    );
    assert_eq!(owner.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    assert_lost(&owner).await;
}
