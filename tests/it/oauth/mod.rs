//! People connect to remote MCP servers: against an authorisation server that other people wrote
//! (`tests/conformance/provider.mjs`), and against hostile ones.

mod connecting;
mod doors;
mod hostile;
mod renewing;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

use crate::support::{Person, TestApp};

/// How long something may take that happens in the background.
const PATIENCE: Duration = Duration::from_secs(30);

/// The authorisation server and the MCP server that takes its tokens, in a process of their own.
pub(crate) struct Provider {
    process: Child,
    /// The address of the MCP server.
    pub(crate) mcp: String,
    pub(crate) issuer: String,
}

impl Provider {
    pub(crate) fn start(settings: &Value) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
        let mut process = Command::new(node(&folder))
            .arg("provider.mjs")
            .current_dir(&folder)
            .env("PROVIDER", settings.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Node.js; `npm --prefix tests/conformance ci` brings one");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = lines.next().expect("`npm --prefix tests/conformance ci`");
        let said: Value = serde_json::from_str(&first.unwrap()).unwrap();
        let text = |name: &str| said[name].as_str().unwrap().to_owned();
        Self {
            process,
            mcp: text("mcp"),
            issuer: text("issuer"),
        }
    }

    /// How often something was seen: `registrations`, `codes`, `refreshes`, `revocations`, `calls`, and
    /// `strangers` with a token that is none.
    pub(crate) async fn count(&self, what: &str) -> u64 {
        let url = Url::parse(&self.mcp).unwrap().join("/counts").unwrap();
        let answer = TestApp::http().get(url).send().await.unwrap();
        let seen: Value = answer.json().await.unwrap();
        seen[what].as_u64().unwrap()
    }

    /// Takes back every token of now.
    pub(crate) async fn end_all(&self) {
        let url = Url::parse(&self.mcp).unwrap().join("/end").unwrap();
        TestApp::http().post(url).send().await.unwrap();
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The Node.js that came with the packages, else that of the system.
pub(crate) fn node(folder: &Path) -> PathBuf {
    let arch = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x64"
    };
    let own = folder.join(format!("node_modules/node-linux-{arch}/bin/node"));
    if own.exists() { own } else { "node".into() }
}

/// What a browser comes back with: the answer in the address.
pub(crate) type Answer = BTreeMap<String, String>;

/// A person at a gateway, with their browser.
pub(crate) struct Someone {
    address: SocketAddr,
    key: String,
}

impl Someone {
    pub(crate) fn new(address: SocketAddr, person: &Person) -> Self {
        let key = person.key.clone();
        Self { address, key }
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("http://{}{path}", self.address);
        let request = TestApp::http().request(method, url).bearer_auth(&self.key);
        let request = if body.is_null() {
            request
        } else {
            request.json(body)
        };
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// The address at the authorisation server.
    pub(crate) async fn begin(&self, server: &str, return_to: &str) -> Url {
        let path = format!("/api/mcp/{server}/connect");
        let body = json!({ "returnTo": return_to });
        let (status, answer) = self.ask(Method::POST, &path, &body).await;
        assert_eq!(status, 200, "{answer}");
        Url::parse(answer["url"].as_str().unwrap()).unwrap()
    }

    /// Opens the address in a browser that follows wherever it leads, until our page has the answer.
    pub(crate) async fn allow(&self, url: Url) -> Answer {
        let mut cookies: BTreeMap<String, String> = BTreeMap::new();
        let mut url = url;
        for _ in 0..12 {
            let jar: Vec<_> = cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let request = TestApp::http()
                .get(url.clone())
                .header(COOKIE, jar.join("; "));
            let answer = request.send().await.unwrap();
            for set in answer.headers().get_all(SET_COOKIE) {
                let pair = set.to_str().unwrap().split(';').next().unwrap();
                let (name, value) = pair.split_once('=').unwrap();
                cookies.insert(name.to_owned(), value.to_owned());
            }
            let Some(next) = answer.headers().get(LOCATION) else {
                panic!(
                    "{url}: {} {}",
                    answer.status(),
                    answer.text().await.unwrap()
                );
            };
            let next = url.join(next.to_str().unwrap()).unwrap();
            if url.path().starts_with("/api/mcp/oauth/callback") {
                assert_eq!(answer.status(), StatusCode::SEE_OTHER);
                assert_eq!(answer.headers()["referrer-policy"], "no-referrer");
                assert_eq!((next.path(), next.query()), ("/connected", None));
                let words = url::form_urlencoded::parse(next.fragment().unwrap().as_bytes());
                return words.into_owned().collect();
            }
            url = next;
        }
        panic!("the browser is sent in circles");
    }

    pub(crate) async fn finish(&self, answer: &Answer) -> (u16, Value) {
        self.ask(Method::POST, "/api/mcp/oauth/callback", &json!(answer))
            .await
    }

    /// Connects from beginning to end.
    pub(crate) async fn connect(&self, server: &str) {
        let url = self.begin(server, "/").await;
        let answer = self.allow(url).await;
        let (status, finished) = self.finish(&answer).await;
        assert_eq!(
            (status, &finished["name"]),
            (200, &json!(server)),
            "{finished}"
        );
    }

    /// The person's connection to a server; null if there is none.
    pub(crate) async fn connection(&self, server: &str) -> Value {
        let (status, list) = self
            .ask(Method::GET, "/api/mcp/oauth/connections", &Value::Null)
            .await;
        assert_eq!(status, 200, "{list}");
        let items = list["items"].as_array().unwrap();
        let found = items.iter().find(|item| item["name"] == server);
        found.cloned().unwrap_or(Value::Null)
    }

    /// Waits until the server is as it should be.
    pub(crate) async fn wait_for_server(
        &self,
        server: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Value {
        let path = format!("/api/mcp/{server}");
        let looking = async {
            loop {
                let (_, now) = self.ask(Method::GET, &path, &Value::Null).await;
                if fits(&now) {
                    return now;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, looking)
            .await
            .expect("the server as it should be")
    }
}
