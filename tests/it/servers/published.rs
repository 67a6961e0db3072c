//! Servers that others publish: a registry of the official format on loopback, and a file in its place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::Api;
use crate::support::TestApp;

type Asked = Arc<Mutex<Vec<HashMap<String, String>>>>;

/// A registry that pages by one server and keeps what it was asked.
struct Registry {
    url: String,
    asked: BackgroundRequest,
    _serving: AbortOnDropHandle<()>,
}

impl Registry {
    async fn start() -> Self {
        let asked = Asked::default();
        let routes = Router::new()
            .route("/mirror/v0.1/servers", get(list))
            .route("/mirror/v0.1/servers/{name}/versions/{version}", get(one))
            .with_state(Arc::clone(&asked));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mirror/", listener.local_addr().unwrap());
        let serving =
            TaskTracker::new().spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            url,
            asked,
            _serving: AbortOnDropHandle::new(serving),
        }
    }
}

fn weather() -> Value {
    json!({
        "server": {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": "io.github.me/weather", "title": "Weather", "description": "Tells it",
            "version": "1.0.2", "websiteUrl": "https://weather.example",
            "remotes": [{ "type": "streamable-http", "url": "https://weather.example/mcp",
                "headers": [{ "name": "X-Key", "isSecret": true, "isRequired": true }] }],
        },
        "_meta": { "io.modelcontextprotocol.registry/official": { "status": "active", "isLatest": true } },
    })
}

fn old() -> Value {
    let mut old = weather();
    old["server"]["name"] = json!("io.github.me/old");
    old["_meta"]["io.modelcontextprotocol.registry/official"]["status"] = json!("deprecated");
    old
}

async fn list(
    State(asked): State<Asked>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Json<Value>, StatusCode> {
    asked.lock().unwrap().push(query.clone());
    if query.get("search").is_some_and(|text| text == "breaks") {
        return Err(StatusCode::INTERNAL_SERVER_ERROR);
    }
    Ok(Json(match query.get("cursor").map(String::as_str) {
        None => json!({ "servers": [weather()], "metadata": { "count": 1, "nextCursor": "a:1" } }),
        Some("a:1") => json!({ "servers": [old()], "metadata": { "count": 1 } }),
        Some(_) => return Err(StatusCode::BAD_REQUEST),
    }))
}

async fn one(Path((name, version)): Path<(String, String)>) -> Result<Json<Value>, StatusCode> {
    if name == "io.github.me/weather" && version == "1.0.2" {
        return Ok(Json(weather()));
    }
    Err(StatusCode::NOT_FOUND)
}

const SERVERS: &str = "/api/mcp-registry/servers";
const ENTRY: &str = "/api/mcp-registry/entry";

#[tokio::test]
async fn an_admin_finds_a_server_and_adds_it() {
    let registry = Registry::start().await;
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCP_REGISTRY_URL", registry.url.as_str()),
    ])
    .await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);

    let first = api
        .get(&format!("{SERVERS}?search=%20weather%20&limit=1"))
        .await;
    let found = &first["items"][0];
    assert_eq!(found["name"], "io.github.me/weather");
    assert_eq!(found["isDeprecated"], false);
    assert_eq!(found["ways"][0]["kind"], "http");
    assert_eq!(found["ways"][0]["questions"][0]["key"], "header.X-Key");
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = api.get(&format!("{SERVERS}?cursor={cursor}")).await;
    assert_eq!(second["items"][0]["isDeprecated"], true);
    assert_eq!(second["nextCursor"], Value::Null);
    let asked = registry.asked.lock().unwrap().clone();
    assert_eq!(asked[0]["version"], "latest");
    assert_eq!(
        (asked[0]["search"].as_str(), asked[0]["limit"].as_str()),
        ("weather", "1")
    );
    assert_eq!(
        (asked[1].get("search"), asked[1]["cursor"].as_str()),
        (None, "a:1")
    );

    let mut body = json!({ "name": "io.github.me/weather", "version": "1.0.2", "way": "remote-0" });
    let (status, problem) = api.refused(Method::POST, ENTRY, &body).await;
    assert_eq!(
        (status, &problem["errors"][0]["field"]),
        (400, &json!("values.header.X-Key"))
    );
    body["values"] = json!({ "header.X-Key": "s3cret-of-a-test" });
    let (status, entry) = api.ask(Method::POST, ENTRY, &body).await;
    assert_eq!(status, 200, "{entry}");
    assert_eq!(entry["config"]["headers"]["X-Key"], "${secret:X_KEY}");
    api.add_with(entry.clone()).await;
    let added = api.server("weather").await;
    assert_eq!(added["secrets"], json!(["X_KEY"]));
    assert!(!added.to_string().contains("s3cret"), "{added}");

    body["version"] = json!("9");
    let (status, problem) = api.refused(Method::POST, ENTRY, &body).await;
    assert_eq!((status, &problem["code"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn what_goes_wrong_has_its_words() {
    let registry = Registry::start().await;
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCP_REGISTRY_URL", registry.url.as_str()),
    ])
    .await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);
    let get = async |path: String| api.refused(Method::GET, &path, &Value::Null).await;

    let (status, problem) = get(format!("{SERVERS}?search=breaks")).await;
    assert_eq!(
        (status, &problem["code"]),
        (503, &json!("registry_unavailable"))
    );
    assert!(
        problem["detail"].as_str().unwrap().contains("500"),
        "{problem}"
    );
    let (status, problem) = get(format!("{SERVERS}?limit=0")).await;
    assert_eq!(
        (status, &problem["errors"][0]["field"]),
        (400, &json!("limit"))
    );
    let url = registry.url.clone();
    drop(registry);
    let (status, problem) = get(SERVERS.to_owned()).await;
    assert_eq!(status, 503);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("cannot be reached"),
        "{problem}"
    );
    assert!(!problem.to_string().contains(&url), "{problem}");
}

#[tokio::test]
async fn only_who_may_add_servers_looks_them_up() {
    let registry = Registry::start().await;
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCP_REGISTRY_URL", registry.url.as_str()),
    ])
    .await;
    let body = json!({ "name": "io.github.me/weather", "version": "1.0.2", "way": "remote-0" });
    let viewer = app.person_with("acme", Role::Viewer).await;
    let api = Api::new(&app, &viewer);
    let (status, _) = api.refused(Method::GET, SERVERS, &Value::Null).await;
    assert_eq!(status, 403);
    let (status, _) = api.refused(Method::POST, ENTRY, &body).await;
    assert_eq!(status, 403);
    let nobody = TestApp::http().get(app.url(SERVERS)).send().await.unwrap();
    assert_eq!(nobody.status(), 401);
    assert!(
        registry.asked.lock().unwrap().is_empty(),
        "nothing was asked for them"
    );
    let member = app.person_with("acme", Role::Member).await;
    let listed = Api::new(&app, &member).get(SERVERS).await;
    assert!(listed["items"].is_array(), "{listed}");
}

#[tokio::test]
async fn a_file_serves_in_its_place_and_may_change() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mirror.json");
    std::fs::write(&file, json!({ "servers": [weather(), old()] }).to_string()).unwrap();
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCP_REGISTRY_FILE", file.to_str().unwrap()),
    ])
    .await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);

    let first = api.get(&format!("{SERVERS}?limit=1&search=TELLS")).await;
    assert_eq!(first["items"].as_array().unwrap().len(), 1);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = api
        .get(&format!("{SERVERS}?limit=1&search=TELLS&cursor={cursor}"))
        .await;
    assert_eq!(second["items"][0]["name"], "io.github.me/old");
    assert_eq!(second["nextCursor"], Value::Null);
    let none = api.get(&format!("{SERVERS}?search=nothing")).await;
    assert_eq!(none["items"], json!([]));

    // A list of bare `server.json` of another length is read anew.
    std::fs::write(&file, json!([weather()["server"]]).to_string()).unwrap();
    let all = api.get(SERVERS).await;
    assert_eq!(all["items"].as_array().unwrap().len(), 1);
    let body = json!({
        "name": "io.github.me/weather", "version": "1.0.2", "way": "remote-0",
        "values": { "header.X-Key": "k" },
    });
    let (status, entry) = api.ask(Method::POST, ENTRY, &body).await;
    assert_eq!((status, &entry["name"]), (200, &json!("weather")));

    std::fs::write(&file, "no JSON").unwrap();
    let (status, problem) = api.refused(Method::GET, SERVERS, &Value::Null).await;
    assert_eq!(
        (status, &problem["code"]),
        (503, &json!("registry_unavailable"))
    );
}

#[tokio::test]
async fn an_operator_can_switch_it_off() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCP_REGISTRY_ENABLED", "false"),
    ])
    .await;
    let owner = app.person_with("acme", Role::Owner).await;
    let (status, problem) = Api::new(&app, &owner)
        .refused(Method::GET, SERVERS, &Value::Null)
        .await;
    assert_eq!(status, 404);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("agent.mcp_registry.enabled"),
        "{problem}"
    );
}
