//! Bundles that the official program packs, of servers that other people wrote or that stand on their library.

use std::path::Path;

use sepal::domain::Role;
use serde_json::{Value, json};

use super::super::app_at;
use super::super::bundles::{add_bundle, add_entry, call};
use super::{installed, run};
use crate::servers::Api;
use crate::support::{TestApp, TestSocket};

/// The folder as a file.
async fn packed(folder: &Path) -> Vec<u8> {
    let pack = "npx -y @anthropic-ai/mcpb@2.1.2 pack . out.mcpb";
    run(folder, pack).await;
    std::fs::read(folder.join("out.mcpb")).unwrap()
}

/// Packed by the official program, with all that the server uses.
#[tokio::test]
async fn memory_of_npm_runs_from_a_bundle() {
    let entry_point = "node_modules/@modelcontextprotocol/server-memory/dist/index.js";
    let manifest = json!({
        "manifest_version": "0.3", "name": "memory", "version": "1.0.0",
        "description": "A graph of what is known.", "author": {"name": "Ada"},
        "server": {
            "type": "node", "entry_point": entry_point,
            "mcp_config": {
                "command": "node", "args": [format!("${{__dirname}}/{entry_point}")],
                "env": {"MEMORY_FILE_PATH": "${user_config.file}"},
            },
        },
        "user_config": {
            "file": {"type": "file", "title": "File", "description": "Of the graph", "required": true},
        },
    });
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("manifest.json", &manifest.to_string());
    write("package.json", r#"{"name":"memory","version":"1.0.0"}"#);
    let server = "@modelcontextprotocol/server-memory@2025.9.25";
    let install = format!("npm install --no-audit --no-fund --ignore-scripts {server}");
    run(folder.path(), &install).await;
    let file = packed(folder.path()).await;
    let app = app_at("https://registry.npmjs.org").await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let values = json!({"file": "memory.json"});
    let told = add_bundle(&app, &owner, &mut socket, (file, values)).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    let said = call(&app, &mut socket, "read_graph").await;
    assert!(said.contains("entities"), "{said}");
}

const SERVER: &str = r#"
from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel

app = FastMCP("sums")

class Sum(BaseModel):
    result: int

@app.tool()
def add(a: int = 2, b: int = 40) -> Sum:
    """Adds two numbers"""
    return Sum(result=a + b)

def main():
    app.run()

if __name__ == "__main__":
    main()
"#;

/// What compiled packages need, which no bundle brings along for each machine.
async fn a_project_on_the_official_library_answers(app: TestApp, args: Value) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let manifest = json!({
        "manifest_version": "0.4", "name": "sums", "version": "1.0.0",
        "description": "Adds numbers.", "author": {"name": "Ada"},
        "server": {
            "type": "uv", "entry_point": "src/sums.py", "mcp_config": {"command": "uv", "args": args},
        },
    });
    std::fs::create_dir(folder.path().join("src")).unwrap();
    write("manifest.json", &manifest.to_string());
    write("src/sums.py", SERVER);
    write(
        "pyproject.toml",
        "[project]\nname = 'sums'\nversion = '1.0.0'\nrequires-python = '>=3.10'\n\
         dependencies = ['mcp[cli]>=1.10,<2']\n[project.scripts]\nsums = 'sums:main'\n",
    );
    let file = packed(folder.path()).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    add_entry(&app, &owner, (file, json!({}))).await;
    let told = installed(&Api::new(&app, &owner)).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    let said = call(&app, &mut socket, "add").await;
    assert!(said.contains("42"), "{said}");
}

#[tokio::test]
async fn a_project_on_the_official_library_runs_its_file() {
    let args = json!(["run", "--directory", "${__dirname}", "src/sums.py"]);
    a_project_on_the_official_library_answers(TestApp::with_sandbox().await, args).await;
}

#[tokio::test]
async fn a_project_on_the_official_library_runs_its_program_in_docker() {
    let app = super::with_docker(&[]).await;
    a_project_on_the_official_library_answers(app, json!(["run", "sums"])).await;
}

/// The library has a program that runs a file.
#[tokio::test]
async fn a_project_is_run_by_a_program_of_its_library() {
    let args = json!(["run", "mcp", "run", "src/sums.py"]);
    a_project_on_the_official_library_answers(TestApp::with_sandbox().await, args).await;
}
