//! A registry of npm and Python packages on loopback: it serves what a test gives it, and notes what it is
//! asked.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256, Sha512};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use zip::write::{SimpleFileOptions, ZipWriter};

/// What is answered at a path.
#[derive(Clone)]
pub(super) enum Answer {
    Json(Value),
    Html(String),
    Bytes(Vec<u8>),
    Status(u16),
    /// Nothing, ever.
    Silence,
    /// Bytes without end.
    Flood,
}

#[derive(Clone, Default)]
struct Shelf {
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

/// The registry. It ends when it is dropped.
pub(super) struct Registry {
    pub(super) address: String,
    shelf: Shelf,
    _stop: DropGuard,
}

impl Registry {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shelf = Shelf::default();
        let router = Router::new().fallback(answer).with_state(shelf.clone());
        let stop = CancellationToken::new();
        let ends = stop.clone();
        let tasks = TaskTracker::new();
        tasks.spawn(async move {
            let served = axum::serve(listener, router);
            let served = served.with_graceful_shutdown(ends.cancelled_owned());
            served.await.unwrap();
        });
        Self {
            address: format!("http://localhost:{port}"),
            shelf,
            _stop: stop.drop_guard(),
        }
    }

    pub(super) fn serve(&self, path: &str, answer: Answer) {
        let mut answers = self.shelf.answers.lock().unwrap();
        answers.insert(path.to_owned(), answer);
    }

    /// The paths that were asked for.
    pub(super) fn asked(&self) -> Vec<String> {
        self.shelf.asked.lock().unwrap().clone()
    }

    /// A package of npm with one version, whose program is that script.
    pub(super) fn publish(&self, name: &str, version: &str, script: &str, more: Value) {
        let package = json!({
            "name": name, "version": version, "bin": { name: "index.js" },
        });
        let package = with(package, more);
        let archive = archive(&[
            ("package/package.json", package.to_string().as_bytes()),
            (
                "package/index.js",
                format!("#!/usr/bin/env node\n{script}").as_bytes(),
            ),
        ]);
        let hash = Sha512::digest(&archive);
        let integrity = base64::engine::general_purpose::STANDARD.encode(hash);
        let file = format!("/{name}/-/{name}-{version}.tgz");
        let mut about = package;
        about["dist"] = json!({
            "tarball": format!("{}{file}", self.address), "integrity": format!("sha512-{integrity}"),
        });
        if about.get("scripts").is_some() {
            about["hasInstallScript"] = json!(true);
        }
        let whole = json!({
            "name": name, "dist-tags": { "latest": version }, "versions": { version: about },
        });
        self.serve(&format!("/{name}"), Answer::Json(whole));
        self.serve(&format!("/{name}/latest"), Answer::Json(about.clone()));
        self.serve(&format!("/{name}/{version}"), Answer::Json(about));
        self.serve(&file, Answer::Bytes(archive));
    }
}

impl Registry {
    /// A package of Python in those versions, each as one wheel with one module that knows its `VERSION`.
    pub(super) fn publish_python(&self, name: &str, versions: &[&str]) {
        self.publish_python_that_asks(name, versions, &[]);
    }

    /// A source archive of Python with that `setup.py`, which no index lists; its address.
    pub(super) fn serve_source(&self, name: &str, setup: &str) -> String {
        let about = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n");
        let source = archive(&[
            (&format!("{name}-1.0/setup.py"), setup.as_bytes()),
            (&format!("{name}-1.0/PKG-INFO"), about.as_bytes()),
        ]);
        let path = format!("/files/{name}-1.0.tar.gz");
        self.serve(&path, Answer::Bytes(source));
        format!("{}{path}", self.address)
    }

    /// The same with those requirements (`Requires-Dist`).
    pub(super) fn publish_python_that_asks(&self, name: &str, versions: &[&str], asks: &[&str]) {
        let links = versions.iter().map(|version| {
            let file = format!("{name}-{version}-py3-none-any.whl");
            let wheel = wheel(name, version, asks);
            let hash = hex::encode(Sha256::digest(&wheel));
            self.serve(&format!("/files/{file}"), Answer::Bytes(wheel));
            format!("<a href=\"/files/{file}#sha256={hash}\">{file}</a>")
        });
        let page = format!(
            "<!DOCTYPE html><html><body>{}</body></html>",
            links.collect::<String>()
        );
        self.serve(&format!("/simple/{name}/"), Answer::Html(page));
    }
}

fn wheel(name: &str, version: &str, asks: &[&str]) -> Vec<u8> {
    let info = format!("{name}-{version}.dist-info");
    let asks = asks.iter().map(|asked| format!("Requires-Dist: {asked}\n"));
    let asks: String = asks.collect();
    let files = [
        (
            format!("{name}/__init__.py"),
            format!("VERSION = '{version}'\n"),
        ),
        (
            format!("{info}/METADATA"),
            format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{asks}"),
        ),
        (
            format!("{info}/WHEEL"),
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n".to_owned(),
        ),
    ];
    let mut record = String::new();
    for (path, _) in &files {
        record.push_str(path);
        record.push_str(",,\n");
    }
    let record = (
        format!("{info}/RECORD"),
        format!("{record}{info}/RECORD,,\n"),
    );
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in files.into_iter().chain([record]) {
        zip.start_file(path, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn with(mut base: Value, more: Value) -> Value {
    if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
        base.extend(more);
    }
    base
}

/// A gzipped tar of those files.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    for (name, content) in files {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000755\0");
        header[108..116].copy_from_slice(b"0000000\0");
        header[116..124].copy_from_slice(b"0000000\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[136..148].copy_from_slice(b"00000000000\0");
        header[148..156].copy_from_slice(b"        ");
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        packed.write_all(&header).unwrap();
        packed.write_all(content).unwrap();
        let rest = content.len().next_multiple_of(512) - content.len();
        packed.write_all(&vec![0; rest]).unwrap();
    }
    packed.write_all(&[0; 1024]).unwrap();
    packed.finish().unwrap()
}

async fn answer(State(shelf): State<Shelf>, uri: Uri) -> Response {
    let path = uri.path().replace("%2f", "/");
    shelf.asked.lock().unwrap().push(path.clone());
    let found = shelf.answers.lock().unwrap().get(&path).cloned();
    match found {
        Some(Answer::Json(value)) => axum::Json(value).into_response(),
        Some(Answer::Html(text)) => axum::response::Html(text).into_response(),
        Some(Answer::Bytes(bytes)) => bytes.into_response(),
        Some(Answer::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(Answer::Silence) => std::future::pending().await,
        Some(Answer::Flood) => {
            let part = vec![0_u8; 1 << 20];
            let parts = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(part.clone()));
            Body::from_stream(parts).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// An MCP server of few lines for Node: its tools, and what a call runs.
pub(super) fn node_server(tools: &[(&str, &str)], call: &str) -> String {
    let tools: Vec<Value> = tools
        .iter()
        .map(|(name, description)| {
            json!({
                "name": name, "description": description,
                "inputSchema": { "type": "object", "properties": { "how": { "type": "string" } } },
            })
        })
        .collect();
    let tools = json!(tools);
    format!(
        r"
const lines = require('node:readline').createInterface({{ input: process.stdin }})
const answer = (id, result) => process.stdout.write(JSON.stringify({{ jsonrpc: '2.0', id, result }}) + '\n')
lines.on('line', async (line) => {{
  const {{ id, method, params }} = JSON.parse(line)
  if (method === 'initialize') answer(id, {{ protocolVersion: '2025-06-18', capabilities: {{ tools: {{}} }}, serverInfo: {{ name: 'stub', version: '1' }} }})
  if (method === 'tools/list') answer(id, {{ tools: {tools} }})
  if (method === 'tools/call') {{
    let text
    try {{ text = String(await (async () => {{ {call} }})()) }} catch (error) {{ text = `thrown: ${{error.code ?? error.message}}` }}
    answer(id, {{ content: [{{ type: 'text', text }}] }})
  }}
}})
"
    )
}
