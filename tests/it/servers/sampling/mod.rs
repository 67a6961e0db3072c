//! Servers that ask a model for completions while a call of theirs runs (`sampling/createMessage`).

#![expect(
    deprecated,
    reason = "SEP-2577 ends sampling in a later revision; today's servers use it"
)]

mod limits;
mod rounds;

use std::future::pending;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    CreateMessageRequestParams, CustomRequest, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, ServerRequest, Tool,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use sepal::domain::Role;
use serde_json::{Map, Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::asking::{answer, read, serve};
use super::{Api, operator, wait_for_health};
use crate::model_stub::Reply;
use crate::support::{Person, TestApp, TestSocket};

/// Asks a model what its tool says.
#[derive(Clone)]
struct Sampling;

/// What a tool of it asks.
fn request(tool: &str) -> Value {
    let said = |text: &str| json!({ "role": "user", "content": { "type": "text", "text": text } });
    match tool {
        "sample_tools" => json!({ "messages": [said("?")], "maxTokens": 9, "tools": [] }),
        "sample_picture" => {
            let picture = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
            json!({ "messages": [{ "role": "user", "content": picture }], "maxTokens": 9 })
        }
        _ => json!({
            "messages": [
                said("What is 2 + 2?"),
                { "role": "assistant", "content": { "type": "text", "text": "5" } },
                said("Are you sure?"),
            ],
            "systemPrompt": "You are a \u{202e}calculator.", "maxTokens": 50, "temperature": 0.5,
            "stopSequences": ["END"], "includeContext": "thisServer",
            "modelPreferences": { "hints": [{ "name": "nobody-has-it" }] },
        }),
    }
}

/// As no library would send it to a client that does not announce so much.
async fn sample_raw(peer: &Peer<RoleServer>, tool: &str) -> String {
    let request = CustomRequest::new("sampling/createMessage", Some(request(tool)));
    let asked = peer.send_request(ServerRequest::CustomRequest(request));
    match asked.await {
        Ok(_) => "it was asked".to_owned(),
        Err(error) => format!("error: {error}"),
    }
}

async fn sample(peer: &Peer<RoleServer>, tool: &str) -> String {
    let params: CreateMessageRequestParams = serde_json::from_value(request(tool)).unwrap();
    match peer.create_message(params).await {
        Ok(said) => {
            let said = serde_json::to_value(said).unwrap();
            let text = said["content"]["text"].as_str().unwrap();
            format!("{text} ({})", said["stopReason"].as_str().unwrap())
        }
        Err(error) => format!("error: {error}"),
    }
}

impl ServerHandler for Sampling {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema: Map<String, Value> =
            serde_json::from_value(json!({ "type": "object" })).unwrap();
        let schema = Arc::new(schema);
        let announced = context.peer.peer_info();
        let announced = announced.and_then(|info| info.capabilities.sampling.clone());
        let about = match announced {
            Some(sampling) if sampling.tools.is_none() && sampling.context.is_none() => {
                "has a model"
            }
            Some(_) => "has more than a model",
            None => "has no model",
        };
        let tools = [
            "sample",
            "sample_tools",
            "sample_picture",
            "sample_twice",
            "hang",
        ];
        let tools = tools.map(|name| Tool::new(name, about, Arc::clone(&schema)));
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let peer = &context.peer;
        let said = match call.name.as_ref() {
            "sample_twice" => {
                let (one, two) = tokio::join!(sample(peer, "sample"), sample(peer, "sample"));
                format!("{one}, {two}")
            }
            "hang" => pending().await,
            "sample_tools" => sample_raw(peer, "sample_tools").await,
            name => sample(peer, name).await,
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}

/// The server on loopback, for as long as the handle lives.
pub(crate) async fn start() -> (String, AbortOnDropHandle<()>) {
    serve(Sampling).await
}

/// A call of `tool` that runs at a server with such an entry.
pub(crate) async fn calling(
    app: &TestApp,
    tool: &str,
    more: Value,
) -> (TestSocket, Person, AbortOnDropHandle<()>) {
    let (url, server) = start().await;
    let (socket, person) = calling_at(app, &url, tool, more).await;
    (socket, person, server)
}

async fn calling_at(app: &TestApp, url: &str, tool: &str, more: Value) -> (TestSocket, Person) {
    let person = operator(app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let mut config = json!({ "url": url });
    config
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    Api::new(app, &person).add("post", config).await;
    wait_for_health(&mut socket, "post", "healthy").await;
    app.model.will_call(tool, json!({}));
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    (socket, person)
}

pub(crate) fn on() -> Value {
    json!({ "sampling": true })
}

/// What a model is to be asked, as its owner is shown it.
pub(crate) async fn asked(socket: &mut TestSocket) -> Value {
    socket.wait_for("elicitation:required").await.args[0].clone()
}

/// What became of it, at that stage.
pub(crate) async fn moved(socket: &mut TestSocket, stage: &str) -> Value {
    let is_meant = |said: &crate::support::Said| {
        said.name == "elicitation:sampling" && said.args[0]["stage"] == stage
    };
    socket.wait_where(is_meant).await.args[0].clone()
}

pub(crate) fn accept(asked: &Value, digest: &Value) -> Value {
    json!({ "elicitationId": asked["elicitationId"], "action": "accept", "digest": digest })
}

pub(crate) async fn says(socket: &mut TestSocket, body: Value) -> Value {
    socket.ask("elicitation:answer", &[body]).await
}

/// What the owner is shown is all that the server asks.
fn is_whole(asked: &Value, model: &Value) {
    assert_eq!(asked["mode"], "sampling", "{asked}");
    assert_eq!(asked["server"], "post");
    assert_eq!(asked["stage"], "requested");
    assert_eq!(asked["systemPrompt"], "You are a \u{202e}calculator.");
    let last = json!({ "role": "user", "text": "Are you sure?" });
    assert_eq!(asked["messages"][2], last);
    assert_eq!(asked["maxTokens"], 50);
    assert_eq!(asked["temperature"], 0.5);
    assert_eq!(asked["stopSequences"], json!(["END"]));
    assert_eq!(asked["model"]["model"], *model, "{asked}");
    assert!(asked["inputTokens"].as_u64().unwrap() > 10, "{asked}");
}

/// Nobody but the owner says yes, whatever their role, and nobody else is shown what waits.
async fn is_its_owners_alone(app: &TestApp, session: &str, body: &Value) {
    let colleague = app.person_with("house", Role::Member).await;
    let admin = app.person_with("house", Role::Admin).await;
    let viewer = app.person_with("house", Role::Viewer).await;
    let stranger = app.person_with("other", Role::Owner).await;
    for other in [&colleague, &admin, &viewer, &stranger] {
        let (status, refused) = answer(app, &other.key, session, body).await;
        assert!([403, 404].contains(&status), "{status}: {refused}");
        let theirs = read(app, &other.key, "/api/approvals").await;
        assert_eq!(theirs["items"], json!([]), "{theirs}");
    }
}

/// The request is sent as it was shown.
fn was_sent(app: &TestApp, asked: &Value) {
    let requests = app.model.requests();
    assert_eq!(requests.len(), 3, "one for the server");
    let sent = &requests[1].body;
    assert_eq!(sent["messages"][0]["role"], "system", "{sent}");
    assert_eq!(sent["messages"][0]["content"], asked["systemPrompt"]);
    assert_eq!(sent["messages"][3]["content"], "Are you sure?", "{sent}");
    assert_eq!(sent["messages"].as_array().unwrap().len(), 4, "{sent}");
    assert_eq!(sent["temperature"], 0.5, "{sent}");
    assert!(sent.get("tools").is_none(), "{sent}");
}

async fn is_counted(app: &TestApp, key: &str) {
    let used = read(app, key, "/api/usage?by=purpose&sort=name").await;
    let rows = used["items"].as_array().unwrap().iter();
    let rows: Vec<_> = rows
        .map(|item| {
            (
                item["purpose"].clone(),
                item["requests"]["requests"].clone(),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [(json!("sampling"), json!(1)), (json!("turn"), json!(2))]
    );
}

/// Asserts S0.52.
#[tokio::test]
async fn a_model_is_asked_what_the_owner_saw_and_the_server_hears_what_they_let_through() {
    let app = TestApp::start().await;
    let (mut socket, owner, _server) = calling(&app, "sample", on()).await;
    let (session, key) = (socket.session(), owner.key.clone());
    let asked = asked(&mut socket).await;
    is_whole(&asked, &socket.ready["model"]);
    let waiting = read(&app, &key, "/api/approvals/count").await;
    assert_eq!(waiting["calls"], 1, "{waiting}");
    let body = accept(&asked, &asked["digest"]);
    is_its_owners_alone(&app, &session, &body).await;
    for (digest, status) in [(Value::Null, 400), (json!("sha256:other"), 409)] {
        let (told, refused) = answer(&app, &key, &session, &accept(&asked, &digest)).await;
        assert_eq!(told, status, "{refused}");
        assert_eq!(refused["errors"][0]["field"], "digest", "{refused}");
    }
    assert_eq!(app.model.requests().len(), 1, "nothing was asked yet");

    app.model
        .will(Reply::say("It is 4.END of it"))
        .stall_at_once();
    app.model.then_say("Done");
    let (status, accepted) = answer(&app, &key, &session, &body).await;
    assert_eq!(status, 202, "{accepted}");
    assert_eq!(moved(&mut socket, "asking").await["review"], true);
    // It waits for the model and for nobody else, and a repeat asks nothing again.
    let (status, accepted) = answer(&app, &key, &session, &body).await;
    assert_eq!(status, 202, "{accepted}");
    app.model.stalled().await;
    assert_eq!(read(&app, &key, "/api/approvals/count").await["calls"], 0);
    app.model.release();

    let answered = moved(&mut socket, "answered").await;
    assert_eq!(answered["answer"]["text"], "It is 4.", "{answered}");
    assert_eq!(answered["answer"]["stopReason"], "stopSequence");
    let inbox = read(&app, &key, "/api/approvals").await;
    let shown = &inbox["items"][0]["queue"]["elicitations"][0];
    assert_eq!(shown["digest"], answered["digest"], "{inbox}");
    let again = TestSocket::open(app.address, &owner, Some(&session)).await;
    let waiting = &again.ready["state"]["queue"]["elicitations"][0];
    assert_eq!(waiting["answer"], answered["answer"], "{waiting}");
    let yes = accept(&asked, &answered["digest"]);
    is_its_owners_alone(&app, &session, &yes).await;
    // A repeat of the yes to the request is none to the answer.
    let (status, repeated) = answer(&app, &key, &session, &body).await;
    assert_eq!(status, 202, "{repeated}");
    let told = says(&mut socket, yes).await;
    assert_eq!(told["ok"], true, "{told}");
    let resolved = socket.wait_for("elicitation:resolved").await.args[0].clone();
    assert_eq!(resolved["action"], "accept", "{resolved}");
    assert_eq!(resolved["content"]["content"]["text"], "It is 4.");
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "It is 4. (stopSequence)");
    assert_eq!(socket.wait_for_answer().await, "Done");
    was_sent(&app, &asked);
    is_counted(&app, &key).await;
}

#[tokio::test]
async fn an_answer_goes_on_unread_where_the_owner_says_so_and_no_model_is_asked_after_a_no() {
    let app = TestApp::start().await;
    let (mut socket, _, _server) = calling(&app, "sample_twice", on()).await;
    let first = asked(&mut socket).await;
    app.model.will_say("4").then_say("Done");
    let mut body = accept(&first, &first["digest"]);
    body["review"] = json!(false);
    assert_eq!(says(&mut socket, body).await["ok"], true);
    let resolved = socket.wait_for("elicitation:resolved").await.args[0].clone();
    assert_eq!(resolved["elicitationId"], first["elicitationId"]);
    assert!(resolved["by"]["id"].is_string(), "{resolved}");

    // The second one came when the first was over.
    let second = asked(&mut socket).await;
    assert_ne!(second["elicitationId"], first["elicitationId"]);
    let no = json!({ "elicitationId": second["elicitationId"], "action": "decline" });
    assert_eq!(says(&mut socket, no).await["ok"], true);
    let output = socket.wait_for("tool:output").await;
    let text = output.text();
    assert!(text.contains("4 (endTurn)"), "{text}");
    assert!(text.contains("User rejected sampling request"), "{text}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    assert_eq!(app.model.requests().len(), 3);
}

#[tokio::test]
async fn an_answer_that_the_owner_keeps_back_is_paid_for_and_goes_nowhere() {
    let app = TestApp::start().await;
    let (mut socket, owner, _server) = calling(&app, "sample", on()).await;
    let asked = asked(&mut socket).await;
    app.model.will_say("My key is 4").then_say("Done");
    says(&mut socket, accept(&asked, &asked["digest"])).await;
    moved(&mut socket, "answered").await;
    let no = json!({ "elicitationId": asked["elicitationId"], "action": "decline" });
    assert_eq!(says(&mut socket, no).await["ok"], true);
    let output = socket.wait_for("tool:output").await;
    assert!(output.text().contains("User rejected"), "{output:?}");
    assert!(!output.text().contains("My key"), "{output:?}");
    socket.wait_for_answer().await;
    let used = read(&app, &owner.key, "/api/usage?by=purpose&sort=name").await;
    assert_eq!(used["items"][0]["purpose"], "sampling", "{used}");
}
