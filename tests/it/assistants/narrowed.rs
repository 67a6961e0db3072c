//! Whoever starts a session with an assistant can narrow it, and never widen it.

use serde_json::{Value, json};

use super::{add, start, system, tools, turn};
use crate::rest::Client;
use crate::skills::{document, keep};
use crate::support::{TestApp, TestSocket};

/// Settings with two models.
const TWO_MODELS: [(&str, &str); 2] = [("SPL_SANDBOX", "none"), ("SPL_LLM_MODEL", "stub-large")];

fn sandbox(tools: &[&str]) -> Value {
    json!([{ "server": "sandbox", "tools": tools }])
}

/// Asserts that a list of tools can be shortened, at both doors, and that no way leads to another tool.
#[tokio::test]
async fn the_tools_are_those_of_the_assistant_or_fewer() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let body = json!({ "name": "Reader", "tools": sandbox(&["read_file", "list_files"]) });
    let id = add(&client, "person", body).await;
    let mut socket = start(&app, &ana, &id).await;
    turn(&app, &mut socket).await;
    assert_eq!(tools(&app), ["list_files", "read_file"]);
    // The model asks for another tool all the same.
    let args = json!({ "path": "a.txt", "content": "x" });
    app.model.will_call("write_file", args).then_say("No");
    socket.say("write").await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "No");

    for wider in [
        sandbox(&["read_file", "write_file"]),
        json!([{ "server": "sandbox" }]),
        json!([{ "server": "other", "tools": ["x"] }]),
    ] {
        let body = json!({ "assistant": id, "tools": wider });
        let problem = client.post("/api/sessions", body).await;
        assert_eq!(
            problem.problem(403, "not_allowed")["errors"][0]["field"],
            "tools"
        );
        let auth = json!({ "token": ana.key, "assistant": id, "tools": wider });
        let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
        assert!(refused.starts_with("not_allowed"), "{refused}");
    }
    let fewer = sandbox(&["list_files"]);
    let auth = json!({ "token": ana.key, "assistant": id, "tools": fewer });
    let mut narrow = TestSocket::try_open(app.address, auth).await.unwrap();
    turn(&app, &mut narrow).await;
    assert_eq!(tools(&app), ["list_files"]);
    // The newer version gives more, and the session still has what its owner left it.
    let body = json!({ "name": "Reader" });
    client
        .put(&format!("/api/assistants/{id}"), body)
        .await
        .ok(200);
    let answer = narrow.ask("session:assistant", &[]).await;
    assert_eq!(answer["ok"], true, "{answer}");
    turn(&app, &mut narrow).await;
    assert_eq!(tools(&app), ["list_files"]);
    // Without an assistant there is nothing to narrow.
    let body = json!({ "tools": sandbox(&["list_files"]) });
    client
        .post("/api/sessions", body)
        .await
        .problem(400, "invalid_arguments");
}

#[tokio::test]
async fn the_model_is_one_of_the_assistants() {
    let app = TestApp::start_with(&TWO_MODELS).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let plain = TestSocket::open(app.address, &ana, None).await;
    let provider = plain.ready["providerId"].clone();
    let models = json!([{ "provider": provider, "model": "stub-small" }]);
    let id = add(
        &client,
        "person",
        json!({ "name": "Cheap", "models": models }),
    )
    .await;
    let body = json!({ "assistant": id, "model": "stub-large" });
    let problem = client.post("/api/sessions", body).await;
    assert_eq!(
        problem.problem(403, "not_allowed")["errors"][0]["field"],
        "model"
    );
    let auth = json!({ "token": ana.key, "assistant": id });
    let wide = TestSocket::try_open_at(app.address, auth, "&model=stub-large").await;
    assert!(wide.err().unwrap().starts_with("not_allowed"));

    let mut socket = start(&app, &ana, &id).await;
    assert_eq!(socket.ready["model"], "stub-small");
    let choice = [json!({ "model": "stub-large" })];
    let answer = socket.ask("session:model", &choice).await;
    assert_eq!(answer["error"]["code"], "not_allowed", "{answer}");
    let path = format!("/api/sessions/{}/model", socket.session());
    let chosen = client.put(&path, json!({ "model": "stub-large" })).await;
    chosen.problem(403, "not_allowed");
    // A fork with another model is refused as well.
    turn(&app, &mut socket).await;
    let fork = [json!({ "model": "stub-large" })];
    let answer = socket.ask("session:fork", &fork).await;
    assert_eq!(answer["error"]["code"], "not_allowed", "{answer}");
    let asked = app.model.requests().pop().unwrap().body;
    assert_eq!(asked["model"], "stub-small");
    // A name that leads to this session does not change its model either.
    let auth = json!({ "token": ana.key, "sessionId": socket.session() });
    let joined = TestSocket::try_open_at(app.address, auth, "&model=stub-large").await;
    assert!(joined.err().unwrap().starts_with("not_allowed"));
}

#[tokio::test]
async fn the_rules_of_the_assistant_hold_against_those_of_people() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let allow = |tool: &str, scope: &str, session: Option<&str>| {
        json!({
            "effect": "allow", "scope": scope, "session": session, "server": "sandbox",
            "tool": tool, "confirm": tool,
        })
    };
    for tool in ["list_files", "read_file"] {
        client
            .post("/api/rules", allow(tool, "person", None))
            .await
            .ok(201);
    }
    let rules = json!([
        { "effect": "ask", "server": "sandbox", "tool": "list_files" },
        { "effect": "deny", "server": "sandbox", "tool": "read_file" },
    ]);
    let id = add(
        &client,
        "person",
        json!({ "name": "Careful", "rules": rules }),
    )
    .await;
    let mut socket = start(&app, &ana, &id).await;
    for tool in ["list_files", "read_file"] {
        let rule = allow(tool, "session", Some(&socket.session()));
        client.post("/api/rules", rule).await.ok(201);
    }
    // An automatic yes of the person does not count here.
    app.model
        .will_call("list_files", json!({}))
        .then_say("Done");
    socket.say("list").await;
    let card = socket.wait_for_approval().await;
    assert_eq!(card["name"], "list_files", "{card}");
    socket.approve(&card).await;
    assert_eq!(socket.wait_for_answer().await, "Done");
    let args = json!({ "path": "a.txt" });
    app.model.will_call("read_file", args).then_say("No");
    socket.say("read").await;
    let decided =
        socket.wait_where(|said| said.name == "tool:decided" && said.rest()["approved"] == false);
    decided.await;
    assert_eq!(socket.wait_for_answer().await, "No");
    // It counts in a session without the assistant.
    let mut plain = TestSocket::open(app.address, &ana, None).await;
    app.model
        .will_call("list_files", json!({}))
        .then_say("Done");
    plain.say("list").await;
    let decided = plain.wait_for("tool:decided").await;
    assert_eq!(decided.rest()["approved"], true, "{decided:?}");
    assert_eq!(plain.wait_for_answer().await, "Done");
    // A fork keeps the rules of the assistant.
    let forked = socket.ask("session:fork", &[json!({})]).await;
    let forked = forked["sessionId"].as_str().unwrap().to_owned();
    let mut fork = TestSocket::open(app.address, &ana, Some(&forked)).await;
    app.model
        .will_call("list_files", json!({}))
        .then_say("Done");
    fork.say("list").await;
    fork.wait_for_approval().await;
}

#[tokio::test]
async fn the_skills_are_those_of_the_assistant_or_fewer() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    for name in ["one", "two", "three"] {
        keep(&client, "person", document(name, "Helps", "Help.")).await;
    }
    let body = json!({ "name": "Skilled", "skills": ["one", "two"] });
    let id = add(&client, "person", body).await;
    let body = json!({ "assistant": id, "skills": ["three"] });
    let problem = client.post("/api/sessions", body).await;
    assert_eq!(
        problem.problem(403, "not_allowed")["errors"][0]["field"],
        "skills"
    );
    let body = json!({ "assistant": id, "skills": ["two"] });
    let session = client.post("/api/sessions", body).await.ok(201);
    let mut socket = TestSocket::open(app.address, &ana, session["id"].as_str()).await;
    turn(&app, &mut socket).await;
    let read = system(&app);
    assert!(read.contains("two") && !read.contains("three"), "{read}");
    // The model asks for another one all the same.
    let args = json!({ "name": "three" });
    app.model.will_call("use_skill", args).then_say("No");
    socket.say("use it").await;
    let output = socket.wait_for("tool:output").await;
    assert!(!output.text().contains("Help."), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "No");
}
