//! Setup, sign-in, cookies and tickets.

use serde_json::{Value, json};

use super::{Answer, Client};
use crate::support::{TestApp, TestSocket};

const PASSWORD: &str = "correct horse battery";

/// The secret of the setup link, as the operator finds it in the data folder.
fn setup_secret(app: &TestApp) -> String {
    let link = std::fs::read_to_string(app.folder.path().join("data/setup-link")).unwrap();
    link.trim().rsplit_once('#').unwrap().1.to_owned()
}

async fn set_up(app: &TestApp) -> Answer {
    let body = json!({ "secret": setup_secret(app), "name": "Ana", "password": PASSWORD });
    Client::nobody(app).post("/api/auth/setup", body).await
}

/// A browser that keeps its cookie and sends the token that the page got.
fn browser(app: &TestApp, entered: &Answer) -> Client {
    let me = entered.ok(200);
    let cookie = entered.header("set-cookie").split(';').next().unwrap();
    Client::nobody(app)
        .and("cookie", cookie)
        .and("x-csrf-token", me["csrfToken"].as_str().unwrap())
}

#[tokio::test]
async fn the_first_owner_comes_by_the_setup_link_and_signs_out() {
    let app = TestApp::start().await;
    let stranger = Client::nobody(&app).get("/api/auth/me").await;
    let problem = stranger.problem(401, "unauthorized");
    assert_eq!(problem["setupNeeded"], true);
    assert_eq!(problem["installation"]["name"], "sepal");

    let entered = set_up(&app).await;
    let me = entered.ok(200);
    assert_eq!(
        (&me["user"]["name"], &me["user"]["role"]),
        (&json!("Ana"), &json!("owner"))
    );
    assert_eq!(me["tenant"]["name"], "default");
    assert_eq!(
        (&me["authMode"], &me["encrypted"]),
        (&json!("password"), &json!(false))
    );
    let cookie = entered.header("set-cookie");
    assert!(
        cookie.starts_with("sepal=") && cookie.contains("HttpOnly; SameSite=Lax"),
        "{cookie}"
    );

    let ana = browser(&app, &entered);
    assert_eq!(ana.get("/api/auth/me").await.ok(200), me);
    let out = ana.post("/api/auth/logout", Value::Null).await;
    assert_eq!(out.status, 204, "{}", out.text);
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    let gone = ana.get("/api/auth/me").await.problem(401, "unauthorized");
    assert_eq!(gone["setupNeeded"], false);
}

#[tokio::test]
async fn the_setup_link_works_once_and_wrong_fields_are_named() {
    let app = TestApp::start().await;
    let nobody = Client::nobody(&app);
    let secret = setup_secret(&app);
    for (body, field) in [
        (json!({ "secret": secret, "password": PASSWORD }), "name"),
        (
            json!({ "secret": secret, "name": "Ana", "password": "short" }),
            "password",
        ),
        (
            json!({ "secret": secret, "name": "<b>", "password": PASSWORD }),
            "name",
        ),
        (
            json!({ "secret": secret, "name": 5, "password": PASSWORD }),
            "name",
        ),
    ] {
        let problem = nobody.post("/api/auth/setup", body.clone()).await;
        let problem = problem.problem(400, "invalid_arguments");
        assert_eq!(problem["errors"][0]["field"], field, "{body} {problem}");
    }
    set_up(&app).await.ok(200);
    let again = json!({ "secret": secret, "name": "Bo", "password": PASSWORD });
    nobody
        .post("/api/auth/setup", again)
        .await
        .problem(401, "unauthorized");
}

#[tokio::test]
async fn a_password_opens_and_guessing_is_slowed_down() {
    let app = TestApp::start().await;
    set_up(&app).await.ok(200);
    let nobody = Client::nobody(&app);
    let entered = nobody
        .post(
            "/api/auth/login",
            json!({ "name": "ana", "password": PASSWORD }),
        )
        .await;
    browser(&app, &entered).get("/api/sessions").await.ok(200);
    let guess = json!({ "name": "ana", "password": "wrong", "tenant": "default" });
    let mut last = nobody.post("/api/auth/login", guess.clone()).await;
    last.problem(401, "unauthorized");
    for _ in 0..20 {
        if last.status != 401 {
            break;
        }
        last = nobody.post("/api/auth/login", guess.clone()).await;
    }
    last.problem(429, "too_many_requests");
    assert!(last.header("retry-after").parse::<u64>().unwrap() >= 1);
}

#[tokio::test]
async fn a_cookie_changes_nothing_without_the_pages_token() {
    let app = TestApp::start().await;
    let entered = set_up(&app).await;
    let cookie = entered.header("set-cookie").split(';').next().unwrap();
    let forger = || Client::nobody(&app).and("cookie", cookie);
    forger().get("/api/sessions").await.ok(200);
    for client in [forger(), forger().and("x-csrf-token", "0".repeat(64))] {
        let refused = client.post("/api/sessions", json!({})).await;
        let problem = refused.problem(403, "not_allowed");
        assert_eq!(problem["errors"][0]["field"], "X-CSRF-Token");
        let out = client.post("/api/auth/logout", Value::Null).await;
        out.problem(403, "not_allowed");
        assert!(!out.headers.contains_key("set-cookie"));
    }
    browser(&app, &entered)
        .post("/api/sessions", json!({}))
        .await
        .ok(201);
}

#[tokio::test]
async fn a_key_counts_in_its_header_only() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    Client::with_key(&app, &ana.key)
        .post("/api/sessions", json!({}))
        .await
        .ok(201);
    for name in ["token", "key", "api_key", "access_token"] {
        let path = format!("/api/sessions?{name}={}", ana.key);
        Client::nobody(&app)
            .get(&path)
            .await
            .problem(401, "unauthorized");
    }
}

/// Engine.IO by hand: open, join the namespace, read what came of it.
async fn join_by_polling(app: &TestApp, query: &str) -> String {
    let client = Client::nobody(app);
    let path = format!("/socket.io/?EIO=4&transport=polling{query}");
    let open = client.get(&path).await;
    let sid: Value = serde_json::from_str(open.text.trim_start_matches('0')).unwrap();
    let path = format!("{path}&sid={}", sid["sid"].as_str().unwrap());
    let request = client.request(reqwest::Method::POST, &path).body("40");
    assert_eq!(Answer::of(request.send().await.unwrap()).await.status, 200);
    let mut seen = String::new();
    while !seen.contains("40{") && !seen.contains("44{") {
        seen.push_str(&client.get(&path).await.text);
    }
    seen
}

#[tokio::test]
async fn a_ticket_opens_one_socket() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let issued = Client::with_key(&app, &ana.key)
        .post("/api/auth/ticket", Value::Null)
        .await;
    let issued = issued.ok(200);
    assert_eq!(issued["expiresInSeconds"], 60);
    let query = format!("&ticket={}", issued["ticket"].as_str().unwrap());
    let first = join_by_polling(&app, &query).await;
    assert!(first.contains("40{"), "{first}");
    for query in [
        query.as_str(),
        "",
        &format!("&ticket={}", ana.key),
        &format!("&token={}", ana.key),
    ] {
        let refused = join_by_polling(&app, query).await;
        assert!(refused.contains("unauthorized"), "{query}: {refused}");
    }
    TestSocket::try_open(app.address, json!({ "token": ana.key }))
        .await
        .ok()
        .unwrap();
}

#[tokio::test]
async fn without_sign_in_only_this_machine_is_the_owner() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none"), ("SPL_AUTH", "none")]).await;
    let me = Client::nobody(&app).get("/api/auth/me").await.ok(200);
    assert_eq!(
        (&me["authMode"], &me["user"]["role"]),
        (&json!("none"), &json!("owner"))
    );
    Client::with_key(&app, "spl_whatever")
        .post("/api/sessions", json!({}))
        .await
        .ok(201);
    for name in [
        "x-forwarded-for",
        "forwarded",
        "x-real-ip",
        "x-forwarded-proto",
    ] {
        let proxied = Client::nobody(&app).and(name, "127.0.0.1");
        proxied
            .get("/api/auth/me")
            .await
            .problem(403, "not_allowed");
        proxied
            .post("/api/sessions", json!({}))
            .await
            .problem(403, "not_allowed");
    }
}
