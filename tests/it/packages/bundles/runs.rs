//! Bundles run in both kinds of sandbox, from files that nothing can change, and without a network.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::super::{app_at, docker_at, installation, until};
use super::{add_bundle, call, manifest, node_bundle, pack};
use crate::replicas::Pair;
use crate::servers::Api;
use crate::support::{DEADLINE, TestApp, TestSocket};

/// Nothing listens there: a bundle needs no registry.
const NOWHERE: &str = "http://127.0.0.1:9";

const LOOK: &str = "
    const fs = require('node:fs')
    const path = require('node:path')
    const data = fs.readFileSync(path.join(__dirname, 'data.txt'), 'utf8')
    let written
    try { fs.writeFileSync(path.join(__dirname, 'new.txt'), 'x'); written = 'written' } catch (error) { written = error.code }
    const reached = await fetch('http://1.1.1.1/').then(() => 'reached', () => 'refused')
    return [data, process.argv[2], process.env.API_KEY.length, written, reached].join(' ')";

async fn a_node_bundle_answers(start: impl AsyncFn(&str) -> TestApp) {
    let app = start(NOWHERE).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let file = node_bundle("1.2.3", &[("look", "Looks")], LOOK);
    let values = json!({"name": "Ada", "api_key": "swordfish"});
    let told = add_bundle(&app, &owner, &mut socket, (file, values)).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert!(told.get("failure").is_none(), "{told:#}");
    assert_eq!(told["installed"]["version"], "1.2.3");
    assert_eq!(told["package"]["registry"], "bundle");
    let said = call(&app, &mut socket, "look").await;
    assert_eq!(said, "from the bundle Ada 9 EROFS refused");
}

/// Asserts S2.57.
#[tokio::test]
async fn a_node_bundle_answers_in_bubblewrap() {
    a_node_bundle_answers(app_at).await;
}

#[tokio::test]
async fn a_node_bundle_answers_in_docker() {
    a_node_bundle_answers(docker_at).await;
}

/// A server of few lines for Python, which says what `greet` of its module `greeting` gives.
pub(super) const PYTHON: &str = r#"
import json, sys
from greeting import greet

def answer(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)

for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    if method == "initialize":
        answer(asked["id"], {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "stub", "version": "1"}})
    if method == "tools/list":
        answer(asked["id"], {"tools": [{"name": "look", "description": "Looks",
                                        "inputSchema": {"type": "object"}}]})
    if method == "tools/call":
        answer(asked["id"], {"content": [{"type": "text", "text": greet(sys.argv[1:])}]})
"#;

fn python_bundle(runtime: &str) -> Vec<u8> {
    let server = json!({
        "type": "python", "entry_point": "server/main.py",
        "mcp_config": {
            "command": "python", "args": ["server/main.py", "${user_config.folders}"],
            "env": {"PYTHONPATH": "${__dirname}/server/lib"},
        },
    });
    let values = json!({
        "folders": {"type": "directory", "title": "Folders", "multiple": true, "default": ["${HOME}"]},
    });
    let mut manifest = manifest("0.9.0", &server, &values);
    manifest["compatibility"] = json!({"platforms": ["linux"], "runtimes": {"python": runtime}});
    let lib = "def greet(words):\n    import os\n    return ' '.join(words) + f' {os.path.isdir(\"/workspace\")}'\n";
    pack(&[
        ("manifest.json", &manifest.to_string()),
        ("server/main.py", PYTHON),
        ("server/lib/greeting/__init__.py", lib),
    ])
}

async fn a_python_bundle_answers(start: impl AsyncFn(&str) -> TestApp) {
    let app = start(NOWHERE).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let values = json!({"folders": "docs\nsrc"});
    let file = python_bundle(">=3.8,<4.0");
    let told = add_bundle(&app, &owner, &mut socket, (file, values)).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    let said = call(&app, &mut socket, "look").await;
    assert_eq!(said, "/workspace/docs /workspace/src True");
}

#[tokio::test]
async fn a_python_bundle_answers_in_bubblewrap() {
    a_python_bundle_answers(app_at).await;
}

/// Asserts S2.57.
#[tokio::test]
async fn a_python_bundle_answers_in_docker() {
    a_python_bundle_answers(docker_at).await;
}

#[tokio::test]
async fn a_binary_bundle_is_started_by_its_path() {
    let app = app_at(NOWHERE).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let server = json!({
        "type": "binary", "entry_point": "bin/tool", "mcp_config": {"command": "bin/tool"},
    });
    let script = format!(
        "#!/usr/bin/env python3\n{}",
        PYTHON.replace(
            "from greeting import greet",
            "greet = lambda words: 'by its path'"
        )
    );
    let file = pack(&[
        (
            "manifest.json",
            &manifest("1.0.0", &server, &json!({})).to_string(),
        ),
        ("bin/tool", &script),
    ]);
    let told = add_bundle(&app, &owner, &mut socket, (file, json!({}))).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert_eq!(call(&app, &mut socket, "look").await, "by its path");
}

#[tokio::test]
async fn a_bundle_for_a_newer_runtime_says_which_one_there_is() {
    let app = app_at(NOWHERE).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let told = add_bundle(
        &app,
        &owner,
        &mut socket,
        (python_bundle(">=99"), json!({})),
    )
    .await;
    assert_eq!(told["state"], "failed", "{told:#}");
    assert_eq!(told["failure"]["reason"], "needs_newer");
    let text = told["failure"]["text"].as_str().unwrap();
    assert!(
        text.contains("python >=99") && text.contains("Python 3."),
        "{text}"
    );
}

/// Files of bundles on this gateway.
/// What the tool `look` says once what was lost is installed again.
pub(super) async fn call_when_installed(app: &TestApp, socket: &mut TestSocket) -> String {
    let asking = async {
        loop {
            let said = call(app, socket, "look").await;
            if !said.contains("not installed here any more") {
                return said;
            }
        }
    };
    tokio::time::timeout(DEADLINE, asking).await.unwrap()
}

pub(super) fn volumes(app: &TestApp) -> usize {
    let folder = app.folder.path().join("data/workspaces");
    let found = std::fs::read_dir(folder).unwrap();
    found
        .filter(|it| it.as_ref().unwrap().path().join("bundle").exists())
        .count()
}

#[tokio::test]
async fn a_server_that_is_removed_takes_its_bundle_along() {
    let app = app_at(NOWHERE).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let file = node_bundle("1.0.0", &[("look", "Looks")], "return 'here'");
    let values = json!({"name": "Ada", "api_key": "swordfish"});
    let told = add_bundle(&app, &owner, &mut socket, (file, values)).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert_eq!(volumes(&app), 1);
    let sha256 = api.server("it").await["config"]["bundle"]["sha256"].clone();
    let path = format!("/api/mcp-bundles/{}", sha256.as_str().unwrap());
    api.get(&path).await;
    let (status, _) = api
        .ask(reqwest::Method::DELETE, "/api/mcp/it", &Value::Null)
        .await;
    assert_eq!(status, 200);
    until(|| volumes(&app) == 0).await;
    let (status, _) = api.refused(reqwest::Method::GET, &path, &Value::Null).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_bundle_that_is_lost_is_unpacked_again() {
    let app = app_at(NOWHERE).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let file = node_bundle("1.0.0", &[("look", "Looks")], "return 'here'");
    let values = json!({"name": "Ada", "api_key": "swordfish"});
    add_bundle(&app, &owner, &mut socket, (file, values)).await;
    let before = installation(&api, "it").await["installed"]["content"].clone();
    let folder = app.folder.path().join("data/workspaces");
    for found in std::fs::read_dir(&folder).unwrap() {
        let path = found.unwrap().path();
        if path.join("bundle").exists() {
            std::fs::remove_dir_all(path).unwrap();
        }
    }
    let said = call(&app, &mut socket, "look").await;
    assert!(said.contains("not installed here any more"), "{said}");
    assert_eq!(call_when_installed(&app, &mut socket).await, "here");
    assert_eq!(
        installation(&api, "it").await["installed"]["content"],
        before
    );
}

#[tokio::test]
async fn another_gateway_gets_the_files_from_the_database() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let owner = pair.a.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(pair.a.address, &owner, None).await;
    let file = node_bundle("1.0.0", &[("look", "Looks")], "return 'here'");
    let values = json!({"name": "Ada", "api_key": "swordfish"});
    let told = add_bundle(&pair.a, &owner, &mut socket, (file, values)).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert_eq!((volumes(&pair.a), volumes(&pair.b)), (1, 0));
    let mut other = TestSocket::open(pair.b.address, &owner, None).await;
    // What a session asks is answered from the script of the first.
    assert_eq!(call(&pair.a, &mut other, "look").await, "here");
    assert_eq!(volumes(&pair.b), 1);
}
