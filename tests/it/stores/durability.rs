//! What a data folder survives: an end in good order, one in the middle, a second server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sepal::domain::{CommitId, Fault};
use sepal::store::{Access, AppendOutcome, Error, Holder, Settings, Store};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Opened, key, record};

#[tokio::test]
async fn a_journal_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::on(dir.path()).await;
    let appended = opened.live().append(&key(1, 1), 0, record(1, 1..=1)).await;
    assert!(matches!(appended, AppendOutcome::Ok));
    // Dropping the store is enough to end the writer.
    let Opened { store, tasks, .. } = opened;
    drop(store);
    tasks.close();
    tasks.wait().await;
    let again = Opened::on(dir.path()).await;
    assert_eq!(again.live().active().await.unwrap(), [key(1, 1)]);
    let appended = again.live().append(&key(1, 1), 1, record(2, 2..=2)).await;
    assert!(matches!(appended, AppendOutcome::Ok));
}

#[tokio::test]
async fn an_unknown_append_is_settled_by_the_head() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::on(dir.path()).await;
    let live = opened.live();
    let appended = live.append(&key(1, 1), 0, record(1, 1..=1)).await;
    assert!(matches!(appended, AppendOutcome::Ok));
    opened.stop().await;
    let answer = live.append(&key(1, 1), 1, record(2, 2..=2)).await;
    assert!(
        matches!(&answer, AppendOutcome::Unknown(error) if error.fault() == Fault::Transient),
        "{answer:?}"
    );
    let head = live.head(&key(1, 1)).await.unwrap().unwrap();
    assert_eq!(head.commit_id, CommitId::from_bits(1));
}

#[tokio::test]
async fn what_is_queued_at_shutdown_is_still_written() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::on(dir.path()).await;
    let live = opened.live();
    let appends = (0..100).map(|n| {
        let live = &live;
        async move { live.append(&key(1, n), 0, record(n, 1..=1)).await }
    });
    let (answers, ()) = tokio::join!(futures::future::join_all(appends), async {
        opened.shutdown.cancel();
    });
    let written = live.active().await.unwrap().len();
    let ok = answers
        .iter()
        .filter(|a| matches!(a, AppendOutcome::Ok))
        .count();
    assert_eq!(ok, written);
}

#[tokio::test]
async fn a_second_server_is_refused_and_a_command_works_beside() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::on(dir.path()).await;
    opened.store.dir().announce("127.0.0.1:4321").unwrap();
    let settings = Settings::in_folder(dir.path());
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    let second = Store::open(&settings, Access::Serve, &tasks, shutdown.clone()).await;
    let refusal = second.map(|_| ()).unwrap_err();
    let holder = Holder {
        pid: std::process::id(),
        address: Some("127.0.0.1:4321".into()),
    };
    assert!(
        matches!(&refusal, Error::Locked { holder: named, .. } if *named == holder),
        "{refusal:?}"
    );
    let beside = Store::open(&settings, Access::Beside, &tasks, shutdown)
        .await
        .unwrap();
    for (version, live) in [(0, opened.live()), (1, beside.live()), (2, opened.live())] {
        let new = record(u128::from(version), version + 1..=version + 1);
        let appended = live.append(&key(1, 1), version, new).await;
        assert!(matches!(appended, AppendOutcome::Ok), "{appended:?}");
    }
}

/// The child of [`nothing_acknowledged_is_lost_by_kill_9`]; does nothing without its folder, which
/// comes as one more test filter because the environment belongs to the settings.
#[tokio::test]
async fn child_that_appends_until_it_is_killed() {
    let Some(dir) = std::env::args().find_map(|arg| arg.strip_prefix("dir=").map(PathBuf::from))
    else {
        return;
    };
    let opened = Opened::on(&dir).await;
    let live = opened.live();
    let session = |n: u128| {
        let live = &live;
        async move {
            for version in 0.. {
                let new = record(u128::from(version), version + 1..=version + 1);
                let appended = live.append(&key(1, n), version, new).await;
                assert!(matches!(appended, AppendOutcome::Ok), "{appended:?}");
                let mut out = std::io::stdout().lock();
                writeln!(out, "ack {n} {}", version + 1).unwrap();
                out.flush().unwrap();
            }
        }
    };
    futures::future::join_all((0..4).map(session)).await;
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_kill_9() {
    // The pipe is read until some line, so the kill hits the child at an arbitrary point.
    for lines in [1, 37, 411] {
        let dir = tempfile::tempdir().unwrap();
        let acknowledged = run_child(dir.path(), lines);
        let opened = Opened::on(dir.path()).await;
        for (session, acknowledged) in (0..).zip(acknowledged) {
            let stored = opened
                .live()
                .read_after_version(&key(1, session), 0, 1_000)
                .await
                .unwrap();
            assert!(stored.len() as u64 >= acknowledged);
            assert!(
                stored
                    .iter()
                    .map(|record| record.version)
                    .zip(1..)
                    .all(|(a, b)| a == b)
            );
        }
    }
}

/// Kills the child after so many lines; gives the last acknowledged version of each session.
fn run_child(dir: &Path, lines: usize) -> [u64; 4] {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("stores::durability::child_that_appends_until_it_is_killed")
        .arg(format!("dir={}", dir.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = [0; 4];
    let mut note = |line: &str| {
        // The harness writes on the same pipe, once even in the same line.
        let words: Vec<_> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| word.ends_with("ack")) else {
            return false;
        };
        let numbers = words.get(at + 1).zip(words.get(at + 2));
        let numbers = numbers.and_then(|(s, v)| Some((s.parse().ok()?, v.parse().ok()?)));
        let Some((session, version)) = numbers.map(|(s, v): (usize, u64)| (s, v)) else {
            return false;
        };
        if let Some(last) = acknowledged.get_mut(session) {
            *last = version.max(*last);
        }
        true
    };
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut seen = 0;
    let mut line = String::new();
    while seen < lines && output.read_line(&mut line).unwrap() > 0 {
        seen += usize::from(note(&line));
        line.clear();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen, lines, "the child ended by itself");
    // What it had acknowledged before the kill and we had not read yet; the last line may be torn.
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut output, &mut rest).unwrap();
    for line in rest
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
    {
        note(line);
    }
    acknowledged
}
