//! A disk that is nearly full: what may write stands still, nothing is lost, and it goes on. And a disk
//! that somebody fills is looked at in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sepal::sandbox::{Access, Bounds, DiskMonitor, Error, Launch, Program, ProgramEnd, Running};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines};

use super::house::{House, Served, in_time};
use crate::support::Door;

const MB: u64 = 1 << 20;
/// Below this there is pressure.
const FLOOR: u64 = 500 * MB;
/// Who says something twenty times a second and then nothing for so long stands still.
const SILENCE: Duration = Duration::from_secs(2);

/// A disk of which the test says what is left.
#[derive(Clone)]
struct Disk {
    left: Arc<AtomicU64>,
    monitor: DiskMonitor,
}

impl Disk {
    async fn empty() -> Self {
        let left = Arc::new(AtomicU64::new(2 * FLOOR));
        let read = Arc::clone(&left);
        let monitor = DiskMonitor::reading(move || read.load(Ordering::Relaxed), FLOOR).await;
        Self { left, monitor }
    }

    async fn is_full(&self, is_full: bool) {
        let left = if is_full { FLOOR / 2 } else { 2 * FLOOR };
        self.left.store(left, Ordering::Relaxed);
        let mut pressure = self.monitor.pressure();
        in_time(pressure.wait_for(|is| *is == is_full))
            .await
            .unwrap();
    }
}

/// Makes a test of every function for each runtime, on a disk of its own.
macro_rules! on_a_disk {
    ($($name:ident),* $(,)?) => {
        mod bubblewrap {
            use super::*;
            $(#[tokio::test] async fn $name() {
                let disk = Disk::empty().await;
                let house = House::bubblewrap_on(disk.monitor.clone()).await;
                super::$name(house, disk).await;
            })*
        }
        mod docker {
            use super::*;
            $(#[tokio::test] async fn $name() {
                let disk = Disk::empty().await;
                let monitor = disk.monitor.clone();
                let house = House::docker_with(Door::Direct, |it| it.disk = monitor).await;
                super::$name(house, disk).await;
            })*
        }
        mod docker_proxy {
            use super::*;
            $(#[tokio::test] async fn $name() {
                let disk = Disk::empty().await;
                let monitor = disk.monitor.clone();
                let house = House::docker_with(Door::Proxied, |it| it.disk = monitor).await;
                super::$name(house, disk).await;
            })*
        }
    };
}

on_a_disk!(
    what_may_write_stands_still_and_goes_on_where_it_was,
    nothing_that_may_write_starts_meanwhile,
    what_stands_still_can_be_ended,
    a_command_that_stood_still_has_its_whole_time,
);

/// Counts aloud for ever, and in the workspace too.
const COUNT: &str = "for ((i = 1; ; i++)); do echo $i > last; cat last; sleep 0.05; done";

/// What a program says that counts, of which nothing may be missing.
struct Said {
    lines: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    last: u64,
}

impl Said {
    fn of(running: &mut Running) -> Self {
        let stdout = std::mem::replace(&mut running.stdout, Box::new(tokio::io::empty()));
        Self {
            lines: BufReader::new(stdout).lines(),
            last: 0,
        }
    }

    async fn next(&mut self) {
        let line = self.lines.next_line().await.unwrap();
        self.last += 1;
        assert_eq!(line.as_deref(), Some(self.last.to_string().as_str()));
    }

    /// Reads on until nothing more is said.
    async fn until_silent(&mut self) {
        let began = Instant::now();
        while tokio::time::timeout(SILENCE, self.next()).await.is_ok() {
            assert!(began.elapsed() < Duration::from_mins(1), "it goes on");
        }
    }
}

async fn what_may_write_stands_still_and_goes_on_where_it_was(house: House, disk: Disk) {
    let mut running = house.start(house.bash(1, COUNT)).await;
    let mut said = Said::of(&mut running);
    in_time(said.next()).await;
    for _ in 0..2 {
        disk.is_full(true).await;
        said.until_silent().await;
        disk.is_full(false).await;
        in_time(said.next()).await;
        in_time(said.next()).await;
    }
    running.life.kill().await;
    house.close().await;
}

async fn nothing_that_may_write_starts_meanwhile(house: House, disk: Disk) {
    disk.is_full(true).await;
    let refused = in_time(house.runtime.start(house.bash(1, "true"))).await;
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    let told = error.to_string();
    assert!(
        told.contains("250 MB left") && told.contains("below 500 MB"),
        "{told}"
    );
    assert!(error.remedy().contains("sandbox.min_free_mb"));
    // What can only look does no harm.
    for workspace in [Access::None, Access::ReadOnly] {
        let launch = Launch {
            workspace,
            ..house.bash(2, "echo here")
        };
        assert_eq!(house.run_launch(launch).await.0, "here\n");
    }
    disk.is_full(false).await;
    assert_eq!(house.run("echo again").await.0, "again\n");
    house.close().await;
}

async fn what_stands_still_can_be_ended(house: House, disk: Disk) {
    let mut running = house.start(house.bash(1, COUNT)).await;
    let mut said = Said::of(&mut running);
    in_time(said.next()).await;
    disk.is_full(true).await;
    said.until_silent().await;
    assert_eq!(in_time(running.life.kill()).await, ProgramEnd::Killed);
    let mut other = house.plain.start(house.bash(2, COUNT)).await.unwrap();
    Said::of(&mut other).until_silent().await;
    // With all the rest.
    house.close().await;
    assert_eq!(in_time(other.life.ended()).await, ProgramEnd::Killed);
}

async fn a_command_that_stood_still_has_its_whole_time(house: House, disk: Disk) {
    let limit = Duration::from_secs(4);
    let launch = Launch {
        program: Program::Bundled {
            command_timeout: limit,
            output_bytes: 1 << 20,
        },
        ..house.bundled(1)
    };
    let served = Served::connect(house.start(launch).await).await;
    let command = json!({ "command": "touch begun; sleep 1; echo done" });
    let mut call = Box::pin(served.call("execute_command", command));
    disk.is_full(true).await;
    let early = tokio::time::timeout(limit + SILENCE, &mut call).await;
    assert!(early.is_err(), "it does not stand still: {early:?}");
    disk.is_full(false).await;
    let told = call.await;
    assert!(told.ends_with("done\n"), "{told}");
    drop(served);
    house.close().await;
}

/// Writes without end, and says how many megabytes by now.
const FILL: &str = "for ((i = 1; ; i++)); do head -c 16M /dev/zero > $i; echo $((16 * i)); done";

/// How many megabytes were written by a program that may keep 64 of them.
async fn written_until_ended(house: &House) -> u64 {
    let bounds = Bounds {
        workspace_bytes: 64 * MB,
        ..Bounds::default()
    };
    let launch = Launch {
        bounds,
        ..house.bash(1, FILL)
    };
    let (said, ended) = house.run_launch(launch).await;
    assert_eq!(ended, ProgramEnd::OverWorkspace(64 * MB), "{said}");
    said.lines()
        .filter_map(|line| line.parse().ok())
        .max()
        .unwrap_or(0)
}

/// The disk that tests write to.
async fn real_disk() -> DiskMonitor {
    DiskMonitor::start(std::env::temp_dir(), 0).await
}

#[tokio::test]
async fn a_workspace_that_grows_fast_is_looked_at_at_once() {
    let house = House::bubblewrap_on(real_disk().await).await;
    let written = written_until_ended(&house).await;
    assert!(written <= 64 * 6, "{written} MB were written");
    house.close().await;
}

/// In a minute, which is the pace of such runs while nothing grows, the whole disk could be full.
#[tokio::test]
async fn runs_that_count_follow_the_growth_too() {
    for door in [Door::Direct, Door::Proxied] {
        let disk = real_disk().await;
        let house = House::docker_with(door, |it| {
            (it.disk, it.counts_by_runs) = (disk, Some(Duration::from_mins(10)));
        })
        .await;
        let began = Instant::now();
        written_until_ended(&house).await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(30), "{took:?}");
        house.close().await;
    }
}
