//! The secret key is changed, and given up where it is lost.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use reqwest::header::{COOKIE, SET_COOKIE};
use serde_json::json;
use tempfile::TempDir;

use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{Person, Server, colleague_with, person, sepal};

const KEY: &str = "sk-sealed-in-the-store";
const PASSWORD: &str = "a long enough password";
const FIRST: &str = "the first key of thirty-two characters";
const SECOND: &str = "the second key of thirty-two characters";

/// An installation with a signed-in person and a provider that has a key.
struct Installation {
    model: ModelStub,
    /// A provider of its own.
    other: ModelStub,
    folder: TempDir,
    person: Option<(Person, String)>,
}

impl Installation {
    async fn new() -> Self {
        Self {
            model: ModelStub::start().await,
            other: ModelStub::start().await,
            folder: TempDir::new().unwrap(),
            person: None,
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts it with these secret keys: the current one and the one before.
    fn start(&self, current: Option<&str>, former: Option<&str>) -> Server {
        let mut env = vec![
            ("SPL_SANDBOX", "none"),
            ("SPL_OUTGOING_ALLOW", "127.0.0.0/8"),
        ];
        env.extend(current.map(|key| ("SPL_SECRET_KEY", key)));
        env.extend(former.map(|key| ("SPL_FORMER_SECRET_KEY", key)));
        Server::start_with(&self.data(), &self.model, &env)
    }

    /// Adds the person and the provider.
    async fn fill(&mut self, server: &Server) {
        let data = self.data();
        let _ = person(&data, &[]);
        let owner = colleague_with(&data, &[], "ben", "owner");
        let password = ["admin", "user", "password", "ben", "--tenant", "acme"];
        said(&run(&data, &password, &[], PASSWORD));
        let http = Client::nobody_at(server.address);
        let said = json!({ "tenant": "acme", "name": "ben", "password": PASSWORD });
        let answer = http.post("/api/auth/login", said).await;
        answer.ok(200);
        let cookie = answer
            .header(SET_COOKIE.as_str())
            .split(';')
            .next()
            .unwrap()
            .to_owned();
        let provider = json!({ "kind": "openai-compatible", "baseUrl": self.other.base_url(),
            "apiKey": KEY, "models": ["one"] });
        let client = Client::at(server.address, &owner.key);
        client.put("/api/providers/other", provider).await.ok(201);
        self.person = Some((owner, cookie));
    }

    /// Gives the provider its key again.
    async fn seal_again(&self, server: &Server) {
        let (owner, _) = self.person.as_ref().unwrap();
        let provider = json!({ "kind": "openai-compatible", "baseUrl": self.other.base_url(),
            "apiKey": KEY, "models": ["one"] });
        let client = Client::at(server.address, &owner.key);
        client.put("/api/providers/other", provider).await.ok(200);
    }

    /// Asserts that the person is signed in and that the provider is asked with its key.
    async fn is_whole(&self, server: &Server) {
        let (owner, cookie) = self.person.as_ref().unwrap();
        let signed_in = Client::nobody_at(server.address).and(COOKIE.as_str(), cookie.as_str());
        assert_eq!(
            signed_in.get("/api/auth/me").await.ok(200)["user"]["name"],
            "ben"
        );
        self.other.will_say("OK");
        let client = Client::at(server.address, &owner.key);
        let tried = client
            .post("/api/providers/other/test", json!({ "model": "one" }))
            .await;
        assert_eq!(tried.ok(200)["ok"], true);
        let asked = self.other.requests().pop().unwrap();
        assert_eq!(asked.authorization, Some(format!("Bearer {KEY}")));
    }

    fn public_key(&self, env: &[(&str, &str)]) -> String {
        said(&run(&self.data(), &["audit", "key"], env, ""))
    }
}

fn run(data: &Path, args: &[&str], env: &[(&str, &str)], input: &str) -> Output {
    let mut command = sepal(data);
    command.args(args).envs(env.iter().copied());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    process.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The words with which a start is refused.
fn refusal(data: &Path, key: &str) -> String {
    let env = [
        ("SPL_SECRET_KEY", key),
        ("SPL_SANDBOX", "none"),
        ("SPL_HTTP_PORT", "0"),
    ];
    let output = run(data, &["serve"], &env, "");
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn a_changed_secret_key_signs_nobody_out_and_opens_everything() {
    let mut installation = Installation::new().await;
    let data = installation.data();
    let server = installation.start(None, None);
    installation.fill(&server).await;
    installation.is_whole(&server).await;
    let audit_key = installation.public_key(&[]);
    server.stop();

    // From the key of the folder to one of the settings: the folder still has the former one.
    let server = installation.start(Some(FIRST), None);
    installation.is_whole(&server).await;
    server.stop();
    fs::remove_file(data.join("secret.key")).unwrap();

    // From one to another: killed before it could serve or after, the start is repeated.
    installation.start(Some(SECOND), Some(FIRST)).kill();
    for former in [Some(FIRST), None, None] {
        let server = installation.start(Some(SECOND), former);
        installation.is_whole(&server).await;
        installation.seal_again(&server).await;
        installation.is_whole(&server).await;
        server.stop();
    }
    assert_eq!(
        installation.public_key(&[("SPL_SECRET_KEY", SECOND)]),
        audit_key
    );
    let refused = refusal(&data, FIRST);
    for remedy in ["SPL_FORMER_SECRET_KEY", "sepal admin forget-secret-key"] {
        assert!(refused.contains(remedy), "{refused}");
    }

    let exported = said(&run(
        &data,
        &["audit", "export"],
        &[("SPL_SECRET_KEY", SECOND)],
        "",
    ));
    let count = |act: &str| exported.matches(&format!("\"{act}\"")).count();
    let counts = (count("secret_key.changed"), count("sealing_key.changed"));
    assert_eq!(counts, (2, 1), "{exported}");
}

#[tokio::test]
async fn a_lost_secret_key_is_given_up_and_nothing_else_is() {
    let mut installation = Installation::new().await;
    let data = installation.data();
    let server = installation.start(Some(FIRST), None);
    installation.fill(&server).await;
    server.stop();
    let forget = |key: &str, input: &str| {
        run(
            &data,
            &["admin", "forget-secret-key"],
            &[("SPL_SECRET_KEY", key)],
            input,
        )
    };
    // Nothing is forgotten while the key fits, or unless it is said.
    assert!(said(&forget(FIRST, "secret key\n")).contains("fits"));
    assert!(!forget(SECOND, "no\n").status.success());
    let server = installation.start(Some(FIRST), None);
    installation.is_whole(&server).await;
    server.stop();

    assert!(said(&forget(SECOND, "secret key\n")).contains("Done"));
    let server = installation.start(Some(SECOND), None);
    let (owner, cookie) = installation.person.as_ref().unwrap();
    let signed_in = Client::nobody_at(server.address).and(COOKIE.as_str(), cookie.as_str());
    signed_in.get("/api/auth/me").await.ok(200);
    let client = Client::at(server.address, &owner.key);
    let lost = client.get("/api/providers/other").await.ok(200);
    let problem = lost["problem"].as_str().unwrap();
    assert!(problem.contains("add it again"), "{lost}");
    installation.seal_again(&server).await;
    installation.is_whole(&server).await;
}
