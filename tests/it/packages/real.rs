//! The packages that people really use, from the public registries.

use serde_json::{Value, json};

use super::{add, command, installation};
use crate::servers::Api;
use crate::support::{TestApp, TestSocket};
use sepal::domain::Role;

/// Adds it, and calls one of its tools in a session; what the call said.
async fn use_it(line: &str, (tool, args): (&str, Value), config: Value) -> String {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let mut entry = command(line);
    if let (Value::Object(entry), Value::Object(more)) = (&mut entry, config) {
        entry.extend(more);
    }
    let told = add(&api, &mut socket, ("it", entry)).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert!(told.get("failure").is_none(), "{told:#}");
    let content = told["installed"]["content"].as_str().unwrap();
    assert!(!content.is_empty());
    app.model.will_call(tool, args).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "done", "{output:?}");
    let text = output.text().to_owned();
    assert_eq!(socket.wait_for_answer().await, "Done");
    text
}

#[tokio::test]
async fn everything_of_npm_is_installed_by_the_line_of_its_readme() {
    let line = "npx -y @modelcontextprotocol/server-everything";
    let said = use_it(line, ("echo", json!({"message": "hello"})), json!({})).await;
    assert!(said.contains("hello"), "{said}");
}

#[tokio::test]
async fn filesystem_of_npm_reads_the_workspace() {
    let line = "npx -y @modelcontextprotocol/server-filesystem /workspace";
    let call = ("list_allowed_directories", json!({}));
    let said = use_it(line, call, json!({"workspace": "rw"})).await;
    assert!(said.contains("/workspace"), "{said}");
}

#[tokio::test]
async fn memory_of_npm_remembers() {
    let line = "npx -y @modelcontextprotocol/server-memory";
    let said = use_it(
        line,
        ("read_graph", json!({})),
        json!({"env": {"MEMORY_FILE_PATH": "/tmp/memory.json"}}),
    )
    .await;
    assert!(said.contains("entities"), "{said}");
}

#[tokio::test]
async fn sequential_thinking_of_npm_thinks() {
    let line = "npx -y @modelcontextprotocol/server-sequential-thinking";
    let thought = json!({
        "thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1,
    });
    let said = use_it(line, ("sequentialthinking", thought), json!({})).await;
    assert!(said.contains("thoughtNumber"), "{said}");
}

#[tokio::test]
async fn time_of_python_tells_the_time() {
    let call = ("get_current_time", json!({"timezone": "Europe/Berlin"}));
    let said = use_it("uvx mcp-server-time", call, json!({})).await;
    assert!(said.contains("Europe/Berlin"), "{said}");
}

#[tokio::test]
async fn git_of_python_opens_a_repository() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let mut entry = command("uvx mcp-server-git");
    entry["workspace"] = json!("rw");
    let told = add(&api, &mut socket, ("git", entry)).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    app.model
        .will_call(
            "execute_command",
            json!({"command": "git init -q /workspace/x"}),
        )
        .then_call("git_status", json!({"repo_path": "/workspace/x"}))
        .then_say("Done");
    socket.say("go").await;
    for _ in 0..2 {
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
    }
    let said = socket
        .wait_where(|said| said.name == "tool:output" && said.rest()["server"] == "git")
        .await;
    assert_eq!(said.rest()["status"], "done", "{said:?}");
    assert!(said.text().contains("commit"), "{said:?}");
}

#[tokio::test]
async fn fetch_and_sqlite_of_python_list_their_tools() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    for (name, line) in [
        ("fetch", "uvx mcp-server-fetch"),
        ("sqlite", "uvx mcp-server-sqlite --db-path /tmp/x.db"),
    ] {
        let told = add(&api, &mut socket, (name, command(line))).await;
        assert_eq!(told["state"], "ready", "{told:#}");
        let server = api.server(name).await;
        assert!(
            server["toolCount"].as_u64().unwrap() > 0,
            "{server:#}\n{told:#}"
        );
    }
    let told = installation(&api, "fetch").await;
    assert_eq!(told["package"]["registry"], "pypi");
    assert!(
        told["installed"]["packages"].as_u64().unwrap() > 5,
        "{told:#}"
    );
}
