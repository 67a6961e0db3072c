//! Bundles of MCP servers: uploaded, looked at, made into an entry, run without a network.

mod doors;
mod newer;
mod projects;
mod runs;

use std::io::{Cursor, Write as _};

use reqwest::Method;
use serde_json::{Value, json};
use zip::write::{SimpleFileOptions, ZipWriter};

use super::registry::node_server;
use super::{installation, wait_for_end};
use crate::servers::Api;
use crate::support::{Person, TestApp, TestSocket};

/// Packs files as `.mcpb`.
fn pack(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn manifest(version: &str, server: &Value, values: &Value) -> Value {
    json!({
        "manifest_version": "0.3", "name": "notes", "display_name": "Notes", "version": version,
        "description": "Keeps notes.", "author": {"name": "Ada"}, "server": server,
        "tools": [{"name": "look", "description": "Looks"}], "user_config": values,
    })
}

/// A server for Node that looks at itself; what it says is what `call` gives.
fn node_bundle(version: &str, tools: &[(&str, &str)], call: &str) -> Vec<u8> {
    let server = json!({
        "type": "node", "entry_point": "server/index.js",
        "mcp_config": {
            "command": "node", "args": ["${__dirname}/server/index.js", "${user_config.name}"],
            "env": {"API_KEY": "${user_config.api_key}"},
        },
    });
    let values = json!({
        "name": {"type": "string", "title": "Name", "required": true},
        "api_key": {"type": "string", "title": "Key", "sensitive": true, "required": true},
    });
    let code = node_server(tools, call);
    pack(&[
        (
            "manifest.json",
            &manifest(version, &server, &values).to_string(),
        ),
        ("server/index.js", &code),
        ("server/data.txt", "from the bundle"),
    ])
}

async fn upload(app: &TestApp, person: &Person, file: Vec<u8>) -> (u16, Value) {
    let request = TestApp::http().post(app.url("/api/mcp-bundles"));
    let request = request.bearer_auth(&person.key).body(file);
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap())
}

async fn uploaded(app: &TestApp, person: &Person, file: Vec<u8>) -> Value {
    let (status, told) = upload(app, person, file).await;
    assert_eq!(status, 200, "{told:#}");
    told
}

/// Uploads it, answers what it asks, and adds what it becomes as `it`; how its installation went.
pub(super) async fn add_bundle(
    app: &TestApp,
    person: &Person,
    socket: &mut TestSocket,
    bundle: (Vec<u8>, Value),
) -> Value {
    add_entry(app, person, bundle).await;
    wait_for_end(socket, "it").await;
    installation(&Api::new(app, person), "it").await
}

/// The same without waiting.
pub(super) async fn add_entry(app: &TestApp, person: &Person, (file, values): (Vec<u8>, Value)) {
    let api = Api::new(app, person);
    let told = uploaded(app, person, file).await;
    let entry = filled(&api, &told, values).await;
    let body = json!({"name": "it", "config": entry["config"], "secrets": entry["secrets"]});
    api.add_with(body).await;
}

async fn filled(api: &Api<'_>, told: &Value, values: Value) -> Value {
    let path = format!(
        "/api/mcp-bundles/{}/entry",
        told["sha256"].as_str().unwrap()
    );
    let (status, entry) = api
        .ask(Method::POST, &path, &json!({"values": values}))
        .await;
    assert_eq!(status, 200, "{entry:#}");
    entry
}

/// What a tool says that is called in a session.
pub(super) async fn call(app: &TestApp, socket: &mut TestSocket, tool: &str) -> String {
    app.model.will_call(tool, json!({})).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    let text = output.text().to_owned();
    assert_eq!(socket.wait_for_answer().await, "Done");
    text
}
