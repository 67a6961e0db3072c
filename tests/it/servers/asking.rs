//! Servers that ask the person something while a call of theirs runs (elicitation, form mode).

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::future::join_all;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    ElicitRequestParams, ElicitationSchema, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, ServerRequest, Tool,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use sepal::domain::Role;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::{Api, operator, wait_for_health};
use crate::model_stub::Reply;
use crate::support::{Person, TestApp, TestSocket};

/// Offers these tools.
#[derive(Clone)]
struct Asking(&'static [&'static str]);

fn form() -> Value {
    json!({
        "type": "object",
        "properties": {
            "zip": { "type": "string", "title": "Zip \u{202e}edoc", "maxLength": 5 },
            "age": { "type": "integer", "minimum": 18 },
        },
        "required": ["zip"],
    })
}

async fn ask(peer: &Peer<RoleServer>, message: &str) -> String {
    let Value::Object(schema) = form() else {
        unreachable!("it is an object");
    };
    let mut requested_schema = ElicitationSchema::from_json_schema(schema).unwrap();
    requested_schema.property_order = Some(vec!["zip".into(), "age".into()]);
    let request = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema,
    };
    match peer.create_elicitation(request).await {
        Ok(answer) => {
            let fields = answer.content.as_ref().and_then(Value::as_object);
            let fields = fields.map_or(0, Map::len);
            format!("{:?} {fields}", answer.action)
        }
        Err(error) => format!("error: {error}"),
    }
}

async fn ask_broken(peer: &Peer<RoleServer>) -> String {
    let nested = json!({ "type": "object", "properties": { "a": form() } });
    let params = json!({ "message": "?", "requestedSchema": nested });
    let request = CustomRequest::new("elicitation/create", Some(params));
    let asked = peer.send_request(ServerRequest::CustomRequest(request));
    match asked.await {
        Ok(_) => "it was asked".to_owned(),
        Err(error) => format!("error: {error}"),
    }
}

impl ServerHandler for Asking {
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
        let tools = self.0.iter();
        let tools = tools.map(|name| Tool::new(*name, "Asks", Arc::clone(&schema)));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let peer = &context.peer;
        let said = match call.name.as_ref() {
            "hang" => pending().await,
            "ask_broken" => ask_broken(peer).await,
            "ask_long" => ask(peer, &"x".repeat(1024 * 1024)).await,
            "flood" => {
                let asked = (0..100).map(|_| ask(peer, "again"));
                let answers = join_all(asked).await;
                let declined = answers.iter().filter(|it| it.starts_with("Decline"));
                let refused = answers.iter().filter(|it| it.contains("may ask"));
                format!("{} declined, {} refused", declined.count(), refused.count())
            }
            _ => ask(peer, "Where do you live?").await,
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}

/// The server on loopback, for as long as the handle lives.
pub(crate) async fn start() -> (String, AbortOnDropHandle<()>) {
    start_with(&["ask", "ask_broken", "ask_long", "flood"]).await
}

/// Until a gateway knows the tools of the server `post`: before, a model's call of one is none.
pub(crate) async fn is_listed(address: SocketAddr, person: &Person) {
    let url = format!("http://{address}/api/mcp");
    let listed = async {
        loop {
            let request = TestApp::http().get(&url).bearer_auth(&person.key);
            let servers: Value = request.send().await.unwrap().json().await.unwrap();
            let mut servers = servers["items"].as_array().unwrap().iter();
            if servers.any(|it| it["name"] == "post" && it["toolCount"].is_u64()) {
                break;
            }
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(20), listed).await;
    assert!(in_time.is_ok(), "nobody listed the server");
}

async fn start_with(tools: &'static [&'static str]) -> (String, AbortOnDropHandle<()>) {
    serve(Asking(tools)).await
}

/// Any server over streamable HTTP.
pub(super) async fn serve(server: impl ServerHandler + Clone) -> (String, AbortOnDropHandle<()>) {
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::<LocalSessionManager>::default(),
        StreamableHttpServerConfig::default(),
    );
    let router = Router::new().nest_service("/mcp", service);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving =
        TaskTracker::new().spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, AbortOnDropHandle::new(serving))
}

/// A call of `tool` that was approved.
async fn calling(app: &TestApp, tool: &str) -> (TestSocket, Person, AbortOnDropHandle<()>) {
    let (url, server) = start().await;
    let (socket, person) = calling_at(app, &url, tool).await;
    (socket, person, server)
}

/// The same at a server that runs.
pub(crate) async fn calling_at(app: &TestApp, url: &str, tool: &str) -> (TestSocket, Person) {
    let person = operator(app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    Api::new(app, &person)
        .add("post", json!({ "url": url }))
        .await;
    wait_for_health(&mut socket, "post", "healthy").await;
    app.model.will_call(tool, json!({})).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    (socket, person)
}

pub(crate) async fn answer(app: &TestApp, key: &str, session: &str, body: &Value) -> (u16, Value) {
    let path = format!("/api/sessions/{session}/elicitations");
    let request = TestApp::http().post(app.url(&path)).bearer_auth(key);
    let answer = request.json(body).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap())
}

pub(super) async fn read(app: &TestApp, key: &str, path: &str) -> Value {
    let request = TestApp::http().get(app.url(path)).bearer_auth(key);
    request.send().await.unwrap().json().await.unwrap()
}

/// What does not fit is refused at its field, and the question stays open.
async fn refuses_what_does_not_fit(app: &TestApp, key: &str, session: &str, id: &Value) {
    for (content, field) in [
        (json!({ "zip": "123456" }), "zip"),
        (json!({ "zip": "1", "age": 17 }), "age"),
        (json!({ "zip": "1", "more": true }), "more"),
        (json!({}), "zip"),
    ] {
        let body = json!({ "elicitationId": id, "action": "accept", "content": content });
        let (status, refused) = answer(app, key, session, &body).await;
        assert_eq!(
            (status, &refused["errors"][0]["field"]),
            (400, &json!("content")),
            "{refused}"
        );
        let begins = format!("`{field}`: ");
        assert!(
            refused["detail"].as_str().unwrap().starts_with(&begins),
            "{refused}"
        );
    }

    for body in [
        json!({ "elicitationId": id, "action": "open" }),
        json!({ "elicitationId": id, "action": "accept" }),
        json!({ "elicitationId": id, "action": "postpone" }),
        json!({ "elicitationId": "elc_x", "action": "decline" }),
    ] {
        let (status, refused) = answer(app, key, session, &body).await;
        assert_eq!(status, 400, "{refused}");
    }
}

/// Asserts S0.52.
#[tokio::test]
async fn a_server_asks_and_the_owner_alone_answers_once() {
    let app = TestApp::start().await;
    let (mut socket, owner, _server) = calling(&app, "ask").await;
    let (session, key) = (socket.session(), owner.key.clone());
    let asked = socket.wait_for("elicitation:required").await.args[0].clone();
    assert_eq!(asked["server"], "post");
    assert_eq!(asked["message"], "Where do you live?");
    assert_eq!(asked["mode"], "form");
    // The server of rmcp sorts them before it sends them.
    assert_eq!(asked["order"], json!(["age", "zip"]));
    let id = &asked["elicitationId"];

    let waiting = read(&app, &key, "/api/approvals/count").await;
    assert_eq!(waiting["calls"], 1, "{waiting}");
    let inbox = read(&app, &key, "/api/approvals").await;
    let shown = &inbox["items"][0]["queue"]["elicitations"];
    assert_eq!(shown[0]["elicitationId"], *id, "{inbox}");

    let fits = json!({ "zip": "12345", "age": 20 });
    let body = json!({ "elicitationId": id, "action": "accept", "content": fits });
    let colleague = app.person_with("house", Role::Member).await;
    let viewer = app.person_with("house", Role::Viewer).await;
    let stranger = app.person_with("other", Role::Owner).await;
    for other in [&colleague, &viewer, &stranger] {
        let (status, refused) = answer(&app, &other.key, &session, &body).await;
        assert!([403, 404].contains(&status), "{status}: {refused}");
        let theirs = read(&app, &other.key, "/api/approvals").await;
        assert_eq!(theirs["items"], json!([]), "{theirs}");
    }

    refuses_what_does_not_fit(&app, &key, &session, id).await;

    // Whoever opens the session anew sees the same form.
    let again = TestSocket::open(app.address, &owner, Some(&session)).await;
    let waiting = &again.ready["state"]["queue"]["elicitations"];
    assert_eq!(waiting[0]["elicitationId"], *id, "{waiting}");

    let (status, accepted) = answer(&app, &key, &session, &body).await;
    assert_eq!(status, 202, "{accepted}");
    let resolved = socket.wait_for("elicitation:resolved").await.args[0].clone();
    assert_eq!(resolved["action"], "accept", "{resolved}");
    assert_eq!(resolved["content"], fits);
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "Accept 2", "the server got both values");
    assert_eq!(socket.wait_for_answer().await, "Done");
    let late = json!({ "elicitationId": id, "action": "decline" });
    let (status, refused) = answer(&app, &key, &session, &late).await;
    assert_eq!(status, 404, "{refused}");
    assert_eq!(read(&app, &key, "/api/approvals/count").await["calls"], 0);
}

#[tokio::test]
async fn a_form_is_declined_over_the_socket_and_the_second_answer_is_refused() {
    let app = TestApp::start().await;
    let (mut socket, _, _server) = calling(&app, "ask").await;
    let asked = socket.wait_for("elicitation:required").await.args[0].clone();
    let id = &asked["elicitationId"];
    let decline = json!({ "elicitationId": id, "action": "decline" });
    let told = socket.ask("elicitation:answer", &[decline]).await;
    assert_eq!(told["ok"], true, "{told}");
    let accept = json!({ "elicitationId": id, "action": "accept", "content": { "zip": "1" } });
    let told = socket.ask("elicitation:answer", &[accept]).await;
    assert_eq!(told["ok"], false, "{told}");
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "Decline 0");
}

#[tokio::test]
async fn stopping_the_turn_closes_the_form() {
    let app = TestApp::start().await;
    let (mut socket, Person { key, .. }, _server) = calling(&app, "ask").await;
    socket.wait_for("elicitation:required").await;
    socket.ask("agent:cancel", &[json!({})]).await;
    let resolved = socket.wait_for("elicitation:resolved").await.args[0].clone();
    assert_eq!(resolved["action"], "cancel");
    assert_eq!(resolved["reason"], "stopped");
    socket.wait_for("agent:cancelled").await;
    assert_eq!(read(&app, &key, "/api/approvals/count").await["calls"], 0);
}

#[tokio::test]
async fn what_nobody_could_read_is_refused_and_the_server_learns_why() {
    for (tool, expected) in [("ask_broken", "flat fields"), ("ask_long", "16384 bytes")] {
        let app = TestApp::start().await;
        let (mut socket, _, _server) = calling(&app, tool).await;
        let output = socket.wait_for("tool:output").await;
        assert!(output.text().contains(expected), "{output:?}");
        let is_asked = |name: &str| name == "elicitation:required";
        assert!(!socket.log.iter().any(|said| is_asked(&said.name)));
    }
}

#[tokio::test]
async fn a_server_that_floods_is_declined_and_few_forms_wait() {
    let app = TestApp::start().await;
    let (mut socket, _, _server) = calling(&app, "flood").await;
    let mut declined = 0;
    let output = loop {
        let is_news = |name: &str| ["elicitation:required", "tool:output"].contains(&name);
        let said = socket.wait_where(|said| is_news(&said.name)).await;
        if said.name == "tool:output" {
            break said;
        }
        let id = &said.args[0]["elicitationId"];
        let decline = json!({ "elicitationId": id, "action": "decline" });
        socket.ask("elicitation:answer", &[decline]).await;
        declined += 1;
    };
    assert!((1..=32).contains(&declined), "{declined} were asked");
    assert_eq!(output.text(), "32 declined, 68 refused", "{output:?}");
}

/// Asserts S0.52.
#[tokio::test]
async fn a_question_takes_no_time_of_its_call() {
    let app = TestApp::start().await;
    let (post, _post) = start_with(&["ask"]).await;
    let (idle, _idle) = start_with(&["hang"]).await;
    let person = operator(&app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    for (name, url) in [("post", post), ("idle", idle)] {
        let config = json!({ "url": url, "timeout": 1 });
        Api::new(&app, &person).add(name, config).await;
        wait_for_health(&mut socket, name, "healthy").await;
    }
    let calls = [("ask", json!({})), ("hang", json!({}))];
    app.model.will(Reply::answer("", &calls)).then_say("Done");
    socket.say("go").await;
    for _ in &calls {
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
    }
    let asked = socket.wait_for("elicitation:required").await;
    let id = asked.args[0]["elicitationId"].clone();
    // As long as the one that asks may take, too.
    let ended = socket.wait_for("tool:output").await;
    assert!(ended.text().contains("no answer within 1 s"), "{ended:?}");
    let body = json!({ "elicitationId": id, "action": "accept", "content": { "zip": "1" } });
    let told = socket.ask("elicitation:answer", &[body]).await;
    assert_eq!(told["ok"], true, "{told}");
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "Accept 1");
}
