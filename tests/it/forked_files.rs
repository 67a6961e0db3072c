//! What a fork has in its workspace: a copy of the other session's files as they are now.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::rest::Client;
use crate::support::{Person, TestApp, TestSocket};

/// Somebody with a session whose tools run in a sandbox.
struct Ana {
    person: Person,
    client: Client,
    socket: TestSocket,
}

impl Ana {
    async fn open(app: &TestApp) -> Self {
        let person = app.person("acme").await;
        Self {
            client: Client::with_key(app, &person.key),
            socket: TestSocket::open(app.address, &person, None).await,
            person,
        }
    }

    /// What a command prints in the sandbox of her session.
    async fn runs(&mut self, app: &TestApp, command: &str) -> String {
        runs(app, &mut self.socket, command).await
    }

    /// Forks her session as it is; the new one, once its workspace is what it will be.
    async fn forks(&self, app: &TestApp) -> (Value, TestSocket) {
        let path = format!("/api/sessions/{}/fork", self.socket.session());
        let forked = self.client.post(&path, json!({})).await.ok(201);
        let id = forked["id"].as_str().unwrap();
        let mut fork = TestSocket::open(app.address, &self.person, Some(id)).await;
        let settled = settled(&self.client, &mut fork, id).await;
        (settled, fork)
    }
}

async fn runs(app: &TestApp, socket: &mut TestSocket, command: &str) -> String {
    app.model
        .will_call("execute_command", json!({ "command": command }))
        .then_say("Ran");
    socket.say("run").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(socket.wait_for_answer().await, "Ran");
    output.text().to_owned()
}

/// What the transcript says of the workspace of a fork; waited for where it is not told yet.
async fn settled(client: &Client, fork: &mut TestSocket, id: &str) -> Value {
    let path = format!("/api/sessions/{id}/events");
    let told = client.get(&path).await.ok(200);
    let mut events = told["items"].as_array().unwrap().iter();
    match events.find(|event| event["event"] == "session:workspace") {
        Some(event) => event["args"][0].clone(),
        None => fork.wait_for("session:workspace").await.rest().clone(),
    }
}

/// The workspaces of an app whose sandboxes are bubblewrap's.
fn workspaces(app: &TestApp) -> BTreeSet<PathBuf> {
    let folder = app.folder.path().join("data/workspaces");
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The files are a copy of what they are now, and each session goes its own way.
async fn a_fork_has_the_files_as_they_are_now(app: TestApp) {
    let mut ana = Ana::open(&app).await;
    ana.runs(
        &app,
        "echo one >notes; mkdir deep; echo x >deep/a; ln -s /etc/passwd link",
    )
    .await;
    let early = ana.socket.ready["seq"].as_u64().unwrap();
    ana.runs(&app, "echo two >notes; chmod 700 notes").await;
    let (told, mut fork) = ana.forks(&app).await;
    assert!(
        told["copiedBytes"].as_u64().unwrap() > 512,
        "{told} {early}"
    );
    let look = "cat notes deep/a; stat -c '%a %u' notes; readlink link";
    let first = ana.runs(&app, look).await;
    assert_eq!(runs(&app, &mut fork, look).await, first);
    assert!(
        first.contains("two") && first.contains("/etc/passwd"),
        "{first}"
    );
    // The model is told, once.
    let asked = app.model.requests().pop().unwrap().body.to_string();
    assert_eq!(
        asked.matches("a copy of the first session's").count(),
        1,
        "{asked}"
    );

    runs(&app, &mut fork, "echo three >notes; rm -r deep").await;
    let said = ana.runs(&app, "cat notes deep/a").await;
    assert!(said.contains("two") && said.contains('x'), "{said}");
    drop(fork);
    drop(ana);
    app.stop().await;
}

#[tokio::test]
async fn a_fork_has_the_files_as_they_are_now_with_bubblewrap() {
    let app = TestApp::with_sandbox().await;
    Box::pin(a_fork_has_the_files_as_they_are_now(app)).await;
}

#[tokio::test]
async fn a_fork_has_the_files_as_they_are_now_with_docker() {
    let app = TestApp::with_docker().await;
    Box::pin(a_fork_has_the_files_as_they_are_now(app)).await;
}

#[tokio::test]
async fn what_has_no_files_or_too_many_is_said() {
    let tune = |settings: &mut sepal::config::Settings| settings.sandbox.workspace_mb = 1;
    let app = TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], tune).await;
    let mut ana = Ana::open(&app).await;
    app.model.will_say("Hello");
    ana.socket.say("hi").await;
    ana.socket.wait_for_answer().await;
    let path = format!("/api/sessions/{}/fork", ana.socket.session());
    let forked = ana.client.post(&path, json!({})).await.ok(201);
    let path = format!("/api/sessions/{}/events", forked["id"].as_str().unwrap());
    let events = ana.client.get(&path).await.ok(200);
    let last = events["items"].as_array().unwrap().last().unwrap();
    assert_eq!(last["event"], "session:forked");
    assert_eq!(last["args"][0]["hasFiles"], false);

    // The limit of one file is that of the workspace.
    ana.runs(
        &app,
        "for n in 1 2 3; do head -c 600000 /dev/zero | tr '\\0' x >big$n; done; true",
    )
    .await;
    let (told, mut fork) = ana.forks(&app).await;
    assert_eq!(told["empty"], "too_large");
    let said = runs(&app, &mut fork, "ls -A | wc -l").await;
    assert!(said.contains("\n0") || said.starts_with('0'), "{said}");
}

/// Nobody else's fork copies anything: neither another tenant's nor another person's.
#[tokio::test]
async fn nobody_else_gets_a_copy_of_files() {
    let app = TestApp::with_sandbox().await;
    let mut ana = Ana::open(&app).await;
    ana.runs(&app, "echo mine >secret").await;
    let before = workspaces(&app);
    let path = format!("/api/sessions/{}/fork", ana.socket.session());
    for stranger in [app.person("acme").await, app.person("other").await] {
        let client = Client::with_key(&app, &stranger.key);
        let refused = client.post(&path, json!({})).await;
        refused.problem(404, "session_not_found");
        let mut socket = TestSocket::open(app.address, &stranger, None).await;
        let ask = json!({ "fromSeq": 1 });
        // A socket forks the session that it is in.
        let answer = socket.ask("session:fork", &[ask]).await;
        assert_eq!(answer["ok"], false, "{answer}");
    }
    assert_eq!(workspaces(&app), before);
}

/// A copy that a gateway did not finish is made again by the next one, and what was half-way is gone.
#[tokio::test]
async fn a_copy_outlives_its_gateway() {
    let app = TestApp::with_sandbox().await;
    let mut ana = Ana::open(&app).await;
    let made = ana
        .runs(
            &app,
            "head -c 100000000 /dev/urandom >big; for n in $(seq 2000); do echo $n >f$n; done; \
             cat big f* | sha256sum",
        )
        .await;
    let path = format!("/api/sessions/{}/fork", ana.socket.session());
    let forked = ana.client.post(&path, json!({})).await.ok(201);
    let id = forked["id"].as_str().unwrap().to_owned();
    let person = ana.person.clone();
    drop(ana);
    let app = app.restart().await;
    let client = Client::with_key(&app, &person.key);
    let mut fork = TestSocket::open(app.address, &person, Some(&id)).await;
    let told = settled(&client, &mut fork, &id).await;
    assert!(told.get("empty").is_none(), "{told}");
    let said = runs(&app, &mut fork, "cat big f* | sha256sum").await;
    assert_eq!(said, made);
    assert_eq!(workspaces(&app).len(), 2);
}
