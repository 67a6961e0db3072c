//! `/mcp` with an MCP client, and who is let in.

use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::model::{CustomRequest, ErrorCode};
use rmcp::service::ServiceError;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Running, TestClient, hear, question, text_of};
use crate::servers::deferred::with_many_tools;
use crate::support::{DEADLINE, Person, TestApp, TestSocket};

pub(crate) async fn connect(app: &TestApp, key: &str, client: TestClient) -> Option<Running> {
    connect_at(&app.url("/mcp"), key, client).await
}

/// The same at an address.
pub(super) async fn connect_at(url: &str, key: &str, client: TestClient) -> Option<Running> {
    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(key);
    let transport = StreamableHttpClientTransport::with_client(TestApp::http(), config);
    let connecting = client.serve(transport);
    tokio::time::timeout(DEADLINE, connecting)
        .await
        .unwrap()
        .ok()
}

/// Asserts S0.48, S1.9, S1.20.
#[tokio::test]
async fn a_member_with_a_key_asks_the_agent() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let (client, mut hears) = TestClient::new(None);
    let client = connect(&app, &ana.key, client).await.unwrap();
    app.model.will_say("It is noon.");
    let result = client
        .call_tool(question("What time is it?"))
        .await
        .unwrap();
    assert_eq!(text_of(&result), ("It is noon.".to_owned(), false));
    hear(&mut hears, "1 Ask the model (1)").await;
    // A person's sessions, whichever door they came in by.
    let http = TestApp::http()
        .get(app.url("/api/sessions"))
        .bearer_auth(&ana.key);
    let listed: Value = http.send().await.unwrap().json().await.unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test]
async fn a_call_waits_for_a_person_in_the_page() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let (client, mut hears) = TestClient::new(None);
    let client = connect(&app, &ana.key, client).await.unwrap();
    let args = json!({"path": "a.txt", "content": "x"});
    app.model.will_call("write_file", args).then_say("Done");
    let calling = client.call_tool(question("Make a file"));
    let deciding = async {
        hear(&mut hears, "`write_file` waits for approval").await;
        let get = |path: &str| TestApp::http().get(app.url(path)).bearer_auth(&ana.key);
        let listed: Value = get("/api/sessions")
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let id = listed["items"][0]["id"].as_str().unwrap().to_owned();
        let mut page = TestSocket::open(app.address, &ana, Some(&id)).await;
        let asked = page.wait_for_approval().await;
        page.approve(&asked).await;
    };
    let (result, ()) = tokio::join!(calling, deciding);
    assert_eq!(text_of(&result.unwrap()), ("Done".to_owned(), false));
    let read = app.model.requests()[1].body["messages"].to_string();
    assert!(!read.contains("Rejected"), "{read}");
}

/// The form shows the tool itself, not the one by which the model called it.
#[tokio::test]
async fn a_form_asks_about_the_tool_that_was_found() {
    let (app, owner, _) = with_many_tools().await;
    let (client, _) = TestClient::new(Some(true));
    let asked = Arc::clone(&client.asked);
    let client = connect(&app, &owner.key, client).await.unwrap();
    let args = json!({"tool": "paint_fence", "arguments": {"how": "green"}});
    app.model.will_call("use_tool", args).then_say("Done");
    let result = client.call_tool(question("Paint it")).await.unwrap();
    assert_eq!(text_of(&result), ("Done".to_owned(), false));
    let asked = asked.lock().await.join("\n");
    assert!(
        asked.contains("paint_fence") && asked.contains("green"),
        "{asked}"
    );
    assert!(!asked.contains("use_tool"), "{asked}");
    let read = app.model.requests()[1].body["messages"].to_string();
    assert!(read.contains("painted"), "{read}");
}

/// What one request to a door is answered.
async fn status(app: &TestApp, (method, path): (&str, &str), key: Option<&str>) -> u16 {
    let method = method.parse().unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}}});
    let request = TestApp::http()
        .request(method, app.url(path))
        .header("accept", "application/json, text/event-stream")
        .json(&body);
    let request = match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn nobody_a_wrong_key_and_a_viewer_stay_outside_every_door() {
    let app = TestApp::start().await;
    let viewer = app.person_with("acme", Role::Viewer).await;
    for door in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("GET", "/sse"),
        ("POST", "/message"),
    ] {
        assert_eq!(status(&app, door, None).await, 401, "{door:?}");
        assert_eq!(status(&app, door, Some("spl_wrong")).await, 401, "{door:?}");
        assert_eq!(status(&app, door, Some(&viewer.key)).await, 403, "{door:?}");
    }
    let member = app.person("acme").await;
    assert_eq!(status(&app, ("POST", "/mcp"), Some(&member.key)).await, 200);
}

#[tokio::test]
async fn a_second_tenant_reaches_no_connection_of_the_first() {
    let app = TestApp::start().await;
    let (ana, bob) = (app.person("acme").await, app.person("other").await);
    let colleague = app.person("acme").await;
    let session = open(&app, &ana).await;
    for stranger in [&bob, &colleague] {
        for method in ["POST", "GET", "DELETE"] {
            let request = TestApp::http()
                .request(method.parse().unwrap(), app.url("/mcp"))
                .header("accept", "application/json, text/event-stream")
                .header("mcp-session-id", &session)
                .bearer_auth(&stranger.key)
                .json(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
            assert_eq!(request.send().await.unwrap().status(), 404, "{method}");
        }
    }
    let own = TestApp::http()
        .delete(app.url("/mcp"))
        .header("mcp-session-id", &session)
        .bearer_auth(&ana.key);
    assert!(own.send().await.unwrap().status().is_success());
}

/// Opens a connection by hand; its id.
async fn open(app: &TestApp, person: &Person) -> String {
    let request = TestApp::http()
        .post(app.url("/mcp"))
        .header("accept", "application/json, text/event-stream")
        .bearer_auth(&person.key)
        .json(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}}),
        );
    let answer = request.send().await.unwrap();
    let id = answer.headers().get("mcp-session-id").unwrap();
    id.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_foreign_page_or_name_is_refused() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    for (name, value) in [("origin", "https://evil.example"), ("host", "evil.example")] {
        for (method, path) in [
            ("POST", "/mcp"),
            ("GET", "/mcp"),
            ("GET", "/sse"),
            ("POST", "/message"),
        ] {
            let request = TestApp::http()
                .request(method.parse().unwrap(), app.url(path))
                .header(name, value)
                .bearer_auth(&ana.key);
            assert_eq!(request.send().await.unwrap().status(), 403, "{name} {path}");
        }
    }
}

#[tokio::test]
async fn what_is_not_declared_is_not_answered() {
    let app = TestApp::start().await;
    let member = app.person("acme").await;
    let (client, _hears) = TestClient::new(None);
    let client = connect(&app, &member.key, client).await.unwrap();
    let declared = client.peer_info().unwrap();
    let declared = serde_json::to_value(&declared.capabilities).unwrap();
    for kind in ["prompts", "resources", "completions"] {
        assert_eq!(declared.get(kind), None, "{declared}");
    }
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "p" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "a:b" })),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/prompt", "name": "p" },
                "argument": { "name": "a", "value": "b" },
            }),
        ),
    ] {
        let request = CustomRequest::new(method, Some(params));
        let answer = client.send_request(request.into()).await;
        match answer {
            Err(ServiceError::McpError(error)) => {
                assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND, "{method}: {error}");
            }
            answer => panic!("{method} is answered: {answer:?}"),
        }
    }
}

/// S0.58: approvals included.
#[tokio::test]
async fn a_question_that_takes_too_long_is_stopped_and_says_so() {
    let app = TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], |settings| {
        settings.chat.turn_limit = Some(std::time::Duration::from_millis(300));
    })
    .await;
    let ana = app.person("acme").await;
    let (client, _hears) = TestClient::new(None);
    let client = connect(&app, &ana.key, client).await.unwrap();
    for waits in [false, true] {
        if waits {
            // For a person in the page, who does not come.
            app.model.will_call("list_files", json!({}));
        } else {
            app.model.will_say("never heard").stall();
        }
        let result = client.call_tool(question("Hi")).await.unwrap();
        let (text, is_error) = text_of(&result);
        assert!(
            is_error && text.contains("agent.chat.turn_timeout_s"),
            "{text}"
        );
        assert_eq!(result.structured_content.unwrap()["code"], "turn_timeout");
    }
}
