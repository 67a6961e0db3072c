//! What nobody uses goes, a sandbox or the state of a session in memory, and takes nothing with it
//! that the session needs.

use std::time::Duration;

use sepal::config::Settings;
use serde_json::{Value, json};

use crate::support::docker::{self, named};
use crate::support::{Person, TestApp, TestSocket, until};

/// How long nobody may use a sandbox here; longer than a busy machine takes to look for it.
const IDLE: Duration = Duration::from_millis(1_500);

fn impatient(settings: &mut Settings) {
    settings.sandbox.idle = IDLE;
}

/// Runs a command in the session; what it said.
async fn run(app: &TestApp, socket: &mut TestSocket, command: &str) -> String {
    app.model
        .will_call("execute_command", json!({ "command": command }))
        .then_say("Done");
    socket.say("run").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    output.text().to_owned()
}

/// The names of all events of the journal.
async fn journal(app: &TestApp, person: &Person, session: &str) -> Vec<String> {
    let url = app.url(&format!("/api/sessions/{session}/events?after=0&limit=500"));
    let asked = TestApp::http().get(url).bearer_auth(&person.key).send();
    let page: Value = asked.await.unwrap().json().await.unwrap();
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["event"].to_string()).collect()
}

/// One session from its first call to the one after its sandbox went.
async fn story(app: TestApp, is_running: impl Fn() -> bool + Clone + Send + 'static) {
    let person = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    // Longer than a sandbox may lie idle: it does not while a call runs.
    let took = 3 * IDLE.as_millis() / 1_000 + 1;
    let command = format!("echo kept > kept; touch /tmp/old; sleep {took}; echo whole");
    assert!(run(&app, &mut socket, &command).await.contains("whole"));
    assert!(is_running(), "this is how it would be seen");
    let gone = is_running.clone();
    until("nobody uses the sandbox, so it goes", move || !gone()).await;

    let session = socket.session();
    let before = journal(&app, &person, &session).await;
    assert!(
        before.iter().any(|name| name.contains("tool:output")),
        "{before:?}"
    );
    let said = run(&app, &mut socket, "cat kept; ls /tmp").await;
    assert!(said.contains("kept") && !said.contains("old"), "{said}");
    let after = journal(&app, &person, &session).await;
    assert_eq!(after[..before.len()], before, "nothing of it went");
    assert!(socket.log.iter().all(|said| said.name != "agent:error"));
}

/// Asserts S2.25, O6, O8.
#[tokio::test]
async fn an_idle_container_goes_and_history_and_files_stay() {
    let extra = [
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", &docker::address()),
        ("SPL_SANDBOX_IMAGE", &docker::image()),
        ("SPL_SANDBOX_POOL_SIZE", "0"),
    ];
    let app = TestApp::start_tuned(&extra, impatient).await;
    let label = format!("sepal.installation={}", app.installation());
    story(app, move || !named("container", &label).is_empty()).await;
}

/// Asserts S2.25, O6, O8.
#[tokio::test]
async fn an_idle_bubblewrap_goes_and_history_and_files_stay() {
    let app = TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], impatient).await;
    // Its command line names the sandbox, as the workspace does.
    let workspaces = app.folder.path().join("data/workspaces");
    let is_ours = move || {
        let sandboxes = std::fs::read_dir(&workspaces).unwrap().flatten();
        let sandboxes = sandboxes.map(|it| it.file_name().into_string().unwrap());
        let sandboxes: Vec<String> = sandboxes.collect();
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
        let mut lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.any(|line| sandboxes.iter().any(|sandbox| line.contains(sandbox)))
    };
    story(app, is_ours).await;
}

#[tokio::test]
async fn a_session_that_nobody_has_told_anything_leaves_memory_and_loses_no_message_by_it() {
    const SESSIONS: usize = 40;
    let app = TestApp::start().await;
    for round in 0..3 {
        let mut sockets = Vec::new();
        for _ in 0..SESSIONS {
            sockets.push(app.socket("acme").await);
        }
        // Some have left by then, some are about to, some are still there.
        let (opened, held) = (SESSIONS * (round + 1), app.sessions.clone());
        until("the first leaves", move || held.live_count() < opened).await;
        for socket in &mut sockets {
            app.model.will_say("still here");
            let said = format!("round {round}");
            assert_eq!(socket.ask("message", &[json!(said)]).await["ok"], true);
        }
        for socket in &mut sockets {
            assert_eq!(socket.wait_for_answer().await, "still here");
            let seqs: Vec<u64> = socket.shown().iter().map(|(seq, _)| *seq).collect();
            assert_eq!(seqs[0], 1, "the whole of it is shown");
            assert!(socket.log.iter().all(|said| said.name != "agent:error"));
        }
    }
}
