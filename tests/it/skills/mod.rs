//! Skills: kept by people, told to models step by step, and run nowhere but in the sandbox.

mod doors;
mod kept;
mod used;
mod workspace;

use reqwest::Method;
use serde_json::{Value, json};

use crate::rest::{Answer, Client};
use crate::support::{TestApp, TestSocket};

/// A `SKILL.md`.
pub(crate) fn document(name: &str, description: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n{body}\n")
}

/// A ZIP archive of a skill's folder; names that end in `.sh` may be run.
pub(crate) fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
    use std::io::Write as _;
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in files {
        let mode = if name.contains(".sh") { 0o755 } else { 0o644 };
        let options = zip::write::SimpleFileOptions::default().unix_permissions(mode);
        archive.start_file(*name, options).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Sends a file to one of the doors that take a skill.
pub(crate) async fn send(client: &Client, method: Method, path: &str, file: Vec<u8>) -> Answer {
    let request = client.request(method, path);
    let request = request.header("content-type", "application/octet-stream");
    Answer::of(request.body(file).send().await.unwrap()).await
}

/// Keeps a skill; its item.
pub(crate) async fn keep(client: &Client, scope: &str, file: impl Into<Vec<u8>>) -> Value {
    let path = format!("/api/skills?scope={scope}");
    send(client, Method::POST, &path, file.into()).await.ok(201)
}

/// One turn without calls.
async fn turn(app: &TestApp, socket: &mut TestSocket) {
    app.model.will_say("Yes");
    socket.say("sure?").await;
    assert_eq!(socket.wait_for_answer().await, "Yes");
}

/// One call that is answered at once; its result, as the model reads it.
async fn reads(app: &TestApp, socket: &mut TestSocket, tool: &str, args: Value) -> String {
    app.model.will_call(tool, args).then_say("Read");
    socket.say("use it").await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(socket.wait_for_answer().await, "Read");
    assert_eq!(output.rest()["name"], tool, "{output:?}");
    output.text().to_owned()
}

/// What a command prints in the sandbox, after somebody said yes to it.
async fn runs(app: &TestApp, socket: &mut TestSocket, command: &str) -> String {
    let args = json!({ "command": command });
    app.model.will_call("execute_command", args).then_say("Ran");
    socket.say("run").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(socket.wait_for_answer().await, "Ran");
    output.text().to_owned()
}

/// The names of the tools of the newest request.
fn tools(app: &TestApp) -> Vec<String> {
    let asked = app.model.requests().pop().unwrap().body;
    let tools = asked["tools"].as_array().cloned().unwrap_or_default();
    let names = tools.iter().map(|tool| tool["function"]["name"].clone());
    names
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

/// The system prompt of the newest request.
fn system(app: &TestApp) -> String {
    let asked = app.model.requests().pop().unwrap().body;
    let first = &asked["messages"][0];
    assert_eq!(first["role"], "system", "{first}");
    first["content"].as_str().unwrap().to_owned()
}

/// The newest request as one text.
fn newest(app: &TestApp) -> String {
    app.model.requests().pop().unwrap().body.to_string()
}
