//! Servers that do what none should: each of them ends in a state that can be read, and nobody else's calls
//! suffer.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::stand_in::StandIn;
use super::{Api, operator, wait_for_health};
use crate::support::{Said, TestApp, TestSocket};

/// Far below the usual time limit of a call.
const SOON: Duration = Duration::from_secs(15);

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

/// A server whose call of `bad` is answered so, beside a well-behaved one with `good`.
async fn both(app: &TestApp, bad: &StandIn) -> (TestSocket, StandIn) {
    let person = operator(app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let api = Api::new(app, &person);
    let fine = json!({ "content": [{ "type": "text", "text": "fine" }] });
    let good = StandIn::with_result(tool("good"), fine).await;
    for (name, server) in [("bad", bad), ("good", &good)] {
        api.add(name, json!({ "url": server.url, "timeout": 2 }))
            .await;
        wait_for_health(&mut socket, name, "healthy").await;
    }
    (socket, good)
}

/// Calls a tool with a yes; how that ended.
async fn call(app: &TestApp, socket: &mut TestSocket, tool: &str) -> Said {
    app.model.will_call(tool, json!({})).then_say("I see");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(socket.wait_for_answer().await, "I see");
    output
}

fn endless(_: &Value) -> Response {
    let first = futures::stream::iter(0..3).map(|_| Ok::<_, Infallible>(Bytes::from(": wait\n\n")));
    let never = futures::stream::pending();
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, Body::from_stream(first.chain(never))).into_response()
}

fn of_another(_: &Value) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": 987_654, "result": { "content": [] } });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, body.to_string()).into_response()
}

/// Asserts S0.52: an answer that never ends, or is another request's, leaves its own call unknown within the
/// time limit, and the calls of other servers as they are.
#[tokio::test]
async fn an_answer_that_never_comes_ends_its_own_call_alone() {
    for answer in [endless as fn(&Value) -> Response, of_another] {
        let app = TestApp::start().await;
        let bad = StandIn::with_call(tool("bad"), answer).await;
        let (mut socket, _good) = both(&app, &bad).await;
        let begun = Instant::now();
        let output = call(&app, &mut socket, "bad").await;
        assert!(begun.elapsed() < SOON, "{output:?}");
        let status = output.rest()["status"].as_str().unwrap();
        assert!(["unknown", "failed"].contains(&status), "{output:?}");
        assert!(!output.text().is_empty());
        let output = call(&app, &mut socket, "good").await;
        assert_eq!(
            (output.rest()["status"].as_str(), output.text()),
            (Some("completed"), "fine")
        );
    }
}

/// Asserts S0.52: a flood of notifications of every kind is taken in without a word, and calls go on.
#[tokio::test]
async fn a_flood_of_notifications_stops_nobody() {
    let app = TestApp::start().await;
    let fine = json!({ "content": [{ "type": "text", "text": "still here" }] });
    let bad = StandIn::with_result(tool("bad"), fine).await;
    let (mut socket, _good) = both(&app, &bad).await;
    let output = call(&app, &mut socket, "bad").await;
    assert_eq!(output.text(), "still here");
    bad.heard().await;
    for round in 0..200 {
        for (method, params) in [
            ("notifications/tools/list_changed", json!({})),
            ("notifications/resources/list_changed", json!({})),
            ("notifications/prompts/list_changed", json!({})),
            (
                "notifications/resources/updated",
                json!({ "uri": format!("x:{round}") }),
            ),
            (
                "notifications/message",
                json!({ "level": "error", "data": "x".repeat(500) }),
            ),
            (
                "notifications/progress",
                json!({ "progressToken": "none", "progress": round }),
            ),
            ("notifications/nobody-knows", json!({ "a": [1] })),
        ] {
            bad.notify(method, &params);
        }
        tokio::task::yield_now().await;
    }
    for (tool, text) in [("good", "fine"), ("bad", "still here")] {
        let output = call(&app, &mut socket, tool).await;
        assert_eq!(
            (output.rest()["status"].as_str(), output.text()),
            (Some("completed"), text)
        );
    }
}

/// Asserts S0.52: of tools of the same name the first is offered; one with a broken schema is left out with
/// its reason, and the others are offered.
#[tokio::test]
async fn duplicate_tools_and_broken_schemas_leave_the_others_alone() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let api = Api::new(&app, &person);
    let broken = json!({ "name": "broken", "inputSchema": { "type": "no such type" } });
    let bad = StandIn::start(json!({ "tools": {} }), move |method, _| match method {
        "tools/list" => Ok(json!({ "tools": [tool("echo"), tool("echo"), broken, tool("fine")] })),
        "tools/call" => Ok(json!({ "content": [{ "type": "text", "text": "ran" }] })),
        _ => Err((-32_601, "no such method")),
    })
    .await;
    api.add("bad", json!({ "url": bad.url })).await;
    wait_for_health(&mut socket, "bad", "healthy").await;
    let listed = api.get("/api/mcp/bad/tools").await;
    let names: Vec<&str> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["echo", "broken", "fine"]);
    let server = api.server("bad").await.to_string();
    assert!(
        server.contains("the input schema of tool `broken`"),
        "{server}"
    );
    for tool in ["echo", "fine"] {
        assert_eq!(call(&app, &mut socket, tool).await.text(), "ran");
    }
    let asked = app.model.requests().pop().unwrap().body.to_string();
    assert!(!asked.contains("broken"), "{asked}");
}
