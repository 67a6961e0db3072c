//! Bundles that uv would start: what their project asks for is installed once, and they run without a network.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::super::registry::{Answer, Registry};
use super::super::{app_at, docker_at, installation, until};
use super::runs::{PYTHON, call_when_installed, volumes};
use super::{add_bundle, call, filled, manifest, pack, uploaded};
use crate::servers::Api;
use crate::support::{TestApp, TestSocket};

const GREETING: &str = r#"
import os, socket, sys
import tone

def greet(words):
    try:
        socket.create_connection(("1.1.1.1", 80), 2)
        reached = "reached"
    except OSError:
        reached = "refused"
    try:
        open("/packages/site/x", "w")
        written = "written"
    except OSError:
        written = "read-only"
    return " ".join([tone.VERSION, *words, reached, written])
"#;

/// A bundle whose server says with which version of `tone` it runs.
fn project(dependencies: &str, lock: &str) -> Vec<u8> {
    let server = json!({
        "type": "uv", "entry_point": "src/main.py",
        "mcp_config": {"command": "uv", "args": ["run", "--directory", "${__dirname}", "src/main.py", "${user_config.word}"]},
    });
    let values = json!({"word": {"type": "string", "title": "Word", "default": "hello"}});
    let mut manifest = manifest("1.2.3", &server, &values);
    manifest["manifest_version"] = json!("0.4");
    let project =
        format!("[project]\nname = 'notes'\nversion = '1.2.3'\ndependencies = {dependencies}\n");
    let manifest = manifest.to_string();
    let mut files = vec![
        ("manifest.json", manifest.as_str()),
        ("pyproject.toml", &project),
        ("src/main.py", PYTHON),
        ("src/greeting.py", GREETING),
    ];
    if !lock.is_empty() {
        files.push(("uv.lock", lock));
    }
    pack(&files)
}

const LOCK: &str = r#"
version = 1
requires-python = ">=3.8"

[[package]]
name = "tone"
version = "1.0"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "notes"
version = "1.2.3"
source = { virtual = "." }
"#;

async fn start(
    registry: &Registry,
    start: impl AsyncFn(&str) -> TestApp,
) -> (TestApp, TestSocket, crate::support::Person) {
    registry.publish_python("tone", &["1.0", "1.5", "2.0"]);
    let app = start(&registry.address).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let socket = TestSocket::open(app.address, &owner, None).await;
    (app, socket, owner)
}

async fn a_project_answers(begin: impl AsyncFn(&str) -> TestApp) {
    let registry = Registry::start().await;
    let (app, mut socket, owner) = start(&registry, begin).await;
    let file = project("['tone<2']", "");
    let told = add_bundle(&app, &owner, &mut socket, (file, json!({}))).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert!(told.get("failure").is_none(), "{told:#}");
    assert_eq!(told["installed"]["version"], "1.2.3");
    assert_eq!(told["installed"]["packages"], 2, "{told:#}");
    let phases: Vec<&str> = told["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        phases,
        ["resolving", "downloading", "installing", "listing"]
    );
    let asked = registry.asked().len();
    assert_eq!(
        call(&app, &mut socket, "look").await,
        "1.5 hello refused read-only"
    );
    assert_eq!(
        registry.asked().len(),
        asked,
        "nothing is fetched when it starts"
    );
}

/// Asserts S2.57.
#[tokio::test]
async fn a_project_answers_in_bubblewrap() {
    a_project_answers(app_at).await;
}

#[tokio::test]
async fn a_project_answers_in_docker() {
    a_project_answers(docker_at).await;
}

#[tokio::test]
async fn what_its_author_locked_is_installed_and_comes_back_as_it_was() {
    let registry = Registry::start().await;
    let (app, mut socket, owner) = start(&registry, app_at).await;
    let api = Api::new(&app, &owner);
    let file = project("['tone']", LOCK);
    let told = uploaded(&app, &owner, file.clone()).await;
    assert_eq!(
        (&told["kind"], &told["dependencies"]),
        (&json!("python"), &json!(["tone"]))
    );
    let entry = filled(&api, &told, json!({"word": "a"})).await;
    let (status, preview) = api
        .ask(
            Method::POST,
            "/api/mcp/package",
            &json!({"config": entry["config"]}),
        )
        .await;
    assert_eq!(status, 200, "{preview:#}");
    assert_eq!(preview["package"]["with"], json!(["tone"]), "{preview:#}");
    let told = add_bundle(&app, &owner, &mut socket, (file, json!({"word": "a"}))).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    let before = installation(&api, "it").await["installed"]["content"].clone();
    for found in std::fs::read_dir(app.folder.path().join("data/workspaces")).unwrap() {
        let path = found.unwrap().path();
        if path.join("bundle").exists() {
            std::fs::remove_dir_all(path).unwrap();
        }
    }
    let said = call(&app, &mut socket, "look").await;
    assert!(said.contains("not installed here any more"), "{said}");
    assert_eq!(
        call_when_installed(&app, &mut socket).await,
        "1.0 a refused read-only"
    );
    assert_eq!(
        installation(&api, "it").await["installed"]["content"],
        before
    );
}

#[tokio::test]
async fn a_project_that_needs_nothing_needs_no_registry() {
    let app = app_at("http://127.0.0.1:9").await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let server = json!({"type": "uv", "entry_point": "main.py"});
    let manifest = manifest("1.0.0", &server, &json!({})).to_string();
    let code = PYTHON.replace(
        "from greeting import greet",
        "greet = lambda words: 'alone'",
    );
    let file = pack(&[
        ("manifest.json", &manifest),
        ("pyproject.toml", "[project]\nname = 'a'\n"),
        ("main.py", &code),
    ]);
    let told = add_bundle(&app, &owner, &mut socket, (file, json!({}))).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert_eq!(call(&app, &mut socket, "look").await, "alone");
}

#[tokio::test]
async fn what_cannot_be_installed_says_why() {
    let registry = Registry::start().await;
    let (app, mut socket, owner) = start(&registry, app_at).await;
    let api = Api::new(&app, &owner);
    let file = project("['absent']", "");
    let told = add_bundle(&app, &owner, &mut socket, (file, json!({}))).await;
    assert_eq!(told["state"], "failed", "{told:#}");
    assert_eq!(told["failure"]["reason"], "no_wheel", "{told:#}");
    assert!(log_of(&told).contains("absent"), "{told:#}");
    remove(&api).await;

    registry.serve(
        "/files/tone-2.0-py3-none-any.whl",
        Answer::Bytes(b"another".to_vec()),
    );
    let file = project("['tone==2.0']", "");
    let told = add_bundle(&app, &owner, &mut socket, (file, json!({}))).await;
    assert_eq!(told["failure"]["reason"], "wrong_hash", "{told:#}");
    until(|| volumes(&app) == 0).await;
}

async fn remove(api: &Api<'_>) {
    let (status, _) = api.ask(Method::DELETE, "/api/mcp/it", &Value::Null).await;
    assert_eq!(status, 200);
}

fn log_of(told: &Value) -> String {
    let lines = told["log"].as_array().unwrap().iter();
    lines
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("\n")
}
