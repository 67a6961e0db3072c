//! `/sse` and `/message`, spoken by hand.

use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Log, Person, TestApp};

/// A client of the old transport.
struct OldClient<'a> {
    app: &'a TestApp,
    key: String,
    endpoint: String,
    stream: futures::stream::BoxStream<'static, String>,
    buffer: String,
}

impl<'a> OldClient<'a> {
    async fn open(app: &'a TestApp, person: &Person, query: &str) -> Self {
        let request = TestApp::http().get(app.url(&format!("/sse{query}")));
        let answer = request.bearer_auth(&person.key).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let stream = answer.bytes_stream();
        let stream = stream.map(|piece| String::from_utf8(piece.unwrap().to_vec()).unwrap());
        let mut client = Self {
            app,
            key: person.key.clone(),
            endpoint: String::new(),
            stream: stream.boxed(),
            buffer: String::new(),
        };
        let (name, endpoint) = client.event().await;
        assert_eq!(name, "endpoint");
        client.endpoint = endpoint;
        client
    }

    /// The next event: its name and data.
    async fn event(&mut self) -> (String, String) {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.map(|line| line.trim_start().to_owned())
                };
                let found = field("event:").zip(field("data:"));
                self.buffer.drain(..self.buffer.len() - rest.len());
                if let Some(found) = found {
                    return found;
                }
                continue;
            }
            let piece = tokio::time::timeout(DEADLINE, self.stream.next()).await;
            let piece = piece.expect("no event").expect("the stream has ended");
            self.buffer.push_str(&piece);
        }
    }

    async fn post(&self, message: &Value) -> u16 {
        let request = TestApp::http().post(self.app.url(&self.endpoint));
        let request = request.bearer_auth(&self.key).json(message);
        request.send().await.unwrap().status().as_u16()
    }

    /// Sends a request and waits for its answer.
    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        assert_eq!(self.post(&message).await, 202);
        loop {
            let (name, data) = self.event().await;
            assert_eq!(name, "message");
            let data: Value = serde_json::from_str(&data).unwrap();
            if data["id"] == id {
                return data;
            }
        }
    }

    async fn introduce(&mut self) {
        let answer = self
            .ask(
                1,
                "initialize",
                json!({
                "protocolVersion": "2024-11-05", "capabilities": {},
                "clientInfo": {"name": "old", "version": "1"}}),
            )
            .await;
        assert_eq!(
            answer["result"]["protocolVersion"], "2024-11-05",
            "{answer}"
        );
        assert_eq!(answer["result"]["serverInfo"]["name"], "sepal");
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&done).await, 202);
    }
}

fn call(text: &str) -> Value {
    json!({"name": "process", "arguments": {"input": text}})
}

/// Asserts S0.49, S0.50, S1.9.
#[tokio::test]
async fn an_old_client_lists_and_calls_the_tool() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let mut client = OldClient::open(&app, &ana, "").await;
    assert!(
        client.endpoint.starts_with("/message?sessionId="),
        "{}",
        client.endpoint
    );
    client.introduce().await;
    let tools = client.ask(2, "tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"][0]["name"], "process", "{tools}");
    app.model.will_say("It is noon.");
    let answer = client.ask(3, "tools/call", call("What time is it?")).await;
    assert_eq!(
        answer["result"]["content"][0]["text"], "It is noon.",
        "{answer}"
    );
}

/// Asserts S0.51.
#[tokio::test]
async fn the_bare_text_is_given_to_whoever_asks_for_it() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let mut client = OldClient::open(&app, &ana, "?result=text").await;
    client.introduce().await;
    app.model.will_say("It is noon.");
    let answer = client.ask(7, "tools/call", call("What time is it?")).await;
    let expected = json!({"jsonrpc": "2.0", "id": 7, "result": "It is noon.", "isError": false});
    assert_eq!(answer, expected);
}

/// Asserts S0.49, S0.50.
#[tokio::test]
async fn a_single_post_is_answered_right_away() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let post = |query: &str, body: Value| {
        let request = TestApp::http().post(app.url(&format!("/message{query}")));
        request.bearer_auth(&ana.key).json(&body).send()
    };
    let body = json!({"method": "tools/call", "params": call("What time is it?")});
    app.model.will_say("Noon.").then_say("Still noon.");
    let answer: Value = post("", body.clone()).await.unwrap().json().await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "Noon.", "{answer}");
    let answer: Value = post("?result=text", body)
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(answer["result"], "Still noon.");
    assert_eq!(answer["isError"], false);
    let list = post("", json!({"method": "tools/list", "params": {"name": ""}}))
        .await
        .unwrap();
    assert_eq!(list.status(), 400);
}

#[tokio::test]
async fn nobody_posts_into_a_stream_of_somebody_else() {
    let app = TestApp::start().await;
    let (ana, bob) = (app.person("acme").await, app.person("other").await);
    let client = OldClient::open(&app, &ana, "").await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (path, key) in [
        (client.endpoint.as_str(), &bob.key),
        ("/message?sessionId=00", &ana.key),
    ] {
        let request = TestApp::http().post(app.url(path)).bearer_auth(key);
        let answer = request.json(&message).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_stops_its_turn() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let mut client = OldClient::open(&app, &ana, "").await;
    client.introduce().await;
    app.model.will_say("never heard").stall();
    let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call("Hi")});
    assert_eq!(client.post(&message).await, 202);
    tokio::time::timeout(DEADLINE, app.model.stalled())
        .await
        .unwrap();
    drop(client);
    tokio::time::timeout(DEADLINE, app.model.idle())
        .await
        .unwrap();
}

/// S0.58.
#[tokio::test]
async fn the_time_limit_of_a_turn_holds_for_old_clients_too() {
    let app = TestApp::start_tuned(&[("SPL_SANDBOX", "none")], |settings| {
        settings.chat.turn_limit = Some(std::time::Duration::from_millis(300));
    })
    .await;
    let ana = app.person("acme").await;
    let mut client = OldClient::open(&app, &ana, "").await;
    client.introduce().await;
    app.model.will_say("never heard").stall();
    let answer = client.ask(2, "tools/call", call("Hi")).await;
    let code = &answer["result"]["structuredContent"]["code"];
    assert_eq!(code, "turn_timeout", "{answer}");
    app.model.will_say("never heard").stall();
    let body = json!({"method": "tools/call", "params": call("Hi")});
    let request = TestApp::http().post(app.url("/message"));
    let request = request.bearer_auth(&ana.key).json(&body);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    let code = &answer["result"]["structuredContent"]["code"];
    assert_eq!(code, "turn_timeout", "{answer}");
}

/// S0.48.
#[tokio::test]
async fn messages_are_logged_at_every_http_door_where_the_operator_wants_that() {
    let log = Log::start();
    let env = [("SPL_SANDBOX", "none"), ("SPL_MCP_DEBUG", "true")];
    let app = TestApp::start_with(&env).await;
    let ana = app.person("acme").await;
    let mut client = OldClient::open(&app, &ana, "").await;
    client.introduce().await;
    app.model
        .will_say("One.")
        .then_say("Two.")
        .then_say("Three.");
    client.ask(2, "tools/call", call("Old")).await;
    let post = |path: &str, body: Value| {
        let request = TestApp::http().post(app.url(path));
        let request = request.header("accept", "application/json, text/event-stream");
        request.bearer_auth(&ana.key).json(&body).send()
    };
    let single = json!({"method": "tools/call", "params": call("Single")});
    post("/message", single).await.unwrap();
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "streamable", "version": "1"}}});
    post("/mcp", begin).await.unwrap().text().await.unwrap();
    let text = log.text();
    let told = |door: &str, piece: &str| {
        let door = format!("mcp.door=\"{door}\"");
        let mut lines = text.lines().filter(|line| line.contains(&door));
        lines.any(|line| line.contains(piece))
    };
    for (door, piece) in [
        ("/sse", "MCP request `tools/call`"),
        ("/sse", "One."),
        ("/message", "Single"),
        ("/message", "Two."),
        ("/mcp", "MCP request `initialize`"),
        ("/mcp", "streamable"),
        ("/mcp", "MCP answer `initialize`"),
    ] {
        assert!(told(door, piece), "{door} {piece}: {text}");
    }
    assert!(!text.contains(&ana.key));
}
