//! `/mcp` with clients of earlier revisions, and with simple ones that speak HTTP by hand.

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};

use crate::support::{Person, TestApp};

const BOTH: &str = "application/json, text/event-stream";

/// An answer of the agent.
struct Answered {
    status: u16,
    kind: String,
    session: Option<String>,
    text: String,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    /// The message among the events.
    fn message(&self) -> Value {
        let data = self
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"));
        let mut messages = data.filter_map(|data| serde_json::from_str(data.trim()).ok());
        messages
            .next()
            .unwrap_or_else(|| panic!("no message: {}", self.text))
    }
}

/// A client that writes its requests by hand.
struct ByHand<'a> {
    app: &'a TestApp,
    person: Person,
    accept: &'static str,
    session: Option<String>,
}

impl ByHand<'_> {
    async fn new<'a>(app: &'a TestApp, accept: &'static str) -> ByHand<'a> {
        ByHand {
            app,
            person: app.person("acme").await,
            accept,
            session: None,
        }
    }

    async fn post(&self, message: &Value) -> Answered {
        self.post_text(message.to_string()).await
    }

    async fn post_text(&self, body: String) -> Answered {
        let mut request = TestApp::http()
            .post(self.app.url("/mcp"))
            .bearer_auth(&self.person.key)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, self.accept)
            .body(body);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let response = request.send().await.unwrap();
        let header = |name: &str| {
            let value = response.headers().get(name);
            value.map(|value| value.to_str().unwrap().to_owned())
        };
        Answered {
            status: response.status().as_u16(),
            kind: header("content-type").unwrap_or_default(),
            session: header("mcp-session-id"),
            text: response.text().await.unwrap(),
        }
    }

    async fn initialize(&mut self, revision: &str) -> Answered {
        let begun = self.post(&initialize(revision)).await;
        self.session.clone_from(&begun.session);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(&ready).await.status, 202);
        begun
    }
}

fn initialize(revision: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } })
}

fn request(id: i64, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method })
}

/// Clients before 2025-11-25 parse every event as JSON.
#[tokio::test]
async fn earlier_revisions_get_no_events_without_data() {
    let app = TestApp::start().await;
    for (revision, has_empty) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", false),
        ("2025-11-25", true),
    ] {
        let mut client = ByHand::new(&app, BOTH).await;
        let begun = client.initialize(revision).await;
        let agreed = &begun.message()["result"]["protocolVersion"];
        assert_eq!(agreed, revision);
        let listed = client.post(&request(2, "tools/list")).await;
        assert_eq!(listed.message()["result"]["tools"][0]["name"], "process");
        for answer in [begun, listed] {
            let is_empty = |line: &str| {
                line.strip_prefix("data:")
                    .is_some_and(|it| it.trim().is_empty())
            };
            let found = answer.text.lines().any(is_empty);
            assert_eq!(found, has_empty, "{revision}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn a_client_that_takes_json_alone_gets_json() {
    let app = TestApp::start().await;
    for (accept, kind) in [
        ("*/*", "text/event-stream"),
        ("application/*, text/*", "text/event-stream"),
        ("text/event-stream", "text/event-stream"),
        ("application/json", "application/json"),
        ("application/*", "application/json"),
    ] {
        let mut client = ByHand::new(&app, accept).await;
        let begun = client.initialize("2025-06-18").await;
        assert_eq!((begun.status, begun.kind.as_str()), (200, kind), "{accept}");
        app.model.will_say("It is noon.");
        let mut call = request(3, "tools/call");
        call["params"] = json!({ "name": "process", "arguments": { "input": "What time is it?" } });
        let called = client.post(&call).await;
        assert_eq!(called.kind, kind, "{accept}");
        let message = if kind == "application/json" {
            called.json()
        } else {
            called.message()
        };
        assert_eq!(
            message["result"]["content"][0]["text"], "It is noon.",
            "{accept}"
        );
    }
    let client = ByHand::new(&app, "text/html").await;
    assert_eq!(client.post(&initialize("2025-06-18")).await.status, 406);
}

#[tokio::test]
async fn a_client_that_hears_nothing_before_its_answer_is_not_asked_about_calls() {
    let env = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_AGENT_APPROVAL", "elicit, deny"),
    ];
    let app = TestApp::start_with(&env).await;
    let mut client = ByHand::new(&app, "application/json").await;
    let mut begin = initialize("2025-06-18");
    begin["params"]["capabilities"] = json!({ "elicitation": {} });
    client.session = client.post(&begin).await.session;
    let call = |id| {
        let mut call = request(id, "tools/call");
        call["params"] = json!({ "name": "process", "arguments": { "input": "Do it" } });
        call
    };
    for is_batch in [false, true] {
        app.model
            .will_call("execute_command", json!({ "command": "true" }));
        app.model.will_say("It was refused.");
        let (body, accept) = if is_batch {
            (json!([call(2)]), BOTH)
        } else {
            (call(1), "application/json")
        };
        client.accept = accept;
        let answer = client.post(&body).await.json();
        let answer = if is_batch { &answer[0] } else { &answer };
        assert_eq!(
            answer["result"]["content"][0]["text"], "It was refused.",
            "{answer}"
        );
    }
}

#[tokio::test]
async fn what_is_no_message_is_refused_as_json_rpc_says() {
    let app = TestApp::start().await;
    let client = ByHand::new(&app, BOTH).await;
    for (body, code) in [
        ("nonsense", -32_700),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32_600),
        ("[]", -32_600),
        (r#"{"odd":true}"#, -32_600),
    ] {
        let refused = client.post_text(body.to_owned()).await;
        assert_eq!(
            (refused.status, &refused.json()["error"]["code"]),
            (400, &json!(code)),
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_batch_is_answered_as_a_batch_and_one_odd_message_changes_only_itself() {
    let app = TestApp::start().await;
    for accept in [BOTH, "text/event-stream"] {
        let mut client = ByHand::new(&app, accept).await;
        client.initialize("2025-03-26").await;
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let batch = json!([
            request(5, "ping"), notice, { "odd": true }, request(6, "tools/list"),
            initialize("2025-03-26"), request(7, "no/such"),
        ]);
        let answered = client.post(&batch).await;
        assert_eq!(answered.status, 200, "{}", answered.text);
        let answers = if accept == BOTH {
            answered.json()
        } else {
            answered.message()
        };
        let told: Vec<_> = answers
            .as_array()
            .unwrap()
            .iter()
            .map(|answer| (answer["id"].as_i64(), answer["error"]["code"].as_i64()))
            .collect();
        let expected = [
            (Some(5), None),
            (None, Some(-32_600)),
            (Some(6), None),
            (Some(1), Some(-32_600)),
            (Some(7), Some(-32_601)),
        ];
        assert_eq!(told, expected, "{answers}");
        assert_eq!(client.post(&json!([notice])).await.status, 202);
    }
    let mut stranger = ByHand::new(&app, BOTH).await;
    stranger.session = Some("00000000-0000-0000-0000-000000000000".to_owned());
    assert_eq!(
        stranger.post(&json!([request(1, "ping")])).await.status,
        404
    );
}

/// A batch goes through the same door as a single message.
#[tokio::test]
async fn a_batch_reaches_no_connection_of_somebody_else() {
    let app = TestApp::start().await;
    let mut ana = ByHand::new(&app, BOTH).await;
    ana.initialize("2025-03-26").await;
    let mut bo = ByHand::new(&app, BOTH).await;
    bo.session.clone_from(&ana.session);
    let answer = bo.post(&json!([request(1, "tools/list")])).await;
    assert_eq!(answer.status, 404, "{}", answer.text);
}
