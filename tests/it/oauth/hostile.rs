//! Servers that lie about who authorises for them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::response::IntoResponse as _;
use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use url::Url;

use super::Someone;
use crate::support::TestApp;

/// What the server says at one path, with `ORIGIN` for its own.
type Said = (&'static str, Value);

/// An MCP server that wants a token, with these documents beside it.
struct Liar {
    url: String,
    /// How often its token endpoint was asked.
    asked: Arc<AtomicUsize>,
    /// What it says now.
    said: Arc<Mutex<Vec<Said>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Liar {
    async fn start(said: Vec<Said>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let url = format!("{origin}/mcp");
        let asked = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&asked);
        let said = Arc::new(Mutex::new(said));
        let now = Arc::clone(&said);
        let answer = move |request: Request| {
            let path = request.uri().path().to_owned();
            let now = now.lock().unwrap();
            let document = now.iter().find(|(at, _)| *at == path);
            let document = document.map(|(_, said)| said.to_string().replace("ORIGIN", &origin));
            drop(now);
            if path == "/token" {
                count.fetch_add(1, Ordering::Relaxed);
            }
            async move {
                match document {
                    Some(text) => text.into_response(),
                    None if path == "/mcp" => {
                        (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response()
                    }
                    None => StatusCode::NOT_FOUND.into_response(),
                }
            }
        };
        let router = Router::new().fallback(answer);
        let serving =
            TaskTracker::new().spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            asked,
            said,
            _serving: AbortOnDropHandle::new(serving),
        }
    }
}

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const SERVER: &str = "/.well-known/oauth-authorization-server";

fn resource(issuer: &str) -> Said {
    (
        RESOURCE,
        json!({ "resource": "ORIGIN/mcp", "authorization_servers": [issuer] }),
    )
}

fn server(changes: &Value) -> Said {
    let mut said = json!({
        "issuer": "ORIGIN", "authorization_endpoint": "ORIGIN/authorize",
        "token_endpoint": "ORIGIN/token", "registration_endpoint": "ORIGIN/register",
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    for (name, value) in changes.as_object().unwrap() {
        said[name] = value.clone();
    }
    (SERVER, said)
}

/// A tenant whose own servers may be at 127.0.0.1 and nowhere else in our networks.
async fn tenant() -> (TestApp, Someone) {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_OUTGOING_ALLOW", "127.0.0.1/32"),
    ])
    .await;
    let owner = app.person_with("acme", Role::Owner).await;
    let owner = Someone::new(app.address, &owner);
    (app, owner)
}

async fn refusal(owner: &Someone, liar: &Liar) -> String {
    let entry = json!({ "name": "liar", "config": { "url": liar.url } });
    assert_eq!(owner.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    let (status, refused) = owner
        .ask(Method::POST, "/api/mcp/liar/connect", &json!({}))
        .await;
    assert!(status >= 400, "{refused}");
    owner
        .ask(Method::DELETE, "/api/mcp/liar", &Value::Null)
        .await;
    refused["error"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn metadata_that_lead_astray_are_refused_with_the_reason() {
    let (_app, owner) = tenant().await;
    for (said, word) in [
        // Into our own networks.
        (vec![resource("http://127.0.0.2:1")], "private or reserved"),
        (
            vec![resource("http://169.254.169.254")],
            "private or reserved",
        ),
        (
            vec![
                resource("ORIGIN"),
                server(&json!({"registration_endpoint": "http://10.0.0.1/"})),
            ],
            "its `registration_endpoint` is at `http://10.0.0.1`",
        ),
        // People sent to somebody else's door, and what they bring back taken here.
        (
            vec![
                resource("ORIGIN"),
                server(&json!({"authorization_endpoint": "https://good.test/authorize"})),
            ],
            "its `authorization_endpoint` is at `https://good.test`",
        ),
        (
            vec![
                resource("ORIGIN"),
                server(&json!({"token_endpoint": "https://good.test/token"})),
            ],
            "its `token_endpoint` is at `https://good.test`",
        ),
        // Metadata that call themselves somebody else's, from a place of their own.
        (
            vec![
                resource("ORIGIN"),
                server(&json!({"issuer": "https://good.test"})),
            ],
            "issuer",
        ),
        (
            vec![
                resource("ORIGIN/.well-known/mine"),
                (
                    "/.well-known/mine",
                    server(&json!({"issuer": "https://good.test"})).1,
                ),
            ],
            "authorisation server",
        ),
        // A token for another resource.
        (
            vec![(
                RESOURCE,
                json!({"resource": "https://good.test/mcp", "authorization_servers": []}),
            )],
            "resource",
        ),
        (
            vec![
                resource("ORIGIN"),
                server(&json!({"authorization_endpoint": "javascript:alert(1)"})),
            ],
            "no address",
        ),
        (
            vec![
                resource("ORIGIN"),
                server(&json!({"code_challenge_methods_supported": ["plain"]})),
            ],
            "PKCE",
        ),
    ] {
        let liar = Liar::start(said).await;
        let text = refusal(&owner, &liar).await;
        assert!(text.contains(word), "{word}: {text}");
        assert_eq!(liar.asked.load(Ordering::Relaxed), 0, "{word}");
    }
}

fn word(url: &Url, name: &str) -> String {
    let mut pairs = url.query_pairs();
    pairs.find(|(it, _)| it == name).unwrap().1.into_owned()
}

/// The part of our address that stands for the issuer.
fn part(url: &Url) -> String {
    let redirect = word(url, "redirect_uri");
    redirect.rsplit('/').next().unwrap().to_owned()
}

fn honest() -> Vec<Said> {
    vec![
        resource("ORIGIN"),
        server(&json!({ "authorization_response_iss_parameter_supported": false })),
        ("/register", json!({ "client_id": "us" })),
        (
            "/token",
            json!({ "access_token": "a", "token_type": "Bearer" }),
        ),
    ]
}

/// Asserts that each issuer has an address of its own to send people back to, and that an answer which comes
/// to another one is worth nothing: the code in it is nobody's but that issuer's.
#[tokio::test]
async fn an_answer_at_the_address_of_another_issuer_gets_no_code() {
    let (_app, owner) = tenant().await;
    let (one, two) = (Liar::start(honest()).await, Liar::start(honest()).await);
    for (name, liar) in [("one", &one), ("two", &two)] {
        let entry = json!({ "name": name, "config": { "url": liar.url } });
        assert_eq!(owner.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    }
    let path = "/api/mcp/oauth/callback";
    let other = part(&owner.begin("two", "/").await);
    for at in [json!(other), Value::Null, json!("")] {
        let url = owner.begin("one", "/").await;
        assert_ne!(part(&url), other);
        let answer = json!({ "state": word(&url, "state"), "at": at, "code": "of another" });
        let (status, refused) = owner.ask(Method::POST, path, &answer).await;
        assert_eq!(status, 400, "{refused}");
        assert!(refused.to_string().contains("another issuer"), "{refused}");
        // It counted once: the right address does not help any more.
        let answer = json!({ "state": word(&url, "state"), "at": part(&url), "code": "late" });
        assert_eq!(owner.ask(Method::POST, path, &answer).await.0, 400);
    }
    assert_eq!(one.asked.load(Ordering::Relaxed), 0, "no code was sent");
    let url = owner.begin("one", "/").await;
    let answer = json!({ "state": word(&url, "state"), "at": part(&url), "code": "right" });
    let (status, finished) = owner.ask(Method::POST, path, &answer).await;
    assert_eq!(status, 200, "{finished}");
    assert_eq!(one.asked.load(Ordering::Relaxed), 1);
}

/// Asserts that the secret of a client that was registered beforehand goes to its issuer alone: the one that
/// the entry names, or else the one that was found first.
#[tokio::test]
async fn the_secret_of_a_registered_client_goes_to_no_other_issuer() {
    let (_app, owner) = tenant().await;
    let liar = Liar::start(honest()).await;
    let origin = liar.url.strip_suffix("/mcp").unwrap().to_owned();
    let secret = json!({ "clientId": "us", "clientSecret": "swordfish" });
    let mut named = secret.clone();
    named["issuer"] = json!("https://good.test");
    for (name, oauth) in [("named", &named), ("first", &secret)] {
        let entry = json!({ "name": name, "config": { "url": liar.url, "oauth": oauth } });
        assert_eq!(owner.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    }
    let path = |name: &str| format!("/api/mcp/{name}/connect");
    let (status, refused) = owner.ask(Method::POST, &path("named"), &json!({})).await;
    assert_eq!(status, 502, "{refused}");
    assert!(
        refused
            .to_string()
            .contains("registered with `https://good.test`"),
        "{refused}"
    );

    owner.begin("first", "/").await;
    // The metadata now name another issuer, which is honest about itself.
    let other = Liar::start(honest()).await;
    let elsewhere = other.url.strip_suffix("/mcp").unwrap();
    *liar.said.lock().unwrap() = vec![resource(elsewhere)];
    let (status, refused) = owner.ask(Method::POST, &path("first"), &json!({})).await;
    assert_eq!(status, 502, "{refused}");
    let text = refused.to_string();
    assert!(
        text.contains(&format!("registered with `{origin}`")),
        "{text}"
    );
    assert!(!text.contains("swordfish"), "{text}");
    for liar in [&liar, &other] {
        assert_eq!(liar.asked.load(Ordering::Relaxed), 0, "nothing was sent");
    }
    // With the secret given again, for the issuer that is named, it goes on.
    let oauth = json!({ "clientId": "us", "clientSecret": "swordfish", "issuer": elsewhere });
    let body = json!({ "oauth": oauth });
    let (status, changed) = owner.ask(Method::PATCH, "/api/mcp/first", &body).await;
    assert_eq!(status, 200, "{changed}");
    owner.begin("first", "/").await;
}

/// Asserts that neither the token nor the issuer of a trial is kept: the next trial of the same entry
/// requests a token from the issuer that it finds.
#[tokio::test]
async fn a_trial_keeps_neither_a_token_nor_the_issuer_of_its_client() {
    let (_app, owner) = tenant().await;
    let (liar, other) = (Liar::start(honest()).await, Liar::start(honest()).await);
    let entry = json!({ "name": "tried", "config": { "url": liar.url, "oauth": {
        "clientId": "us", "clientSecret": "swordfish", "grant": "client_credentials",
    } } });
    let path = "/api/mcp/test";
    let (status, tried) = owner.ask(Method::POST, path, &entry).await;
    assert_eq!((status, &tried["ok"]), (200, &json!(false)), "{tried}");
    let asked = liar.asked.load(Ordering::Relaxed);
    assert!(asked > 0, "it got a token, which its server refuses");

    let elsewhere = other.url.strip_suffix("/mcp").unwrap();
    *liar.said.lock().unwrap() = vec![resource(elsewhere)];
    let (status, tried) = owner.ask(Method::POST, path, &entry).await;
    assert_eq!((status, &tried["ok"]), (200, &json!(false)), "{tried}");
    assert!(other.asked.load(Ordering::Relaxed) > 0, "{tried}");
    assert_eq!(liar.asked.load(Ordering::Relaxed), asked);
}

/// Asserts that an admin may say where else endpoints are, and that others may not, not even in a trial.
#[tokio::test]
async fn an_admin_says_where_else_the_endpoints_of_an_issuer_are() {
    let (app, owner) = tenant().await;
    let liar = Liar::start(vec![
        resource("ORIGIN"),
        server(&json!({"token_endpoint": "https://known.test/token"})),
        ("/register", json!({ "client_id": "us" })),
    ])
    .await;
    let oauth = json!({ "endpointOrigins": ["https://known.test"] });
    let entry = json!({ "name": "liar", "config": { "url": liar.url, "oauth": oauth } });
    let member = app.person_with("acme", Role::Member).await;
    let member = Someone::new(app.address, &member);
    for path in ["/api/mcp/add", "/api/mcp/test"] {
        let (status, refused) = member.ask(Method::POST, path, &entry).await;
        assert_eq!(status, 403, "{path}: {refused}");
    }
    assert_eq!(owner.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    owner.begin("liar", "/").await;
}

#[tokio::test]
async fn an_answer_of_another_issuer_gets_no_code() {
    let (_app, owner) = tenant().await;
    let liar = Liar::start(vec![
        resource("ORIGIN"),
        server(&json!({})),
        ("/register", json!({ "client_id": "us" })),
        (
            "/token",
            json!({ "access_token": "a", "token_type": "Bearer" }),
        ),
    ])
    .await;
    let entry = json!({ "name": "liar", "config": { "url": liar.url } });
    assert_eq!(owner.ask(Method::POST, "/api/mcp/add", &entry).await.0, 201);
    for issuer in [json!("https://good.test"), Value::Null] {
        let url = owner.begin("liar", "/").await;
        let (state, at) = (word(&url, "state"), part(&url));
        let answer = json!({ "state": state, "at": at, "code": "stolen", "iss": issuer });
        let path = "/api/mcp/oauth/callback";
        let (status, refused) = owner.ask(Method::POST, path, &answer).await;
        assert_eq!(status, 502, "{refused}");
        assert!(refused.to_string().contains("issuer"), "{refused}");
    }
    assert_eq!(liar.asked.load(Ordering::Relaxed), 0, "no code was sent");
    let origin = liar.url.strip_suffix("/mcp").unwrap();
    let url = owner.begin("liar", "/").await;
    let (state, at) = (word(&url, "state"), part(&url));
    let answer = json!({ "state": state, "at": at, "code": "right", "iss": origin });
    let (status, answer) = owner
        .ask(Method::POST, "/api/mcp/oauth/callback", &answer)
        .await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(liar.asked.load(Ordering::Relaxed), 1);
}
