//! Calls of views (MCP Apps): what a view asks for goes the way of every call, and the model hears nothing
//! of it.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::stand_in::{Answer, StandIn};
use super::{Api, operator, views, wait_for_health};
use crate::support::{Person, Said, TestApp, TestSocket};

/// What the view of a call asks for.
pub(crate) fn asks(call: &Value, request: &str, name: &str, arguments: &Value) -> Value {
    json!({ "callId": call, "viewId": "v1", "requestId": request, "name": name,
        "arguments": arguments })
}

/// The call whose view asks: the first that started.
pub(crate) fn viewed(socket: &TestSocket) -> Value {
    let mut log = socket.log.iter();
    let started = log.find(|said| said.name == "tool:started").unwrap();
    started.args[0]["callId"].clone()
}

fn answer(method: &str, params: &Value) -> Answer {
    match method {
        "tools/list" => Ok(json!({ "tools": [
            { "name": "chart", "inputSchema": { "type": "object" },
                "_meta": { "ui": { "resourceUri": views::URI } } },
            { "name": "refresh", "inputSchema": { "type": "object",
                "properties": { "n": { "type": "integer" } } },
                "_meta": { "ui": { "visibility": ["app"] } } },
            { "name": "erase", "inputSchema": { "type": "object" },
                "_meta": { "ui": { "visibility": ["model"] } } },
            { "name": "plain", "inputSchema": { "type": "object" } },
        ] })),
        "resources/read" if params["uri"] == "data://points" => Ok(json!({ "contents": [
            { "uri": "data://points", "mimeType": "application/octet-stream", "blob": "AQID" },
        ] })),
        _ => views::answer(method, params),
    }
}

pub(super) struct Story {
    pub(super) app: TestApp,
    server: StandIn,
    pub(super) person: Person,
    pub(super) socket: TestSocket,
    pub(super) call: Value,
}

impl Story {
    /// A session with a call that has a view.
    pub(super) async fn begin() -> Self {
        let app = TestApp::start().await;
        let server = StandIn::start(json!({ "tools": {}, "resources": {} }), answer).await;
        let person = operator(&app, "house").await;
        let mut socket = TestSocket::open(app.address, &person, None).await;
        let api = Api::new(&app, &person);
        api.add("charts", json!({ "url": server.url })).await;
        wait_for_health(&mut socket, "charts", "healthy").await;
        views::run_chart(&app, &mut socket).await;
        let call = viewed(&socket);
        Self {
            app,
            server,
            person,
            socket,
            call,
        }
    }

    async fn ask(&mut self, request: &str, name: &str, arguments: Value) -> Value {
        let asked = asks(&self.call, request, name, &arguments);
        self.socket.ask("view:call", &[asked]).await
    }

    /// Of the server's own tools, by their names.
    fn called(&self) -> Vec<Value> {
        let calls = self.server.asked("tools/call");
        calls.iter().map(|call| call["name"].clone()).collect()
    }
}

fn refused(answer: &Value, code: &str, word: &str) {
    assert_eq!(answer["error"]["code"], code, "{answer}");
    assert!(answer.to_string().contains(word), "{answer}");
}

async fn output(socket: &mut TestSocket) -> Said {
    socket.wait_for("tool:output").await
}

/// Asserts S0.52: a card that says whose view asks, one run for one request, and nothing of it for the model.
#[tokio::test]
async fn a_view_calls_a_tool_of_its_server_and_the_model_hears_nothing_of_it() {
    let mut story = Story::begin().await;
    let asked = story.ask("r1", "refresh", json!({ "n": 1 })).await;
    assert_eq!(asked["ok"], true, "{asked}");
    let called = story.socket.wait_for("tool:view_call").await.args[0].clone();
    let card = story.socket.wait_for_approval().await;
    assert_eq!(called["callId"], card["callId"]);
    let by = json!({ "callId": story.call, "name": "chart", "viewId": "v1", "requestId": "r1" });
    assert_eq!((&called["askedBy"], &card["askedBy"]), (&by, &by));
    assert_eq!(
        (&card["args"], &card["queuePosition"], &card["totalInQueue"]),
        (&json!({ "n": 1 }), &json!(1), &json!(1))
    );
    // Whoever comes later sees the same card, and the request that is sent once more is the same.
    let session = story.socket.session();
    let mut later = TestSocket::open(story.app.address, &story.person, Some(&session)).await;
    let again = later.wait_for_approval().await;
    assert_eq!(
        (&again["askedBy"], &again["digest"]),
        (&by, &card["digest"])
    );
    let repeated = story.ask("r1", "refresh", json!({ "n": 1 })).await;
    assert_eq!(repeated["ok"], true, "{repeated}");
    let inbox = Api::new(&story.app, &story.person)
        .get("/api/approvals")
        .await;
    assert_eq!(inbox["items"].as_array().unwrap().len(), 1, "{inbox}");

    story.socket.approve(&card).await;
    let ended = output(&mut story.socket).await;
    assert_eq!(ended.rest()["status"], "completed", "{ended:?}");
    assert_eq!(ended.rest()["structured"], json!({ "points": [1, 2] }));
    assert_eq!(story.called(), ["chart", "refresh"]);
    let sent = story.server.asked("tools/call").pop().unwrap();
    assert_eq!(sent["arguments"], json!({ "n": 1 }));

    story.app.model.will_say("Fine");
    story.socket.say("go on").await;
    assert_eq!(story.socket.wait_for_answer().await, "Fine");
    let request = story.app.model.requests().pop().unwrap().body.to_string();
    assert!(!request.contains("refresh"), "{request}");
}

/// Asserts S0.52: its own server, what is for views, what is on, and what fits.
#[tokio::test]
async fn a_view_reaches_no_tool_but_those_of_its_own_server_that_are_for_views() {
    let mut story = Story::begin().await;
    let other = StandIn::with_result(
        json!({ "name": "elsewhere", "inputSchema": { "type": "object" } }),
        json!({ "content": [] }),
    )
    .await;
    let api = Api::new(&story.app, &story.person);
    api.add("others", json!({ "url": other.url })).await;
    wait_for_health(&mut story.socket, "others", "healthy").await;
    let off = json!({ "enabled": false });
    let (status, _) = api
        .ask(Method::PUT, "/api/mcp/charts/tools/plain", &off)
        .await;
    assert_eq!(status, 200);
    for (name, word) in [
        ("elsewhere", "no tool `elsewhere`"),
        ("others__elsewhere", "no tool"),
        ("erase", "for the model alone"),
        ("plain", "switched off"),
        ("none", "no tool"),
    ] {
        let answer = story.ask(name, name, json!({})).await;
        refused(&answer, "invalid_arguments", word);
    }
    let answer = story.ask("r1", "refresh", json!({ "n": "one" })).await;
    refused(&answer, "invalid_arguments", "/n");
    for call in [
        json!("call_1_0"),
        json!("x"),
        json!("call_99999999999999_0"),
    ] {
        let asked = asks(&call, "r2", "refresh", &json!({}));
        let answer = story.socket.ask("view:call", &[asked]).await;
        refused(&answer, "no_such_call", "has a view");
    }
    let large = json!({ "text": "x".repeat(65 * 1024) });
    let answer = story.ask("r3", "refresh", large).await;
    refused(&answer, "too_large", "arguments");
    assert_eq!(story.called(), ["chart"]);
    assert!(other.asked("tools/call").is_empty());
}

/// Asserts S0.52: a person may refuse and change what a view asks for; a rule decides it like any call.
#[tokio::test]
async fn what_a_view_asks_for_is_decided_like_any_call() {
    let mut story = Story::begin().await;
    story.ask("r1", "refresh", json!({ "n": 1 })).await;
    let card = story.socket.wait_for_approval().await;
    story.socket.decide(&card, false).await;
    let ended = output(&mut story.socket).await;
    assert_eq!(ended.rest()["status"], "rejected", "{ended:?}");
    let again = story.ask("r2", "refresh", json!({ "n": 1 })).await;
    refused(&again, "not_allowed", "refused to this view");

    story.ask("r3", "refresh", json!({ "n": 2 })).await;
    let card = story.socket.wait_for_approval().await;
    let change = json!({ "callId": card["callId"], "approved": true, "digest": card["digest"],
        "args": { "n": 3 } });
    let taken = story.socket.ask("tool:approval", &[change]).await;
    assert_eq!(taken["ok"], true, "{taken}");
    output(&mut story.socket).await;
    let sent = story.server.asked("tools/call").pop().unwrap();
    assert_eq!(sent["arguments"], json!({ "n": 3 }));

    // What waits goes with the view.
    story.ask("r4", "refresh", json!({ "n": 4 })).await;
    let card = story.socket.wait_for_approval().await;
    let closed = story
        .socket
        .ask("view:close", &[json!({ "viewId": "v1" })])
        .await;
    assert_eq!(closed["ok"], true, "{closed}");
    let ended = output(&mut story.socket).await;
    assert_eq!(
        (&ended.rest()["callId"], &ended.rest()["status"]),
        (&card["callId"], &json!("cancelled"))
    );

    let api = Api::new(&story.app, &story.person);
    let rule = |effect: &str| json!({ "effect": effect, "scope": "person", "server": "charts", "tool": "refresh" });
    let mut everything = rule("allow");
    everything["confirm"] = json!("refresh");
    let (status, made) = api.ask(Method::POST, "/api/rules", &everything).await;
    assert!(status < 300, "{made}");
    story.ask("r5", "refresh", json!({ "n": 5 })).await;
    let ended = output(&mut story.socket).await;
    assert_eq!(ended.rest()["status"], "completed", "{ended:?}");
    let api = Api::new(&story.app, &story.person);
    let (status, made) = api.ask(Method::POST, "/api/rules", &rule("deny")).await;
    assert!(status < 300, "{made}");
    story.ask("r6", "refresh", json!({ "n": 6 })).await;
    let ended = output(&mut story.socket).await;
    assert_eq!(ended.rest()["status"], "rejected", "{ended:?}");
    assert_eq!(story.called(), ["chart", "refresh", "refresh"]);
}

/// Asserts S0.52 and O5.
#[tokio::test]
async fn nobody_else_asks_in_the_place_of_a_view() {
    let mut story = Story::begin().await;
    let session = story.socket.session();
    let call = asks(&story.call, "r1", "refresh", &json!({}));
    for (tenant, role) in [
        ("acme", Role::Owner),
        ("house", Role::Owner),
        ("house", Role::Member),
        ("house", Role::Viewer),
    ] {
        let stranger = story.app.person_with(tenant, role).await;
        let auth = json!({ "token": stranger.key, "sessionId": session });
        let shut = TestSocket::try_open(story.app.address, auth).await;
        assert!(shut.is_err(), "{tenant} {role:?}");
        // In a session of their own the call leads nowhere.
        let mut own = TestSocket::open(story.app.address, &stranger, None).await;
        let answer = own.ask("view:call", std::slice::from_ref(&call)).await;
        assert_eq!(answer["ok"], false, "{tenant} {role:?}: {answer}");
        own.ask("view:close", &[json!({ "viewId": "v1" })]).await;
    }
    assert_eq!(story.called(), ["chart"]);
    let asked = story.ask("r1", "refresh", json!({})).await;
    assert_eq!(asked["ok"], true, "{asked}");
    let card = story.socket.wait_for_approval().await;
    for role in [Role::Owner, Role::Viewer] {
        let other = story.app.person_with("house", role).await;
        let mut other = TestSocket::open(story.app.address, &other, None).await;
        assert_eq!(other.decide(&card, true).await["ok"], false);
    }
    story.socket.approve(&card).await;
    output(&mut story.socket).await;
    assert_eq!(story.called(), ["chart", "refresh"]);
}

/// Asserts S0.52: what was shown is what runs.
#[tokio::test]
async fn a_call_of_a_view_whose_tool_changed_meanwhile_does_not_run() {
    let mut story = Story::begin().await;
    story.ask("r1", "refresh", json!({})).await;
    let card = story.socket.wait_for_approval().await;
    let wrong = json!({ "callId": card["callId"], "approved": true, "digest": "sha256:00" });
    let answer = story.socket.ask("tool:approval", &[wrong]).await;
    refused(&answer, "changed_since_shown", "digest");
    let api = Api::new(&story.app, &story.person);
    let off = json!({ "enabled": false });
    let path = "/api/mcp/charts/tools/refresh";
    let (status, _) = api.ask(Method::PUT, path, &off).await;
    assert_eq!(status, 200);
    story.socket.approve(&card).await;
    let ended = output(&mut story.socket).await;
    assert_eq!(ended.rest()["status"], "failed", "{ended:?}");
    assert_eq!(story.called(), ["chart"]);
}

/// Asserts S0.52: a view reads what its own server has, as its owner may, and nobody else does.
#[tokio::test]
async fn a_view_reads_resources_of_its_own_server_alone() {
    let story = Story::begin().await;
    let path = format!("/api/sessions/{}/views/resources", story.socket.session());
    let which = |uri: &str| json!({ "callId": story.call, "uri": uri });
    let owner = Api::new(&story.app, &story.person);
    let (status, read) = owner.ask(Method::POST, &path, &which(views::URI)).await;
    assert_eq!(status, 200, "{read}");
    assert_eq!(
        read,
        json!({ "contents": [{ "uri": views::URI, "mimeType": "text/html;profile=mcp-app",
            "text": "<h1>Chart</h1>" }] })
    );
    let (status, read) = owner
        .ask(Method::POST, &path, &which("data://points"))
        .await;
    assert_eq!(status, 200, "{read}");
    assert_eq!(read["contents"][0]["blob"], "AQID", "{read}");
    for (uri, code, word) in [
        ("ui://chart/large.html", 413, "more than 2097152 bytes"),
        ("ui://chart/none.html", 502, "Resource not found"),
        ("", 400, "address"),
    ] {
        let (status, refused) = owner.refused(Method::POST, &path, &which(uri)).await;
        assert_eq!(status, code, "{uri}: {refused}");
        assert!(refused.to_string().contains(word), "{uri}: {refused}");
    }
    let unknown = json!({ "callId": "call_1_0", "uri": views::URI });
    let (status, refused) = owner.refused(Method::POST, &path, &unknown).await;
    assert_eq!((status, &refused["code"]), (404, &json!("no_such_call")));
    let asked = story.server.asked("resources/read").len();
    for (tenant, role) in [
        ("acme", Role::Owner),
        ("house", Role::Owner),
        ("house", Role::Viewer),
    ] {
        let stranger = story.app.person_with(tenant, role).await;
        let api = Api::new(&story.app, &stranger);
        let (status, refused) = api.refused(Method::POST, &path, &which(views::URI)).await;
        assert!(matches!(status, 403 | 404), "{tenant} {role:?}: {refused}");
    }
    let rule = json!({ "effect": "deny", "scope": "person", "server": "charts" });
    let (status, made) = owner.ask(Method::POST, "/api/rules", &rule).await;
    assert!(status < 300, "{made}");
    let (status, refused) = owner.refused(Method::POST, &path, &which(views::URI)).await;
    assert_eq!(status, 403, "{refused}");
    assert_eq!(story.server.asked("resources/read").len(), asked);
}
