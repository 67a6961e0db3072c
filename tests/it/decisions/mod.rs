//! The signed document of a session's decisions, verified by the script of docs/audit.md alone: on each kind of
//! store, after `kill -9`, and with two gateways.

use std::path::Path;
use std::process::Command;

use sepal::domain::Role;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqliteConnection};
use tempfile::TempDir;

use crate::model_stub::{ModelStub, Reply};
use crate::oauth::node;
use crate::rest::Client;
use crate::support::postgres::new_database;
use crate::support::{Person, RedisServer, Server, TestApp, TestSocket, person};

const SECRET_KEY: &str = "a key of thirty-two characters or more";

/// The database of a data folder.
async fn records_of(data: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(data.join("sepal.db"));
    options.connect().await.unwrap()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The script of the documentation, in a folder of its own.
fn script(folder: &Path) -> std::path::PathBuf {
    let text = std::fs::read_to_string(root().join("docs/audit.md")).unwrap();
    let script = text.split("```js\n").nth(1).unwrap();
    let script = script.split("```").next().unwrap();
    assert!(script.lines().count() <= 60, "it is as short as it says");
    let path = folder.join("verify.mjs");
    std::fs::write(&path, script).unwrap();
    path
}

/// Runs a script with these arguments; whether it ended well, and what it said.
fn run(script: &Path, args: &[&str]) -> (bool, String) {
    let node = node(&root().join("tests/conformance"));
    let output = Command::new(node).arg(script).args(args).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

/// The document verifies, and no other one does.
fn assert_proves(text: &str) {
    let folder = TempDir::new().unwrap();
    let document = folder.path().join("decisions.json");
    std::fs::write(&document, text).unwrap();
    let whole: Value = serde_json::from_str(text).unwrap();
    let key = whole["key"].as_str().unwrap();
    let script = script(folder.path());
    let path = document.to_str().unwrap();
    let (is_valid, said) = run(&script, &[path, key]);
    assert!(is_valid && said.starts_with("valid: "), "{said}");
    let mutations = root().join("tests/it/decisions/mutations.mjs");
    let (are_found, said) = run(&mutations, &[script.to_str().unwrap(), path, key]);
    assert!(are_found, "{said}");
}

/// The records of the document with that act.
fn records<'d>(document: &'d Value, act: &str) -> Vec<&'d Value> {
    let commits = document["commits"].as_array().unwrap();
    let records = commits
        .iter()
        .flat_map(|commit| commit["records"].as_array().unwrap());
    records.filter(|record| record["act"] == act).collect()
}

/// The document has an edited, a rejected, a rule-approved and an unknown call.
fn assert_tells_all(document: &Value) {
    let decided = records(document, "call.decided");
    let of_tool = |tool: &str, nth: usize| {
        let of = decided.iter().filter(|it| it["call"]["tool"] == tool);
        of.copied()
            .nth(nth)
            .unwrap_or_else(|| panic!("{decided:#?}"))
    };
    let by_rule = of_tool("read_file", 0);
    assert_eq!(by_rule["by"]["kind"], "rule", "{by_rule}");
    let edited = of_tool("write_file", 0);
    assert_eq!(edited["verdict"], "approved", "{edited}");
    assert_eq!(edited["edit"]["after"], edited["call"]["arguments"]);
    let arguments = &document["arguments"];
    let named = |hash: &Value| &arguments[hash.as_str().unwrap()];
    assert_eq!(named(&edited["edit"]["before"])["path"], "a.txt");
    assert_eq!(named(&edited["edit"]["after"])["path"], "b.txt");
    let rejected = of_tool("write_file", 1);
    assert_eq!(rejected["verdict"], "rejected", "{rejected}");
    let ran = of_tool("execute_command", 0);
    let ends = records(document, "call.ended");
    let unknown: Vec<&&Value> = (ends.iter())
        .filter(|end| end["call"] == ran["call"]["id"])
        .collect();
    assert_eq!(unknown.len(), 1, "{ends:?}");
    assert_eq!(unknown[0]["status"], "unknown");
    let started = records(document, "call.started");
    assert_eq!(started.len(), 3, "{started:?}");
}

/// Brings a session to the point where a command runs that never ends.
async fn until_it_runs(server: &Server, model: &ModelStub, ana: &Person) -> String {
    let client = Client::at(server.address, &ana.key);
    let rule = json!({
        "effect": "allow", "scope": "person", "tool": "read_file", "confirm": "read_file",
    });
    client.post("/api/rules", rule).await.ok(201);
    let file = |path: &str| json!({ "path": path, "content": "é\n\u{1f}\"" });
    let calls = [
        ("write_file", file("a.txt")),
        ("write_file", file("c.txt")),
        ("read_file", json!({ "path": "a.txt" })),
        (
            "execute_command",
            json!({ "command": "echo started; sleep 28" }),
        ),
    ];
    model.will(Reply::answer("All", &calls)).then_say("I see");
    let mut socket = TestSocket::open(server.address, ana, None).await;
    socket.say("go").await;
    let first = socket.wait_for_approval().await;
    let edit = json!({
        "callId": first["callId"], "approved": true, "digest": first["digest"],
        "args": file("b.txt"),
    });
    let answer = socket.ask("tool:approval", &[edit]).await;
    assert_eq!(answer["ok"], true, "{answer}");
    let second = socket.wait_for_approval().await;
    assert_eq!(socket.decide(&second, false).await["ok"], true);
    let third = socket.wait_for_approval().await;
    socket.approve(&third).await;
    socket
        .wait_where(|said| {
            said.name == "tool:progress" && said.args[0].to_string().contains("started")
        })
        .await;
    socket.session()
}

/// Waits for the answer of the turn that another gateway goes on with.
async fn wait_for_answer(server: &Server, ana: &Person, session: &str) {
    let mut socket = TestSocket::open(server.address, ana, Some(session)).await;
    let events = socket.ready["state"]["transcript"]["events"].to_string();
    if !events.contains("agent:response") {
        socket.wait_for_answer().await;
    }
}

async fn document(server: &Server, ana: &Person, session: &str) -> String {
    let client = Client::at(server.address, &ana.key);
    let path = format!("/api/sessions/{session}/decisions");
    let answer = client.get(&path).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let name = format!("attachment; filename=\"decisions-{session}.json\"");
    assert_eq!(answer.header("content-disposition"), name);
    answer.text
}

/// With everything in that database; without one, in the data folder.
async fn the_decisions_prove_themselves(database: Option<&str>) {
    let env: Vec<_> = database
        .map(|url| ("DATABASE_URL", url))
        .into_iter()
        .collect();
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let session = until_it_runs(&server, &model, &ana).await;
    server.kill();

    let server = Server::start_with(&data, &model, &env);
    wait_for_answer(&server, &ana, &session).await;
    let text = document(&server, &ana, &session).await;
    assert_tells_all(&serde_json::from_str(&text).unwrap());
    assert_proves(&text);
    server.kill();
}

#[tokio::test]
async fn the_decisions_of_a_session_prove_themselves_after_a_kill() {
    the_decisions_prove_themselves(None).await;
}

#[tokio::test]
async fn the_decisions_of_a_session_prove_themselves_in_postgres_too() {
    let database = new_database().await;
    the_decisions_prove_themselves(Some(&database)).await;
}

/// The gateway where it began is killed, and the other one goes on with the chain.
#[tokio::test]
async fn two_gateways_continue_one_chain() {
    let folder = TempDir::new().unwrap();
    let model = ModelStub::start().await;
    let (redis, database) = (RedisServer::start(), new_database().await);
    let url = redis.url();
    let env = [
        ("SPL_REDIS_URL", url.as_str()),
        ("DATABASE_URL", database.as_str()),
        ("SPL_SECRET_KEY", SECRET_KEY),
        ("SPL_SANDBOX", "bubblewrap"),
    ];
    let data = ["a", "b"].map(|name| folder.path().join(name));
    let first = Server::start_with(&data[0], &model, &env);
    let ana = person(&data[0], &env);
    let other = Server::start_with(&data[1], &model, &env);
    let session = until_it_runs(&first, &model, &ana).await;
    let before = document(&other, &ana, &session).await;
    first.kill();
    wait_for_answer(&other, &ana, &session).await;
    let text = document(&other, &ana, &session).await;
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_tells_all(&document);
    let before: Value = serde_json::from_str(&before).unwrap();
    let commits = before["commits"].as_array().unwrap();
    assert_eq!(
        document["commits"].as_array().unwrap()[..commits.len()],
        commits[..],
        "what was proven stays as it was"
    );
    assert_proves(&text);
    other.kill();
}

/// A session of a person with one call that a rule refused.
async fn with_a_call(app: &TestApp, person: &Person) -> String {
    let client = Client::with_key(app, &person.key);
    let rule = json!({ "effect": "deny", "scope": "person", "tool": "read_file" });
    client.post("/api/rules", rule).await.ok(201);
    app.model
        .will_call("read_file", json!({ "path": "secret-plans.txt" }))
        .then_say("I see");
    let mut socket = TestSocket::open(app.address, person, None).await;
    socket.say("read").await;
    socket.wait_for_answer().await;
    socket.session()
}

#[tokio::test]
async fn admins_get_decisions_of_others_without_arguments_and_nobody_else_gets_any() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person_with("acme", Role::Member).await;
    let session = with_a_call(&app, &ana).await;
    let path = format!("/api/sessions/{session}/decisions");
    let own = Client::with_key(&app, &ana.key).get(&path).await;
    let text = own.text.clone();
    let own = own.ok(200);
    assert!(text.contains("secret-plans.txt"), "{text}");
    assert_eq!(records(&own, "call.decided")[0]["by"]["kind"], "rule");
    assert_proves(&text);

    let admin = app.person_with("acme", Role::Admin).await;
    let seen = Client::with_key(&app, &admin.key).get(&path).await;
    assert!(!seen.text.contains("secret-plans.txt"), "{}", seen.text);
    assert_proves(&seen.text);
    let seen = seen.ok(200);
    assert_eq!(seen["commits"], own["commits"]);
    assert!(seen.get("arguments").is_none(), "{seen}");

    // Whose decisions an admin takes is known; a person's own export is nobody's business.
    let path_of_acts = "/api/audit?act=session.decisions_exported";
    let acts = Client::with_key(&app, &admin.key)
        .get(path_of_acts)
        .await
        .ok(200);
    let acts = acts["items"].as_array().unwrap().clone();
    assert_eq!(acts.len(), 1, "{acts:?}");
    assert_eq!(
        acts[0]["record"]["on"],
        json!({ "id": session, "kind": "session" })
    );

    let colleague = app.person_with("acme", Role::Member).await;
    let stranger = app.person_with("other", Role::Owner).await;
    for nobody in [&colleague, &stranger] {
        let answer = Client::with_key(&app, &nobody.key).get(&path).await;
        answer.problem(404, "session_not_found");
    }
    let none = format!("/api/sessions/ses_{:032x}/decisions", 1);
    let answer = Client::with_key(&app, &admin.key).get(&none).await;
    answer.problem(404, "session_not_found");
}

#[tokio::test]
async fn a_journal_that_was_changed_gives_no_document_and_says_where() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let session = with_a_call(&app, &ana).await;
    let app = app
        .restart_after(async |data| {
            let mut records = records_of(data).await;
            let change = "UPDATE journal SET body = CAST(replace(CAST(body AS TEXT), \
                          '\"read\"', '\"rode\"') AS BLOB)";
            sqlx::raw_sql(change).execute(&mut records).await.unwrap();
        })
        .await;
    let client = Client::with_key(&app, &ana.key);
    let path = format!("/api/sessions/{session}/decisions");
    let problem = client.get(&path).await.problem(500, "session_unreadable");
    let said = problem["detail"].as_str().unwrap();
    assert!(
        said.contains("commit 1: its content or its link was changed"),
        "{said}"
    );
}
