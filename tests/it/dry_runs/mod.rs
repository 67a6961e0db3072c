//! A call that waits, tried in a copy of the workspace: what it shows, what it leaves alone, and who may.

mod overlays;

use std::time::Duration;

use reqwest::Method;
use sepal::config::Settings;
use sepal::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model_stub::ModelStub;
use crate::servers::{Api, shell, wait_for_health};
use crate::support::{Person, Server, TestApp, TestSocket, person, until};
use crate::workspace_files::Ana;

/// How long a dry run may take on a busy machine: ten thousand files are made anew for one.
const PATIENCE: Duration = Duration::from_mins(2);

/// Prints every entry of the workspace, with times.
const TREE: &str = r"(find . -mindepth 1 -type f -printf 'f %m %T@ %P ' -exec sha256sum {} \;;
    find . -mindepth 1 -not -type f -printf '%y %m %T@ %P %l\n') | LC_ALL=C sort | sha256sum";

/// A call of that tool waits; its card.
pub(crate) async fn asked(
    app: &TestApp,
    socket: &mut TestSocket,
    tool: &str,
    args: Value,
) -> Value {
    app.model.will_call(tool, args).then_say("Done");
    socket.say("go").await;
    socket.wait_for_approval().await
}

/// Has the call tried; what came of it.
pub(crate) async fn tried(socket: &mut TestSocket, card: &Value) -> Value {
    let ask = json!({ "callId": card["callId"], "digest": card["digest"] });
    let ack = socket.ask("tool:dry_run", &[ask]).await;
    assert_eq!(ack["ok"], true, "{ack}");
    result(socket).await
}

/// The dry run on the first card of the queue, once it is over.
pub(crate) async fn result(socket: &mut TestSocket) -> Value {
    let queue = socket
        .wait_within(PATIENCE, |said| {
            let status = &said.args.first().unwrap_or(&Value::Null)["calls"][0]["dryRun"]["status"];
            said.name == "tool:queue" && status.is_string() && status != "running"
        })
        .await;
    let call = queue.args[0]["calls"][0].clone();
    assert_eq!(call["status"], "pending", "the call goes on waiting");
    call["dryRun"].clone()
}

fn file<'a>(report: &'a Value, path: &str) -> &'a Value {
    let mut files = report["files"].as_array().unwrap().iter();
    let found = files.find(|file| file["path"] == path);
    found.unwrap_or_else(|| panic!("`{path}` is not in {report}"))
}

pub(crate) async fn socket_of(app: &TestApp, ana: &Ana) -> TestSocket {
    TestSocket::open(app.address, &ana.person, Some(&ana.session)).await
}

/// Changes what [`with_files`] made, and ends badly.
const COMMAND: &str = "printf 'one\\nTWO\\n' >d/notes; rm gone; echo new >made; printf 'a\\0b' >data; \
    echo said; echo wrong >&2; ls /sys/class/net; exit 3";

/// A server that copies every file for a dry run.
async fn by_copying() -> TestApp {
    let copies = |settings: &mut Settings| settings.sandbox.forces_copies = true;
    TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], copies).await
}

/// A session with files of some kinds.
async fn with_files(app: &TestApp) -> Ana {
    let ana = Ana::open(app, "acme").await;
    let make = "mkdir d; printf 'one\\ntwo\\n' >d/notes; echo x >gone; ln -s d/notes link; \
                head -c 300 /dev/zero >data";
    ana.runs(app, make).await;
    ana
}

/// A call of [`COMMAND`] waits; its card.
async fn asked_to_change(app: &TestApp, socket: &mut TestSocket) -> Value {
    asked(
        app,
        socket,
        "execute_command",
        json!({ "command": COMMAND }),
    )
    .await
}

fn shows_what_changed(report: &Value) {
    assert_eq!(report["exitCode"], 3, "{report}");
    let text = report["text"].as_str().unwrap();
    assert!(text.contains("said") && text.contains("wrong"), "{text}");
    assert!(!text.contains("eth"), "it has no network: {text}");
    let counts = json!({ "created": 1, "modified": 2, "deleted": 1, "folders": 0 });
    assert_eq!(report["counts"], counts);
    assert_eq!(file(report, "d/notes")["change"], "modified");
    for (path, line) in [
        ("d/notes", "-two\n+TWO\n"),
        ("made", "+new\n"),
        ("gone", "-x\n"),
    ] {
        let diff = file(report, path)["diff"].as_str().unwrap();
        assert!(diff.contains(line), "{diff}");
    }
    assert_eq!(file(report, "data")["why"], "binary");
}

/// The result shows what the call would do, and the workspace stays as it is to the byte and the second.
async fn a_dry_run_shows_and_changes_nothing(app: TestApp) {
    let ana = with_files(&app).await;
    let before = ana.runs(&app, TREE).await;
    let mut socket = socket_of(&app, &ana).await;
    let card = asked_to_change(&app, &mut socket).await;
    let report = tried(&mut socket, &card).await;
    shows_what_changed(&report);
    assert_eq!(report["by"]["id"], card_owner(&ana).await);

    // A second tab sees it, and so does whoever reads over REST.
    let again = socket_of(&app, &ana).await;
    let shown = &again.ready["state"]["queue"]["calls"][0]["dryRun"];
    assert_eq!(shown["files"], report["files"]);
    let waiting = ana.client.get("/api/approvals").await.ok(200);
    let shown = &waiting["items"][0]["queue"]["calls"][0]["dryRun"];
    assert_eq!(shown["exitCode"], 3);
    drop(again);

    let ack = socket.decide(&card, false).await;
    assert_eq!(ack["ok"], true, "{ack}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    drop(socket);
    assert_eq!(ana.runs(&app, TREE).await, before);
    does_what_was_shown(&app, &ana).await;
    app.stop().await;
}

/// Run for real, the call does what its dry run showed.
async fn does_what_was_shown(app: &TestApp, ana: &Ana) {
    let mut socket = socket_of(app, ana).await;
    let card = asked_to_change(app, &mut socket).await;
    tried(&mut socket, &card).await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["exitCode"], 3);
    assert_eq!(socket.wait_for_answer().await, "Done");
    let said = ana.runs(app, "cat d/notes made; ls").await;
    let is_done = said.contains("TWO") && said.contains("new") && !said.contains("gone");
    assert!(is_done, "{said}");
    drop(socket);
}

async fn card_owner(ana: &Ana) -> Value {
    let me = ana.client.get("/api/auth/me").await.ok(200);
    me["user"]["id"].clone()
}

#[tokio::test]
async fn a_dry_run_shows_and_changes_nothing_with_bubblewrap() {
    let app = TestApp::with_sandbox().await;
    Box::pin(a_dry_run_shows_and_changes_nothing(app)).await;
}

#[tokio::test]
async fn a_dry_run_shows_and_changes_nothing_where_every_file_is_copied() {
    let app = by_copying().await;
    Box::pin(a_dry_run_shows_and_changes_nothing(app)).await;
}

#[tokio::test]
async fn a_dry_run_shows_and_changes_nothing_with_docker() {
    let app = TestApp::with_docker().await;
    Box::pin(a_dry_run_shows_and_changes_nothing(app)).await;
}

#[tokio::test]
async fn a_session_without_files_has_dry_runs_too_and_goes_on_having_none() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    let mut socket = socket_of(&app, &ana).await;
    let args = json!({ "path": "a.txt", "content": "hello\n" });
    let card = asked(&app, &mut socket, "write_file", args).await;
    let report = tried(&mut socket, &card).await;
    assert_eq!(report["status"], "completed", "{report}");
    assert!(
        file(&report, "a.txt")["diff"]
            .as_str()
            .unwrap()
            .contains("+hello\n")
    );
    let listed = ana.list("").await;
    assert_eq!(listed["items"], json!([]));
    // The copy is gone: nothing is left but the empty workspace that the session may have.
    let folder = app.folder.path().join("data/workspaces");
    let left = std::fs::read_dir(folder).unwrap().count();
    assert!(left <= 1, "{left} workspaces");
}

#[tokio::test]
async fn a_dry_run_ends_when_it_is_dropped_and_with_the_decision() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.runs(&app, "echo x >a").await;
    let mut socket = socket_of(&app, &ana).await;
    let args = json!({ "command": "echo begun >a; sleep 60" });
    let card = asked(&app, &mut socket, "execute_command", args).await;
    let ask = json!({ "callId": card["callId"] });
    let begun = ana
        .client
        .post(&ana.at("dry-runs"), ask.clone())
        .await
        .ok(202);
    assert_eq!(begun["ok"], true);
    let runs = |said: &crate::support::Said| {
        said.name == "tool:queue" && said.args[0]["calls"][0]["dryRun"]["status"] == "running"
    };
    socket.wait_where(runs).await;
    let path = ana.at(&format!("dry-runs/{}", card["callId"].as_str().unwrap()));
    let dropped = ana
        .client
        .request(Method::DELETE, &path)
        .send()
        .await
        .unwrap();
    assert_eq!(dropped.status(), 202);
    let gone = socket.wait_for("tool:queue").await;
    assert_eq!(gone.args[0]["calls"][0]["dryRun"], Value::Null);

    // The decision ends it as well, and what the copy had is gone.
    socket.ask("tool:dry_run", &[ask]).await;
    socket.wait_where(runs).await;
    socket.decide(&card, false).await;
    assert_eq!(socket.wait_for_answer().await, "Done");
    let said = ana.runs(&app, "cat a").await;
    assert!(said.contains('x') && !said.contains("begun"), "{said}");
    drop(socket);
    app.stop().await;
}

#[tokio::test]
async fn what_reaches_hosts_or_sees_no_files_has_no_dry_run() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_SANDBOX_NETWORK", "example.org"),
    ])
    .await;
    let ana = Ana::open(&app, "acme").await;
    let mut socket = socket_of(&app, &ana).await;
    let card = asked(
        &app,
        &mut socket,
        "execute_command",
        json!({ "command": "date" }),
    )
    .await;
    assert_eq!(card["noDryRun"], "network", "{card}");
    let ack = socket
        .ask("tool:dry_run", &[json!({ "callId": card["callId"] })])
        .await;
    assert_eq!(ack["error"]["code"], "not_allowed", "{ack}");
    let text = ack["error"]["message"].as_str().unwrap();
    assert!(text.contains("may reach hosts"), "{text}");
}

/// Tries to have a call tried over REST.
async fn try_as(app: &TestApp, who: &Person, (session, card): (&str, &Value)) -> (u16, Value) {
    let path = format!("/api/sessions/{session}/dry-runs");
    let body = json!({ "callId": card["callId"], "digest": card["digest"] });
    Api::new(app, who).ask(Method::POST, &path, &body).await
}

#[tokio::test]
async fn only_who_may_approve_may_try() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person_with("acme", Role::Member).await;
    let bo = app.person_with("acme", Role::Member).await;
    let boss = app.person_with("acme", Role::Admin).await;
    let viewer = app.person_with("acme", Role::Viewer).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let rule = json!({
        "effect": "ask", "scope": "tenant", "tool": "execute_command", "approvers": "role:admin",
    });
    crate::rules::given(&Api::new(&app, &boss), &rule).await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let args = json!({ "command": "echo tried" });
    let card = asked(&app, &mut socket, "execute_command", args).await;
    let session = socket.session();
    let call = (session.as_str(), &card);
    assert_eq!(try_as(&app, &stranger, call).await.0, 404);
    assert_eq!(try_as(&app, &bo, call).await.0, 404);
    assert!([403, 404].contains(&try_as(&app, &viewer, call).await.0));
    let (status, answer) = try_as(&app, &ana, call).await;
    assert_eq!(
        (status, &answer["code"]),
        (403, &json!("not_allowed")),
        "{answer}"
    );
    let (status, answer) = try_as(&app, &boss, call).await;
    assert_eq!(status, 202, "{answer}");
    let report = result(&mut socket).await;
    let me = Api::new(&app, &boss).get("/api/auth/me").await;
    assert_eq!(report["by"]["id"], me["user"]["id"], "{report}");
    assert!(report["text"].as_str().unwrap().contains("tried"));
}

/// A server of one's own that sees the workspace is started anew for the copy: what the live one remembers
/// is not there, and stays as it is.
#[tokio::test]
async fn another_server_runs_apart_from_the_live_one() {
    Box::pin(another_server_runs_apart(TestApp::with_sandbox().await)).await;
    Box::pin(another_server_runs_apart(by_copying().await)).await;
}

async fn another_server_runs_apart(app: TestApp) {
    let script = r#"count=$((count + 1)); echo "$count" >/workspace/count; say "call $count""#;
    let ana = Ana::open(&app, "acme").await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);
    let mut config = shell(script);
    config["workspace"] = json!("rw");
    api.add("aux", config).await;
    let mut socket = socket_of(&app, &ana).await;
    wait_for_health(&mut socket, "aux", "healthy").await;

    let card = asked(&app, &mut socket, "echo", json!({})).await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for("tool:output").await.text(), "call 1");
    assert_eq!(socket.wait_for_answer().await, "Done");

    let card = asked(&app, &mut socket, "echo", json!({})).await;
    let report = tried(&mut socket, &card).await;
    assert_eq!(report["text"], "call 1", "{report}");
    assert_eq!(report["unseen"], json!(["live_process"]));
    assert_eq!(report["counts"]["modified"], 1, "{report}");
    // The fresh one wrote what was there already.
    socket.approve(&card).await;
    assert_eq!(socket.wait_for("tool:output").await.text(), "call 2");
    assert_eq!(socket.wait_for_answer().await, "Done");
    let said = ana.runs(&app, "cat count").await;
    assert!(said.contains('2'), "{said}");
}

/// A gateway that is killed in the middle leaves nothing that looks like a result, and no copy.
#[tokio::test]
async fn a_kill_in_the_middle_leaves_the_call_waiting_and_no_copy() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let env = [("SPL_SANDBOX", "bubblewrap")];
    let model = ModelStub::start().await;
    let command = json!({ "command": "sleep 600" });
    model.will_call("execute_command", command).then_say("Done");
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    let session = socket.session();
    let ack = socket
        .ask("tool:dry_run", &[json!({ "callId": card["callId"] })])
        .await;
    assert_eq!(ack["ok"], true, "{ack}");
    let workspaces = data.join("workspaces");
    let count = move || std::fs::read_dir(&workspaces).map_or(0, Iterator::count);
    let is_copied = count.clone();
    until("the copy is there", move || is_copied() > 0).await;
    server.kill();

    let server = Server::start_with(&data, &model, &env);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    let asked = again.wait_for_approval().await;
    assert_eq!(asked["callId"], card["callId"]);
    assert_eq!(
        again.ready["state"]["queue"]["calls"][0]["dryRun"],
        Value::Null
    );
    until("the copy is gone", move || count() == 0).await;
    let ack = again.decide(&asked, false).await;
    assert_eq!(ack["ok"], true, "{ack}");
    assert_eq!(again.wait_for_answer().await, "Done");
}
