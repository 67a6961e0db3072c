//! Tests that nothing of a sandbox is left, however it ends.

use std::{collections::BTreeSet, io::Write, process::Stdio};

use futures::FutureExt;
use rustix::{
    fd::OwnedFd,
    process::{Pid, PidfdFlags, pidfd_open},
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, unix::AsyncFd};

use super::{
    super::{Bubblewrap, Settings},
    house::{House, bash, in_time, server},
};
use crate::{DiskMonitor, Running, Runtime};

/// Children of every kind that try to survive. All hold stdout open.
const STAYERS: &str = "trap '' TERM HUP INT
    sleep 1000 & setsid sleep 1000 & (nohup sleep 1000 &) ; (setsid setsid sleep 1000 &)
    echo ready; wait";

/// Waits for the sandbox's first line.
async fn is_ready(running: &mut Running) {
    let mut line = [0; 6];
    in_time(running.stdout.read_exact(&mut line)).await.unwrap();
    assert_eq!(&line, b"ready\n");
}

/// Resolves when no process holds stdout open any more, so all are gone.
async fn is_silent(mut running_stdout: impl tokio::io::AsyncRead + Unpin) {
    let mut rest = Vec::new();
    in_time(running_stdout.read_to_end(&mut rest))
        .await
        .unwrap();
}

#[tokio::test]
async fn dropping_the_runtime_ends_all() {
    let house = House::open().await;
    let mut running = house.start(bash(1, STAYERS)).await;
    is_ready(&mut running).await;
    drop(house);
    is_silent(running.stdout).await;
}

/// Bubblewrap's child dies with its parent only after its first steps, so a start has to be completed even
/// after its caller was cancelled.
#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing() {
    let house = House::open().await;
    for number in 1..=20 {
        let start = house.runtime.start(bash(number, "sleep 1000"));
        assert!(start.now_or_never().is_none());
    }
    in_time(house.runtime.close()).await;
    assert_eq!(house.runtime.reap().await.unwrap(), 0);
}

#[tokio::test]
async fn control_groups_are_removed() {
    let house = House::open().await;
    house.run("true").await;
    let name = format!("sepal-{}", house.runtime.settings.installation);
    let homes = ["memory", "cpu", "pids"].map(|it| format!("/sys/fs/cgroup/{it}/{name}"));
    for home in homes.iter().filter_map(|home| std::fs::read_dir(home).ok()) {
        let left: Vec<_> = home.flatten().filter(|it| it.path().is_dir()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test]
async fn what_an_earlier_life_left_is_found_and_ended() {
    for forces_watchdog in [false, true] {
        let house = House::with(forces_watchdog).await;
        let mut running = house.start(bash(1, STAYERS)).await;
        is_ready(&mut running).await;
        let next = in_time(Bubblewrap::open(house.runtime.settings.clone()))
            .await
            .unwrap();
        assert!(next.reap().await.unwrap() > 0);
        is_silent(running.stdout).await;
        // A killed process is listed until the kernel has removed it.
        in_time(async {
            while next.reap().await.unwrap() > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// The argument that tells the owner below where it keeps its data; only the test after it passes this.
const OWNER: &str = "owner-of-a-sandbox-in=";

/// Not a test of its own: the process that [`the_owners_violent_end_ends_all`] kills. The test finds it by
/// name; it does nothing in an ordinary run.
#[tokio::test]
async fn owner_to_be_killed() {
    let data = std::env::args().find_map(|it| it.strip_prefix(OWNER).map(str::to_owned));
    let Some(data) = data else { return };
    let settings = Settings {
        data_dir: data.into(),
        installation: format!("test-owner-{}", std::process::id()),
        server: server(),
        disk: DiskMonitor::off(),
        forces_watchdog: true,
        forces_copies: false,
    };
    let runtime = Bubblewrap::open(settings).await.unwrap();
    let mut running = runtime.start(bash(1, STAYERS)).await.unwrap();
    is_ready(&mut running).await;
    let below = descendants(i32::try_from(std::process::id()).unwrap());
    let below: Vec<_> = below.iter().map(i32::to_string).collect();
    writeln!(std::io::stdout(), "\npids {}", below.join(" ")).unwrap();
    running.life.ended().await;
}

#[tokio::test]
async fn the_owners_violent_end_ends_all() {
    let data = tempfile::tempdir().unwrap();
    let mut owner = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("bubblewrap::tests::endings::owner_to_be_killed")
        .arg(format!("{OWNER}{}", data.path().display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let pids = in_time(async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the owner left");
            if let Some(pids) = line.strip_prefix("pids ") {
                return pids.to_owned();
            }
        }
    });
    let processes: Vec<_> = pids
        .await
        .split(' ')
        .filter_map(|pid| hold(pid.parse().unwrap()))
        .collect();
    assert!(
        processes.len() >= 6,
        "the chain, its first process and four stayers"
    );
    owner.start_kill().unwrap();
    for process in processes {
        drop(in_time(process.readable()).await.unwrap());
    }
}

#[expect(
    deprecated,
    reason = "its replacement is unsafe; the descriptor is owned"
)]
fn hold(pid: i32) -> Option<AsyncFd<OwnedFd>> {
    // A helper process of the start may have ended since it was listed.
    let process = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::NONBLOCK).ok()?;
    Some(AsyncFd::with_interest(process, tokio::io::Interest::READABLE).unwrap())
}

fn descendants(pid: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().map(|it| it.parse().unwrap()) {
            found.insert(child);
            found.extend(descendants(child));
        }
    }
    found
}
