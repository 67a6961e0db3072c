//! The log as other programs read it.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{Server, TestSocket, person};

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
    model.will_call("list_files", json!({})).then_say(SECRET);
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
}
