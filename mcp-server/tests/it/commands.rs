//! `execute_command`: what comes back, and that nothing stays.

use std::time::{Duration, Instant};

use rmcp::model::{CustomNotification, ServerResult};
use serde_json::json;

use crate::harness::{ALONE, Harness, fifo, gone, in_time, text};

/// The process number that a command printed as its first line of output.
fn pid(told: &str) -> i32 {
    let (_, output) = told.split_once("--- stdout ---\n").unwrap();
    output.lines().next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn exit_code_and_both_streams_come_back() {
    let harness = Harness::start().await;
    let line = "echo out; echo err >&2; exit 3";
    let result = harness
        .call("execute_command", json!({ "command": line }))
        .await;
    assert_eq!(result.is_error, Some(false));
    assert_eq!(
        text(&result),
        "Exit code 3\n--- stdout ---\nout\n\n--- stderr ---\nerr\n"
    );
    let facts = result.structured_content.unwrap();
    assert_eq!(facts["exit_code"], 3);
    assert_eq!(facts["timed_out"], false);
    let told = harness
        .does("execute_command", json!({ "command": "true" }))
        .await;
    assert_eq!(told, "Exit code 0\nNo output.");
}

/// Asserts S2.50, O11.
#[tokio::test]
async fn it_is_bash_in_the_workspace_with_an_empty_stdin() {
    let harness = Harness::start().await;
    let line = "[[ -n $BASH_VERSION ]] && pwd && cat";
    let told = harness
        .does("execute_command", json!({ "command": line }))
        .await;
    let workspace = harness.workspace();
    assert_eq!(
        told,
        format!("Exit code 0\n--- stdout ---\n{}\n", workspace.display())
    );
}

#[tokio::test]
async fn a_signal_is_told() {
    let harness = Harness::start().await;
    let result = harness
        .call("execute_command", json!({ "command": "kill -9 $$" }))
        .await;
    assert!(text(&result).contains("SIGKILL"));
    let facts = result.structured_content.unwrap();
    assert_eq!(
        (&facts["signal"], &facts["exit_code"]),
        (&json!(9), &json!(null))
    );
}

/// Asserts S2.50.
#[tokio::test]
async fn a_command_that_takes_too_long_is_stopped_with_its_children() {
    let harness = Harness::start_with(&["--command-timeout", "1"]).await;
    for wish in [json!(null), json!(1), json!(1000)] {
        let line = "sleep 1000 & echo $!; wait";
        let mut arguments = json!({ "command": line });
        if !wish.is_null() {
            arguments["timeout_s"] = wish;
        }
        let result = harness.call("execute_command", arguments).await;
        assert_eq!(result.is_error, Some(true));
        assert!(
            text(&result).contains("longer than 1 s"),
            "{}",
            text(&result)
        );
        assert_eq!(
            result.structured_content.as_ref().unwrap()["timed_out"],
            true
        );
        gone(pid(&text(&result))).await;
    }
}

#[tokio::test]
async fn a_background_child_neither_delays_the_answer_nor_outlives_it() {
    let harness = Harness::start().await;
    let started = Instant::now();
    let line = "sleep 1000 & echo $!";
    let told = harness
        .does("execute_command", json!({ "command": line }))
        .await;
    assert!(started.elapsed() < Duration::from_secs(20));
    gone(pid(&told)).await;
}

#[tokio::test]
async fn a_child_that_left_the_group_ends_with_the_command_and_delays_nothing() {
    let harness = Harness::start().await;
    let started = Instant::now();
    for line in [
        "setsid sleep 1000 & echo $!",
        // An orphan of an orphan, and one without any mark.
        "setsid bash -c '(setsid nohup sleep 1000 & echo $!)'",
        "env -i setsid bash -c '(/usr/bin/env -i setsid sleep 1000 & echo $!)'",
        "exec setsid --fork bash -c 'echo $$; exec sleep 1000'",
    ] {
        let told = harness
            .does("execute_command", json!({ "command": line }))
            .await;
        // It is gone before the answer comes.
        let path = format!("/proc/{}", pid(&told));
        assert!(!std::path::Path::new(&path).exists(), "{line}: {told}");
    }
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn children_that_left_their_group_stay_as_long_as_their_own_command() {
    let mut harness = Harness::start().await;
    fifo(&harness.workspace().join("gate"));
    // What it starts is an orphan at once; one has no mark.
    let line =
        "(setsid sleep 1000 & echo $!); (env -i setsid sleep 1000 & echo $!); read -r _ <gate
                for pid in $(cat pids); do kill -0 $pid && echo lives; done";
    let running = harness.begin(line).await;
    let mut pids = Vec::new();
    while pids.len() < 2 {
        let told = harness.hears().await;
        pids.extend(told.lines().map(|pid| pid.parse::<i32>().unwrap()));
    }
    harness.put("pids", format!("{} {}", pids[0], pids[1]));
    // Others end meanwhile, with what they left.
    let other = "setsid sleep 1000 & echo $!";
    let told = harness
        .does("execute_command", json!({ "command": other }))
        .await;
    gone(pid(&told)).await;
    harness
        .does("execute_command", json!({ "command": "echo >gate" }))
        .await;
    let result = in_time(running.await_response()).await.unwrap();
    let told = format!("{result:?}");
    assert_eq!(told.matches("lives").count(), 2, "{told}");
    for pid in pids {
        gone(pid).await;
    }
}

/// Each lives for moments and leaves a child that knows nothing of its call.
#[tokio::test]
async fn processes_that_flee_from_group_to_group_are_over_with_the_last_call() {
    let mut harness = Harness::start_inside(&ALONE).await;
    fifo(&harness.workspace().join("gate"));
    let running = harness.begin("echo here; read -r _ <gate").await;
    assert_eq!(harness.hears().await, "here");
    // They would go on for a minute.
    let flee =
        "use POSIX; $end = time + 60; while (time < $end) { fork and exit; POSIX::setsid() }";
    let line = format!("for i in 1 2 3; do env -i setsid perl -e '{flee}' & done; sleep 0.3");
    harness
        .does("execute_command", json!({ "command": line }))
        .await;
    // The other call was not touched.
    harness
        .does("execute_command", json!({ "command": "echo >gate" }))
        .await;
    let result = in_time(running.await_response()).await.unwrap();
    assert!(format!("{result:?}").contains("Exit code 0"), "{result:?}");
    // Now nobody is left but the first process, the server, and the bash that looks.
    let told = harness
        .does("execute_command", json!({ "command": "echo /proc/[0-9]*" }))
        .await;
    let (_, left) = told.split_once("--- stdout ---\n").unwrap();
    assert_eq!(left.split_ascii_whitespace().count(), 3, "{left}");
}

#[tokio::test]
async fn a_flood_of_output_keeps_both_ends() {
    let harness = Harness::start().await;
    let line = "echo first; yes | head -c 5000000; echo last";
    let result = harness
        .call("execute_command", json!({ "command": line }))
        .await;
    let told = text(&result);
    assert!(told.len() < 40_000, "{} bytes", told.len());
    assert!(told.contains("first\n") && told.ends_with("last\n"));
    let left_out = 5_000_000 + "first\n".len() + "last\n".len() - 32 * 1024;
    assert!(told.contains(&format!("[… {left_out} bytes left out …]")));
    assert_eq!(
        result.structured_content.unwrap()["stdout_bytes_left_out"],
        left_out
    );
}

#[tokio::test]
async fn an_endless_flood_ends_in_time() {
    let harness = Harness::start_with(&["--command-timeout", "1"]).await;
    let told = harness
        .refuses("execute_command", json!({ "command": "yes" }))
        .await;
    assert!(told.contains("longer than 1 s") && told.len() < 40_000);
}

#[tokio::test]
async fn new_lines_are_told_while_the_command_runs() {
    let mut harness = Harness::start().await;
    fifo(&harness.workspace().join("gate"));
    let running = harness
        .begin("echo one; read line < gate; echo $line")
        .await;
    assert_eq!(harness.hears().await, "one");
    harness.put("gate", "two\n");
    assert_eq!(harness.hears().await, "two");
    in_time(running.await_response()).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_command_is_killed_with_its_children() {
    let mut harness = Harness::start().await;
    let running = harness.begin("sleep 1000 & echo $!; wait").await;
    let pid = harness.hears().await.parse().unwrap();
    running.cancel(None).await.unwrap();
    gone(pid).await;
    assert_eq!(
        harness
            .does("execute_command", json!({ "command": "true" }))
            .await,
        "Exit code 0\nNo output."
    );
}

#[tokio::test]
async fn a_cancelled_command_is_answered_when_it_is_over() {
    let mut harness = Harness::start().await;
    let running = harness
        .begin("trap '' TERM; sleep 1000 & echo $!; wait")
        .await;
    let heard = harness.hears().await;
    let pid = heard.trim().parse().unwrap();
    // As the gateway says it, so that rmcp waits for the answer.
    let told = CustomNotification::new(
        "notifications/cancelled",
        Some(json!({ "requestId": running.id, "reason": "stopped" })),
    );
    harness.client.send_notification(told.into()).await.unwrap();
    let ServerResult::CallToolResult(result) = in_time(running.await_response()).await.unwrap()
    else {
        panic!("it is the answer to a call");
    };
    gone(pid).await;
    assert_eq!(result.is_error, Some(true));
    let said = text(&result);
    assert!(
        said.starts_with("Stopped: the call was cancelled."),
        "{said}"
    );
    assert!(said.contains(heard.trim()), "{said}");
}

#[tokio::test]
async fn commands_run_side_by_side() {
    let harness = Harness::start().await;
    fifo(&harness.workspace().join("meet"));
    let (said, heard) = tokio::join!(
        harness.does("execute_command", json!({ "command": "echo hello > meet" })),
        harness.does("execute_command", json!({ "command": "cat meet" })),
    );
    assert_eq!(said, "Exit code 0\nNo output.");
    assert!(heard.ends_with("hello\n"));
}

#[tokio::test]
async fn a_command_that_cannot_start_is_said_in_words() {
    let harness = Harness::start().await;
    let told = harness
        .refuses("execute_command", json!({ "command": "a\0b" }))
        .await;
    assert!(told.contains("NUL"), "{told}");
    let long = "x".repeat(3_000_000);
    let told = harness
        .refuses("execute_command", json!({ "command": long }))
        .await;
    assert!(told.contains("too long"), "{told}");
}
