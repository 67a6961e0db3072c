//! The log as other programs read it.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{Log, Server, TestApp, TestSocket, person};

const SECRET: &str = "between the two of us";

#[tokio::test]
async fn every_line_is_one_object_and_names_its_request_or_session() {
    let folder = TempDir::new().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log.jsonl"));
    let env = [
        ("SPL_LOG_FORMAT", "json"),
        ("SPL_LOG_LEVEL", "debug"),
        ("SPL_LOG_OUTPUT", log.to_str().unwrap()),
        ("SPL_SANDBOX", "bubblewrap"),
    ];
    let model = ModelStub::start().await;
    let written = json!({ "path": "a.txt", "content": SECRET });
    model.will_call("write_file", written).then_say(SECRET);
    let server = Server::start_with(&data, &model, &env);
    // Its log is not the server's.
    let ana = person(&data, &[]);
    let client = Client::at(server.address, &ana.key);
    let refused = client.get("/api/sessions/ses_missing").await;
    let request = refused.header("x-request-id").to_owned();
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say(SECRET).await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for_answer().await, SECRET);
    server.kill();

    let text = fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    for line in &lines {
        for field in ["timestamp", "level", "target", "message"] {
            assert!(line[field].is_string(), "{field} of {line}");
        }
        let is_for_operators = line["level"] != "DEBUG" && line["level"] != "TRACE";
        let said = line.to_string();
        assert!(!is_for_operators || !said.contains(SECRET), "{said}");
        assert!(!said.contains(&ana.key), "{said}");
    }
    let of_request = lines
        .iter()
        .find(|line| line["code"] == "session_not_found");
    assert_eq!(of_request.unwrap()["span"]["request.id"], request.as_str());
    let is_call = |line: &&Value| {
        line["message"]
            .as_str()
            .unwrap()
            .starts_with(">> Execute tool")
    };
    let call = lines.iter().find(is_call).unwrap();
    assert_eq!(call["span"]["session.id"], socket.session().as_str());
    assert_eq!(call["span"]["call.id"], card["callId"]);
    // Of the arguments there is how long they are, at this level too.
    assert!(!call.to_string().contains(SECRET), "{call}");
    assert!(call["args.bytes"].as_u64() > Some(20), "{call}");
}

/// S3.21: the finest level has what goes to the model and what comes back, without secrets.
#[tokio::test]
async fn the_finest_level_has_requests_and_answers_of_the_model_without_secrets() {
    const KEY: &str = "sk-test-0123456789abcdef";
    let log = Log::start();
    let env = [("SPL_SANDBOX", "none"), ("SPL_LLM_API_KEY", KEY)];
    let app = TestApp::start_with(&env).await;
    let secret = json!({"api_token": "hush-hush", "path": "a.txt"});
    app.model.will_call("look", secret).then_say(SECRET);
    let mut ana = app.socket("acme").await;
    ana.say("What is between us?").await;
    assert_eq!(ana.wait_for_answer().await, SECRET);
    let text = log.text();
    let ours: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("sepal_llm"))
        .collect();
    let traced = |what: &str, piece: &str| {
        let of_kind = |line: &&&str| line.contains("TRACE") && line.contains(what);
        ours.iter().filter(of_kind).any(|line| line.contains(piece))
    };
    assert!(traced("Request POST", "What is between us?"), "{ours:#?}");
    assert!(traced("Answer: ", "a.txt"), "{ours:#?}");
    // The call and its result went back with the next request.
    assert!(traced("Request POST", "api_token"), "{ours:#?}");
    for line in &ours {
        assert!(!line.contains(KEY) && !line.contains("hush-hush"), "{line}");
    }
    assert!(text.contains("Estimated tokens being sent: "), "{text}");
}

/// Asserts S3.15, S3.44.
#[tokio::test]
async fn a_turn_is_told_line_by_line_at_the_levels_of_its_importance() {
    let log = Log::start();
    let app = TestApp::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let mut ana = app.socket("acme").await;
    app.model
        .will_call("list_files", json!({}))
        .then_call("read_file", json!({"path": "no-such-file"}))
        .then_call("read_file", json!({"path": 7}))
        .then_say("Done");
    ana.say("look").await;
    for _ in 0..2 {
        let card = ana.wait_for_approval().await;
        ana.approve(&card).await;
    }
    assert_eq!(ana.wait_for_answer().await, "Done");
    assert_eq!(ana.ask("history:reset", &[json!({})]).await["ok"], true);
    let text = log.text();
    for (level, line) in [
        ("INFO", "Initialized OpenAICompatibleService with model "),
        ("DEBUG", "Starting completeTask loop"),
        ("DEBUG", "LLM Iteration 1"),
        ("DEBUG", "LLM Iteration 4"),
        ("DEBUG", "Estimated tokens being sent: "),
        ("TRACE", " tools for provider."),
        ("DEBUG", "Processing 1 tool calls."),
        ("DEBUG", "Tool list_files executed successfully."),
        ("WARN", "Tool execution error for read_file: "),
        ("DEBUG", "No tool calls. Task complete."),
        ("INFO", "Conversation reset."),
    ] {
        let is_it = |said: &&str| said.contains(&format!(" {level} ")) && said.contains(line);
        assert!(
            text.lines().any(|said| is_it(&said)),
            "{level} {line}: {text}"
        );
    }
}
