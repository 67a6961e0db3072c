//! Servers over streamable HTTP: rmcp's own, behind a check of the headers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
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
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Barrier, Semaphore};
use tokio_util::task::AbortOnDropHandle;
use tokio_util::task::TaskTracker;

use super::{Api, operator, wait_for_health};
use crate::model_stub::Reply;
use crate::support::{Said, TestApp, TestSocket};

#[derive(Clone)]
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

/// A server with two tools: `meet` ends only when two calls of it run at the same time and the test
/// lets them go; `fail` fails.
#[derive(Clone)]
struct Meeting {
    both: Arc<Barrier>,
    may_end: Arc<Semaphore>,
}

impl ServerHandler for Meeting {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(Map::from_iter([("type".to_owned(), json!("object"))]));
        let tools = ["meet", "fail"].map(|name| Tool::new(name, "Of a test", Arc::clone(&schema)));
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::CallToolResponse, ErrorData> {
        if call.name == "fail" {
            let text = vec![ContentBlock::text("out of order")];
            return Ok(CallToolResult::error(text).into());
        }
        self.both.wait().await;
        self.may_end.acquire().await.unwrap().forget();
        Ok(CallToolResult::success(vec![ContentBlock::text("met")]).into())
    }
}

/// The server on loopback; whoever does not know the key is sent away.
pub(super) struct Stand {
    pub(super) url: String,
    turned_away: Arc<AtomicUsize>,
    _server: AbortOnDropHandle<()>,
}

impl Stand {
    async fn start() -> Self {
        Self::serving(Weather).await
    }

    pub(super) async fn serving<S: ServerHandler + Clone>(server: S) -> Self {
        let turned_away = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&turned_away);
        let check = move |request: Request, next: Next| {
            let count = Arc::clone(&count);
            async move {
                let key = request.headers().get("authorization");
                if key.is_some_and(|key| key == "Bearer swordfish-2") {
                    let mut answer = next.run(request).await;
                    // A connection that lived on in the client's pool would outlive the stand.
                    let close = HeaderValue::from_static("close");
                    answer.headers_mut().insert(CONNECTION, close);
                    return answer;
                }
                count.fetch_add(1, Ordering::Relaxed);
                StatusCode::UNAUTHORIZED.into_response()
            }
        };
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
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

/// Asserts S0.52, S0.61, S1.9.
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

/// Asserts S0.47.
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
    // News of servers come beside the session's events, each in their own order.
    for status in ["reconnecting", "unhealthy"] {
        let is_told = |said: &Said| said.name == "mcp:health" && said.args[0]["status"] == status;
        while !socket.log.iter().any(is_told) {
            assert!(socket.step().await, "{:#?}", socket.log);
        }
    }
}

/// How a call of the queue stood, one state after the other.
fn states(socket: &TestSocket, index: usize) -> Vec<&str> {
    let told = socket.log.iter().filter(|said| said.name == "tool:queue");
    let states = told.filter_map(|said| said.args[0]["calls"][index]["status"].as_str());
    let mut states: Vec<&str> = states.collect();
    states.dedup();
    states
}

/// S2.24, S2.29, S2.34, S2.36, S2.42, S2.45, S3.26, S3.27, O4: the two that go on are still running when
/// the failure of the third is told.
/// Asserts S2.28.
#[tokio::test]
async fn a_call_that_fails_or_is_refused_stops_no_other_of_its_batch() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let meeting = Meeting {
        both: Arc::new(Barrier::new(2)),
        may_end: Arc::new(Semaphore::new(0)),
    };
    let stand = Stand::serving(meeting.clone()).await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let headers = json!({ "Authorization": "Bearer swordfish-2" });
    let config = json!({ "url": stand.url, "headers": headers });
    Api::new(&app, &person).add("meeting", config).await;
    wait_for_health(&mut socket, "meeting", "healthy").await;

    let called = |tool| (tool, json!({ "how": "now" }));
    let calls = [
        called("meet"),
        called("fail"),
        ("meet", json!({})),
        ("meet", json!({ "how": "never" })),
    ];
    app.model
        .will(Reply::answer("All four", &calls))
        .then_say("Done");
    socket.say("go").await;
    for approved in [true, true, true, false] {
        let card = socket.wait_for_approval().await;
        let answer = socket.decide(&card, approved).await;
        assert_eq!(answer["ok"], true, "{answer}");
    }
    let is_output = |name: &'static str, of: &'static str| {
        move |said: &crate::support::Said| said.name == name && said.rest()["name"] == of
    };
    let failed = socket.wait_where(is_output("tool:output", "fail")).await;
    assert_eq!(failed.rest()["status"], "failed", "{failed:?}");
    let error = socket.wait_where(is_output("agent:error", "fail")).await;
    assert_eq!(error.rest()["callId"], failed.rest()["callId"]);
    assert_eq!(error.rest()["code"], "tool_failed", "{error:?}");
    assert_eq!(states(&socket, 0), ["pending", "approved", "executing"]);
    for _ in 0..2 {
        meeting.may_end.add_permits(1);
        let output = socket.wait_where(is_output("tool:output", "meet")).await;
        assert_eq!(output.rest()["status"], "completed", "{output:?}");
    }
    assert_eq!(socket.wait_for_answer().await, "Done");

    // With the end of the last call the queue is gone.
    let mut met = [states(&socket, 0), states(&socket, 2)];
    met.sort_by_key(Vec::len);
    let running = ["pending", "approved", "executing"];
    assert_eq!(met[0], running);
    assert_eq!(met[1], [&running[..], &["completed"]].concat());
    let failed = [&running[..], &["failed"]].concat();
    assert_eq!(states(&socket, 1), failed);
    assert_eq!(states(&socket, 3), ["pending", "rejected"]);
    let errors = socket.log.iter().filter(|said| said.name == "agent:error");
    assert_eq!(errors.count(), 1, "only the failure is one");
    let body = app.model.requests().pop().unwrap().body;
    let results = body["messages"].as_array().unwrap().iter();
    let results = results.filter(|said| said["role"] == "tool");
    let results: Vec<&Value> = results.map(|said| &said["content"]).collect();
    assert_eq!(results[..3], ["met", "out of order", "met"]);
    assert!(results[3].to_string().contains("Rejected"), "{results:?}");
}
