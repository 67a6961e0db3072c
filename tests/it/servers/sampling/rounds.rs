//! Servers of 2026-07-28 send no requests: a result of theirs says what they want of a model first, beside what
//! they want to know of people, and they are called again with that.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult,
    InputResponses, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value, json};

use super::{accept, asked, calling_at, is_counted, moved, on, request, says};
use crate::servers::asking::{answer, serve};
use crate::support::{TestApp, TestSocket};

const STATE: &str = "a note of the server";

/// What a call brought along, and whether its client says that it samples.
type Called = (Option<InputResponses>, bool);

/// Wants a form filled in and a model asked in one round, or a model alone.
#[derive(Clone, Default)]
struct Rounds {
    calls: Arc<Mutex<Vec<Called>>>,
}

impl Rounds {
    fn calls(&self) -> Vec<Called> {
        self.calls.lock().unwrap().clone()
    }
}

impl ServerHandler for Rounds {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[ProtocolVersion::V_2026_07_28])
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(Map::from_iter([("type".to_owned(), json!("object"))]));
        let tools = ["sample", "form_and_sample"];
        let tools = tools.map(|name| Tool::new(name, "Asks first", Arc::clone(&schema)));
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let announced = context.meta.client_capabilities();
        let samples = announced.is_some_and(|it| it.sampling.is_some());
        let given = call.input_responses;
        self.calls.lock().unwrap().push((given.clone(), samples));
        let Some(given) = given else {
            let mut wanted = json!({
                "model": { "method": "sampling/createMessage", "params": request("sample") },
            });
            if call.name == "form_and_sample" {
                wanted["form"] = json!({ "method": "elicitation/create", "params": {
                    "mode": "form", "message": "Whose sum is it?",
                    "requestedSchema": { "type": "object",
                        "properties": { "name": { "type": "string" } }, "required": ["name"] } } });
            }
            let result = json!({ "resultType": "input_required", "inputRequests": wanted,
                "requestState": STATE });
            let result: InputRequiredResult = serde_json::from_value(result).unwrap();
            return Ok(result.into());
        };
        assert_eq!(call.request_state.as_deref(), Some(STATE));
        let name = given
            .get("form")
            .map_or("", |form| form["content"]["name"].as_str().unwrap());
        let said = given["model"]["content"]["text"].as_str().unwrap();
        let stop = given["model"]["stopReason"].as_str().unwrap();
        let text = format!("{name}: {said} ({stop})");
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

async fn ended(socket: &mut TestSocket) -> (Value, String) {
    let output = socket.wait_for("tool:output").await;
    (output.rest()["status"].clone(), output.text().to_owned())
}

/// Asserts S0.52 and S1.9: the same card, the same digests and one row of usage, beside a form of the same round.
#[tokio::test]
async fn a_form_and_a_completion_of_one_round_are_asked_for_and_go_back_together() {
    let app = TestApp::start().await;
    let server = Rounds::default();
    let (url, _serving) = serve(server.clone()).await;
    let (mut socket, owner) = calling_at(&app, &url, "form_and_sample", on()).await;
    let form = asked(&mut socket).await;
    assert_eq!(
        (&form["mode"], &form["message"]),
        (&json!("form"), &json!("Whose sum is it?"))
    );
    let filled = json!({ "elicitationId": form["elicitationId"], "action": "accept",
        "content": { "name": "Ana" } });
    assert_eq!(says(&mut socket, filled).await["ok"], true);

    let shown = asked(&mut socket).await;
    super::is_whole(&shown, &socket.ready["model"]);
    let other = accept(&shown, &json!("sha256:other"));
    let (status, refused) = answer(&app, &owner.key, &socket.session(), &other).await;
    assert_eq!(status, 409, "{refused}");
    assert_eq!(app.model.requests().len(), 1, "nothing was asked yet");
    assert_eq!(server.calls().len(), 1, "it is called again with both");

    app.model.will_say("It is 4.").then_say("Done");
    let yes = accept(&shown, &shown["digest"]);
    assert_eq!(says(&mut socket, yes.clone()).await["ok"], true);
    let answered = moved(&mut socket, "answered").await;
    assert_eq!(answered["answer"]["text"], "It is 4.", "{answered}");
    assert_eq!(server.calls().len(), 1, "the answer waits to be read");
    // A repeat of the yes to the request is none to the answer.
    assert_eq!(says(&mut socket, yes).await["ok"], true);
    let let_through = accept(&shown, &answered["digest"]);
    assert_eq!(says(&mut socket, let_through).await["ok"], true);
    let told = ended(&mut socket).await;
    assert_eq!(
        told,
        (json!("completed"), "Ana: It is 4. (endTurn)".to_owned())
    );
    assert_eq!(socket.wait_for_answer().await, "Done");
    let calls = server.calls();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|(_, samples)| *samples), "{calls:?}");
    super::was_sent(&app, &shown);
    is_counted(&app, &owner.key).await;
}

/// Asserts S0.52: a no ends the call, whose server has no word for it, and no model is asked.
#[tokio::test]
async fn a_completion_that_the_owner_refuses_ends_the_call_of_its_round() {
    let app = TestApp::start().await;
    let server = Rounds::default();
    let (url, _serving) = serve(server.clone()).await;
    let (mut socket, _) = calling_at(&app, &url, "sample", on()).await;
    let shown = asked(&mut socket).await;
    app.model.will_say("Pity");
    let no = json!({ "elicitationId": shown["elicitationId"], "action": "decline" });
    assert_eq!(says(&mut socket, no).await["ok"], true);
    let (status, text) = ended(&mut socket).await;
    assert_eq!(status, "failed", "{text}");
    assert!(text.contains("User rejected sampling request"), "{text}");
    assert_eq!(socket.wait_for_answer().await, "Pity");
    assert_eq!(server.calls().len(), 1);
    assert_eq!(app.model.requests().len(), 2);
}

/// Asserts S0.52: a server that nobody let ask for completions is not told that it may, and is refused.
#[tokio::test]
async fn a_server_that_may_not_sample_asks_no_model_in_a_round_either() {
    let app = TestApp::start().await;
    let server = Rounds::default();
    let (url, _serving) = serve(server.clone()).await;
    let (mut socket, _) = calling_at(&app, &url, "sample", json!({})).await;
    app.model.will_say("Pity");
    let (status, text) = ended(&mut socket).await;
    assert_eq!(status, "failed", "{text}");
    assert!(text.contains("sampling is off for this server"), "{text}");
    assert_eq!(socket.wait_for_answer().await, "Pity");
    assert!(matches!(server.calls().as_slice(), [(None, false)]));
    assert_eq!(app.model.requests().len(), 2);
}
