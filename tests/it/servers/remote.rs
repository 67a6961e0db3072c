//! Servers over streamable HTTP: rmcp's own, behind a check of the headers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use reqwest::Method;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use tokio_util::task::TaskTracker;

use super::{Api, operator, wait_for_health};
use crate::support::{TestApp, TestSocket};

struct Weather;

impl ServerHandler for Weather {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object" });
        let schema: Map<String, serde_json::Value> = serde_json::from_value(schema).unwrap();
        let tool = Tool::new("weather", "Tells the weather", Arc::new(schema));
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        _call: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("Sunny")]).into())
    }
}

/// The server on loopback; whoever does not know the key is sent away.
struct Stand {
    url: String,
    turned_away: Arc<AtomicUsize>,
    _server: AbortOnDropHandle<()>,
}

impl Stand {
    async fn start() -> Self {
        let turned_away = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&turned_away);
        let check = move |request: Request, next: Next| {
            let count = Arc::clone(&count);
            async move {
                let key = request.headers().get("authorization");
                if key.is_some_and(|key| key == "Bearer swordfish-2") {
                    return next.run(request).await;
                }
                count.fetch_add(1, Ordering::Relaxed);
                StatusCode::UNAUTHORIZED.into_response()
            }
        };
        let service = StreamableHttpService::new(
            || Ok(Weather),
            Arc::<LocalSessionManager>::default(),
            rmcp::transport::streamable_http_server::StreamableHttpServerConfig::default(),
        );
        let router = Router::new()
            .nest_service("/mcp", service)
            .layer(from_fn(check));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving =
            TaskTracker::new().spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            turned_away,
            _server: AbortOnDropHandle::new(serving),
        }
    }
}

#[tokio::test]
async fn a_remote_server_is_called_with_its_secret_header() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    let stand = Stand::start().await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let config = json!({
        "url": stand.url, "headers": { "Authorization": "Bearer ${secret:KEY}" },
    });
    let body = json!({
        "name": "weather", "config": config, "secrets": { "KEY": "swordfish-2" },
    });
    let (status, tried) = api.ask(Method::POST, "/api/mcp/test", &body).await;
    assert_eq!(status, 200, "{tried}");
    assert_eq!(tried["ok"], true, "{tried}");
    assert_eq!(tried["tools"][0]["name"], "weather");
    assert_eq!(tried["phases"][2]["name"], "tools");
    api.add_with(body).await;
    wait_for_health(&mut socket, "weather", "healthy").await;
    app.model
        .will_call("weather", json!({}))
        .then_say("Sunny it is");
    socket.say("weather?").await;
    let card = socket.wait_for_approval().await;
    let runs_in = json!({ "kind": "remote", "hosts": ["127.0.0.1"] });
    assert_eq!(card["runsIn"], runs_in);
    socket.approve(&card).await;
    assert_eq!(socket.wait_for("tool:output").await.text(), "Sunny");
    assert_eq!(socket.wait_for_answer().await, "Sunny it is");
    assert_eq!(stand.turned_away.load(Ordering::Relaxed), 0);

    // Another secret: the connection is made anew, and is refused without naming it.
    let path = "/api/mcp/weather/secrets/KEY";
    let (status, _) = api
        .ask(Method::PUT, path, &json!({ "value": "wrong-and-secret" }))
        .await;
    assert_eq!(status, 204);
    let (_, tried) = api
        .ask(
            Method::POST,
            "/api/mcp/weather/test",
            &serde_json::Value::Null,
        )
        .await;
    assert_eq!(tried["ok"], false, "{tried}");
    assert!(!tried.to_string().contains("wrong-and-secret"), "{tried}");
    assert!(stand.turned_away.load(Ordering::Relaxed) > 0);
    let server = api.server("weather").await;
    assert_eq!(server["status"], "unhealthy", "{server}");
    assert_eq!(server["secrets"], json!(["KEY"]));
    assert!(!server.to_string().contains("wrong-and-secret"), "{server}");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_tried_again_and_then_told() {
    let retries = [
        ("SPL_SANDBOX", "none"),
        ("SPL_LLM_RETRY_MAX_RETRIES", "1"),
        ("SPL_LLM_RETRY_INITIAL_BACKOFF", "0.05"),
    ];
    let app = TestApp::start_with(&retries).await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    let stand = Stand::start().await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let config = json!({
        "url": stand.url, "headers": { "Authorization": "Bearer swordfish-2" },
    });
    api.add("weather", config).await;
    wait_for_health(&mut socket, "weather", "healthy").await;
    drop(stand);
    app.model
        .will_call("weather", json!({}))
        .then_say("No idea");
    socket.say("weather?").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed");
    assert!(output.text().contains("cannot be reached"), "{output:?}");
    assert!(!output.text().contains("swordfish"), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "No idea");
    let was = |status: &str| {
        let mut log = socket.log.iter();
        log.any(|said| said.name == "mcp:health" && said.args[0]["status"] == status)
    };
    assert!(was("reconnecting") && was("unhealthy"), "{:#?}", socket.log);
}
