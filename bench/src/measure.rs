//! The measurements. Each returns named figures of one subject in one round.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;

use crate::plan::Plan;
use crate::subject::{Subject, Talk, Turn};

/// A figure's name, with its unit, and its value.
pub(crate) type Figure = (&'static str, f64);

/// The number of conversations in a burst.
const BURSTS: usize = 50;
/// The number of tokens of each.
const BURST_TOKENS: usize = 4_000;
/// The number of conversations whose tokens arrive one by one.
const PACED: usize = 200;
/// The number of tokens of each.
const PACED_TOKENS: usize = 1_000;
/// The time between two tokens of a conversation.
const GAP: Duration = Duration::from_millis(20);
/// The number of conversations that run turn after turn.
const TALKERS: usize = 50;
/// The number of turns of each.
const TURNS: usize = 40;
/// The number of tokens of a turn.
const TURN_TOKENS: usize = 20;
/// The number of conversations with rounds of calls.
const CALLERS: usize = 20;
/// The number of rounds of each.
const ROUNDS: usize = 20;
/// The number of calls of a round.
const CALLS: usize = 5;
/// The numbers of idle sockets, in the order of measuring.
const IDLE: [(usize, &str); 3] = [
    (0, "memory at 0 sockets (MiB)"),
    (1_000, "memory at 1,000 sockets (MiB)"),
    (5_000, "memory at 5,000 sockets (MiB)"),
];
/// The number of connections that are opened at the same time.
const AT_ONCE: usize = 50;

/// Processor time and duration of some work, including its aftermath.
struct Cost {
    cpu_s: f64,
    wall_s: f64,
}

/// Runs `turns` turns in every conversation, one after the other; `plan` gets the index of the conversation.
async fn run(
    subject: &Subject,
    talks: &mut [Talk],
    plan: impl Fn(usize) -> Plan,
    turns: usize,
) -> Result<(Vec<Turn>, Cost)> {
    subject.program.settle().await?;
    let before = subject.program.cpu_seconds()?;
    let began = Instant::now();
    let all = try_join_all(talks.iter_mut().enumerate().map(|(index, talk)| {
        let plan = plan(index);
        async move {
            let mut seen = Vec::with_capacity(turns);
            for _ in 0..turns {
                seen.push(talk.turn(plan).await?);
            }
            anyhow::Ok(seen)
        }
    }));
    let seen = all.await?.into_iter().flatten().collect();
    let wall_s = began.elapsed().as_secs_f64();
    subject.program.settle().await?;
    let cpu_s = subject.program.cpu_seconds()? - before;
    Ok((seen, Cost { cpu_s, wall_s }))
}

async fn connected(subject: &Subject, count: usize) -> Result<Vec<Talk>> {
    let mut talks = Vec::with_capacity(count);
    while talks.len() < count {
        let some = AT_ONCE.min(count - talks.len());
        talks.extend(try_join_all((0..some).map(|_| subject.connect())).await?);
    }
    Ok(talks)
}

/// Returns the time from the program's start until it accepted a connection.
pub(crate) fn start(subject: &Subject) -> Vec<Figure> {
    vec![("start to listening (ms)", subject.program.started_ms)]
}

/// Measures tokens that arrive together, and tokens that arrive one by one.
pub(crate) async fn tokens(subject: &Subject) -> Result<Vec<Figure>> {
    let mut talks = connected(subject, BURSTS).await?;
    let (_, burst) = run(subject, &mut talks, |_| Plan::burst(BURST_TOKENS), 1).await?;
    drop(talks);
    let mut talks = connected(subject, PACED).await?;
    let alone = |index| Plan::paced(PACED_TOKENS, GAP, index, PACED);
    let (seen, paced) = run(subject, &mut talks, alone, 1).await?;
    let first = seen.iter().filter_map(|turn| turn.first_ns).collect();
    let all = seen.into_iter().flat_map(|turn| turn.transits_ns).collect();
    let (first, all) = (Spread::of(first), Spread::of(all));
    let millions = |count: usize| count as f64 / 1e6;
    Ok(vec![
        (
            "CPU per million tokens, burst (s)",
            burst.cpu_s / millions(BURSTS * BURST_TOKENS),
        ),
        (
            "CPU per million tokens, paced (s)",
            paced.cpu_s / millions(PACED * PACED_TOKENS),
        ),
        ("first token p50 (ms)", first.p50_ms),
        ("first token p99 (ms)", first.p99_ms),
        ("token transit p50 (ms)", all.p50_ms),
        ("token transit p99 (ms)", all.p99_ms),
    ])
}

/// Measures whole turns with a short answer.
pub(crate) async fn turns(subject: &Subject) -> Result<Vec<Figure>> {
    let mut talks = connected(subject, TALKERS).await?;
    let (seen, cost) = run(subject, &mut talks, |_| Plan::burst(TURN_TOKENS), TURNS).await?;
    let count = seen.len() as f64;
    Ok(vec![
        ("turns per second", count / cost.wall_s),
        ("CPU per turn (ms)", cost.cpu_s * 1_000.0 / count),
    ])
}

/// Measures rounds of five calls that a person approves one by one.
pub(crate) async fn rounds(subject: &Subject) -> Result<Vec<Figure>> {
    let mut talks = connected(subject, CALLERS).await?;
    // The first call of a session starts its sandbox, which is not part of a round.
    run(subject, &mut talks, |_| Plan::calls(1), 1).await?;
    let (seen, cost) = run(subject, &mut talks, |_| Plan::calls(CALLS), ROUNDS).await?;
    let count = seen.len() as f64;
    Ok(vec![
        ("five-call rounds per second", count / cost.wall_s),
        ("CPU per five-call round (ms)", cost.cpu_s * 1_000.0 / count),
    ])
}

/// Measures the memory with idle sockets.
pub(crate) async fn idle(subject: &Subject) -> Result<Vec<Figure>> {
    let mut talks = Vec::new();
    let mut figures = Vec::new();
    for (count, name) in IDLE {
        talks.extend(connected(subject, count - talks.len()).await?);
        subject.program.settle().await?;
        figures.push((name, subject.program.memory_mib()?));
    }
    Ok(figures)
}

struct Spread {
    p50_ms: f64,
    p99_ms: f64,
}

impl Spread {
    fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let at = |share: usize| {
            let value = values.get(values.len().saturating_sub(1) * share / 100);
            value.map_or(f64::NAN, |ns| *ns as f64 / 1e6)
        };
        Self {
            p50_ms: at(50),
            p99_ms: at(99),
        }
    }
}
