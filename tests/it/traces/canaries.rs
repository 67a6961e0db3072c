//! A secret at each place where one can be set, and all that leaves the gateway or stays on its disk.

use std::collections::BTreeSet;
use std::path::Path;

use reqwest::Method;
use sepal::config::LogLevel;
use sepal::config::table::{self, Kind};
use sepal::domain::Role;
use serde_json::{Value, json};

use super::collector::{Collector, KEY};
use super::start;
use crate::model_stub::{ModelStub, Reply};
use crate::rest::{Answer, Client};
use crate::servers::{shell, wait_for_health};
use crate::support::{Log, TestApp, TestSocket, sepal};

/// The text that every secret of this test contains, so that a part of a secret is found as well.
const CANARY: &str = "canary5ecret";

/// Environment variables with a secret, one for each setting that has one, but those of [`has_reason`].
const SETTINGS: [(&str, &str); 8] = [
    ("SPL_LLM_API_KEY", "sk-canary5ecret-of-a-model"),
    (
        "SPL_LLM_API_KEYS",
        "sk-canary5ecret-more,sk-canary5ecret-most",
    ),
    (
        "SPL_SECRET_KEY",
        "canary5ecret that seals the others, of any length",
    ),
    (
        "SPL_FORMER_SECRET_KEY",
        "canary5ecret that sealed the others before",
    ),
    (
        "SPL_AUDIT_ANCHOR_WEBHOOK_SECRET",
        "whsec_canary5ecret00000000000000000000000000000000",
    ),
    (
        "SPL_AUDIT_SIEM_WEBHOOK_SECRET",
        "whsec_canary5ecret11111111111111111111111111111111",
    ),
    (
        "SPL_SMTP_URL",
        "smtp://ana:canary5ecret-of-mail@127.0.0.1:9?tls=none",
    ),
    ("SPL_SMTP_FROM", "sepal@example.org"),
];

/// A server that tells its secret in its log, its progress, its answers and its refusals.
fn talkative() -> Value {
    let mut config = shell(
        r#"token=${line#*\"progressToken\":}; token=${token%%[,\}]*}
        printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"with %s"}}\n' "$token" "$KEY"
        case "$line" in
          *refuse*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no: %s"}}\n' "$id" "$KEY" ;;
          *) say "key $KEY" ;;
        esac"#,
    );
    config["env"] = json!({
        "KEY": "${secret:KEY}",
        "TOOLS": r#"{"name":"echo","inputSchema":{"type":"object","properties":{"how":{"type":"string"}}}}"#,
    });
    json!({ "name": "aux", "config": config, "secrets": { "KEY": format!("{CANARY}-of-a-server") } })
}

/// Finds the canary in a text, as it is or in the forms in which secrets are sent.
fn check(what: &str, text: &str) {
    use base64::Engine as _;
    let encoded = base64::prelude::BASE64_STANDARD.encode(format!("ana:{CANARY}-of-mail"));
    for form in [CANARY, &encoded, KEY] {
        let at = text.find(form).unwrap_or(text.len());
        let from = text[..at]
            .char_indices()
            .rev()
            .nth(80)
            .map_or(0, |(at, _)| at);
        let to = (at + 60).min(text.len());
        assert!(at == text.len(), "{what}: {:?}", text.get(from..to));
    }
}

fn check_files(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += check_files(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            check(
                &path.display().to_string(),
                &String::from_utf8_lossy(&bytes),
            );
            files += 1;
        }
    }
    files
}

/// Returns true for the settings that this test cannot give a canary.
fn has_reason(setting: &str) -> bool {
    // Its 32 bytes are no text. The key of the collector is looked for by its own words.
    ["audit.key", "telemetry.otlp_headers"].contains(&setting)
}

/// Sets secrets over REST, right and wrong ones; what was answered.
async fn set_secrets(app: &TestApp, client: &Client) -> Vec<Answer> {
    let canary = |name: &str| format!("{CANARY}-{name}");
    // A provider that repeats the key it was given.
    let refusal = json!({ "error": { "message": format!("wrong key {}", canary("provider")) } });
    let vendor = ModelStub::start().await;
    vendor.lists(refusal);
    let provider = json!({ "kind": "openai-compatible", "scope": "tenant", "models": ["m"],
        "baseUrl": vendor.base_url(), "apiKey": canary("provider"), "moreKeys": [canary("more")] });
    let mut added = talkative();
    added["scope"] = json!("tenant");
    let secret = json!({ "value": canary("later") });
    let wrong = json!({ "name": "ana", "password": canary("password") });
    let nobody = Client::nobody(app);
    let stranger = Client::nobody(app).and("authorization", format!("Bearer {}", canary("key")));
    vec![
        client.put("/api/providers/mine", provider).await,
        client.post("/api/mcp/test", talkative()).await,
        client.post("/api/mcp/add", added).await,
        client.put("/api/mcp/aux/secrets/LATER", secret).await,
        nobody.post("/api/auth/login", wrong).await,
        stranger.get("/api/sessions").await,
        client.post("/api/providers/mine/test", json!({})).await,
        client.get("/api/models/available?refresh=true").await,
    ]
}

/// A turn whose calls look for secrets, and one that the model refuses with its key.
async fn look_for_secrets(app: &TestApp, socket: &mut TestSocket) {
    wait_for_health(socket, "aux", "healthy").await;
    let search = json!({ "command": "env; cat /proc/[0-9]*/environ; ls /proc/self/fd" });
    app.model
        .will_call("execute_command", search)
        .then_call("echo", json!({ "how": "tell" }))
        .then_call("echo", json!({ "how": "refuse" }))
        .then_say("nothing");
    socket.say("look").await;
    for _ in 0..3 {
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
        socket.wait_for("tool:output").await;
    }
    socket.wait_for_answer().await;
    let echoed = json!({ "error": { "message": "wrong key sk-canary5ecret-of-a-model" } });
    // Each of its keys is tried.
    for _ in 0..3 {
        app.model.will(Reply::fail(401, &[], &echoed.to_string()));
    }
    socket.say("again").await;
    socket.wait_for("agent:error").await;
}

/// Everything that can be read over REST.
fn readable(session: &str) -> Vec<String> {
    let of_session = [
        "",
        "/events",
        "/decisions",
        "/files",
        "/changes",
        "/context",
    ];
    let exports = ["md", "html", "json"].map(|format| format!("/export?format={format}"));
    let of_session = of_session.map(str::to_owned).into_iter().chain(exports);
    let of_session = of_session.map(|path| format!("/api/sessions/{session}{path}"));
    let formats = ["jsonl", "csv", "ocsf", "cef"].into_iter();
    let audit = formats.map(|format| format!("/api/audit/export?format={format}"));
    let others = "audit audit/state auth/me providers providers/mine models/available mcp mcp/aux \
                  mcp/aux/tools mcp/aux/logs mcp/aux/health system usage webhooks \
                  notifications/mail search?q=canary5ecret"
        .split_whitespace()
        .map(|path| format!("/api/{path}"));
    of_session.chain(audit).chain(others).collect()
}

#[tokio::test]
async fn a_secret_is_in_nothing_that_is_written_told_or_kept() {
    let log = Log::at(LogLevel::Trace);
    let collector = Collector::start().await;
    let app = start(&collector, &SETTINGS).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &owner.key);
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let mut told = set_secrets(&app, &client).await;
    look_for_secrets(&app, &mut socket).await;
    app.audit.seal().await.unwrap();
    app.audit.anchor().await;
    app.audit.pass_on().await;

    check(
        "the socket",
        &format!("{:?} {:?}", socket.ready, socket.log),
    );
    for path in readable(&socket.session()) {
        let answer = client.request(Method::GET, &path).send().await.unwrap();
        let answer = Answer::of(answer).await;
        assert!(answer.status < 500, "{path}: {}", answer.text);
        told.push(answer);
    }
    for answer in &told {
        check(
            "an answer",
            &format!("{:?} {}", answer.headers, answer.text),
        );
    }
    let operator = crate::servers::operator(&app, "globex").await;
    let metrics = Client::with_key(&app, &operator.key).get("/metrics").await;
    assert_eq!(metrics.status, 200);
    check("the metrics", &metrics.text);
    let mut show = sepal(&app.folder.path().join("data"));
    let shown = show
        .envs(SETTINGS)
        .args(["config", "show"])
        .output()
        .unwrap();
    assert!(shown.status.success(), "{shown:?}");
    check(
        "the settings as they are shown",
        &String::from_utf8_lossy(&shown.stdout),
    );
    collector.arrived("execute_command").await;
    let app = app
        .restart_after(async |data| assert!(check_files(data) > 2, "there are files"))
        .await;
    app.stop().await;
    assert!(!collector.has_seen(CANARY), "a trace");
    check("the log", &log.text());
    assert!(log.text().len() > 10_000, "there is a log");
}

/// A setting that comes later gets its canary.
#[test]
fn every_setting_with_a_secret_has_a_canary() {
    let set: BTreeSet<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
    let has_secret = |kind| matches!(kind, Kind::Secret | Kind::Smtp | Kind::Headers);
    for setting in table::SETTINGS.iter().filter(|it| has_secret(it.kind)) {
        let is_set = setting.env.iter().any(|name| set.contains(name));
        assert!(is_set || has_reason(setting.key), "{}", setting.key);
    }
}
