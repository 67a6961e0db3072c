//! Measures durable appends of 1 KiB: alone, and from many sessions at once.
//!
//! `cargo run --release --example append_rate -- [folder]`
#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;
use sepal::domain::{CommitId, SessionId, SessionKey, TenantId};
use sepal::store::{Appended, NewRecord, Store};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const APPENDS: u64 = 20_000;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let dir = match std::env::args().nth(1) {
        Some(dir) => dir.into(),
        None => std::env::temp_dir().join(format!("sepal-append-rate-{}", std::process::id())),
    };
    for sessions in [1, 8, 50, 500] {
        measure(&dir.join(sessions.to_string()), sessions).await?;
    }
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

async fn measure(dir: &Path, sessions: u64) -> anyhow::Result<()> {
    let tasks = TaskTracker::new();
    let begin = Instant::now();
    let store = Store::open_in(dir, &tasks, CancellationToken::new()).await?;
    let opened = begin.elapsed();
    let each = (APPENDS / sessions).min(APPENDS / 4);
    let begin = Instant::now();
    let turns = (0..sessions).map(|n| tasks.spawn(turn(store.clone(), n, each)));
    let mut latencies = Vec::new();
    for answer in join_all(turns).await {
        latencies.extend(answer??);
    }
    let took = begin.elapsed();
    latencies.sort_unstable();
    let at = |part: usize| {
        latencies
            .get(latencies.len() * part / 100)
            .copied()
            .unwrap_or_default()
    };
    let rate = latencies.len() as u128 * 1_000_000 / took.as_micros().max(1);
    println!(
        "{sessions:>4} sessions: {rate:>6} appends/s, p50 {:>6} µs, p99 {:>6} µs ({} appends, opened in {} ms)",
        at(50).as_micros(),
        at(99).as_micros(),
        latencies.len(),
        opened.as_millis(),
    );
    Ok(())
}

async fn turn(store: Store, n: u64, appends: u64) -> anyhow::Result<Vec<Duration>> {
    let key = SessionKey {
        tenant: TenantId::from_bits(1),
        session: SessionId::from_bits(n.into()),
    };
    let (live, body) = (store.live(), Bytes::from(vec![b'x'; 1024]));
    let mut latencies = Vec::new();
    for version in 0..appends {
        let record = NewRecord {
            commit_id: CommitId::from_bits(version.into()),
            first_seq: version + 1,
            last_seq: version + 1,
            // As in a chat: every second append starts a turn, the other ends it.
            is_active: version % 2 == 0,
            body: body.clone(),
        };
        let begin = Instant::now();
        anyhow::ensure!(matches!(
            live.append(&key, version, record).await,
            Appended::Ok
        ));
        latencies.push(begin.elapsed());
    }
    Ok(latencies)
}
