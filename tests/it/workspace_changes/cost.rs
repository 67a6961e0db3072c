//! What looking at a workspace costs a call.
#![expect(clippy::print_stderr, reason = "the figure is what this is run for")]

use std::time::{Duration, Instant};

use serde_json::json;

use super::Ana;
use crate::support::{TestApp, TestSocket};

/// Files of the workspace that is measured.
const FILES: usize = 10_000;
/// What a call may take longer, as the requirement says.
const LIMIT: Duration = Duration::from_millis(300);
/// How much slower a machine may be that builds and tests at the same time.
const MARGIN: u32 = 4;

/// How long a call takes that changes one file, from the yes to its output: the median of some.
async fn call_time(app: &TestApp, socket: &mut TestSocket) -> Duration {
    let mut times = Vec::new();
    for number in 0..7 {
        let command = format!("echo {number} > changed");
        app.model
            .will_call("execute_command", json!({ "command": command }))
            .then_say("Ran");
        socket.say("run").await;
        let card = socket.wait_for_approval().await;
        let begun = Instant::now();
        socket.approve(&card).await;
        socket.wait_for("tool:output").await;
        times.push(begun.elapsed());
        assert_eq!(socket.wait_for_answer().await, "Ran");
    }
    times.sort();
    times[times.len() / 2]
}

async fn measured(checkpoints: &str) -> Duration {
    let extra = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_SANDBOX_CHECKPOINTS", checkpoints),
    ];
    let app = TestApp::start_with(&extra).await;
    let ana = Ana::open(&app, "acme").await;
    let make = format!(
        "mkdir $(seq -f d%g 0 99); for n in $(seq {FILES}); do echo $n > d$((n % 100))/$n; done"
    );
    let begun = Instant::now();
    ana.runs(&app, &make).await;
    eprintln!(
        "making them with `{checkpoints}` checkpoints: {:?}",
        begun.elapsed()
    );
    let mut socket = TestSocket::open(app.address, &ana.person, Some(&ana.session)).await;
    call_time(&app, &mut socket).await
}

#[tokio::test]
async fn ten_thousand_small_files_cost_a_call_little() {
    let (with, without) = (measured("200").await, measured("0").await);
    let more = with.saturating_sub(without);
    eprintln!("{FILES} files: {with:?} with checkpoints, {without:?} without, {more:?} more");
    assert!(more < LIMIT * MARGIN, "{with:?} with, {without:?} without");
}
