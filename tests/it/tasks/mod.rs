//! Calls that run as tasks of their servers: they are called once, and picked up by whoever runs the
//! session.

mod extension;
mod hostile;
mod killed;
mod stand;

use sepal::domain::Role;
use serde_json::{Value, json};

use self::stand::{Stand, text, unknown};
use crate::servers::asking::calling_at;
use crate::support::{Person, Said, TestApp, TestSocket};

/// A call of `build` whose server works on it.
async fn building(app: &TestApp, stand: &Stand) -> (TestSocket, Person) {
    let (socket, person) = calling_at(app, &stand.url, "build").await;
    stand.saw("tasks/get", 1).await;
    (socket, person)
}

/// How the call ended, and that the tool was called once.
async fn ended(socket: &mut TestSocket, stand: &Stand) -> Said {
    let output = socket.wait_for("tool:output").await;
    assert_eq!(socket.wait_for_answer().await, "Done");
    assert_eq!(stand.seen("tools/call").len(), 1);
    output
}

fn is_progress(said: &Said, words: &str) -> bool {
    said.name == "tool:progress" && said.args[0].to_string().contains(words)
}

/// Asserts S1.9.
#[tokio::test]
async fn a_tool_that_works_only_as_a_task_is_offered_and_called_as_one() {
    let (app, stand) = (TestApp::start().await, Stand::start().await);
    let (mut socket, _) = building(&app, &stand).await;
    let asked = &stand.seen("tools/call")[0];
    assert_eq!(asked["name"], "build");
    // An hour, and a day in which a gateway may be away.
    assert_eq!(asked["task"]["ttl"], 25 * 60 * 60 * 1_000, "{asked}");
    stand.says(json!({ "status": "working", "statusMessage": "Laying bricks" }));
    socket
        .wait_where(|said| is_progress(said, "Laying bricks"))
        .await;
    stand.gives(text("a house"));
    let output = ended(&mut socket, &stand).await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(output.text(), "a house");
    let asked = stand.seen("tasks/result");
    assert_eq!(asked[0]["taskId"], "task-1", "{asked:?}");
    assert_eq!(stand.seen("tasks/cancel"), Vec::<Value>::new());
}

#[tokio::test]
async fn a_tool_may_run_as_a_task_or_may_not() {
    for (tool, is_task) in [("either", true), ("plain", false)] {
        let (app, stand) = (TestApp::start().await, Stand::start().await);
        stand.gives(text("later"));
        let (mut socket, _) = calling_at(&app, &stand.url, tool).await;
        let output = ended(&mut socket, &stand).await;
        assert_eq!(output.text(), if is_task { "later" } else { "at once" });
        assert_eq!(stand.seen("tools/call")[0].get("task").is_some(), is_task);
    }
}

#[tokio::test]
async fn how_a_task_ends_is_how_its_call_ends() {
    let failed = json!({ "content": [{ "type": "text", "text": "no bricks" }], "isError": true });
    let refused = json!({ "error": { "code": -32_603, "message": "no ground" } });
    for (task, result, status, words) in [
        (json!({ "status": "failed" }), failed, "failed", "no bricks"),
        (
            json!({ "status": "failed" }),
            refused,
            "failed",
            "the task failed: no ground",
        ),
        (
            json!({ "status": "cancelled", "statusMessage": "strike" }),
            Value::Null,
            "failed",
            "the server cancelled the task: strike; what it had done by then stays done",
        ),
    ] {
        let (app, stand) = (TestApp::start().await, Stand::start().await);
        let (mut socket, _) = building(&app, &stand).await;
        if !result.is_null() {
            stand.gives(result);
        }
        stand.says(task);
        let output = ended(&mut socket, &stand).await;
        assert_eq!(output.rest()["status"], status, "{output:?}");
        assert!(output.text().contains(words), "{output:?}");
    }
}

#[tokio::test]
async fn a_task_that_its_server_forgot_is_unknown_and_says_so() {
    let (app, stand) = (TestApp::start().await, Stand::start().await);
    let (mut socket, _) = building(&app, &stand).await;
    stand.says_instead(unknown());
    let output = ended(&mut socket, &stand).await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    assert!(
        output.text().contains("does not know the task"),
        "{output:?}"
    );
}

/// A server that is started anew behind its proxy keeps its tasks.
#[tokio::test]
async fn a_server_that_was_away_for_a_moment_is_asked_again() {
    let (app, stand) = (TestApp::start().await, Stand::start().await);
    let (mut socket, _) = building(&app, &stand).await;
    stand.is_away(true);
    socket
        .wait_where(|said| is_progress(said, "cannot be asked now; its task may go on"))
        .await;
    stand.is_away(false);
    stand.gives(text("a house"));
    let output = ended(&mut socket, &stand).await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(output.text(), "a house");
}

#[tokio::test]
async fn stopping_the_turn_cancels_the_task() {
    let (app, stand) = (TestApp::start().await, Stand::start().await);
    let (mut socket, _) = building(&app, &stand).await;
    socket.ask("agent:cancel", &[json!({})]).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "cancelled", "{output:?}");
    assert_eq!(stand.seen("tasks/cancel")[0]["taskId"], "task-1");
    socket.wait_for("agent:cancelled").await;
}

#[tokio::test]
async fn a_session_that_is_deleted_cancels_its_task() {
    let (app, stand) = (TestApp::start().await, Stand::start().await);
    let (socket, person) = building(&app, &stand).await;
    let path = format!("/api/sessions/{}", socket.session());
    let request = TestApp::http().delete(app.url(&path));
    let answer = request.bearer_auth(&person.key).send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
    stand.saw("tasks/cancel", 1).await;
}

/// The form of a question of a task goes to the owner, and its answer to the server.
#[tokio::test]
async fn a_task_asks_the_person_and_goes_on_with_the_answer() {
    let (app, stand) = (TestApp::start().await, Stand::start().await);
    let (mut socket, _) = building(&app, &stand).await;
    stand.says(json!({ "status": "input_required" }));
    let asked = socket.wait_for("elicitation:required").await.args[0].clone();
    assert_eq!(asked["message"], "Which floor?", "{asked}");
    let session = socket.session();
    let id = &asked["elicitationId"];
    let body = json!({ "elicitationId": id, "action": "accept", "content": { "floor": 3 } });
    let colleague = app.person_with("house", Role::Member).await;
    let (status, _) = crate::servers::asking::answer(&app, &colleague.key, &session, &body).await;
    assert!([403, 404].contains(&status), "{status}");
    let told = socket.ask("elicitation:answer", &[body]).await;
    assert_eq!(told["ok"], true, "{told}");
    let output = ended(&mut socket, &stand).await;
    assert_eq!(output.text(), "built", "{output:?}");
    assert_eq!(stand.seen("answer")[0]["content"]["floor"], 3);
}

#[tokio::test]
async fn a_task_takes_as_long_as_the_entry_says_and_is_cancelled_then() {
    let (app, stand) = (TestApp::start().await, Stand::start().await);
    let person = crate::servers::operator(&app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let config = json!({ "url": stand.url, "timeout": 1 });
    crate::servers::Api::new(&app, &person)
        .add("post", config)
        .await;
    crate::servers::wait_for_health(&mut socket, "post", "healthy").await;
    app.model.will_call("build", json!({})).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = ended(&mut socket, &stand).await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    let words = "no answer within 1 s; the call was stopped";
    assert!(output.text().contains(words), "{output:?}");
    assert_eq!(stand.seen("tasks/cancel").len(), 1);
}
