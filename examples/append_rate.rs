//! Measures durable appends of 1 KiB: alone, and from many sessions at once; then reads by `seq`
//! in a long journal.
//!
//! `cargo run --release --example append_rate -- [folder] [redis://host:port/db]`
//!
//! With a Redis the journals are there; give it a database of its own, because nothing is removed.
#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;
use sepal::domain::{CommitId, SessionId, SessionKey, TenantId};
use sepal::store::{Access, AppendOutcome, NewRecord, Settings, Store};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const APPENDS: u64 = 20_000;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let dir = match std::env::args().nth(1) {
        Some(dir) => dir.into(),
        None => std::env::temp_dir().join(format!("sepal-append-rate-{}", std::process::id())),
    };
    let redis = std::env::args().nth(2);
    for sessions in [1, 8, 50, 500] {
        let settings = Settings {
            redis_url: redis.clone().map(Into::into),
            ..Settings::in_folder(dir.join(sessions.to_string()))
        };
        measure(&settings, sessions).await?;
    }
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

async fn measure(settings: &Settings, sessions: u64) -> anyhow::Result<()> {
    let tasks = TaskTracker::new();
    let begin = Instant::now();
    let stop = CancellationToken::new();
    let store = Store::open(settings, Access::Serve, &tasks, stop).await?;
    let opened = begin.elapsed();
    let tenant = TenantId::from_bits(rand::random());
    let each = (APPENDS / sessions).min(APPENDS / 4);
    let (begin, used) = (Instant::now(), cpu_time());
    let key = |n: u64| SessionKey {
        tenant: tenant.clone(),
        session: SessionId::from_bits(n.into()),
    };
    let turns = (0..sessions).map(|n| tasks.spawn(turn(store.clone(), key(n), each)));
    let mut latencies = Vec::new();
    for answer in join_all(turns).await {
        latencies.extend(answer??);
    }
    let (took, used) = (begin.elapsed(), cpu_time().saturating_sub(used));
    latencies.sort_unstable();
    let at = |part: usize| {
        latencies
            .get(latencies.len() * part / 100)
            .copied()
            .unwrap_or_default()
    };
    let rate = latencies.len() as u128 * 1_000_000 / took.as_micros().max(1);
    println!(
        "{sessions:>4} sessions: {rate:>6} appends/s, {:>4} µs CPU each, p50 {:>6} µs, p99 {:>6} µs ({} appends, opened in {} ms)",
        used.as_micros() / latencies.len().max(1) as u128,
        at(50).as_micros(),
        at(99).as_micros(),
        latencies.len(),
        opened.as_millis(),
    );
    read(&store, &key(0), each).await
}

/// One record at the end, in the middle and at the beginning of the first session's journal.
async fn read(store: &Store, key: &SessionKey, last: u64) -> anyhow::Result<()> {
    const ROUNDS: u32 = 200;
    let live = store.live();
    for seq in [last.saturating_sub(1), last / 2, 1] {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            live.read_after_seq(key, seq, 1).await?;
        }
        let after = begin.elapsed() / ROUNDS;
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            live.read_before_seq(key, seq, 1).await?;
        }
        println!(
            "     of {last} records, at {seq}: {} µs to the next, {} µs to the one before",
            after.as_micros(),
            (begin.elapsed() / ROUNDS).as_micros(),
        );
    }
    Ok(())
}

/// What this process used of the processor so far, in steps of 10 ms; nothing beside Linux.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(')').next().unwrap_or_default();
    let ticks = ticks.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

async fn turn(store: Store, key: SessionKey, appends: u64) -> anyhow::Result<Vec<Duration>> {
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
            wake: None,
        };
        let begin = Instant::now();
        anyhow::ensure!(matches!(
            live.append(&key, version, record).await,
            AppendOutcome::Ok
        ));
        latencies.push(begin.elapsed());
    }
    Ok(latencies)
}
