//! Servers that want their person to open a page (elicitation, URL mode), during a call or before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomNotification,
    ElicitRequestParams, ErrorCode, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, ServerNotification, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use sepal::domain::Role;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::asking::{answer, calling_at, read, serve};
use crate::support::{TestApp, TestSocket};

const PAGE: &str = "https://pay.example/stamp?n=1";

/// Sells stamps.
#[derive(Clone, Default)]
struct Shop {
    is_paid: Arc<AtomicBool>,
    /// Ends the call that has been paid.
    go_on: Arc<Notify>,
}

impl Shop {
    async fn pay(&self, context: &RequestContext<RoleServer>, url: &str) -> String {
        let request = ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: "Pay for the stamp".to_owned(),
            url: url.to_owned(),
            elicitation_id: "stamp-1".to_owned(),
        };
        let answer = match context.peer.create_elicitation(request).await {
            Ok(answer) => format!("{:?}", answer.action),
            Err(error) => return format!("error: {error}"),
        };
        if answer == "Accept" {
            let done = json!({ "elicitationId": "stamp-1" });
            let done = CustomNotification::new("notifications/elicitation/complete", Some(done));
            let done = ServerNotification::CustomNotification(done);
            context.peer.send_notification(done).await.unwrap();
            self.go_on.notified().await;
        }
        answer
    }

    fn pay_first(&self) -> Result<String, ErrorData> {
        if self.is_paid.load(Ordering::SeqCst) {
            return Ok("stamped".to_owned());
        }
        let page = json!({
            "mode": "url", "message": "Pay first", "url": PAGE, "elicitationId": "stamp-2",
        });
        let data = json!({ "elicitations": [page] });
        let code = ErrorCode(-32042);
        Err(ErrorData::new(code, "this has to be paid", Some(data)))
    }
}

impl ServerHandler for Shop {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema: Map<String, Value> =
            serde_json::from_value(json!({ "type": "object" })).unwrap();
        let schema = Arc::new(schema);
        let names = ["pay", "pay_in_the_open", "pay_first"];
        let tools = names.map(|name| Tool::new(name, "Sells", Arc::clone(&schema)));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let said = match call.name.as_ref() {
            "pay_first" => self.pay_first()?,
            "pay_in_the_open" => self.pay(&context, "http://pay.example/stamp").await,
            _ => self.pay(&context, PAGE).await,
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}

async fn tell(socket: &mut TestSocket, id: &Value, action: &str) -> Value {
    let body = json!({ "elicitationId": id, "action": action });
    socket.ask("elicitation:answer", &[body]).await
}

/// Asserts S0.52.
#[tokio::test]
async fn a_page_is_accepted_when_its_owner_opens_it_and_done_when_the_server_says_so() {
    let app = TestApp::start().await;
    let shop = Shop::default();
    let (url, _serving) = serve(shop.clone()).await;
    let (mut socket, owner) = calling_at(&app, &url, "pay").await;
    let session = socket.session();
    let asked = socket.wait_for("elicitation:required").await.args[0].clone();
    assert_eq!(asked["mode"], "url", "{asked}");
    assert_eq!(asked["url"], PAGE);
    assert_eq!(asked["opened"], false);
    let id = &asked["elicitationId"];

    let open = json!({ "elicitationId": id, "action": "open" });
    let colleague = app.person_with("house", Role::Member).await;
    let viewer = app.person_with("house", Role::Viewer).await;
    let stranger = app.person_with("other", Role::Owner).await;
    for other in [&colleague, &viewer, &stranger] {
        let (status, refused) = answer(&app, &other.key, &session, &open).await;
        assert!([403, 404].contains(&status), "{status}: {refused}");
    }
    let filled = json!({ "elicitationId": id, "action": "accept", "content": { "a": 1 } });
    let (status, refused) = answer(&app, &owner.key, &session, &filled).await;
    assert_eq!(status, 400, "{refused}");

    let (status, accepted) = answer(&app, &owner.key, &session, &open).await;
    assert_eq!(status, 202, "{accepted}");
    let opened = socket.wait_for("elicitation:opened").await;
    assert_eq!(opened.args[0]["elicitationId"], *id);
    let resolved = socket.wait_for("elicitation:resolved").await.args[0].clone();
    assert_eq!(resolved["action"], "accept", "{resolved}");
    assert_eq!(resolved["reason"], "completed", "{resolved}");
    assert_eq!(
        read(&app, &owner.key, "/api/approvals/count").await["calls"],
        0
    );
    shop.go_on.notify_one();
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "Accept");
}

/// Asserts S0.52.
#[tokio::test]
async fn a_call_that_needs_a_page_first_runs_after_the_person_was_there() {
    let app = TestApp::start().await;
    let shop = Shop::default();
    let (url, _serving) = serve(shop.clone()).await;
    let (mut socket, owner) = calling_at(&app, &url, "pay_first").await;
    let asked = socket.wait_for("elicitation:required").await.args[0].clone();
    assert_eq!(asked["url"], PAGE, "{asked}");
    let id = &asked["elicitationId"];
    assert_eq!(tell(&mut socket, id, "open").await["ok"], true);
    socket.wait_for("elicitation:opened").await;
    // Another tab sees that it was opened, and may say that all is done.
    let session = socket.session();
    let again = TestSocket::open(app.address, &owner, Some(&session)).await;
    let waiting = &again.ready["state"]["queue"]["elicitations"];
    assert_eq!(waiting[0]["opened"], true, "{waiting}");
    shop.is_paid.store(true, Ordering::SeqCst);
    assert_eq!(tell(&mut socket, id, "accept").await["ok"], true);
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "stamped", "{output:?}");
}

#[tokio::test]
async fn a_call_that_needs_a_page_first_does_not_run_when_the_person_declines() {
    let app = TestApp::start().await;
    let (url, _serving) = serve(Shop::default()).await;
    let (mut socket, _) = calling_at(&app, &url, "pay_first").await;
    let asked = socket.wait_for("elicitation:required").await.args[0].clone();
    let id = &asked["elicitationId"];
    assert_eq!(tell(&mut socket, id, "decline").await["ok"], true);
    let output = socket.wait_for("tool:output").await;
    assert!(output.text().contains("not run: "), "{output:?}");
    assert!(output.text().contains(PAGE), "{output:?}");
}

#[tokio::test]
async fn stopping_the_turn_closes_the_page() {
    let app = TestApp::start().await;
    let (url, _serving) = serve(Shop::default()).await;
    let (mut socket, _) = calling_at(&app, &url, "pay_first").await;
    let asked = socket.wait_for("elicitation:required").await.args[0].clone();
    tell(&mut socket, &asked["elicitationId"], "open").await;
    socket.ask("agent:cancel", &[json!({})]).await;
    let resolved = socket.wait_for("elicitation:resolved").await.args[0].clone();
    assert_eq!(resolved["reason"], "stopped", "{resolved}");
    socket.wait_for("agent:cancelled").await;
}

#[tokio::test]
async fn a_page_that_nobody_should_open_is_refused_and_the_server_learns_why() {
    let app = TestApp::start().await;
    let (url, _serving) = serve(Shop::default()).await;
    let (mut socket, _) = calling_at(&app, &url, "pay_in_the_open").await;
    let output = socket.wait_for("tool:output").await;
    assert!(output.text().contains("must be `https://"), "{output:?}");
    let is_asked = |name: &str| name == "elicitation:required";
    assert!(!socket.log.iter().any(|said| is_asked(&said.name)));
}
