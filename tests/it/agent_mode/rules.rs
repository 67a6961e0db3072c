//! Rules decide at `/mcp` and in `sepal agent` as they do in the page, and nothing there goes around them.

use std::process::Stdio;
use std::sync::Arc;

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::http::connect;
use super::{TestClient, question, sepal, text_of, with_model};
use crate::model_stub::ModelStub;
use crate::servers::Api;
use crate::support::{DEADLINE, Person, TestApp};

/// Has a command called over `/mcp` by a client with forms that says yes to all of them: what the model
/// read of it, and what the client was asked.
async fn called(app: &TestApp, person: &Person, command: &str) -> (String, Vec<String>) {
    let (client, _hears) = TestClient::new(Some(true));
    let asked = Arc::clone(&client.asked);
    let client = connect(app, &person.key, client).await.unwrap();
    app.model
        .will_call("execute_command", json!({ "command": command }))
        .then_say("Done");
    let result = client.call_tool(question("Do it")).await.unwrap();
    assert_eq!(text_of(&result), ("Done".to_owned(), false));
    let body = app.model.requests().pop().unwrap().body;
    let read = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    let asked = asked.lock().await.clone();
    (read, asked)
}

async fn give(app: &TestApp, person: &Person, effect: &str, scope: &str, word: &str) {
    let body = json!({
        "effect": effect, "scope": scope, "when": { "command": [{ "words": [word] }] },
    });
    let api = Api::new(app, person);
    let (status, answer) = api.ask(Method::POST, "/api/rules", &body).await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test]
async fn rules_decide_over_mcp_as_in_the_page() {
    let app = TestApp::with_sandbox().await;
    let admin = app.person_with("acme", Role::Admin).await;
    let ana = app.person("acme").await;
    let stranger = app.person("other").await;
    give(&app, &admin, "deny", "tenant", "touch").await;
    give(&app, &ana, "allow", "person", "echo").await;

    let (read, asked) = called(&app, &ana, "echo allowed").await;
    assert!(read.contains("allowed"), "{read}");
    assert_eq!(asked, Vec::<String>::new());
    // What no rule is about, or only a part of, is asked.
    let (read, asked) = called(&app, &ana, "echo a && printf b%s c").await;
    assert!(read.contains("bc"), "{read}");
    assert_eq!(asked.len(), 1, "{asked:?}");
    // No yes of the client lets run what is denied: nobody is asked.
    let (read, asked) = called(&app, &ana, "echo a; touch /workspace/b").await;
    assert!(read.contains("Rejected"), "{read}");
    assert_eq!(asked, Vec::<String>::new());
    // Rules of a tenant and of its people are nobody else's.
    let (read, asked) = called(&app, &stranger, "echo theirs; touch /workspace/b").await;
    assert!(read.contains("theirs"), "{read}");
    assert_eq!(asked.len(), 1, "{asked:?}");
}

/// What the model read of a command that an admin decides beside a client that says yes to all forms, and
/// what the client was asked. It waits for somebody else, whatever the client says: the admin finds it in
/// their inbox.
async fn decided_by_admin(app: &TestApp, more: &Value) -> (String, Vec<String>) {
    let admin = app.person_with("acme", Role::Admin).await;
    let body = json!({
        "effect": "ask", "scope": "tenant", "approvers": "somebody_else",
        "when": { "command": [{ "words": ["echo"] }] },
    });
    let api = Api::new(app, &admin);
    let (status, answer) = api.ask(Method::POST, "/api/rules", &body).await;
    assert_eq!(status, 201, "{answer}");
    let ana = app.person("acme").await;
    let (client, _hears) = TestClient::new(Some(true));
    let asked = Arc::clone(&client.asked);
    let client = connect(app, &ana.key, client).await.unwrap();
    app.model
        .will_call("execute_command", json!({ "command": "echo mine" }))
        .then_say("Done");
    let calling = client.call_tool(question("Do it"));
    let deciding = async {
        loop {
            let listed = api.get("/api/approvals").await;
            if let Some(item) = listed["items"].as_array().unwrap().first() {
                let card = &item["queue"]["calls"][0];
                let id = item["sessionId"].as_str().unwrap();
                let path = format!("/api/sessions/{id}/approvals");
                let mut yes = json!({
                    "callId": card["callId"], "approved": true, "digest": card["digest"],
                });
                let more = more.as_object().unwrap().clone();
                yes.as_object_mut().unwrap().extend(more);
                let (status, answer) = api.ask(Method::POST, &path, &yes).await;
                assert_eq!(status, 202, "{answer}");
                return;
            }
        }
    };
    let both = async { tokio::join!(calling, deciding) };
    let (result, ()) = tokio::time::timeout(DEADLINE, both).await.unwrap();
    assert_eq!(text_of(&result.unwrap()), ("Done".to_owned(), false));
    let read = app.model.requests().pop().unwrap().body["messages"].to_string();
    let asked = asked.lock().await.clone();
    (read, asked)
}

#[tokio::test]
async fn a_client_alone_is_not_two_people() {
    let app = TestApp::with_sandbox().await;
    let (read, asked) = decided_by_admin(&app, &json!({})).await;
    assert!(
        read.contains("mine") && !read.contains("Rejected"),
        "{read}"
    );
    assert_eq!(asked, Vec::<String>::new());
}

/// The client's person is asked about what somebody else wrote, and `auto` is no yes to it.
#[tokio::test]
async fn a_client_is_asked_about_arguments_that_somebody_else_changed() {
    let changed = json!({ "args": { "command": "echo theirs" } });
    let app = TestApp::with_sandbox().await;
    let (read, asked) = decided_by_admin(&app, &changed).await;
    assert!(
        read.contains("A person changed the arguments") && !read.contains("Rejected"),
        "{read}"
    );
    let [form] = &asked[..] else {
        panic!("{asked:?}")
    };
    for part in ["echo theirs", "They were changed by", "echo mine"] {
        assert!(form.contains(part), "{form}");
    }

    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_AGENT_APPROVAL", "auto"),
    ])
    .await;
    let (read, _) = decided_by_admin(&app, &changed).await;
    assert!(read.contains("Rejected"), "{read}");
}

/// What the model read of a call of the program that says yes to everything, under these rules.
async fn called_by_command(rules: &Value) -> String {
    let model = ModelStub::start().await;
    model
        .will_call("execute_command", json!({ "command": "echo ran" }))
        .then_say("Done");
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("rules.json");
    let text = json!({ "policy": { "rules": rules } }).to_string();
    std::fs::write(&config, text).unwrap();
    let mut command = sepal(&folder);
    with_model(&mut command, &model)
        .env("SPL_SANDBOX", "bubblewrap")
        .env("SPL_DATA_DIR", "data");
    command.arg("agent").arg("--config").arg(&config);
    command.args(["--call", "Do it", "--approve", "auto"]);
    let running = command.stdin(Stdio::null()).stderr(Stdio::piped()).output();
    let output = tokio::time::timeout(DEADLINE, running).await.unwrap();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    model.requests()[1].body["messages"].to_string()
}

#[tokio::test]
async fn saying_yes_to_everything_goes_around_no_rule() {
    let read = called_by_command(&json!({})).await;
    assert!(!read.contains("Rejected"), "{read}");
    for rule in [
        json!({ "effect": "deny", "command": "echo" }),
        json!({ "effect": "ask", "command": "echo", "approvers": "somebody_else" }),
        json!({ "effect": "ask", "command": "echo", "approvers": "two" }),
        json!({ "effect": "ask", "command": "echo", "fresh_gesture": true }),
    ] {
        let read = called_by_command(&json!({ "strict": rule })).await;
        assert!(read.contains("Rejected"), "{rule}: {read}");
    }
}
