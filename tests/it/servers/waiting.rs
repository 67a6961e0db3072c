//! A server over HTTP whose calls wait until they may end, and do not listen to anybody who wants
//! them to stop. Its door can be closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::support::DEADLINE;

/// What the server does and has done.
#[derive(Clone)]
struct Waiting {
    /// How often its tools were listed.
    listed: Arc<watch::Sender<usize>>,
    /// How many calls have begun.
    begun: Arc<watch::Sender<usize>>,
    /// How many calls have ended.
    ended: Arc<watch::Sender<usize>>,
    /// Whether calls may end.
    may_end: Arc<watch::Sender<bool>>,
    /// How many requests wait at the door.
    knocking: Arc<watch::Sender<usize>>,
    /// Whether requests are let in.
    is_open: Arc<watch::Sender<bool>>,
}

impl ServerHandler for Waiting {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.listed.send_modify(|count| *count += 1);
        let schema: Map<String, Value> =
            serde_json::from_value(json!({ "type": "object" })).unwrap();
        let schema = Arc::new(schema);
        let tools = vec![
            Tool::new("order", "Orders something", Arc::clone(&schema)),
            Tool::new("look", "Looks at something", schema)
                .with_annotations(ToolAnnotations::new().read_only(true)),
        ];
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        _call: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.begun.send_modify(|count| *count += 1);
        until(&self.may_end, |may_end| *may_end).await;
        self.ended.send_modify(|count| *count += 1);
        Ok(CallToolResult::success(vec![ContentBlock::text("ordered")]).into())
    }
}

async fn until<T>(value: &watch::Sender<T>, is_so: impl FnMut(&T) -> bool) {
    value.subscribe().wait_for(is_so).await.unwrap();
}

/// The server on loopback, for as long as this lives.
pub(crate) struct Stand {
    pub(crate) url: String,
    pub(crate) address: SocketAddr,
    does: Waiting,
    _server: AbortOnDropHandle<()>,
}

impl Stand {
    pub(crate) async fn start() -> Self {
        Self::start_as(StreamableHttpServerConfig::default()).await
    }

    /// One that answers without a stream, so that an answer cannot be asked for again.
    pub(crate) async fn start_plain() -> Self {
        let mut config = StreamableHttpServerConfig::default();
        config.legacy_session_mode = false;
        config.json_response = true;
        Self::start_as(config).await
    }

    async fn start_as(config: StreamableHttpServerConfig) -> Self {
        let does = Waiting {
            listed: Arc::new(watch::channel(0).0),
            begun: Arc::new(watch::channel(0).0),
            ended: Arc::new(watch::channel(0).0),
            may_end: Arc::new(watch::channel(false).0),
            knocking: Arc::new(watch::channel(0).0),
            is_open: Arc::new(watch::channel(true).0),
        };
        let (door, handler) = (does.clone(), does.clone());
        let let_in = move |request: Request, next: Next| {
            let door = door.clone();
            async move {
                if !*door.is_open.borrow() {
                    door.knocking.send_modify(|count| *count += 1);
                    until(&door.is_open, |is_open| *is_open).await;
                }
                next.run(request).await
            }
        };
        let service = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::<LocalSessionManager>::default(),
            config,
        );
        let router = Router::new()
            .nest_service("/mcp", service)
            .layer(from_fn(let_in));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}/mcp");
        let serving =
            TaskTracker::new().spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            address,
            does,
            _server: AbortOnDropHandle::new(serving),
        }
    }

    /// How often its tools were listed so far.
    pub(crate) fn lists(&self) -> usize {
        *self.does.listed.borrow()
    }

    /// Waits until its tools were listed more often than that.
    pub(crate) async fn listed_after(&self, times: usize) {
        let listed = until(&self.does.listed, |listed| *listed > times);
        in_time(listed, "nobody listed it").await;
    }

    /// Waits until so many calls have begun.
    pub(crate) async fn begun(&self, calls: usize) {
        let begun = until(&self.does.begun, |begun| *begun >= calls);
        in_time(begun, "no call began").await;
    }

    /// Waits until so many calls have ended.
    pub(crate) async fn ended(&self, calls: usize) {
        let ended = until(&self.does.ended, |ended| *ended >= calls);
        in_time(ended, "no call ended").await;
    }

    /// Calls that have begun so far.
    pub(crate) fn calls(&self) -> usize {
        *self.does.begun.borrow()
    }

    /// Lets all calls end.
    pub(crate) fn let_end(&self) {
        self.does.may_end.send_replace(true);
    }

    /// From now on requests wait at the door.
    pub(crate) fn close_door(&self) {
        self.does.is_open.send_replace(false);
    }

    /// Waits until a request waits at the door.
    pub(crate) async fn knocked(&self) {
        let knocked = until(&self.does.knocking, |knocking| *knocking > 0);
        in_time(knocked, "nobody came").await;
    }

    pub(crate) fn open_door(&self) {
        self.does.is_open.send_replace(true);
    }
}

async fn in_time(waiting: impl Future<Output = ()>, what: &str) {
    let limit: Duration = DEADLINE;
    assert!(tokio::time::timeout(limit, waiting).await.is_ok(), "{what}");
}
