//! However the server ends, its commands end with it.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{ALONE, Harness, gone, in_time};

#[tokio::test]
async fn the_end_of_stdin_ends_the_server_and_its_commands() {
    let mut harness = Harness::start().await;
    let _running = harness.begin("sleep 1000 & echo $!; wait").await;
    let pid = harness.hears().await.parse().unwrap();
    harness.client.cancel().await.unwrap();
    let status = in_time(harness.server.wait()).await.unwrap();
    assert!(status.success(), "{status}");
    gone(pid).await;
}

#[tokio::test]
async fn a_termination_signal_ends_the_server_and_its_commands() {
    let mut harness = Harness::start().await;
    let _running = harness.begin("sleep 1000 & echo $!; wait").await;
    let pid = harness.hears().await.parse().unwrap();
    let server = harness.server.id().unwrap().try_into().unwrap();
    kill_process(Pid::from_raw(server).unwrap(), Signal::TERM).unwrap();
    let status = in_time(harness.server.wait()).await.unwrap();
    assert!(status.success(), "{status}");
    gone(pid).await;
}

#[tokio::test]
async fn a_client_that_leaves_without_a_word_is_no_fault() {
    let output = in_time(
        tokio::process::Command::new(env!("CARGO_BIN_EXE_sepal-mcp-server"))
            .args(["--workspace", "/tmp"])
            .stdin(std::process::Stdio::null())
            .output(),
    );
    let output = output.await.unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn process_one_buries_orphans_and_ends_with_stdin() {
    let mut harness = Harness::start_inside(&ALONE).await;
    let line = "cat /proc/1/comm; (setsid true & echo $! > orphan); read -r pid < orphan; \
                until [ ! -e /proc/$pid ]; do :; done; echo buried";
    let told = harness
        .does("execute_command", json!({ "command": line }))
        .await;
    assert!(told.ends_with("sepal-mcp-serve\nburied\n"), "{told}");
    harness.client.cancel().await.unwrap();
    let status = in_time(harness.server.wait()).await.unwrap();
    assert!(status.success(), "{status}");
}
