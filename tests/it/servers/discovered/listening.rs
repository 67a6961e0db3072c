//! A server of 2026-07-28 says what changes on a stream that is asked for (`subscriptions/listen`).

use std::borrow::Cow;
use std::sync::Arc;

use reqwest::Method;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ServerCapabilities,
    ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, json};
use tokio::sync::watch;

use super::super::remote::Stand;
use super::super::{Api, operator, wait_for_health};
use crate::support::{DEADLINE, TestApp, TestSocket};

const NOTE: &str = "demo://note";

/// What the server does on its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Nothing,
    ToolsChanged,
    NoteChanged,
    /// It ends them.
    Goodbye,
}

/// A shelf that grows.
#[derive(Clone)]
struct Shelf {
    tools: watch::Sender<usize>,
    says: watch::Sender<Says>,
    /// What was asked for by the streams that were opened, the newest last.
    asked: watch::Sender<Vec<SubscriptionFilter>>,
}

impl Shelf {
    fn new() -> Self {
        Self {
            tools: watch::channel(1).0,
            says: watch::channel(Says::Nothing).0,
            asked: watch::channel(Vec::new()).0,
        }
    }

    /// Waits for a stream that fits, and how many there were by then.
    async fn hears(&self, fits: impl Fn(&SubscriptionFilter) -> bool, after: usize) -> usize {
        let mut asked = self.asked.subscribe();
        let waiting = asked.wait_for(|all| all.iter().skip(after).any(&fits));
        let heard = tokio::time::timeout(DEADLINE, waiting).await;
        heard.expect("nobody listens").unwrap().len()
    }
}

impl ServerHandler for Shelf {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe();
        ServerConfig::new(capabilities.build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[ProtocolVersion::V_2026_07_28])
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut says = self.says.subscribe();
        says.mark_unchanged();
        self.asked
            .send_modify(|asked| asked.push(context.accepted().clone()));
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = says.changed() => changed.unwrap(),
            }
            let said = *says.borrow_and_update();
            // A stream that was replaced takes it no more, and another one does.
            let _ = match said {
                Says::Nothing => Ok(()),
                Says::ToolsChanged => context.sink().notify_tool_list_changed().await,
                Says::NoteChanged => context.sink().notify_resource_updated(NOTE).await,
                Says::Goodbye => return Ok(()),
            };
        }
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(Map::from_iter([("type".to_owned(), json!("object"))]));
        let tool = |number| Tool::new(format!("book{number}"), "Lends a book", Arc::clone(&schema));
        let tools = (1..=*self.tools.borrow()).map(tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        _call: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("Lent")]).into())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new(
            NOTE, "note",
        )]))
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = vec![ResourceContents::text("a note", asked.uri)];
        Ok(ReadResourceResult::new(contents).into())
    }
}

async fn has_tools(api: &Api<'_>, count: usize) {
    let listed = async {
        while api.server("shelf").await["toolCount"] != count {
            tokio::task::yield_now().await;
        }
    };
    let listed = tokio::time::timeout(DEADLINE, listed).await;
    assert!(listed.is_ok(), "never {count} tools");
}

/// Asserts S0.52: also of servers that say what changes only to who listens.
#[tokio::test]
async fn what_changes_is_heard_on_the_stream_that_is_asked_for() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    let shelf = Shelf::new();
    let stand = Stand::serving(shelf.clone()).await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let headers = json!({ "Authorization": "Bearer swordfish-2" });
    let config = json!({ "url": stand.url, "headers": headers });
    api.add("shelf", config).await;
    wait_for_health(&mut socket, "shelf", "healthy").await;
    app.model.will_call("book1", json!({})).then_say("Enjoy");
    socket.say("a book please").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for_answer().await, "Enjoy");

    let wants_tools = |filter: &SubscriptionFilter| filter.tools_list_changed == Some(true);
    let count = shelf.hears(wants_tools, 0).await;
    shelf.tools.send_replace(2);
    shelf.says.send_replace(Says::ToolsChanged);
    has_tools(&api, 2).await;

    // A resource that was read is wanted, too, by a stream that takes the place of the first.
    let path = format!("/api/sessions/{}/resources/read", socket.session());
    let which = json!({ "server": "shelf", "uri": NOTE });
    let (status, answer) = api.ask(Method::POST, &path, &which).await;
    assert_eq!(status, 200, "{answer}");
    let wants_note = |filter: &SubscriptionFilter| {
        let wanted = filter.resource_subscriptions.as_ref();
        wants_tools(filter) && wanted.is_some_and(|all| all == &[NOTE.to_owned()])
    };
    let count = shelf.hears(wants_note, count).await;
    shelf.says.send_replace(Says::NoteChanged);
    let told = socket.wait_for("session:resource_changed").await;
    assert_eq!(told.args[0], which);

    // What changes while no stream is open is found when there is one again.
    shelf.tools.send_replace(3);
    shelf.says.send_replace(Says::Goodbye);
    shelf.hears(wants_note, count).await;
    has_tools(&api, 3).await;
}
