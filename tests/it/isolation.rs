//! Every route and every socket event as the other tenant and as nobody. A new route or event
//! joins by itself: both tables are the product's own.

use reqwest::Method;
use sepal::domain::Role;
use sepal::gateway::wire::COMMANDS;
use serde_json::{Value, json};

use crate::support::{Person, TestApp, TestSocket};

/// Routes that anybody may ask, with the reason.
const PUBLIC: &[(&str, &str)] = &[
    ("/healthz", "says only that the process lives"),
    ("/readyz", "says only what is ready"),
    ("/api/openapi.json", "describes the interface"),
    ("/api/auth/setup", "needs the setup secret"),
    ("/api/auth/link", "needs the link's secret"),
    ("/api/auth/login", "is the way in"),
    ("/api/auth/invitation", "needs the invitation's secret"),
    ("/api/auth/invitation/read", "needs the invitation's secret"),
    (
        "/api/auth/proxy",
        "needs a header from the address of the sign-in proxy",
    ),
    ("/api/auth/passkey/start", "is the way in"),
    ("/api/auth/passkey/finish", "needs a passkey's answer"),
    ("/api/auth/oidc/{id}/start", "is the way to a provider"),
    (
        "/api/auth/oidc/{id}/callback",
        "changes nothing, and sends the browser on to the page, which posts what it got",
    ),
    (
        "/api/auth/oidc/{id}/finish",
        "needs the provider's answer, and the cookie of the browser that began",
    ),
    (
        "/api/auth/oidc/{id}/back-channel-logout",
        "needs a logout token that the provider signed",
    ),
    (
        "/api/auth/oidc/{id}/front-channel-logout",
        "needs the provider's id of the session",
    ),
    (
        "/api/shared/{word}",
        "needs the link's secret, or a sign-in",
    ),
    (
        "/api/mcp/oauth/client",
        "is our own metadata, which authorisation servers read",
    ),
    (
        "/api/mcp/oauth/client/{issuer}",
        "is our own metadata for one issuer, which it reads",
    ),
    (
        "/api/mcp/oauth/callback/{issuer}",
        "changes nothing, and sends the browser on to the page, which posts with a sign-in",
    ),
];

/// The same of one method of a route.
const PUBLIC_READS: &[(&str, &str)] = &[(
    "/api/mcp/oauth/callback",
    "changes nothing, and sends the browser on to the page, which posts with a sign-in",
)];

/// Routes that make something of one's own under whatever name it gets.
const CREATES: &[(&str, &str)] = &[
    ("put", "/api/providers/{id}"),
    // Counts the caller's own text by a model that anybody may name.
    ("post", "/api/models/{id}/tokens"),
];

/// A tenant's session with a waiting call, and somebody of another tenant.
async fn two_tenants(app: &TestApp) -> (TestSocket, Person, Person) {
    let owner = app.person_with("acme", Role::Owner).await;
    let stranger = app.person_with("other", Role::Owner).await;
    app.model.will_call("list_files", json!({}));
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    socket.say("list").await;
    socket.wait_for_approval().await;
    (socket, owner, stranger)
}

/// The path with the ids of what belongs to the owner.
fn filled(path: &str, session: &str) -> String {
    path.replace("{id}", session)
        .replace("{callId}", "call_1_0")
        .replace("{name}", "mine")
        .replace("{tool}", "x")
        .replace("{secret}", "A")
}

/// Every route, as the server itself describes them.
async fn description(app: &TestApp) -> Value {
    let asked = TestApp::http().get(app.url("/api/openapi.json")).send();
    asked.await.unwrap().json().await.unwrap()
}

/// Asserts O5.
#[tokio::test]
async fn every_route_refuses_nobody_and_hides_what_belongs_to_another_tenant() {
    let app = TestApp::with_sandbox().await;
    let (socket, owner, stranger) = two_tenants(&app).await;
    let session = socket.session();
    let http = TestApp::http();
    let server = json!({ "name": "mine", "config": { "command": "x" } });
    let added = http.post(app.url("/api/mcp/add")).bearer_auth(&owner.key);
    assert_eq!(added.json(&server).send().await.unwrap().status(), 201);
    let api = description(&app).await;
    let mut tried = 0;
    for (path, methods) in api["paths"].as_object().unwrap() {
        let is_public = PUBLIC.iter().any(|(public, _)| public == path);
        let filled = filled(path, &session);
        for method in methods.as_object().unwrap().keys() {
            let creates = CREATES.contains(&(method.as_str(), path.as_str()));
            let is_public_read =
                method == "get" && PUBLIC_READS.iter().any(|(public, _)| public == path);
            let method: reqwest::Method = method.to_uppercase().parse().unwrap();
            if is_public || is_public_read {
                continue;
            }
            tried += 1;
            let request = |key: Option<&str>| {
                let request = http.request(method.clone(), app.url(&filled)).json(&json!({
                    "title": "x", "text": "x", "callId": "call_1_0", "approved": true, "content": "x",
                    "server": "x", "prompt": "x", "uri": "x:y", "name": "x", "argument": "x", "value": "x",
                    "elicitationId": "elc_00000000000000000000000000000000", "action": "decline",
                    "happened": true, "viewId": "x", "requestId": "x", "clientMessageId": "x", "whole": true,
                    "strategies": ["delete-middle"], "model": "x", "roles": [], "reason": "x",
                }));
                match key {
                    Some(key) => request.bearer_auth(key),
                    None => request,
                }
            };
            let nobody = request(None).send().await.unwrap();
            assert_eq!(nobody.status(), 401, "{method} {path} as nobody");
            let forged = request(Some("spl_forged")).send().await.unwrap();
            assert_eq!(forged.status(), 401, "{method} {path} with a forged key");
            // What a route asks of the stranger's own provider.
            app.model.will_say("theirs");
            let foreign = request(Some(&stranger.key)).send().await.unwrap();
            let status = foreign.status().as_u16();
            // A stream of the stranger's own news never ends.
            let is_stream = foreign
                .headers()
                .get("content-type")
                .is_some_and(|kind| kind == "text/event-stream");
            let text = if is_stream {
                String::new()
            } else {
                foreign.text().await.unwrap()
            };
            assert!(
                !text.contains(&session),
                "{method} {path} shows a foreign session: {text}"
            );
            if (path.contains("{id}") || path.contains("{name}")) && !creates {
                assert_eq!(status, 404, "{method} {path} as the other tenant: {text}");
            }
        }
    }
    assert!(tried >= 10, "{tried} routes");
    let own = http
        .get(app.url(&format!("/api/sessions/{session}")))
        .bearer_auth(&owner.key);
    assert_eq!(
        own.send().await.unwrap().status(),
        200,
        "nothing was changed or deleted"
    );
}

#[tokio::test]
async fn every_socket_event_of_the_other_tenant_changes_nothing() {
    let app = TestApp::with_sandbox().await;
    let (mut socket, _, stranger) = two_tenants(&app).await;
    let session = socket.session();
    let call = socket.ready["state"]["queue"].clone();
    let auth = json!({ "token": stranger.key, "sessionId": session });
    let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
    assert!(refused.starts_with("session_not_found"), "{refused}");
    let nobody = TestSocket::try_open(app.address, json!({ "sessionId": session })).await;
    assert!(nobody.err().unwrap().starts_with("unauthorized"));

    // In a session of their own, the ids of the other one lead nowhere.
    let before = socket.shown();
    let waiting = socket
        .log
        .iter()
        .find(|said| said.name == "tool:approval_required")
        .map(|said| said.args[0]["callId"].clone())
        .unwrap();
    let mut other = TestSocket::open(app.address, &stranger, None).await;
    for spec in COMMANDS {
        // What the stranger's own session asks of the model.
        app.model.will_say("yours");
        let args: Vec<Value> = (spec.example)()
            .into_iter()
            .map(|arg| aim(arg, &waiting))
            .collect();
        let answer = other.ask(spec.name, &args).await;
        assert!(answer["ok"].is_boolean(), "{} {answer}", spec.name);
    }
    let from = [json!({ "lastSeq": before.last().unwrap().0 })];
    assert_eq!(socket.ask("session:resume", &from).await["ok"], true);
    assert_eq!(socket.shown().last(), before.last(), "{call}");
}

/// Puts the other tenant's call into an example.
fn aim(mut arg: Value, call: &Value) -> Value {
    if let Some(object) = arg.as_object_mut() {
        if object.contains_key("callId") {
            object.insert("callId".into(), call.clone());
        }
        if object.contains_key("callIds") {
            object.insert("callIds".into(), json!([call]));
        }
    }
    arg
}

#[tokio::test]
async fn somebody_else_of_the_same_tenant_does_not_see_a_session_either() {
    let app = TestApp::start().await;
    let (ana, bo) = (app.person("acme").await, app.person("acme").await);
    app.model.will_say("hi");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("secret").await;
    socket.wait_for_answer().await;
    let auth = json!({ "token": bo.key, "sessionId": socket.session() });
    let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
    assert!(refused.starts_with("session_not_found"), "{refused}");
    let list = TestApp::http()
        .get(app.url("/api/sessions"))
        .bearer_auth(&bo.key);
    let list: Value = list.send().await.unwrap().json().await.unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn a_viewer_reads_and_does_not_act() {
    let app = TestApp::start().await;
    let viewer = app.person_with("acme", Role::Viewer).await;
    let mut socket = TestSocket::open(app.address, &viewer, None).await;
    for spec in COMMANDS.iter().filter(|spec| spec.name != "session:resume") {
        let answer = socket.ask(spec.name, &(spec.example)()).await;
        assert_eq!(
            answer["error"]["code"], "not_allowed",
            "{} {answer}",
            spec.name
        );
    }
}

#[tokio::test]
async fn who_became_a_viewer_keeps_their_sessions_and_changes_none() {
    let app = TestApp::start().await;
    let person = app.person_with("acme", Role::Member).await;
    app.model.will_say("hi");
    let mut socket = TestSocket::open(app.address, &person, None).await;
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let path = format!("/api/sessions/{}", socket.session());
    let keys = app
        .tenancy
        .administration()
        .keys(&person.tenant)
        .await
        .unwrap();
    let user = keys[0].user.clone();
    let demoted = app
        .tenancy
        .administration()
        .set_role(&person.tenant, &user, Role::Viewer);
    demoted.await.unwrap();
    let ask = |method: Method, body: Value| {
        let request = TestApp::http().request(method, app.url(&path));
        let request = request.bearer_auth(&person.key).json(&body);
        async move { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(ask(Method::PATCH, json!({ "title": "theirs" })).await, 403);
    assert_eq!(ask(Method::DELETE, Value::Null).await, 403);
    assert_eq!(ask(Method::GET, Value::Null).await, 200);
}

#[tokio::test]
async fn a_revoked_key_ends_open_sockets() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let stranger = app.person("other").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let mut theirs = TestSocket::open(app.address, &stranger, None).await;
    let keys = app
        .tenancy
        .administration()
        .keys(&ana.tenant)
        .await
        .unwrap();
    app.tenancy
        .administration()
        .revoke_key(&ana.tenant, &keys[0].id)
        .await
        .unwrap();
    let error = socket.wait_for("error").await;
    assert_eq!(error.rest()["code"], "unauthorized");
    socket.wait_for_end().await;
    // One task watches for the sockets of all tenants.
    app.model.will_say("Still here");
    theirs.say("hello").await;
    assert_eq!(theirs.wait_for_answer().await, "Still here");
}
