//! The reference servers as people use them: the line of their README, the public registries, one call.

mod bundles;
mod transports;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{command, installation, with_docker};
use crate::agent_mode::{sepal, with_model};
use crate::model_stub::ModelStub;
use crate::servers::{Api, operator, sampling};
use crate::support::{Said, TestApp, TestSocket};

/// How long a public registry and a slow machine may take together.
const PATIENCE: Duration = Duration::from_mins(5);

/// A server, as its README says how to run it.
struct Server<'s> {
    line: &'s str,
    /// What the model runs in the workspace before.
    before: Option<&'s str>,
    /// What its entry says beside the command.
    more: Value,
    /// One of its tools, with what it is given and a word of what it says.
    call: (&'s str, Value, &'s str),
}

/// Adds it, waits until it is installed, and calls its tool in a session.
async fn use_it(app: &TestApp, server: Server<'_>) {
    // Of the installation, so that a registry at a private address may be reached too.
    let owner = operator(app, "acme").await;
    let api = Api::new(app, &owner);
    let mut entry = command(server.line);
    if let (Value::Object(entry), Value::Object(more)) = (&mut entry, server.more) {
        entry.extend(more);
    }
    api.add("it", entry).await;
    let told = installed(&api).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert!(told.get("failure").is_none(), "{told:#}");
    assert_eq!(told["installed"]["content"].as_str().unwrap().len(), 64);
    let (tool, arguments, word) = server.call;
    let listed = api.get("/api/mcp/it/tools").await;
    let names = listed["items"].as_array().unwrap();
    assert!(names.iter().any(|it| it["name"] == tool), "{listed:#}");
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    if let Some(line) = server.before {
        let command = json!({ "command": line });
        app.model
            .will_call("execute_command", command)
            .then_say("Done");
        socket.say("first").await;
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
        assert_eq!(socket.wait_for_answer().await, "Done");
    }
    app.model.will_call(tool, arguments).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let from_it = |said: &Said| said.name == "tool:output" && said.rest()["server"] == "it";
    let output = socket.wait_where(from_it).await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert!(output.text().contains(word), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

/// What is told of the installation when it is over.
async fn installed(api: &Api<'_>) -> Value {
    let looking = async {
        let mut looks = tokio::time::interval(Duration::from_millis(200));
        loop {
            looks.tick().await;
            let told = installation(api, "it").await;
            if told["state"] == "ready" || told["state"] == "failed" {
                return told;
            }
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap()
}

fn everything() -> Server<'static> {
    Server {
        line: "npx -y @modelcontextprotocol/server-everything",
        before: None,
        more: json!({}),
        call: ("echo", json!({"message": "hello"}), "hello"),
    }
}

fn filesystem() -> Server<'static> {
    Server {
        line: "npx -y @modelcontextprotocol/server-filesystem /workspace",
        before: None,
        more: json!({"workspace": "rw"}),
        call: ("list_allowed_directories", json!({}), "/workspace"),
    }
}

fn memory() -> Server<'static> {
    Server {
        line: "npx -y @modelcontextprotocol/server-memory",
        before: None,
        more: json!({"env": {"MEMORY_FILE_PATH": "/tmp/memory.json"}}),
        call: ("read_graph", json!({}), "entities"),
    }
}

fn sequential_thinking() -> Server<'static> {
    let thought = json!({
        "thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1,
    });
    Server {
        line: "npx -y @modelcontextprotocol/server-sequential-thinking",
        before: None,
        more: json!({}),
        call: ("sequentialthinking", thought, "thoughtNumber"),
    }
}

fn time() -> Server<'static> {
    Server {
        line: "uvx mcp-server-time",
        before: None,
        more: json!({}),
        call: (
            "get_current_time",
            json!({"timezone": "Europe/Berlin"}),
            "Europe/Berlin",
        ),
    }
}

fn git() -> Server<'static> {
    Server {
        line: "uvx mcp-server-git",
        // As little as a repository is: not every image of a sandbox has git.
        before: Some("mkdir -p x/.git/objects x/.git/refs; echo ref: refs/heads/main >x/.git/HEAD"),
        more: json!({"workspace": "rw"}),
        call: ("git_status", json!({"repo_path": "/workspace/x"}), "commit"),
    }
}

fn fetch() -> Server<'static> {
    let page = json!({"url": "https://pypi.org/pypi/mcp-server-fetch/json", "raw": true});
    Server {
        line: "uvx mcp-server-fetch --ignore-robots-txt",
        before: None,
        more: json!({"network": ["pypi.org"]}),
        call: ("fetch", page, "mcp-server-fetch"),
    }
}

fn sqlite() -> Server<'static> {
    Server {
        line: "uvx --with mcp<2 mcp-server-sqlite --db-path /tmp/x.db",
        before: None,
        more: json!({}),
        call: ("read_query", json!({"query": "SELECT 40 + 2 AS n"}), "42"),
    }
}

/// Asserts S2.57.
#[tokio::test]
async fn everything_of_npm_is_installed_by_the_line_of_its_readme() {
    use_it(&TestApp::with_sandbox().await, everything()).await;
}

#[tokio::test]
async fn everything_of_npm_is_installed_in_docker() {
    use_it(&with_docker(&[]).await, everything()).await;
}

#[tokio::test]
async fn filesystem_of_npm_reads_the_workspace() {
    use_it(&TestApp::with_sandbox().await, filesystem()).await;
}

#[tokio::test]
async fn filesystem_of_npm_reads_the_workspace_in_docker() {
    use_it(&with_docker(&[]).await, filesystem()).await;
}

#[tokio::test]
async fn memory_of_npm_remembers() {
    use_it(&TestApp::with_sandbox().await, memory()).await;
}

#[tokio::test]
async fn memory_of_npm_remembers_in_docker() {
    use_it(&with_docker(&[]).await, memory()).await;
}

#[tokio::test]
async fn sequential_thinking_of_npm_thinks() {
    use_it(&TestApp::with_sandbox().await, sequential_thinking()).await;
}

#[tokio::test]
async fn sequential_thinking_of_npm_thinks_in_docker() {
    use_it(&with_docker(&[]).await, sequential_thinking()).await;
}

/// Asserts S2.57.
#[tokio::test]
async fn time_of_python_tells_the_time() {
    use_it(&TestApp::with_sandbox().await, time()).await;
}

#[tokio::test]
async fn time_of_python_tells_the_time_in_docker() {
    use_it(&with_docker(&[]).await, time()).await;
}

#[tokio::test]
async fn git_of_python_opens_a_repository() {
    use_it(&TestApp::with_sandbox().await, git()).await;
}

#[tokio::test]
async fn git_of_python_opens_a_repository_in_docker() {
    use_it(&with_docker(&[]).await, git()).await;
}

/// By TLS, through the tunnel, with the authorities of the machine. A container has those of its image,
/// which a network that opens TLS does not pass, so this is not asserted there.
#[tokio::test]
async fn fetch_of_python_reads_a_page_of_a_host_that_it_may_reach() {
    use_it(&TestApp::with_sandbox().await, fetch()).await;
}

/// It is not looked after any more, and does not know the second version of the SDK that it asks for.
#[tokio::test]
async fn sqlite_of_python_reads_a_database() {
    use_it(&TestApp::with_sandbox().await, sqlite()).await;
}

#[tokio::test]
async fn sqlite_of_python_reads_a_database_in_docker() {
    use_it(&with_docker(&[]).await, sqlite()).await;
}

/// Asserts S0.52: it offers the tool to clients alone that have a model.
#[tokio::test]
async fn everything_of_npm_has_a_model_asked() {
    let app = TestApp::with_sandbox().await;
    let owner = operator(&app, "acme").await;
    let api = Api::new(&app, &owner);
    let mut entry = command(everything().line);
    entry["sampling"] = json!(true);
    api.add("it", entry).await;
    let told = installed(&api).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let question = json!({ "prompt": "What is 2 + 2?", "maxTokens": 40 });
    app.model.will_call("trigger-sampling-request", question);
    app.model.then_say("It is 4.").then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let asked = sampling::asked(&mut socket).await;
    assert_eq!(asked["systemPrompt"], "You are a helpful test server.");
    assert_eq!(asked["temperature"], 0.7, "{asked}");
    assert_eq!(asked["maxTokens"], 40, "{asked}");
    let text = asked["messages"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("What is 2 + 2?"), "{asked}");
    sampling::says(&mut socket, sampling::accept(&asked, &asked["digest"])).await;
    let answered = sampling::moved(&mut socket, "answered").await;
    sampling::says(&mut socket, sampling::accept(&asked, &answered["digest"])).await;
    let output = socket.wait_for("tool:output").await;
    assert!(output.text().contains("It is 4."), "{output:?}");
    assert!(output.text().contains("endTurn"), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

async fn run(folder: &Path, line: &str) {
    let mut command = Command::new("sh");
    let command = command.args(["-c", line]).current_dir(folder);
    let done = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{line}: {said}");
}

/// What `./run call-news`, `./run fetch_url` and `./run call-multistep` begin: an example with the servers
/// that it names, asked one question; what the model read at last, and what was said meanwhile.
async fn ask_example(file: &str, model: &ModelStub, env: &[(&str, &str)]) -> (String, String) {
    let home = TempDir::new().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("site/examples");
    let mut command = sepal(&home);
    with_model(&mut command, model)
        .env("SPL_SANDBOX", "bubblewrap")
        .env("SPL_LLM_API_KEY", "test")
        .envs(env.iter().copied())
        .arg("--config")
        .arg(examples.join(file))
        .args(["agent", "--approve", "auto", "--call", "Go."])
        .stderr(Stdio::piped());
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(answer["result"], "Done", "{answer}\n{said}");
    let requests = model.requests();
    let read = requests.last().unwrap().body["messages"].to_string();
    (read, said)
}

/// Asserts S0.64.
#[tokio::test]
async fn the_example_of_news_fetches_a_page_of_the_host_that_it_may_reach() {
    let model = ModelStub::start().await;
    let page = json!({ "url": "https://pypi.org/pypi/mcp-server-fetch/json", "raw": true });
    model.will_call("fetch", page).then_say("Done");
    let env = [
        ("SPL_MCPS_0_ID", "fetch"),
        ("SPL_MCPS_0_NETWORK", "pypi.org"),
        ("SPL_MCPS_0_ARGS", "mcp-server-fetch --ignore-robots-txt"),
    ];
    let (read, said) = ask_example("ai-news.yaml", &model, &env).await;
    let result = read.split("\"role\":\"assistant\"").last().unwrap();
    assert!(result.contains("Model Context Protocol"), "{read}\n{said}");
    // The one question waited for the servers, and said so.
    for said_of in [
        "fetch: its package is installed (downloading)",
        "fetch can be used",
    ] {
        assert!(said.contains(said_of), "{said}");
    }
    let tools = model.requests()[0].body["tools"].to_string();
    assert!(tools.contains("get_current_time"), "{tools}");
}

/// Asserts S0.64.
#[tokio::test]
async fn the_smallest_example_knows_the_time_without_docker() {
    let model = ModelStub::start().await;
    let asked = json!({ "timezone": "Europe/Berlin" });
    model.will_call("get_current_time", asked).then_say("Done");
    let (read, said) = ask_example("simple.yaml", &model, &[]).await;
    let result = read.split("\"role\":\"assistant\"").last().unwrap();
    assert!(result.contains("day_of_week"), "{read}\n{said}");
}

/// Asserts S0.64.
#[tokio::test]
async fn the_example_of_an_architect_reads_what_is_in_the_workspace() {
    let model = ModelStub::start().await;
    let make = json!({ "command": "echo 'bricks and mortar' > plan.txt" });
    model
        .will_call("execute_command", make)
        .will_call("list_directory", json!({ "path": "/workspace" }))
        .will_call("read_text_file", json!({ "path": "/workspace/plan.txt" }))
        .then_say("Done");
    let (read, said) = ask_example("architect.yaml", &model, &[]).await;
    assert!(read.contains("[FILE] plan.txt"), "{read}\n{said}");
    // Once as it was written, once as the server read it.
    assert_eq!(read.matches("bricks and mortar").count(), 2, "{read}");
}
