//! Whole stories on a Docker engine: the two files, one container for a session, an engine that
//! goes and comes back, and what nobody owns any more.

use sepal::domain::SandboxId;
use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::support::docker::{self, docker, lines, named};
use crate::support::{Door, Person, PrivateEngine, TestApp, TestSocket, behind_each_door, until};

behind_each_door!(
    the_two_files_are_written_in_one_container_of_the_session,
    every_session_has_exactly_one_container_however_often_it_calls,
    an_engine_that_is_restarted_fails_the_call_and_keeps_the_files,
    the_janitor_removes_what_nobody_owns_and_a_deleted_session_leaves_nothing,
);

/// Says yes to the next card and waits for what the call gave.
async fn yes(socket: &mut TestSocket) -> Value {
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for("tool:output").await.rest().clone()
}

/// The code of the call that failed.
async fn why(socket: &mut TestSocket) -> Value {
    socket.wait_for("agent:error").await.rest()["code"].clone()
}

/// The value of a label of the container or volume of that name.
fn label(address: &str, kind: &str, name: &str, label: &str) -> String {
    let labels = if kind == "volume" {
        ".Labels"
    } else {
        ".Config.Labels"
    };
    let format = format!("{{{{index {labels} \"{label}\"}}}}");
    lines(address, &[kind, "inspect", "--format", &format, name]).remove(0)
}

/// The command line at an address whose proxy runs beside the test: on another thread, or it could
/// not answer.
async fn through(address: &str, arguments: &[&str]) -> std::process::Output {
    let address = address.to_owned();
    let arguments: Vec<String> = arguments.iter().copied().map(str::to_owned).collect();
    let asking = crate::support::beside(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        docker(&address, &arguments)
    });
    asking.await
}

/// All names with a prefix at an engine.
fn all(address: &str, kind: &str) -> Vec<String> {
    let arguments: &[&str] = match kind {
        "container" => &["ps", "--all", "--format", "{{.Names}}"],
        _ => &["volume", "ls", "--format", "{{.Name}}"],
    };
    lines(address, arguments)
}

async fn the_two_files_are_written_in_one_container_of_the_session(door: Door) {
    let engine = PrivateEngine::start();
    let door = door.open(&engine.address()).await;
    let app = TestApp::with_engine(&door.address).await;
    app.model
        .will(Reply::answer(
            "Two files",
            &[
                ("write_file", json!({"path": "a.txt", "content": "A"})),
                ("write_file", json!({"path": "b.txt", "content": "B"})),
            ],
        ))
        .then_call(
            "execute_command",
            json!({"command": "cat a.txt b.txt; id -un"}),
        )
        .then_say("Done");
    let mut ana = app.socket("acme").await;
    assert_eq!(ana.ready["sandbox"]["kind"], "docker");
    assert_eq!(ana.ready["sandbox"]["limits"]["memory"], "cgroup");
    ana.say("make two files").await;
    for _ in 0..2 {
        let card = ana.wait_for_approval().await;
        ana.approve(&card).await;
    }
    for _ in 0..2 {
        let output = ana.wait_for("tool:output").await;
        assert_eq!(output.rest()["status"], "completed", "{output:?}");
    }
    let running = all(&engine.address(), "container");
    let card = ana.wait_for_approval().await;
    ana.approve(&card).await;
    assert!(
        ana.wait_for("tool:output")
            .await
            .text()
            .contains("ABnobody")
    );
    assert_eq!(ana.wait_for_answer().await, "Done");
    // The pool fills up beside it, with containers that no session has.
    let (sandbox, volume) = (&running[0], running[0].replace("-sb-", "-ws-"));
    assert!(running[0].starts_with("sepal-sb-sbx_"), "{running:?}");
    assert_eq!(
        label(&engine.address(), "container", sandbox, "sepal.server"),
        "sandbox"
    );
    let inside = docker(
        &engine.address(),
        &["exec", sandbox, "cat", "/workspace/a.txt"],
    );
    assert_eq!(inside.stdout, b"A");
    assert!(all(&engine.address(), "volume").contains(&volume));
}

/// Asserts S2.51, O7.
async fn every_session_has_exactly_one_container_however_often_it_calls(door: Door) {
    let engine = PrivateEngine::start();
    let door = door.open(&engine.address()).await;
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", &door.address),
        ("SPL_SANDBOX_IMAGE", &docker::image()),
        ("SPL_SANDBOX_POOL_SIZE", "0"),
    ])
    .await;
    let person = app.person("acme").await;
    for sessions in 1..=2 {
        let mut socket = TestSocket::open(app.address, &person, None).await;
        for _ in 0..2 {
            app.model
                .will_call("list_files", json!({}))
                .then_say("Listed");
            socket.say("list").await;
            assert_eq!(yes(&mut socket).await["status"], "completed");
            socket.wait_for_answer().await;
            // Another tab of the same session starts nothing.
            TestSocket::open(app.address, &person, Some(&socket.session())).await;
        }
        assert_eq!(all(&engine.address(), "container").len(), sessions);
    }
}

/// While it is away: no empty workspace, but words that help. The session goes on.
async fn fails_while_it_is_away(app: &TestApp, ana: &mut TestSocket) {
    app.model
        .will_call("read_file", json!({"path": "kept"}))
        .then_say("No sandbox");
    ana.say("read").await;
    let output = yes(ana).await;
    assert!(
        output.to_string().contains("systemctl start docker"),
        "{output}"
    );
    assert_eq!(why(ana).await, "sandbox_unavailable");
    assert_eq!(ana.wait_for_answer().await, "No sandbox");
}

/// Asserts S2.24, S2.42.
async fn an_engine_that_is_restarted_fails_the_call_and_keeps_the_files(door: Door) {
    let mut engine = PrivateEngine::start();
    let door = door.open(&engine.address()).await;
    let app = TestApp::with_engine(&door.address).await;
    app.model
        .will_call(
            "execute_command",
            json!({"command": "echo kept > kept; echo started; sleep 25"}),
        )
        .then_say("It broke");
    let mut ana = app.socket("acme").await;
    ana.say("run").await;
    let card = ana.wait_for_approval().await;
    ana.approve(&card).await;
    ana.wait_where(|said| {
        said.name == "tool:progress" && said.args[0].to_string().contains("started")
    })
    .await;
    engine.stop();
    let output = ana.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    assert_eq!(ana.wait_for_answer().await, "It broke");

    fails_while_it_is_away(&app, &mut ana).await;
    engine.go_on();
    app.model
        .will_call("read_file", json!({"path": "kept"}))
        .then_say("Here it is");
    ana.say("read again").await;
    let card = ana.wait_for_approval().await;
    ana.approve(&card).await;
    let output = ana.wait_for("tool:output").await;
    assert!(output.text().contains("kept"), "{output:?}");
    assert_eq!(ana.wait_for_answer().await, "Here it is");
}

#[tokio::test]
async fn an_engine_that_starts_after_the_gateway_is_waited_for() {
    let mut engine = PrivateEngine::start();
    let address = engine.address();
    engine.stop();
    #[expect(clippy::disallowed_methods, reason = "a test's own thread")]
    let starting = tokio::task::spawn_blocking(move || {
        engine.go_on();
        engine
    });
    let app = TestApp::with_engine(&address).await;
    let ana = app.socket("acme").await;
    assert_eq!(ana.ready["sandbox"]["ok"], true, "{}", ana.ready);
    starting.await.unwrap();
}

#[tokio::test]
async fn files_that_another_engine_keeps_are_not_replaced_by_an_empty_folder() {
    let app = TestApp::with_docker().await;
    app.model
        .will_call("write_file", json!({"path": "a.txt", "content": "x"}))
        .then_say("Written");
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, None).await;
    ana.say("write").await;
    assert_eq!(yes(&mut ana).await["status"], "completed");
    ana.wait_for_answer().await;
    let session = ana.session();
    let app = app.restart_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    app.model
        .will_call("list_files", json!({}))
        .then_say("Not here");
    let mut again = TestSocket::open(app.address, &person, Some(&session)).await;
    again.say("list").await;
    let output = yes(&mut again).await;
    assert!(output.to_string().contains("kept by `docker/"), "{output}");
    assert_eq!(why(&mut again).await, "sandbox_unavailable");
}

#[tokio::test]
async fn an_engine_or_image_that_is_missing_is_told_with_its_remedy_and_sessions_work() {
    let nowhere = "unix:///nowhere/docker.sock";
    let there = docker::address();
    for (host, image, remedy) in [
        (nowhere, "sepal/sandbox:1", "systemctl start docker"),
        (&there, "sepal/sandbox:none", "./run image"),
        (&there, "some/image:none", "docker pull some/image:none"),
    ] {
        let app = TestApp::start_with(&[
            ("SPL_SANDBOX", "docker"),
            ("SPL_SANDBOX_DOCKER_HOST", host),
            ("SPL_SANDBOX_IMAGE", image),
        ])
        .await;
        app.model.will_say("I have no tools");
        let mut ana = app.socket("acme").await;
        assert_eq!(ana.ready["sandbox"]["ok"], false);
        let detail = ana.ready["sandbox"]["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(remedy), "{detail}");
        ana.say("hello").await;
        assert_eq!(ana.wait_for_answer().await, "I have no tools");
    }
}

#[tokio::test]
async fn without_an_engine_auto_takes_bubblewrap_and_says_so() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "auto"),
        ("SPL_SANDBOX_DOCKER_HOST", "unix:///nowhere/docker.sock"),
    ])
    .await;
    let ana = app.socket("acme").await;
    assert_eq!(ana.ready["sandbox"]["kind"], "bubblewrap");
    let detail = ana.ready["sandbox"]["detail"].to_string();
    assert!(detail.contains("not docker"), "{detail}");
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "auto"),
        ("SPL_SANDBOX_DOCKER_HOST", &docker::address()),
        ("SPL_SANDBOX_IMAGE", &docker::image()),
    ])
    .await;
    let ana = app.socket("acme").await;
    assert_eq!(ana.ready["sandbox"]["kind"], "docker");
}

/// Writes a file in a new session; the session's id.
async fn write(app: &TestApp, person: &Person, content: &str) -> String {
    app.model
        .will_call("write_file", json!({"path": "a.txt", "content": content}))
        .then_say("Written");
    let mut socket = TestSocket::open(app.address, person, None).await;
    socket.say("write").await;
    assert_eq!(yes(&mut socket).await["status"], "completed");
    socket.wait_for_answer().await;
    socket.session()
}

/// What the file holds now.
async fn read(app: &TestApp, person: &Person, session: &str) -> String {
    app.model
        .will_call("read_file", json!({"path": "a.txt"}))
        .then_say("Read");
    let mut socket = TestSocket::open(app.address, person, Some(session)).await;
    socket.say("read").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let text = socket.wait_for("tool:output").await.text().to_owned();
    socket.wait_for_answer().await;
    text
}

/// Asserts S2.25.
async fn the_janitor_removes_what_nobody_owns_and_a_deleted_session_leaves_nothing(door: Door) {
    let door = door.open(&docker::address()).await;
    let app = TestApp::with_engine(&door.address).await;
    let person = app.person("acme").await;
    let sessions = [
        write(&app, &person, "first").await,
        write(&app, &person, "second").await,
    ];
    let label = format!("sepal.installation={}", app.installation());
    let mine = label.clone();
    let is_of = move |kind: &str| named(kind, &mine);
    let all_of = is_of.clone();
    until("two sessions and a full pool", move || {
        all_of("container").len() == 4
    })
    .await;

    // What a life that was killed would leave: a volume without a session. It is made where Sepal
    // reaches the engine, because a proxy shows only what was made through it.
    let sandbox = SandboxId::from_bits(rand::random());
    let orphan = format!("sepal-ws-{sandbox}");
    let sandbox = format!("sepal.sandbox={sandbox}");
    let labels = ["--label", &label, "--label", &sandbox, &orphan];
    let made = through(
        &door.address,
        &[&["volume", "create"], &labels[..]].concat(),
    )
    .await;
    assert!(made.status.success(), "{made:?}");
    let app = app.restart().await;
    let all_of = is_of.clone();
    until("the orphan goes, the sessions' own stay", move || {
        let volumes = all_of("volume");
        !volumes.contains(&orphan) && volumes.len() == 2
    })
    .await;
    assert!(read(&app, &person, &sessions[0]).await.contains("first"));
    for session in &sessions {
        let url = app.url(&format!("/api/sessions/{session}"));
        let asked = TestApp::http().delete(url).bearer_auth(&person.key);
        assert!(asked.send().await.unwrap().status().is_success());
    }
    let app = app.restart().await;
    until("nothing is left", move || {
        is_of("volume").is_empty() && is_of("container").is_empty()
    })
    .await;
    drop(app);
}

/// Before there were rows, the journal alone named a session's sandbox.
#[tokio::test]
async fn a_workspace_without_a_row_is_kept_where_a_journal_names_it() {
    let app = TestApp::with_sandbox().await;
    let person = app.person("acme").await;
    let session = write(&app, &person, "old").await;
    let data = app.folder.path().join("data");
    let rows = format!("sqlite://{}", data.join("sepal.db").display());
    let rows = sqlx::SqlitePool::connect(&rows).await.unwrap();
    let gone = sqlx::query("DELETE FROM sandboxes").execute(&rows).await;
    assert_eq!(gone.unwrap().rows_affected(), 1);
    rows.close().await;
    let orphan = data.join("workspaces/sbx_000000000000000000000000000000aa");
    std::fs::create_dir(&orphan).unwrap();
    let app = app.restart().await;
    until("the orphan goes", move || !orphan.exists()).await;
    assert!(read(&app, &person, &session).await.contains("old"));
}
