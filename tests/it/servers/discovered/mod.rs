//! Servers of 2026-07-28: rmcp's own, which knows no handshake, and one that knows both.

mod listening;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InitializeRequestParams,
    InitializeResult, InputRequiredResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use sepal::domain::Role;
use serde_json::{Map, json};

use super::remote::Stand;
use super::{Api, operator, wait_for_health};
use crate::support::{TestApp, TestSocket};

/// What the server wants to have back as it came.
const NOTE: &str = "a note of the server, with \"quotes\" and ümlauts";

/// A server whose tool answers only who brings its note back.
#[derive(Clone)]
struct Library {
    versions: &'static [ProtocolVersion],
    handshakes: Arc<AtomicUsize>,
    /// How often it answered with the note.
    noted: Arc<AtomicUsize>,
}

impl Library {
    fn new(versions: &'static [ProtocolVersion]) -> Self {
        Self {
            versions,
            handshakes: Arc::default(),
            noted: Arc::default(),
        }
    }
}

impl ServerHandler for Library {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let agreed = self.negotiate_initialize(&request)?;
        self.handshakes.fetch_add(1, Ordering::Relaxed);
        Ok(agreed)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(Map::from_iter([("type".to_owned(), json!("object"))]));
        let tool = Tool::new("borrow", "Lends a book", schema);
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if context.meta.protocol_version() != Some(ProtocolVersion::V_2026_07_28) {
            let text = vec![ContentBlock::text("Lent in the old way")];
            return Ok(CallToolResult::success(text).into());
        }
        if call.request_state.is_none() {
            self.noted.fetch_add(1, Ordering::Relaxed);
            return Ok(InputRequiredResult::from_request_state(NOTE).into());
        }
        let is_same = call.request_state.as_deref() == Some(NOTE);
        let text = if is_same { "Lent" } else { "Another note" };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Adds the server, and lets the model borrow a book; what the tool says.
async fn borrow(server: &Library) -> String {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    let stand = Stand::serving(server.clone()).await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let headers = json!({ "Authorization": "Bearer swordfish-2" });
    let config = json!({ "url": stand.url, "headers": headers });
    api.add("library", config).await;
    wait_for_health(&mut socket, "library", "healthy").await;
    app.model.will_call("borrow", json!({})).then_say("Enjoy");
    socket.say("a book please").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Enjoy");
    output.text().to_owned()
}

/// Asserts S1.9.
#[tokio::test]
async fn a_server_without_a_handshake_is_discovered_and_asked_again_with_its_note() {
    let server = Library::new(&[ProtocolVersion::V_2026_07_28]);
    assert_eq!(borrow(&server).await, "Lent");
    assert_eq!(server.handshakes.load(Ordering::Relaxed), 0);
    assert_eq!(server.noted.load(Ordering::Relaxed), 1);
}

/// Asserts S1.9.
#[tokio::test]
async fn a_server_that_knows_both_is_spoken_to_with_the_handshake() {
    let server = Library::new(ProtocolVersion::KNOWN_VERSIONS);
    assert_eq!(borrow(&server).await, "Lent in the old way");
    assert!(server.handshakes.load(Ordering::Relaxed) > 0);
    assert_eq!(server.noted.load(Ordering::Relaxed), 0);
}

/// Lines of shell that speak 2026-07-28 alone on standard input and output.
const LATER: &str = r#"
said() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
answer() { said "\"result\":{\"resultType\":\"complete\",$1}"; }
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case "$line" in
    *'"method":"initialize"'*) said '"error":{"code":CODE,"message":"no such method"}' ;;
    *'"method":"server/discover"'*) answer '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"' ;;
    *'"method":"tools/list"'*) answer '"tools":[{"name":"late","description":"Comes late","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"' ;;
    *'"method":"tools/call"'*) answer '"content":[{"type":"text","text":"at last"}]' ;;
  esac
done
"#;

/// Asserts S1.9.
#[tokio::test]
async fn a_program_that_knows_no_handshake_is_started_again_and_discovered() {
    for code in ["-32601", "-32022"] {
        let app = TestApp::with_sandbox().await;
        let owner = app.person_with("acme", Role::Owner).await;
        let mut socket = TestSocket::open(app.address, &owner, None).await;
        let script = LATER.replace("CODE", code);
        let config = json!({ "command": "/bin/sh", "args": ["-c", script] });
        Api::new(&app, &owner).add("later", config).await;
        wait_for_health(&mut socket, "later", "healthy").await;
        app.model.will_call("late", json!({})).then_say("Done");
        socket.say("go").await;
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
        assert_eq!(socket.wait_for("tool:output").await.text(), "at last");
        assert_eq!(socket.wait_for_answer().await, "Done");
        app.stop().await;
    }
}
