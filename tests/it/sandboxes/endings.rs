//! However a sandbox ends, nothing of it is left.

use futures::FutureExt as _;
use sepal::sandbox::{Error, ProgramEnd, Running};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::house::{House, in_time};

super::on_every_runtime!(
    killing_ends_everything_inside,
    letting_go_ends_everything_inside,
    the_end_of_the_program_ends_what_it_left,
    closing_the_runtime_ends_all_and_refuses_new_ones,
    dropping_the_runtime_ends_all,
    many_can_start_and_end_side_by_side,
    a_start_that_is_given_up_leaves_nothing,
    the_end_of_stdin_is_passed_on,
    stdin_and_stderr_are_passed_on,
    a_flood_of_stderr_stops_nothing,
    the_same_sandbox_can_be_started_again_at_once,
);

/// Children of every kind that try to stay. All hold stdout.
const STAYERS: &str = "trap '' TERM HUP INT
    sleep 1000 & setsid sleep 1000 & (nohup sleep 1000 &) ; (setsid setsid sleep 1000 &)
    echo ready; wait";

/// Waits until the sandbox has said its first line.
async fn is_ready(running: &mut Running) {
    let mut line = [0; 6];
    in_time(running.stdout.read_exact(&mut line)).await.unwrap();
    assert_eq!(&line, b"ready\n");
}

/// Resolves when no process holds stdout any more, which is when all are gone.
async fn is_silent(mut stdout: impl tokio::io::AsyncRead + Unpin) {
    let mut rest = Vec::new();
    in_time(stdout.read_to_end(&mut rest)).await.unwrap();
}

async fn killing_ends_everything_inside(house: House) {
    let mut running = house.start(house.bash(1, STAYERS)).await;
    is_ready(&mut running).await;
    assert_eq!(in_time(running.life.kill()).await, ProgramEnd::Killed);
    is_silent(running.stdout).await;
    assert_eq!(house.runtime.reap().await.unwrap(), 0);
    house.close().await;
}

async fn letting_go_ends_everything_inside(house: House) {
    let mut running = house.start(house.bash(1, STAYERS)).await;
    is_ready(&mut running).await;
    let ended = running.life.ended();
    drop(running.life);
    assert_eq!(in_time(ended).await, ProgramEnd::Killed);
    is_silent(running.stdout).await;
    house.close().await;
}

async fn the_end_of_the_program_ends_what_it_left(house: House) {
    let script = "setsid sleep 1000 & (sleep 1000 &); echo ready; exit 3";
    let mut running = house.start(house.bash(1, script)).await;
    is_ready(&mut running).await;
    assert_eq!(in_time(running.life.ended()).await, ProgramEnd::Exited(3));
    is_silent(running.stdout).await;
    house.close().await;
}

async fn closing_the_runtime_ends_all_and_refuses_new_ones(house: House) {
    let mut lives = Vec::new();
    for number in 1..=3 {
        let mut running = house.start(house.bash(number, STAYERS)).await;
        is_ready(&mut running).await;
        lives.push(running);
    }
    in_time(house.runtime.close()).await;
    for running in lives {
        assert_eq!(in_time(running.life.ended()).await, ProgramEnd::Killed);
        is_silent(running.stdout).await;
    }
    let error = house.runtime.start(house.bash(1, "")).await.unwrap_err();
    assert!(matches!(error, Error::Closed));
    house.close().await;
}

async fn dropping_the_runtime_ends_all(house: House) {
    let mut running = house.start(house.bash(1, STAYERS)).await;
    is_ready(&mut running).await;
    drop(house);
    is_silent(running.stdout).await;
}

async fn many_can_start_and_end_side_by_side(house: House) {
    let echoes = (1..=12)
        .map(|number| house.run_launch(house.bash(number, "cat /proc/sys/kernel/hostname")));
    for (said, ended) in futures::future::join_all(echoes).await {
        assert_eq!((said.as_str(), ended), ("sandbox\n", ProgramEnd::Exited(0)));
    }
    house.close().await;
}

/// A start has to be seen through even when nobody waits for it any more.
async fn a_start_that_is_given_up_leaves_nothing(house: House) {
    for number in 1..=20 {
        let start = house.runtime.start(house.bash(number, "sleep 1000"));
        assert!(start.now_or_never().is_none());
    }
    in_time(house.runtime.close()).await;
    assert_eq!(house.runtime.reap().await.unwrap(), 0);
    house.close().await;
}

async fn the_end_of_stdin_is_passed_on(house: House) {
    let mut running = house.start(house.bash(1, "cat; echo end")).await;
    running.stdin.write_all(b"hello\n").await.unwrap();
    running.stdin.flush().await.unwrap();
    drop(running.stdin);
    let mut said = String::new();
    in_time(running.stdout.read_to_string(&mut said))
        .await
        .unwrap();
    assert_eq!(said, "hello\nend\n");
    assert_eq!(in_time(running.life.ended()).await, ProgramEnd::Exited(0));
    house.close().await;
}

async fn stdin_and_stderr_are_passed_on(house: House) {
    let script = "read -r line; echo \"$line\" >&2";
    let mut running = house.start(house.bash(1, script)).await;
    running.stdin.write_all(b"hello\n").await.unwrap();
    running.stdin.flush().await.unwrap();
    assert_eq!(
        in_time(running.stderr.recv()).await.as_deref(),
        Some("hello")
    );
    assert_eq!(in_time(running.life.ended()).await, ProgramEnd::Exited(0));
    house.close().await;
}

async fn a_flood_of_stderr_stops_nothing(house: House) {
    let script = "yes | head -c 5000000 >&2; echo done";
    let mut running = house.start(house.bash(1, script)).await;
    let mut said = String::new();
    in_time(running.stdout.read_to_string(&mut said))
        .await
        .unwrap();
    assert_eq!(said, "done\n");
    house.close().await;
}

/// As after a time-out: the old one may still be on its way out.
async fn the_same_sandbox_can_be_started_again_at_once(house: House) {
    for _ in 0..3 {
        let mut running = house.start(house.bash(1, STAYERS)).await;
        is_ready(&mut running).await;
        drop(running.life);
    }
    assert_eq!(house.run("echo again").await.0, "again\n");
    house.close().await;
}
