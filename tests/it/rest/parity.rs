//! Every command of the socket has an operation of REST that makes the same of a session.

use reqwest::Method;
use sepal::gateway::wire::{COMMANDS, CommandSpec};
use serde_json::{Map, Value, json};

use super::{Answer, Client};
use crate::support::{Person, TestApp, TestSocket};

/// The operations by their ids: method and path.
fn operation(id: &str) -> (Method, String) {
    let described: Value = serde_json::from_str(&sepal::gateway::openapi_json()).unwrap();
    for (path, item) in described["paths"].as_object().unwrap() {
        for (method, about) in item.as_object().unwrap() {
            if about["operationId"] == id {
                return (method.to_uppercase().parse().unwrap(), path.clone());
            }
        }
    }
    panic!("docs/openapi.json has no operation `{id}`");
}

/// The arguments of a command as one object: a text is a field of it.
fn merged(args: &[Value]) -> Map<String, Value> {
    let mut merged = Map::new();
    for arg in args {
        if let Value::String(text) = arg {
            merged.insert("text".to_owned(), json!(text));
        } else {
            merged.extend(arg.as_object().unwrap().clone());
        }
    }
    merged
}

/// A session with a waiting call, the same for every command.
async fn session(app: &TestApp, person: &Person) -> TestSocket {
    app.model.forget_rest();
    app.model.will_call("list_files", json!({}));
    let mut socket = TestSocket::open(app.address, person, None).await;
    socket.say("list").await;
    socket.wait_for_approval().await;
    for _ in 0..4 {
        app.model.will_say("fine");
    }
    socket
}

/// What a door answered: nothing, or the code of the refusal.
fn code(answer: &Value) -> Option<&str> {
    answer["error"]["code"].as_str().or(answer["code"].as_str())
}

async fn over_rest(client: &Client, session: &str, spec: &CommandSpec) -> Answer {
    let (method, path) = operation(spec.operation);
    let mut body = merged(&(spec.example)());
    let mut path = path.replace("{id}", session);
    if let Some(call) = body.get("callId").and_then(Value::as_str) {
        let filled = path.replace("{call}", call).replace("{callId}", call);
        if filled != path {
            path = filled;
            body.remove("callId");
        }
    }
    assert!(!path.contains('{'), "{}: {path}", spec.name);
    let has_body = method != Method::DELETE && method != Method::GET;
    let body = has_body.then_some(Value::Object(body));
    client.send(method, &path, body).await
}

#[tokio::test]
async fn every_command_of_the_socket_has_an_operation_that_does_the_same() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    for spec in COMMANDS {
        if spec.name == "session:resume" {
            // A stream: `stream.rs` resumes it.
            assert_eq!(operation(spec.operation).0, Method::GET);
            continue;
        }
        let mut socket = session(&app, &ana).await;
        let at_socket = socket.ask(spec.name, &(spec.example)()).await;
        let beside = session(&app, &ana).await;
        let at_rest = over_rest(&client, &beside.session(), spec).await;
        assert_eq!(
            code(&at_rest.json()),
            code(&at_socket),
            "{}: {} {at_socket}",
            spec.name,
            at_rest.text
        );
        assert_eq!(
            at_rest.status < 300,
            at_socket["ok"] == true,
            "{}",
            spec.name
        );
    }
}
