//! `/metrics`: what it counts, who may read it, and that documentation and dashboard name what is
//! there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sepal::domain::Role;
use sepal::telemetry::metrics::{FIGURES, Kind};
use serde_json::{Value, json};

use crate::rest::Client;
use crate::support::{DEADLINE, TestApp, TestSocket};

/// The value of the sample that begins so; 0 while it is not there.
fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample));
    line.map_or(0.0, |value| value.trim().parse().unwrap())
}

async fn figures(app: &TestApp) -> String {
    let url = format!("http://{}/metrics", app.metrics.unwrap());
    let answer = TestApp::http().get(url).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let form = answer.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(form.starts_with("application/openmetrics-text"), "{form}");
    answer.text().await.unwrap()
}

#[tokio::test]
async fn a_turn_with_a_call_is_counted_and_names_nobody() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_METRICS_LISTEN", "127.0.0.1:0"),
    ])
    .await;
    let before = figures(&app).await;
    app.model
        .will_call("list_files", json!({}))
        .then_say("Nothing is there");
    let ana = app.person("acme-of-the-metrics").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("list").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for_answer().await;
    let after = figures(&app).await;
    // The process is shared with other tests: at least this much was added.
    for (sample, added) in [
        ("sepal_turns_total{outcome=\"answered\"}", 1.0),
        (
            "sepal_turn_duration_seconds_count{provider=\"openai-compatible\"}",
            1.0,
        ),
        (
            "sepal_first_token_seconds_count{provider=\"openai-compatible\"}",
            2.0,
        ),
        (
            "sepal_model_request_seconds_count{provider=\"openai-compatible\",outcome=\"answered\"}",
            2.0,
        ),
        ("sepal_calls_total{state=\"asked\"}", 1.0),
        ("sepal_calls_total{state=\"approved\"}", 1.0),
        ("sepal_calls_total{state=\"started\"}", 1.0),
        ("sepal_calls_total{state=\"completed\"}", 1.0),
        (
            "sepal_approval_wait_seconds_count{verdict=\"approved\"}",
            1.0,
        ),
        (
            "sepal_sandbox_start_seconds_count{driver=\"bubblewrap\",way=\"cold\",outcome=\"ok\"}",
            1.0,
        ),
        ("sepal_store_append_seconds_count{store=\"sqlite\"}", 4.0),
    ] {
        let (before, after) = (value(&before, sample), value(&after, sample));
        assert!(after >= before + added, "{sample}: {before} {after}");
    }
    assert!(value(&after, "sepal_sessions_live") >= 1.0);
    assert!(value(&after, "sepal_sockets_open") >= 1.0);
    assert!(value(&after, "process_resident_memory_bytes") > 1e6);
    assert!(value(&after, "process_open_fds") > 3.0);
    let session = socket.session();
    for name in [session.as_str(), ana.tenant.as_str(), "acme-of-the-metrics"] {
        assert!(!after.contains(name), "{name}");
    }
}

#[tokio::test]
async fn only_administrators_of_the_installation_read_it_at_the_front_door() {
    let app = TestApp::start().await;
    assert_eq!(app.metrics, None, "off unless somebody turns it on");
    let nobody = Client::nobody(&app);
    nobody.get("/metrics").await.problem(401, "unauthorized");
    for role in [Role::Viewer, Role::Member, Role::Admin, Role::Owner] {
        let person = app.person_with("acme", role).await;
        let client = Client::with_key(&app, &person.key);
        client.get("/metrics").await.problem(403, "not_allowed");
    }
    let admin = app.installation_admin("acme").await;
    let answer = Client::with_key(&app, &admin.key).get("/metrics").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(
        answer.text.contains("sepal_build_info{version="),
        "{}",
        answer.text
    );
    assert_eq!(answer.header("cache-control"), "no-store");
}

#[tokio::test]
async fn the_open_address_has_nothing_else() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_METRICS_LISTEN", "127.0.0.1:0"),
    ]);
    let app = app.await;
    for path in ["/", "/api/auth/me", "/healthz", "/socket.io/"] {
        let url = format!("http://{}{path}", app.metrics.unwrap());
        let answer = TestApp::http().get(url).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
    }
}

/// A mailbox without a relay that answers, and a receiver of records that is away.
#[tokio::test]
async fn what_the_audit_cannot_deliver_is_counted_and_ages() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_METRICS_LISTEN", "127.0.0.1:0"),
        ("SPL_SMTP_URL", "smtp://127.0.0.1:1"),
        ("SPL_SMTP_FROM", "sepal@example.org"),
        ("SPL_AUDIT_ANCHOR_MAIL", "auditor@example.org"),
        ("SPL_AUDIT_SIEM_SYSLOG", "tcp://127.0.0.1:1"),
    ])
    .await;
    app.person("acme").await;
    app.audit.seal().await.unwrap();
    let failing = async {
        loop {
            app.audit.anchor().await;
            app.audit.pass_on().await;
            let text = figures(&app).await;
            let failed = |to| {
                let sample = format!("sepal_audit_deliveries_failed_total{{to=\"{to}\"}}");
                value(&text, &sample) >= 1.0
            };
            let lag = value(&text, "sepal_audit_anchor_lag_seconds{to=\"mail\"}");
            // The process is shared with tests whose mail arrives.
            if failed("mail") && failed("siem_syslog") && lag > 0.0 {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, failing).await.unwrap();
    app.stop().await;
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn the_documentation_has_every_figure_and_no_other() {
    let page = read("docs/operations.md");
    let is_figure = |line: &&str| line.starts_with("| `sepal_") || line.starts_with("| `process_");
    let rows: Vec<Vec<String>> = page
        .lines()
        .filter(is_figure)
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect();
    let expected: Vec<Vec<String>> = FIGURES
        .iter()
        .map(|figure| {
            let labels = figure.labels.iter().map(|label| format!("`{label}`"));
            vec![
                format!("`{}`", figure.name),
                figure.kind.as_str().to_owned(),
                labels.collect::<Vec<_>>().join(", "),
                figure.help.to_owned(),
            ]
        })
        .collect();
    assert_eq!(rows, expected, "the table of docs/operations.md");
}

/// Every text under `expr` of a dashboard.
fn queries(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| name == "expr") {
                    Some(text) => into.push(text.to_owned()),
                    None => queries(member, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| queries(item, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The samples that a figure has.
fn samples() -> BTreeSet<String> {
    let mut samples = BTreeSet::new();
    for figure in FIGURES {
        match figure.kind {
            Kind::Counter | Kind::Gauge => {
                samples.insert(figure.name.to_owned());
            }
            Kind::Histogram => samples
                .extend(["bucket", "sum", "count"].map(|end| format!("{}_{end}", figure.name))),
        }
    }
    samples
}

#[test]
fn the_dashboard_asks_only_for_figures_and_labels_that_exist() {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/sepal.json")).unwrap();
    let mut found = Vec::new();
    queries(&dashboard, &mut found);
    // Those of the alerts stand in the documentation.
    let page = read("docs/operations.md");
    let alerts = page
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    found.extend(alerts.map(str::to_owned));
    assert!(found.len() > 15, "{found:?}");
    let (samples, mut used) = (samples(), BTreeSet::new());
    let labels: BTreeSet<&str> = FIGURES
        .iter()
        .flat_map(|figure| figure.labels)
        .copied()
        .chain(["le", "job", "instance"])
        .collect();
    for query in &found {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let words = query.split(|letter: char| !is_part(letter));
        for word in words.filter(|word| word.starts_with("sepal_") || word.starts_with("process_"))
        {
            assert!(
                samples.contains(word),
                "`{word}` of `{query}` does not exist"
            );
            used.insert(word.to_owned());
        }
        for (before, _) in query.match_indices("by (") {
            let inside = query[before + 4..].split(')').next().unwrap();
            for label in inside.split(',').map(str::trim) {
                assert!(
                    labels.contains(label),
                    "`{label}` of `{query}` does not exist"
                );
            }
        }
        for (at, _) in query.match_indices('{') {
            let inside = query[at + 1..].split('}').next().unwrap();
            let pairs = inside
                .split(',')
                .filter_map(|pair| pair.split(['=', '!']).next());
            for label in pairs.map(str::trim).filter(|label| !label.is_empty()) {
                assert!(
                    labels.contains(label),
                    "`{label}` of `{query}` does not exist"
                );
            }
        }
    }
    assert!(used.len() >= 12, "{used:?}");
}
