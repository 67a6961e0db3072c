//! The real program with an MCP client at its pipes.

use std::process::Stdio;

use rmcp::model::ClientRequest;
use rmcp::service::PeerRequestOptions;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Child;
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Running, TestClient, connect, hear, question, sepal, text_of, with_model};
use crate::model_stub::ModelStub;
use crate::support::DEADLINE;

struct Agent {
    folder: TempDir,
    model: ModelStub,
    process: Child,
    client: Running,
    hears: UnboundedReceiver<String>,
}

async fn start(approves: Option<bool>, env: &[(&str, &str)]) -> Agent {
    let (folder, model) = (TempDir::new().unwrap(), ModelStub::start().await);
    let mut command = sepal(&folder);
    with_model(&mut command, &model).arg("agent");
    command.envs(env.iter().copied());
    let mut process = command.spawn().unwrap();
    let (client, hears) = TestClient::new(approves);
    let client = connect(&mut process, client).await;
    Agent {
        folder,
        model,
        process,
        client,
        hears,
    }
}

/// Asserts S0.4, S0.31, S0.32, S0.48, S0.53, S0.62, S1.9, S1.13, S1.20.
#[tokio::test]
async fn one_tool_answers_and_the_prompt_holds_the_question() {
    let said = [
        ("SPL_LLM_PROMPT_TEMPLATE", "Answer this: {{input}}"),
        ("SPL_AGENT_NAME", "clock"),
        ("SPL_AGENT_VERSION", "1.0.0"),
    ];
    let mut agent = start(None, &said).await;
    let server = agent.client.peer_info().unwrap();
    let server = serde_json::to_value(&server.server_info).unwrap();
    assert_eq!(server["name"], "clock");
    assert_eq!(server["version"], "1.0.0");
    let tools = agent.client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].name, "process");
    let description = tools[0].description.as_deref().unwrap();
    let expected = "Process tool for handling user queries with LLM";
    assert!(description.starts_with(expected), "{description}");
    let schema = serde_json::to_value(&tools[0].input_schema).unwrap();
    assert_eq!(schema["required"], json!(["input"]));
    let description = &schema["properties"]["input"]["description"];
    assert_eq!(description, "The user query to process");
    agent.model.will_say("It is noon.");
    let result = agent
        .client
        .call_tool(question("What time is it?"))
        .await
        .unwrap();
    assert_eq!(text_of(&result), ("It is noon.".to_owned(), false));
    let asked = agent.model.requests()[0].body.clone();
    assert_eq!(
        asked["messages"][0]["content"],
        "Answer this: What time is it?"
    );
    assert_eq!(asked["messages"][1]["content"], "What time is it?");
    assert!(asked.get("max_tokens").is_none(), "{asked}");
    agent.client.close().await.unwrap();
    // The end of its input ends it in order.
    let ended = tokio::time::timeout(DEADLINE, agent.process.wait()).await;
    assert!(ended.unwrap().unwrap().success());
    drop(agent.folder);
}

/// S0.57: even where the settings send the log there, the client's pipe carries MCP alone.
#[tokio::test]
async fn standard_output_carries_the_protocol_and_standard_error_the_log() {
    let (folder, model) = (TempDir::new().unwrap(), ModelStub::start().await);
    let mut command = sepal(&folder);
    with_model(&mut command, &model)
        .arg("agent")
        .env("SPL_LOG_OUTPUT", "stdout")
        .stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}}});
    let mut input = process.stdin.take().unwrap();
    let line = format!("{hello}\n");
    input.write_all(line.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let first = tokio::time::timeout(DEADLINE, lines.next_line()).await;
    let mut told = vec![first.unwrap().unwrap().unwrap()];
    drop(input);
    let mut log = String::new();
    let mut errors = process.stderr.take().unwrap();
    let reading = errors.read_to_string(&mut log);
    tokio::time::timeout(DEADLINE, reading)
        .await
        .unwrap()
        .unwrap();
    while let Some(line) = lines.next_line().await.unwrap() {
        told.push(line);
    }
    for line in &told {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
    }
    assert!(log.contains("INFO"), "the level is info: {log}");
    assert!(!log.contains("DEBUG"), "{log}");
}

/// Asserts S0.54, S1.10.
#[tokio::test]
async fn progress_and_log_reach_the_client_as_far_as_it_wants() {
    let mut agent = start(None, &[]).await;
    agent.model.will_say("Hello.");
    agent.client.call_tool(question("Hi")).await.unwrap();
    hear(&mut agent.hears, "1 Ask the model (1)").await;
    set_level(&agent.client, "debug").await;
    agent.model.will_say("Hello again.");
    agent.client.call_tool(question("Hi")).await.unwrap();
    hear(&mut agent.hears, "\"debug\" \"Ask the model (1)\"").await;
}

async fn set_level(client: &Running, level: &str) {
    let request = json!({"method": "logging/setLevel", "params": {"level": level}});
    let request: ClientRequest = serde_json::from_value(request).unwrap();
    client.send_request(request).await.unwrap();
}

/// Asserts S0.58, S1.13.
#[tokio::test]
async fn a_wrong_call_is_told_and_a_broken_model_is_an_error_of_the_tool() {
    let agent = start(None, &[]).await;
    for text in ["", "  "] {
        let error = agent.client.call_tool(question(text)).await.unwrap_err();
        assert!(error.to_string().contains("`input` is empty"), "{error}");
    }
    let other = rmcp::model::CallToolRequestParams::new("other");
    let error = agent.client.call_tool(other).await.unwrap_err();
    assert!(error.to_string().contains("only `process`"), "{error}");
    agent
        .model
        .will_fail(401, &[], r#"{"error": {"message": "no"}}"#);
    let result = agent.client.call_tool(question("Hi")).await.unwrap();
    let (text, is_error) = text_of(&result);
    // S3.30.
    assert!(
        is_error && text.starts_with("Error processing request: "),
        "{text}"
    );
    assert_eq!(
        result.structured_content.unwrap()["code"],
        "provider_rejected"
    );
}

#[tokio::test]
async fn a_cancelled_call_stops_the_turn() {
    let agent = start(None, &[]).await;
    agent.model.will_say("never heard").stall();
    let call = rmcp::model::CallToolRequest::new(question("Hi"));
    let request = ClientRequest::CallToolRequest(call);
    let options = PeerRequestOptions::no_options();
    let handle = agent
        .client
        .send_cancellable_request(request, options)
        .await;
    let handle = handle.unwrap();
    tokio::time::timeout(DEADLINE, agent.model.stalled())
        .await
        .unwrap();
    handle.cancel(None).await.unwrap();
    // The request at the model ends too.
    tokio::time::timeout(DEADLINE, agent.model.idle())
        .await
        .unwrap();
    agent.model.will_say("Still here.");
    let result = agent.client.call_tool(question("Hi")).await.unwrap();
    assert_eq!(text_of(&result).0, "Still here.");
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_ends_the_program() {
    let mut agent = start(None, &[]).await;
    agent.model.will_say("never heard").stall();
    let peer = agent.client.peer().clone();
    let calling = async { peer.call_tool(question("Hi")).await };
    let leaving = async {
        tokio::time::timeout(DEADLINE, agent.model.stalled())
            .await
            .unwrap();
        agent.client.close().await.unwrap();
    };
    let (called, ()) = tokio::join!(calling, leaving);
    assert!(called.is_err());
    let ended = tokio::time::timeout(DEADLINE, agent.process.wait()).await;
    assert!(ended.unwrap().unwrap().success());
    tokio::time::timeout(DEADLINE, agent.model.idle())
        .await
        .unwrap();
}

/// Asserts S0.48.
#[tokio::test]
async fn after_a_kill_the_next_start_answers() {
    let Agent {
        folder,
        model,
        mut process,
        client,
        ..
    } = start(None, &[]).await;
    model.will_say("never heard").stall();
    let peer = client.peer().clone();
    let calling = async { peer.call_tool(question("Hi")).await };
    let killing = async {
        tokio::time::timeout(DEADLINE, model.stalled())
            .await
            .unwrap();
        process.kill().await.unwrap();
    };
    let (called, ()) = tokio::join!(calling, killing);
    assert!(called.is_err());
    // What was left is gone on with, then comes the new question.
    model.will_say("Taken over.").then_say("New.");
    let mut command = sepal(&folder);
    with_model(&mut command, &model).arg("agent");
    let mut process = command.spawn().unwrap();
    let (client, _hears) = TestClient::new(None);
    let client = connect(&mut process, client).await;
    let result = client.call_tool(question("Hi again")).await.unwrap();
    let (text, is_error) = text_of(&result);
    assert!(
        !is_error && (text == "New." || text == "Taken over."),
        "{text}"
    );
}

async fn asked_for_a_file(approves: Option<bool>, ways: &str) -> (Agent, String) {
    asked_to(json!({"path": "a.txt", "content": "hush"}), approves, ways).await
}

async fn asked_to(call: serde_json::Value, approves: Option<bool>, ways: &str) -> (Agent, String) {
    let env = [("SPL_SANDBOX", "bubblewrap"), ("SPL_AGENT_APPROVAL", ways)];
    let agent = start(approves, &env).await;
    agent.model.will_call("write_file", call).then_say("Done");
    let result = agent
        .client
        .call_tool(question("Make a file"))
        .await
        .unwrap();
    assert_eq!(text_of(&result), ("Done".to_owned(), false));
    let body = agent.model.requests()[1].body.clone();
    let messages = body["messages"].as_array().unwrap().clone();
    let read = messages.last().unwrap()["content"].to_string();
    (agent, read)
}

/// Asserts S1.1, S1.13, S1.20.
#[tokio::test]
async fn a_call_runs_when_the_person_at_the_client_says_so() {
    let (mut agent, read) = asked_for_a_file(Some(true), "elicit, web, deny").await;
    assert!(!read.contains("Rejected"), "{read}");
    let asked = agent.client.service().asked.lock().await.clone();
    assert_eq!(asked.len(), 1);
    assert!(
        asked[0].contains("`write_file`") && asked[0].contains("a.txt"),
        "{asked:?}"
    );
    assert!(asked[0].contains("\nIt makes a new file.\n"), "{asked:?}");
    hear(&mut agent.hears, "`write_file` waits for approval").await;
    hear(&mut agent.hears, ">> Execute tool write_file(").await;
}

#[tokio::test]
async fn a_rejection_at_the_client_reaches_the_model_with_its_reason() {
    let (_agent, read) = asked_for_a_file(Some(false), "elicit, web, deny").await;
    assert!(
        read.contains("Rejected") && read.contains("not on a Sunday"),
        "{read}"
    );
}

#[tokio::test]
async fn without_anybody_to_ask_a_call_is_denied_or_runs_as_the_settings_say() {
    let (_agent, read) = asked_for_a_file(None, "elicit, web, deny").await;
    assert!(
        read.contains("Rejected") && read.contains("agent.approval"),
        "{read}"
    );
    let (agent, read) = asked_for_a_file(Some(false), "auto").await;
    assert!(!read.contains("Rejected"), "{read}");
    assert!(agent.client.service().asked.lock().await.is_empty());
}

#[tokio::test]
async fn a_client_is_shown_all_of_a_call_with_nothing_hidden_in_it() {
    let content = format!("{}the end", "line\n".repeat(600));
    let call = json!({"path": "a\u{202e}txt.exe", "content": content});
    let (agent, read) = asked_to(call, Some(true), "elicit, deny").await;
    assert!(!read.contains("Rejected"), "{read}");
    let asked = agent.client.service().asked.lock().await.clone();
    assert!(asked[0].contains("a⟦U+202E⟧txt.exe"), "{asked:?}");
    assert!(asked[0].contains("the end"), "{asked:?}");
    assert!(
        asked[0].contains("It runs in the session's sandbox"),
        "{asked:?}"
    );
    assert!(!asked[0].contains('\u{202e}'), "{asked:?}");
}

#[tokio::test]
async fn a_call_that_is_too_long_for_a_client_is_refused_there_in_words() {
    let call = json!({"path": "a.txt", "content": "x".repeat(9_000)});
    let (agent, read) = asked_to(call, Some(true), "elicit, web, deny").await;
    assert!(
        read.contains("Rejected") && read.contains("can be shown 8000 at most"),
        "{read}"
    );
    assert!(agent.client.service().asked.lock().await.is_empty());
}

/// S0.58.
#[tokio::test]
async fn the_time_limit_of_a_turn_holds_on_standard_input_and_output() {
    let agent = start(None, &[("SPL_CHAT_TURN_TIMEOUT", "1")]).await;
    agent.model.will_say("never heard").stall();
    let result = agent.client.call_tool(question("Hi")).await.unwrap();
    let (text, is_error) = text_of(&result);
    assert!(is_error && text.contains("longer than 1 s"), "{text}");
    assert_eq!(result.structured_content.unwrap()["code"], "turn_timeout");
}

/// S0.48: with the debug hook, each message is logged without its secrets.
#[tokio::test]
async fn messages_of_a_client_are_logged_where_the_operator_wants_that() {
    for is_on in [true, false] {
        let folder = TempDir::new().unwrap();
        let log = folder.path().join("log");
        let debug = if is_on { "true" } else { "false" };
        let env = [
            ("SPL_LOG_OUTPUT", log.to_str().unwrap()),
            ("SPL_LOG_LEVEL", "debug"),
            ("SPL_MCP_DEBUG", debug),
        ];
        let mut agent = start(None, &env).await;
        agent.model.will_say("It is noon.");
        let asked = question("What time is it? password: hush-hush");
        agent.client.call_tool(asked).await.unwrap();
        agent.client.close().await.unwrap();
        let text = std::fs::read_to_string(&log).unwrap();
        let told = |piece: &str| {
            let mut lines = text.lines().filter(|line| line.contains("mcp.door"));
            lines.any(|line| line.contains(piece))
        };
        for piece in [
            "MCP request `initialize`",
            "MCP notification `notifications/initialized`",
            "MCP request `tools/call`",
            "What time is it?",
            "MCP answer `tools/call`",
            "It is noon.",
        ] {
            assert_eq!(told(piece), is_on, "{piece}: {text}");
        }
        assert!(!text.contains("hush-hush"), "{text}");
    }
}
