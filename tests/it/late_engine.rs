//! A container engine that comes later than the gateway, or that gets its image later: sessions that
//! are open have their tools without a restart.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use sepal::domain::{Role, SandboxId};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::servers::{Api, offered, shell, wait_for_health};
use crate::support::docker::{self, docker, lines, named};
use crate::support::{Door, TestApp, TestSocket, behind_each_door, until};

behind_each_door!(an_engine_that_comes_later_gives_open_sessions_their_tools,);

/// An address at which nothing answers until the private engine is put there.
struct Later {
    folder: TempDir,
}

impl Later {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    fn address(&self) -> String {
        format!("unix://{}", self.path().display())
    }

    fn comes(&self) {
        let engine = docker::address();
        symlink(engine.strip_prefix("unix://").unwrap(), self.path()).unwrap();
    }

    fn goes(&self) {
        std::fs::remove_file(self.path()).unwrap();
    }
}

/// What the readiness probe says, which is ready in any case.
async fn readiness(app: &TestApp) -> Value {
    let asked = TestApp::http().get(app.url("/readyz")).send().await;
    let answer = asked.unwrap();
    assert_eq!(answer.status(), 200);
    answer.json().await.unwrap()
}

/// The check of the sandbox, as the page shows it.
async fn check(app: &TestApp, api: &Api<'_>) -> Value {
    let system = api.get("/api/system").await;
    let checks = system["checks"].as_array().unwrap();
    let check = checks.iter().find(|it| it["name"] == "sandbox").unwrap();
    assert_eq!(system["sandbox"]["ok"], check["ok"]);
    let is_ready = readiness(app).await["sandbox"] == "ok";
    assert_eq!(check["ok"], is_ready);
    check.clone()
}

/// What open pages are told when the sandbox is another.
async fn hears(socket: &mut TestSocket) -> Value {
    socket.wait_for("system:sandbox").await.args[0]["sandbox"].clone()
}

/// Says yes to the next card and waits for what the call gave.
async fn yes(socket: &mut TestSocket) -> Value {
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for("tool:output").await.rest().clone()
}

async fn an_engine_that_comes_later_gives_open_sessions_their_tools(door: Door) {
    let later = Later::new();
    let door = door.open(&later.address()).await;
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", &door.address),
        ("SPL_SANDBOX_IMAGE", &docker::image()),
        ("SPL_METRICS_LISTEN", "127.0.0.1:0"),
    ])
    .await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);
    let mut ana = TestSocket::open(app.address, &owner, None).await;
    says_that_none_answers(&app, &api, &mut ana).await;
    // One more server, which nobody can list yet.
    api.add("aux", shell("say ok")).await;

    later.comes();
    let now = hears(&mut ana).await;
    assert_eq!((&now["ok"], &now["kind"]), (&json!(true), &json!("docker")));
    wait_for_health(&mut ana, "aux", "healthy").await;
    assert_eq!(check(&app, &api).await["remedy"], Value::Null);
    writes_and_reads(&app, &mut ana).await;
    let bob = TestSocket::open(app.address, &owner, None).await;
    assert_eq!(bob.ready["sandbox"]["kind"], "docker");
    let figures = format!("http://{}/metrics", app.metrics.unwrap());
    let figures = TestApp::http().get(figures).send().await.unwrap();
    let figures = figures.text().await.unwrap();
    // Other tests of this process have theirs.
    assert!(!figures.contains("sepal_sandbox_ready 0"), "{figures}");
}

/// Every place says what is missing, and the session works without tools.
async fn says_that_none_answers(app: &TestApp, api: &Api<'_>, ana: &mut TestSocket) {
    assert_eq!(ana.ready["sandbox"]["ok"], false);
    let told = readiness(app).await["sandboxRemedy"].to_string();
    assert!(
        told.contains("systemctl start docker") && told.contains("without a restart"),
        "{told}"
    );
    assert_eq!(check(app, api).await["ok"], false);
    app.model.will_say("I have no tools");
    ana.say("hello").await;
    assert_eq!(ana.wait_for_answer().await, "I have no tools");
    assert_eq!(offered(app), [""; 0]);
}

/// The session has its tools, in one sandbox.
async fn writes_and_reads(app: &TestApp, ana: &mut TestSocket) {
    app.model
        .will_call("write_file", json!({"path": "a.txt", "content": "A"}))
        .then_call("execute_command", json!({"command": "cat a.txt"}))
        .then_say("Done");
    ana.say("write").await;
    for _ in 0..2 {
        let output = yes(ana).await;
        assert_eq!(output["status"], "completed", "{output}");
    }
    assert_eq!(ana.wait_for_answer().await, "Done");
    assert!(offered(app).contains(&"write_file".to_owned()));
}

/// A start with that engine, before it was there, in the middle of a session that it keeps the files
/// of: nothing is lost, nothing runs elsewhere, and what an earlier process left is removed.
#[tokio::test]
async fn what_an_earlier_life_left_is_found_when_the_engine_comes() {
    let later = Later::new();
    later.comes();
    let app = TestApp::with_engine(&later.address()).await;
    app.model
        .will_call("write_file", json!({"path": "a.txt", "content": "kept"}))
        .then_say("Written")
        .will_call("read_file", json!({"path": "a.txt"}));
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("late")).await;
    ana.say("write").await;
    assert_eq!(yes(&mut ana).await["status"], "completed");
    ana.wait_for_answer().await;
    ana.say("read").await;
    ana.wait_for_approval().await;
    drop(ana);

    let (container, volume) = plant(&app.installation());
    later.goes();
    let app = app.restart().await;
    let mut ana = TestSocket::open(app.address, &person, Some("late")).await;
    app.model.will_say("It did not run");
    let output = yes(&mut ana).await;
    assert!(
        output.to_string().contains("no container engine"),
        "{output}"
    );
    let why = ana.wait_for("agent:error").await.rest()["code"].clone();
    assert_eq!(why, "sandbox_unavailable");
    ana.wait_for_answer().await;
    let of = format!("sepal.installation={}", app.installation());
    assert!(named("container", &of).contains(&container));

    later.comes();
    assert_eq!(hears(&mut ana).await["ok"], true);
    app.model
        .will_call("read_file", json!({"path": "a.txt"}))
        .then_say("Read");
    ana.say("read").await;
    let output = yes(&mut ana).await;
    assert!(output.to_string().contains("kept"), "{output}");
    ana.wait_for_answer().await;
    until("what nobody owns goes", move || {
        !named("container", &of).contains(&container) && !named("volume", &of).contains(&volume)
    })
    .await;
}

/// What a life that was killed would leave: a container and a volume without a session.
fn plant(installation: &str) -> (String, String) {
    let sandbox = SandboxId::from_bits(rand::random());
    let (container, volume) = (format!("sepal-sb-{sandbox}"), format!("sepal-ws-{sandbox}"));
    let label = format!("sepal.installation={installation}");
    let of = format!("sepal.sandbox={sandbox}");
    let image = docker::image();
    let life = ["--label", "sepal.life=over"];
    let labels = [&["--label", &label, "--label", &of][..], &life].concat();
    let make = [&["create", "--name", &container][..], &labels, &[&image]].concat();
    lines(&docker::address(), &make);
    let make = [&["volume", "create"][..], &labels, &[&volume]].concat();
    lines(&docker::address(), &make);
    (container, volume)
}

#[tokio::test]
async fn an_image_that_is_built_later_is_found() {
    let image = format!("sepal-late/sandbox:{:016x}", rand::random::<u64>());
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", &docker::address()),
        ("SPL_SANDBOX_IMAGE", &image),
        ("SPL_SANDBOX_POOL_SIZE", "0"),
    ])
    .await;
    let told = readiness(&app).await["sandboxRemedy"].to_string();
    assert!(told.contains(&format!("docker pull {image}")), "{told}");
    let mut ana = app.socket("acme").await;
    lines(&docker::address(), &["tag", &docker::image(), &image]);
    assert_eq!(hears(&mut ana).await["ok"], true);
    app.model
        .will_call("list_files", json!({}))
        .then_say("Listed");
    ana.say("list").await;
    assert_eq!(yes(&mut ana).await["status"], "completed");
    ana.wait_for_answer().await;
    app.stop().await;
    docker(&docker::address(), &["rmi", &image]);
}

/// What is missing changes: first the engine, then its image.
#[tokio::test]
async fn what_is_said_is_what_is_missing_now() {
    let later = Later::new();
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", &later.address()),
        ("SPL_SANDBOX_IMAGE", "some/image:none"),
    ])
    .await;
    let mut ana = app.socket("acme").await;
    let told = readiness(&app).await["sandboxRemedy"].to_string();
    assert!(told.contains("systemctl start docker"), "{told}");
    later.comes();
    let now = hears(&mut ana).await;
    assert_eq!(now["ok"], false);
    let told = readiness(&app).await["sandboxRemedy"].to_string();
    assert!(told.contains("docker pull some/image:none"), "{told}");
}
