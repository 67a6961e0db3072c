//! The worst that one person can send to each door that reads, compiles or writes something, while somebody
//! of another tenant looks whether the gateway still answers.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use reqwest::{Body, Client as Http, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::servers::StandIn;
use crate::skills::zipped;
use crate::support::{Server, TestApp, colleague, colleague_with, person};

/// The time that others may wait.
const PATIENCE: Duration = Duration::from_millis(100);
/// The time for which each input is worked on before its senders hang up.
const EACH: Duration = Duration::from_millis(700);
/// Another program may take the processors of a small machine for a moment; an input that keeps others
/// waiting does so each time.
const ATTEMPTS: usize = 4;
/// The most memory of the gateway, in KiB: its own, the largest picture while it is turned upright,
/// two files to import as they come and unpacked, and two sessions that are written.
const MEMORY_KIB: u64 = 1024 * 1024;

/// A request of somebody who hangs up.
#[derive(Clone)]
struct Sent {
    method: Method,
    path: String,
    kind: &'static str,
    body: Vec<u8>,
    key: Option<String>,
}

/// An input, and how many of it come at once.
struct Worst {
    what: &'static str,
    at_once: usize,
    sent: Sent,
}

impl Sent {
    fn json(path: &str, key: &str, body: &Value) -> Self {
        Self {
            method: Method::POST,
            path: path.to_owned(),
            kind: "application/json",
            body: body.to_string().into_bytes(),
            key: Some(key.to_owned()),
        }
    }

    fn file(path: &str, key: &str, body: Vec<u8>) -> Self {
        Self {
            kind: "application/octet-stream",
            body,
            ..Self::json(path, key, &Value::Null)
        }
    }

    fn get(path: &str, key: Option<&str>) -> Self {
        Self {
            method: Method::GET,
            path: path.to_owned(),
            kind: "application/json",
            body: Vec::new(),
            key: key.map(str::to_owned),
        }
    }

    /// Reads the answer until nobody wants it any more.
    async fn send(self, http: Http, address: SocketAddr) {
        let url = format!("http://{address}{}", self.path);
        let request = http.request(self.method, url);
        let request = request.header("content-type", self.kind);
        let request = match self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        if let Ok(answer) = request.body(Body::from(self.body)).send().await {
            let status = answer.status().as_u16();
            assert!(
                !matches!(status, 401 | 403 | 404 | 500),
                "{}: {status}",
                self.path
            );
            let _ = answer.bytes().await;
        }
    }
}

/// A schema whose patterns once took a minute for thirty letters, as many as there may be.
fn patterns(most: usize) -> Value {
    let all = (0..most).map(|n| json!({ "pattern": format!("^(a+)+(b|a)*{n}$") }));
    json!({ "properties": { "a": { "anyOf": all.collect::<Vec<_>>() } } })
}

fn rule(schema: &Value) -> Value {
    let example = |text: String| json!({ "server": "s", "tool": "t", "arguments": { "a": text } });
    json!({
        "effect": "allow", "scope": "person", "when": { "schema": schema },
        "examples": { "matching": example("a".repeat(30)), "other": example("a".repeat(29)) },
    })
}

/// Black pixels, as many as a picture may have, in a file of some kilobytes.
fn picture() -> Vec<u8> {
    const EDGE: u32 = 7_000;
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    // A byte for the filter, and a bit for each pixel.
    let row = vec![0; EDGE as usize / 8 + 1];
    for _ in 0..EDGE {
        packed.write_all(&row).unwrap();
    }
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |name: &[u8; 4], content: &[u8]| {
        file.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
        let mut sum = flate2::Crc::new();
        sum.update(name);
        sum.update(content);
        file.extend(name);
        file.extend(content);
        file.extend(sum.sum().to_be_bytes());
    };
    let edge = EDGE.to_be_bytes();
    chunk(b"IHDR", &[&edge[..], &edge, &[1, 0, 0, 0, 0]].concat());
    chunk(b"IDAT", &packed.finish().unwrap());
    chunk(b"IEND", &[]);
    file
}

/// Conversations that are as deep as they may be, packed to a thousandth of their size.
fn deep_conversations() -> Vec<u8> {
    let filling = "y".repeat(60);
    let one = format!(
        r#"{{"conversationId":"x","messagesTree":[{}{}]}}"#,
        format!(r#"{{"text":"{filling}","children":["#).repeat(2_000),
        "]}".repeat(2_000),
    );
    let file = format!("[{}]", vec![one; 40].join(","));
    zipped(&[("conversations.json", file.as_str())])
}

/// A skill of very many files.
fn skill() -> Vec<u8> {
    let names: Vec<String> = (0..2_000).map(|n| format!("a/{n}.txt")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    files.push(("SKILL.md", "---\nname: a\ndescription: b\n---\nc\n"));
    zipped(&files)
}

/// A bundle that asks for very many values.
fn bundle() -> Vec<u8> {
    let values = (0..30_000).map(|n| {
        let value =
            json!({ "type": "string", "title": "A", "description": "b", "default": "${HOME}" });
        (format!("value_{n}"), value)
    });
    let values: serde_json::Map<String, Value> = values.collect();
    let manifest = json!({
        "manifest_version": "0.3", "name": "a", "version": "1", "description": "b",
        "author": { "name": "c" }, "user_config": values,
        "server": {
            "type": "node", "entry_point": "a.js",
            "mcp_config": { "command": "node", "args": vec!["${user_config.value_1}"; 100] },
        },
    });
    zipped(&[("manifest.json", &manifest.to_string()), ("a.js", "")])
}

/// An MCP server with one tool, which has that schema.
async fn server_with(schema: Value) -> StandIn {
    let tool = json!({ "name": "t", "inputSchema": schema });
    StandIn::start(json!({ "tools": {} }), move |method, _| match method {
        "tools/list" => Ok(json!({ "tools": [tool] })),
        _ => Err((-32_601, "no such method")),
    })
    .await
}

/// A session with megabytes of words that are markup.
fn long_conversation() -> Value {
    let text = "[*a* `b`](https://c.example) | **d** <e> &\n".repeat(250);
    let mut mapping = serde_json::Map::new();
    for n in 0..400 {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let message = json!({
            "author": { "role": role }, "create_time": 1_756_000_000 + n, "recipient": "all",
            "content": { "content_type": "text", "parts": [text] }, "metadata": {},
        });
        let node = json!({ "parent": format!("{}", n - 1), "children": [], "message": message });
        mapping.insert(n.to_string(), node);
    }
    json!([{ "title": "Long", "conversation_id": "long", "current_node": "399", "mapping": mapping }])
}

/// The longest of the waits of somebody who looks again and again for so long.
async fn longest_wait(http: &Http, address: SocketAddr, for_long: Duration) -> Duration {
    let url = format!("http://{address}/healthz");
    let (began, mut longest) = (Instant::now(), Duration::ZERO);
    while began.elapsed() < for_long {
        let asked = Instant::now();
        let answer = http.get(&url).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        longest = longest.max(asked.elapsed());
    }
    longest
}

/// The time that others wait while it is worked on, in the best of some attempts.
async fn wait_during(worst: &Worst, https: &[Http; 2], address: SocketAddr) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let mut senders = JoinSet::new();
        for _ in 0..worst.at_once {
            let [_, http] = https;
            senders.spawn(worst.sent.clone().send(http.clone(), address));
        }
        let [http, _] = https;
        best = best.min(longest_wait(http, address, EACH).await);
        while let Some(sender) = senders.try_join_next() {
            sender.unwrap();
        }
        // The others hang up.
        senders.shutdown().await;
        if best < PATIENCE {
            break;
        }
    }
    best
}

/// The most that the process ever had in memory, in KiB.
fn peak_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let digits = line.split_whitespace().nth(1).unwrap();
    digits.parse().unwrap()
}

/// A session and the path of a link to it.
async fn shared_session(address: SocketAddr, key: &str, admin: &str) -> (String, String) {
    let client = Client::at(address, key);
    let allowed = Client::at(address, admin);
    let body = json!({ "linksAllowed": true });
    allowed.put("/api/sharing", body).await.ok(200);
    let request = client.request(Method::POST, "/api/sessions/import");
    let file = long_conversation().to_string();
    let done = request.body(file).send().await.unwrap();
    let done: Value = serde_json::from_str(&done.text().await.unwrap()).unwrap();
    let session = done["imported"][0]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let shares = format!("/api/sessions/{session}/shares");
    let made = client.post(&shares, json!({ "audience": "link" })).await;
    let path = made.ok(201)["path"].as_str().unwrap().to_owned();
    (session, path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worst_input_of_one_person_is_nobody_elses_wait() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let settings = [
        ("SPL_SANDBOX", "none"),
        ("SPL_OUTGOING_ALLOW", "127.0.0.0/8"),
    ];
    let server = Server::start_with(&data, &model, &settings);
    let address = server.address;
    let ana = person(&data, &[]);
    let boss = colleague_with(&data, &[], "boss", "admin");
    let (session, link) = shared_session(address, &ana.key, &boss.key).await;
    let hostile = server_with(patterns(300)).await;
    let entry = json!({ "config": { "url": hostile.url }, "scope": "person" });
    let key = ana.key.as_str();
    let words = "a1 ".repeat(170_000);
    let export = |format| format!("/api/sessions/{session}/export?format={format}");
    let attach = format!("/api/sessions/{session}/attachments?name=a.png");
    let all = |what, at_once, sent| Worst {
        what,
        at_once,
        sent,
    };
    let worst = [
        all(
            "a rule that is refused",
            4,
            Sent::json("/api/rules/preview", key, &rule(&patterns(300))),
        ),
        all(
            "a rule",
            4,
            Sent::json("/api/rules/preview", key, &rule(&patterns(250))),
        ),
        all(
            "a simulation",
            4,
            Sent::json("/api/rules/simulate", key, &rule(&patterns(250))),
        ),
        all("pictures", 10, Sent::file(&attach, key, picture())),
        all(
            "imports",
            6,
            Sent::file("/api/sessions/import", key, deep_conversations()),
        ),
        all(
            "skills",
            10,
            Sent::file("/api/skills/check?scope=person", key, skill()),
        ),
        // Bundles are the admins' to upload.
        all(
            "bundles",
            6,
            Sent::file("/api/mcp-bundles", &boss.key, bundle()),
        ),
        all(
            "a tool of a server",
            6,
            Sent::json("/api/mcp/test", key, &entry),
        ),
        all("a shared session", 6, Sent::get(&link, None)),
        all("exported pages", 4, Sent::get(&export("html"), Some(key))),
        all("exported events", 4, Sent::get(&export("json"), Some(key))),
        all(
            "counted tokens",
            6,
            Sent::json("/api/models/stub/tokens", key, &json!({ "text": words })),
        ),
        all(
            "searches",
            6,
            Sent::get(&format!("/api/search?q={}", "a%20".repeat(60)), Some(key)),
        ),
    ];
    let https = [TestApp::http(), TestApp::http()];
    let mut too_long = Vec::new();
    for one in &worst {
        let waited = wait_during(one, &https, address).await;
        if waited >= PATIENCE {
            too_long.push(format!("{}: {waited:?}", one.what));
        }
    }
    assert!(too_long.is_empty(), "others wait:\n{}", too_long.join("\n"));
    let peak = peak_kib(server.id());
    assert!(peak < MEMORY_KIB, "the gateway took {} MiB", peak / 1024);
    // It answers its own tenant too, as before.
    let colleague = colleague(&data, &[], "ben");
    let ben = Client::at(address, &colleague.key);
    let listed = ben.get("/api/sessions");
    let listed = timeout(Duration::from_secs(10), listed).await.unwrap();
    assert_eq!(listed.status, 200);
    drop(server);
}
