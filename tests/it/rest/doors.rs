//! The page, probes, headers and the public path.

use super::Client;
use crate::support::TestApp;

#[tokio::test]
async fn every_answer_has_the_headers_that_protect_a_browser() {
    let app = TestApp::start().await;
    let nobody = Client::nobody(&app);
    for path in [
        "/",
        "/s/ses_1",
        "/api/auth/me",
        "/api/openapi.json",
        "/healthz",
        "/missing.js",
        "/socket.io/",
    ] {
        let answer = nobody.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        let policy = answer.header("content-security-policy");
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{path} {policy}"
        );
        assert!(answer.header("x-request-id").starts_with("req_"), "{path}");
    }
    let page = nobody.get("/").await;
    assert!(
        page.header("content-security-policy")
            .contains("base-uri 'self'")
    );
    assert_eq!(
        nobody.get("/api/auth/me").await.header("cache-control"),
        "no-store"
    );
}

#[tokio::test]
async fn probes_are_answered_by_any_name_and_nothing_else_is() {
    let app = TestApp::start().await;
    let probe = Client::nobody(&app).and("host", "10.1.2.3:3000");
    assert_eq!(probe.get("/healthz").await.ok(200)["status"], "ok");
    let ready = probe.get("/readyz").await.ok(200);
    assert_eq!(
        (ready["status"].as_str(), ready["store"].as_str()),
        (Some("ready"), Some("ok"))
    );
    assert_eq!(ready["sandbox"], "unavailable");
    let remedy = ready["sandboxRemedy"].as_str().unwrap();
    assert!(remedy.contains("SPL_SANDBOX"), "{remedy}");
    for path in ["/", "/api/auth/me", "/healthz/x", "/socket.io/"] {
        let problem = probe.get(path).await.problem(403, "host_refused");
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .contains("SPL_PUBLIC_URL"),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn everything_works_below_a_public_path() {
    let env = [
        ("SPL_SANDBOX", "none"),
        ("SPL_PUBLIC_URL", "https://sepal.example/agents/"),
    ];
    let app = TestApp::start_with(&env).await;
    let proxied = || Client::nobody(&app).and("host", "sepal.example");
    for path in ["/agents/api/auth/me", "/api/auth/me"] {
        proxied().get(path).await.problem(401, "unauthorized");
    }
    proxied()
        .get("/agents/api/nothing")
        .await
        .problem(404, "not_found");
    let open = proxied()
        .get("/agents/socket.io/?EIO=4&transport=polling")
        .await;
    assert!(open.text.starts_with("0{"), "{}", open.text);
    let page = proxied().get("/agents/welcome").await;
    if page.status == 200 {
        assert!(
            page.text.contains(r#"<base href="/agents/""#),
            "{}",
            page.text
        );
    } else {
        assert!(page.text.contains("./run build"), "{}", page.text);
    }
}
