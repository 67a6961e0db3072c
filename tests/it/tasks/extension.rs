//! Tasks of servers that speak 2026-07-28, where they are an extension and the server decides.

use serde_json::{Value, json};

use super::stand::{Stand, text};
use super::{building, ended};
use crate::support::TestApp;

#[tokio::test]
async fn a_server_of_2026_07_28_makes_a_task_and_its_result_comes_with_its_state() {
    let (app, stand) = (TestApp::start().await, Stand::start_extension().await);
    let (mut socket, _) = building(&app, &stand).await;
    let asked = &stand.seen("tools/call")[0];
    let said = &asked["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
    assert_eq!(said["io.modelcontextprotocol/tasks"], json!({}), "{asked}");
    assert_eq!(asked.get("task"), None, "the server decides");
    stand.says(json!({ "status": "completed", "result": text("a house") }));
    let output = ended(&mut socket, &stand).await;
    assert_eq!(output.text(), "a house");
    assert_eq!(stand.seen("tasks/result"), Vec::<Value>::new());
}

#[tokio::test]
async fn what_it_wants_to_know_is_asked_once_and_told() {
    let (app, stand) = (TestApp::start().await, Stand::start_extension().await);
    let (mut socket, _) = building(&app, &stand).await;
    let schema = json!({ "type": "object", "properties": { "floor": { "type": "integer" } } });
    let question = json!({
        "method": "elicitation/create",
        "params": { "mode": "form", "message": "Which floor?", "requestedSchema": schema },
    });
    stand.says(json!({ "status": "input_required", "inputRequests": { "floor": question } }));
    let asked = socket.wait_for("elicitation:required").await.args[0].clone();
    let id = &asked["elicitationId"];
    let body = json!({ "elicitationId": id, "action": "accept", "content": { "floor": 3 } });
    let told = socket.ask("elicitation:answer", &[body]).await;
    assert_eq!(told["ok"], true, "{told}");
    let output = ended(&mut socket, &stand).await;
    assert_eq!(output.text(), "updated", "{output:?}");
    let told = stand.seen("tasks/update");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["taskId"], "task-1");
    let answer = &told[0]["inputResponses"]["floor"];
    assert_eq!(answer["content"]["floor"], 3, "{answer}");
}

#[tokio::test]
async fn an_error_of_its_task_is_the_end_of_the_call() {
    let (app, stand) = (TestApp::start().await, Stand::start_extension().await);
    let (mut socket, _) = building(&app, &stand).await;
    let error = json!({ "code": -32_603, "message": "no ground" });
    stand.says(json!({ "status": "failed", "error": error }));
    let output = ended(&mut socket, &stand).await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    assert!(output.text().contains("no ground"), "{output:?}");
}
