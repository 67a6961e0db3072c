//! What a turn costs, without tools and with five calls, counted in the log of the real program: whatever a
//! feature adds to each turn shows here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model_stub::{ModelStub, Reply};
use crate::support::{Server, TestSocket, person, until};

/// The turns that are counted. What is done once a second happens far less often meanwhile, and the context
/// has room for all of them: the note about what left it would be counted anew for each request.
const TURNS: u64 = 20;

/// The lines of the log from `from` on.
fn lines(log: &Path, from: usize) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    let lines = text.lines().skip(from);
    // The last line may be written at this moment.
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The statement of a line, if it tells one.
fn statement(line: &Value) -> Option<String> {
    if line["target"] != "sqlx::query" {
        return None;
    }
    let whole = line["db.statement"].as_str().unwrap_or_default();
    let text = if whole.is_empty() {
        line["summary"].as_str().unwrap()
    } else {
        whole
    };
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The rows that statements with this text wrote.
fn rows(lines: &[Value], text: &str) -> u64 {
    let written = lines
        .iter()
        .filter(|line| statement(line).is_some_and(|statement| statement.contains(text)));
    written
        .map(|line| line["rows_affected"].as_u64().unwrap())
        .sum()
}

/// Counts the lines of the log whose message is this text.
fn told(lines: &[Value], text: &str) -> u64 {
    let said = lines.iter().filter(|line| line["message"] == text);
    said.count() as u64
}

async fn turns(model: &ModelStub, socket: &mut TestSocket, count: u64) {
    for _ in 0..count {
        model.will_say("Hello to you too");
        socket.say("hello").await;
        assert_eq!(socket.wait_for_answer().await, "Hello to you too");
    }
}

async fn wait_for_ledger(log: &Path, requests: u64) {
    let log: PathBuf = log.into();
    let has_all = move || rows(&lines(&log, 0), "INSERT INTO model_requests") >= requests;
    until("the ledger has a row for each request", has_all).await;
}

#[tokio::test]
async fn a_plain_turn_is_two_appends_and_reads_nothing() {
    let folder = TempDir::new().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let model = ModelStub::start().await;
    let env = [
        ("SPL_SANDBOX", "none"),
        ("SPL_LOG_LEVEL", "trace"),
        ("SPL_LOG_FORMAT", "json"),
        ("SPL_LOG_OUTPUT", log.to_str().unwrap()),
    ];
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &[("SPL_SANDBOX", "none")]);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    // What is read once is not part of a turn.
    turns(&model, &mut socket, 2).await;
    wait_for_ledger(&log, 2).await;
    let from = std::fs::read_to_string(&log).unwrap().lines().count();
    turns(&model, &mut socket, TURNS).await;
    wait_for_ledger(&log, 2 + TURNS).await;
    let lines = lines(&log, from);
    drop(server);

    assert_eq!(rows(&lines, "INSERT INTO journal"), 2 * TURNS);
    assert_eq!(rows(&lines, "INSERT INTO model_requests"), TURNS);
    let mut statements: BTreeMap<String, u64> = BTreeMap::new();
    for statement in lines.iter().filter_map(statement) {
        *statements.entry(statement).or_default() += 1;
    }
    statements.retain(|_, count| *count >= TURNS / 2);
    let often: Vec<&String> = statements.keys().collect();
    assert!(
        matches!(often[..], [append] if append.contains("INSERT INTO journal")),
        "{statements:#?}"
    );
    // Nobody watches a list, and no call waits: rows of the session are neither read back nor looked through.
    let seldom = [
        "SELECT * FROM sessions WHERE (tenant",
        "FROM webhooks w JOIN sessions",
    ];
    for text in seldom {
        let looks = lines.iter().filter_map(statement);
        assert!(looks.filter(|it| it.contains(text)).count() <= 1, "{text}");
    }
    // One for the request, and one for what the next request would hold, which is shown.
    assert_eq!(told(&lines, "Building the context of a session"), 2 * TURNS);
    // The question and the answer.
    assert_eq!(told(&lines, "Counting the tokens of an entry"), 2 * TURNS);
    assert_eq!(told(&lines, "Reading the catalogue of models"), 0);
}

/// Each of five decisions is one commit. Who may act is read where something starts: after the answer that asks
/// for calls, at the last decision, and at the last result.
#[tokio::test]
async fn a_round_of_five_calls_does_not_read_with_each_approval_who_may_act() {
    const ROUNDS: u64 = 3;
    let folder = TempDir::new().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let model = ModelStub::start().await;
    let env = [
        ("SPL_LOG_LEVEL", "trace"),
        ("SPL_LOG_FORMAT", "json"),
        ("SPL_LOG_OUTPUT", log.to_str().unwrap()),
    ];
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &[]);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    for _ in 0..ROUNDS {
        let calls = [(); 5].map(|()| ("list_files", json!({})));
        model.will(Reply::answer("", &calls)).then_say("Seen");
        socket.say("look five times").await;
        for _ in 0..5 {
            let card = socket.wait_for_approval().await;
            socket.approve(&card).await;
        }
        assert_eq!(socket.wait_for_answer().await, "Seen");
    }
    drop(server);
    let lines = lines(&log, 0);
    let asked = lines.iter().filter_map(statement);
    let asked =
        asked.filter(|it| it.contains("u.role IN ('viewer', 'approver') OR t.suspended_at"));
    // More often if something comes between, such as the title; not once for each approval.
    let asked = asked.count() as u64;
    assert!((3 * ROUNDS..=5 * ROUNDS).contains(&asked), "{asked}");
}
