//! Servers that lie about who authorises for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

use super::Someone;
use crate::support::TestApp;

/// What the server says at one path, with `ORIGIN` for its own.
type Said = (&'static str, Value);

/// An MCP server that wants a token, with these documents beside it.
struct Liar {
    url: String,
    /// How often its token endpoint was asked.
    asked: Arc<AtomicUsize>,
    _serving: AbortOnDropHandle<()>,
}

impl Liar {
    async fn start(said: Vec<Said>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let url = format!("{origin}/mcp");
        let asked = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&asked);
        let answer = move |request: Request| {
            let path = request.uri().path().to_owned();
            let document = said.iter().find(|(at, _)| *at == path);
            let document = document.map(|(_, said)| said.to_string().replace("ORIGIN", &origin));
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
            "private or reserved",
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
        let state = url
            .query_pairs()
            .find(|(name, _)| name == "state")
            .unwrap()
            .1
            .into_owned();
        let answer = json!({ "state": state, "code": "stolen", "iss": issuer });
        let path = "/api/mcp/oauth/callback";
        let (status, refused) = owner.ask(Method::POST, path, &answer).await;
        assert_eq!(status, 502, "{refused}");
        assert!(refused.to_string().contains("issuer"), "{refused}");
    }
    assert_eq!(liar.asked.load(Ordering::Relaxed), 0, "no code was sent");
    let origin = liar.url.strip_suffix("/mcp").unwrap();
    let url = owner.begin("liar", "/").await;
    let state = url
        .query_pairs()
        .find(|(name, _)| name == "state")
        .unwrap()
        .1
        .into_owned();
    let answer = json!({ "state": state, "code": "right", "iss": origin });
    let (status, answer) = owner
        .ask(Method::POST, "/api/mcp/oauth/callback", &answer)
        .await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(liar.asked.load(Ordering::Relaxed), 1);
}
