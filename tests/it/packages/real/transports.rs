//! Reference servers that run elsewhere, over each of the transports that they have.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::{PATIENCE, Server, run, use_it};
use crate::servers::{Api, operator};
use crate::support::{TestApp, TestSocket};

/// A program of an npm package, installed in a folder of its own, which listens on loopback until it is
/// dropped.
struct Elsewhere {
    at: SocketAddr,
    _program: Child,
    _folder: tempfile::TempDir,
}

impl Elsewhere {
    /// Runs `program` of the package once it is installed, and waits until it can be reached.
    async fn start(package: &str, program: &str, args: impl Fn(SocketAddr) -> Vec<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let install = format!("npm install --no-audit --no-fund --ignore-scripts {package}");
        run(folder.path(), &install).await;
        let at = free_address().await;
        let program = folder.path().join("node_modules").join(program);
        let mut command = Command::new("node");
        let command = command
            .arg(program)
            .args(args(at))
            .env("PORT", at.port().to_string())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        let program = command.spawn().unwrap();
        let reaching = async { while TcpStream::connect(at).await.is_err() {} };
        tokio::time::timeout(PATIENCE, reaching).await.unwrap();
        Self {
            at,
            _program: program,
            _folder: folder,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.at.port())
    }
}

async fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    listener.local_addr().unwrap()
}

/// Adds it by its address, and calls its tool in a session.
async fn use_at(entry: Value, (tool, arguments, word): (&str, Value, &str)) {
    let app = TestApp::start().await;
    let owner = operator(&app, "acme").await;
    Api::new(&app, &owner).add("it", entry).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    crate::servers::wait_for_health(&mut socket, "it", "healthy").await;
    app.model.will_call(tool, arguments).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert!(output.text().contains(word), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    app.stop().await;
}

async fn everything(transport: &str) -> Elsewhere {
    let package = "@modelcontextprotocol/server-everything";
    let program = format!("{package}/dist/index.js");
    Elsewhere::start(package, &program, |_| vec![transport.to_owned()]).await
}

fn echo() -> (&'static str, Value, &'static str) {
    ("echo", json!({"message": "hello"}), "hello")
}

/// Asserts S2.57.
#[tokio::test]
async fn everything_is_reached_by_streamable_http() {
    let server = everything("streamableHttp").await;
    let entry = json!({"transport": "http", "url": server.url("/mcp")});
    use_at(entry, echo()).await;
}

/// Asserts S2.57.
#[tokio::test]
async fn everything_is_reached_by_the_old_transport() {
    let server = everything("sse").await;
    let entry = json!({"transport": "sse", "url": server.url("/sse")});
    use_at(entry, echo()).await;
}

/// A browser of this machine.
fn chromium() -> PathBuf {
    // Debian starts it by a script, which reads `/etc`.
    let known = ["/usr/lib/chromium/chromium", "/usr/bin/google-chrome"];
    let found = known.into_iter().find(|path| Path::new(path).exists());
    PathBuf::from(found.expect("Chromium is needed: `apt-get install chromium`"))
}

fn browser() -> Vec<String> {
    let path = chromium().display().to_string();
    let args = [
        "--headless",
        "--isolated",
        "--no-sandbox",
        "--executable-path",
        &path,
    ];
    args.map(str::to_owned).to_vec()
}

fn page() -> (&'static str, Value, &'static str) {
    let page = "data:text/html,<title>A page</title><h1>Hello from the page</h1>";
    (
        "browser_navigate",
        json!({"url": page}),
        "Hello from the page",
    )
}

/// Of 0.0.83: which tools the newest has is not this test's matter.
const PLAYWRIGHT: &str = "@playwright/mcp@0.0.83";

#[tokio::test]
async fn playwright_opens_a_page_in_the_sandbox() {
    let line = format!("npx -y {PLAYWRIGHT} {}", browser().join(" "));
    let server = Server {
        line: &line,
        before: None,
        more: json!({}),
        call: page(),
    };
    use_it(&TestApp::with_sandbox().await, server).await;
}

async fn playwright() -> Elsewhere {
    let args = |at: SocketAddr| {
        let port = ["--port".to_owned(), at.port().to_string()];
        browser().into_iter().chain(port).collect()
    };
    Elsewhere::start(PLAYWRIGHT, "@playwright/mcp/cli.js", args).await
}

#[tokio::test]
async fn playwright_is_reached_by_streamable_http() {
    let server = playwright().await;
    let entry = json!({"transport": "http", "url": server.url("/mcp")});
    use_at(entry, page()).await;
}

#[tokio::test]
async fn playwright_is_reached_by_the_old_transport() {
    let server = playwright().await;
    let entry = json!({"transport": "sse", "url": server.url("/sse")});
    use_at(entry, page()).await;
}
