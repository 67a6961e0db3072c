//! A call that has the result of its dry run: the same files and output, in the history, and never a second
//! run.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tempfile::TempDir;

use super::TREE;
use crate::dry_runs::{asked, socket_of, tried};
use crate::model_stub::ModelStub;
use crate::servers::{Api, shell, wait_for_health};
use crate::support::{DEADLINE, Server, TestApp, TestSocket, person};
use crate::workspace_files::Ana;

/// Another time it would say something else, and leave something else.
const COMMAND: &str = "head -c 16 /dev/urandom >random; mkdir -p made/deep; echo deep >made/deep/file; \
    chmod 750 made/deep/file; rm -r old; rm gone; ln -sf random link; printf 'one\\nTWO\\n' >d/notes; \
    echo; printf 'a\\0b' >data; : >empty; chmod 600 d/notes";

async fn with_files(app: &TestApp) -> Ana {
    let ana = Ana::open(app, "acme").await;
    let make = "mkdir d; printf 'one\\ntwo\\n' >d/notes; echo x >gone; ln -s d/notes link; mkdir -p old/er; \
                echo o >old/er/file; head -c 300 /dev/zero >data";
    ana.runs(app, make).await;
    ana
}

fn command(line: &str) -> (&'static str, Value) {
    ("execute_command", json!({ "command": line }))
}

/// A yes that names that result.
async fn takes(socket: &mut TestSocket, card: &Value, result: &Value) -> Value {
    let decision = json!({
        "callId": card["callId"], "approved": true, "digest": card["digest"], "dryRun": result,
    });
    socket.ask("tool:approval", &[decision]).await
}

/// Every entry of the workspace, as the command that prints them said it.
fn entries(said: &str) -> Vec<&str> {
    let is_entry = |line: &&str| ["f ", "d ", "l "].iter().any(|it| line.starts_with(it));
    said.lines().filter(is_entry).collect()
}

async fn a_yes_takes_the_result(app: TestApp) {
    let ana = with_files(&app).await;
    let before = ana.tree(&app).await;
    let steps = ana.history().await.len();
    let mut socket = socket_of(&app, &ana).await;
    let line = format!("{COMMAND}; {TREE}; exit 3");
    let (tool, args) = command(&line);
    let card = asked(&app, &mut socket, tool, args).await;
    let report = tried(&mut socket, &card).await;
    assert_eq!(report["noResult"], Value::Null, "{report}");
    let ack = takes(&mut socket, &card, &report["result"]).await;
    assert_eq!(ack["ok"], true, "{ack}");
    let decided = socket.wait_for("tool:decided").await;
    assert_eq!(decided.rest()["dryRun"], report["result"]);
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["exitCode"], 3, "{:?}", output.rest());
    assert_eq!(output.text(), report["text"].as_str().unwrap());
    assert_eq!(socket.wait_for_answer().await, "Done");
    drop(socket);
    let after = ana.tree(&app).await;
    assert_eq!(after.lines().collect::<Vec<_>>(), entries(output.text()));

    let history = ana.history().await;
    let new = &history[..history.len() - steps];
    let its = |step: &&Value| step["calls"] == json!([card["callId"]]);
    let step = new.iter().find(its).unwrap_or_else(|| panic!("{new:?}"));
    assert_eq!(step["late"], Value::Null, "{step}");
    ana.undoes(&step["number"]).await;
    assert_eq!(ana.tree(&app).await, before);
    app.stop().await;
}

#[tokio::test]
async fn a_yes_takes_the_result_with_bubblewrap() {
    let app = TestApp::with_sandbox().await;
    Box::pin(a_yes_takes_the_result(app)).await;
}

#[tokio::test]
async fn a_yes_takes_the_result_with_docker() {
    let app = TestApp::with_docker().await;
    Box::pin(a_yes_takes_the_result(app)).await;
}

#[tokio::test]
async fn a_session_without_files_takes_a_result_too() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    let mut socket = socket_of(&app, &ana).await;
    let args = json!({ "path": "a.txt", "content": "hello\n" });
    let card = asked(&app, &mut socket, "write_file", args).await;
    let report = tried(&mut socket, &card).await;
    takes(&mut socket, &card, &report["result"]).await;
    assert_eq!(socket.wait_for_answer().await, "Done");
    drop(socket);
    let listed = ana.list("").await;
    assert_eq!(listed["items"][0]["name"], "a.txt", "{listed}");
    app.stop().await;
}

/// Nothing of a result is taken that the call might not have by now.
#[tokio::test]
async fn files_that_changed_since_are_left_as_they_are() {
    let app = TestApp::with_sandbox().await;
    let ana = with_files(&app).await;
    let mut socket = socket_of(&app, &ana).await;
    let (tool, args) = command("cat d/notes >copy");
    let card = asked(&app, &mut socket, tool, args).await;
    let report = tried(&mut socket, &card).await;
    ana.put("d/new", "new\n").await.ok(201);
    takes(&mut socket, &card, &report["result"]).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed", "{:?}", output.rest());
    let text = output.text();
    assert!(text.contains("have changed since the dry run"), "{text}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    drop(socket);
    let said = ana.tree(&app).await;
    assert!(
        said.contains(" d/new ") && !said.contains(" copy "),
        "{said}"
    );
    app.stop().await;
}

#[tokio::test]
async fn what_cannot_be_kept_is_not_offered() {
    let app = TestApp::with_sandbox().await;
    let ana = with_files(&app).await;
    let mut socket = socket_of(&app, &ana).await;
    let line = "head -c 1100000 /dev/zero >large";
    let (tool, args) = command(line);
    let card = asked(&app, &mut socket, tool, args).await;
    let report = tried(&mut socket, &card).await;
    assert_eq!(report["noResult"], "too_large", "{report}");
    assert_eq!(report["result"], Value::Null);
    let ack = takes(&mut socket, &card, &json!("0000")).await;
    assert_eq!(ack["error"]["code"], "changed_since_shown", "{ack}");
    assert_eq!(ack["error"]["field"], "dryRun", "{ack}");
    // With changed arguments the result would be another one.
    let decision = json!({
        "callId": card["callId"], "approved": true, "digest": card["digest"], "dryRun": "0000",
        "args": { "command": "date" },
    });
    let ack = socket.ask("tool:approval", &[decision]).await;
    assert_eq!(ack["error"]["field"], "dryRun", "{ack}");
    socket.decide(&card, false).await;
    assert_eq!(socket.wait_for_answer().await, "Done");
    drop(socket);
    app.stop().await;
}

/// A server of one's own that was started in the session since would know nothing of the result.
#[tokio::test]
async fn a_server_that_runs_by_now_keeps_its_result_from_being_taken() {
    let call = r#"say hello ;;
    *'"method":"resources/read"'*) answer '{"contents":[{"uri":"a:b","text":"read"}]}'"#;
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut config = shell(call);
    config["workspace"] = json!("rw");
    Api::new(&app, &owner).add("aux", config).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    let card = asked(&app, &mut socket, "echo", json!({})).await;
    let session = socket.session();
    drop(socket);

    // Nothing runs in the session now, and the call waits still.
    let app = app.restart().await;
    let mut socket = TestSocket::open(app.address, &owner, Some(&session)).await;
    socket.wait_for_approval().await;
    let report = tried(&mut socket, &card).await;
    assert_eq!(report["unseen"], json!([]), "{report}");
    assert_eq!(report["noResult"], Value::Null, "{report}");
    let which = json!({ "server": "aux", "uri": "a:b" });
    let path = format!("/api/sessions/{session}/resources/read");
    let api = Api::new(&app, &owner);
    let (status, read) = api.ask(Method::POST, &path, &which).await;
    assert_eq!(status, 200, "{read}");
    takes(&mut socket, &card, &report["result"]).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed", "{:?}", output.rest());
    let text = output.text();
    assert!(text.contains("runs in this session by now"), "{text}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

#[tokio::test]
async fn only_who_may_approve_takes_a_result() {
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
    let (tool, args) = command("head -c 8 /dev/urandom >a; cksum a");
    let card = asked(&app, &mut socket, tool, args).await;
    let session = socket.session();
    let ask = json!({ "callId": card["callId"], "digest": card["digest"] });
    let path = format!("/api/sessions/{session}/dry-runs");
    let (status, answer) = Api::new(&app, &boss).ask(Method::POST, &path, &ask).await;
    assert_eq!(status, 202, "{answer}");
    let report = crate::dry_runs::result(&mut socket).await;
    let path = format!("/api/sessions/{session}/approvals");
    let yes = json!({
        "callId": card["callId"], "approved": true, "digest": card["digest"],
        "dryRun": report["result"],
    });
    for (who, statuses) in [
        (&stranger, &[404][..]),
        (&bo, &[404]),
        (&viewer, &[403, 404]),
        (&ana, &[403]),
    ] {
        let (status, answer) = Api::new(&app, who).ask(Method::POST, &path, &yes).await;
        assert!(statuses.contains(&status), "{status} {answer}");
    }
    let (status, answer) = Api::new(&app, &boss).ask(Method::POST, &path, &yes).await;
    assert_eq!(status, 202, "{answer}");
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), report["text"].as_str().unwrap());
    assert_eq!(socket.wait_for_answer().await, "Done");
}

/// The result is in the records: a gateway that was killed meanwhile changes nothing, and once the call has
/// it, nothing is left there.
#[tokio::test]
async fn a_result_outlives_its_gateway_and_goes_with_the_decision() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let env = [("SPL_SANDBOX", "bubblewrap")];
    let model = ModelStub::start().await;
    let args = json!({ "command": "head -c 8 /dev/urandom >a; cksum a" });
    model.will_call("execute_command", args).then_say("Done");
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    let session = socket.session();
    let report = tried(&mut socket, &card).await;
    assert_eq!(kept(&data).await, 1);
    server.kill();

    let server = Server::start_with(&data, &model, &env);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    let asked = again.wait_for_approval().await;
    let shown = &again.ready["state"]["queue"]["calls"][0]["dryRun"];
    assert_eq!(shown["result"], report["result"]);
    let ack = takes(&mut again, &asked, &report["result"]).await;
    assert_eq!(ack["ok"], true, "{ack}");
    let output = again.wait_for("tool:output").await;
    assert_eq!(output.text(), report["text"].as_str().unwrap());
    assert_eq!(again.wait_for_answer().await, "Done");
    let forgotten = async { while kept(&data).await > 0 {} };
    let waited = tokio::time::timeout(DEADLINE, forgotten).await;
    assert!(waited.is_ok(), "the result stays in the records");
}

/// How many results the records have.
async fn kept(data: &std::path::Path) -> i64 {
    let options = SqliteConnectOptions::new().filename(data.join("sepal.db"));
    let mut records = SqliteConnection::connect_with(&options).await.unwrap();
    let (count,): (i64,) = sqlx::query_as("SELECT COUNT(*) FROM dry_run_results")
        .fetch_one(&mut records)
        .await
        .unwrap();
    count
}
