//! Watches the gateways while people talk: progress, quiet moments, and the end of faults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde::Serialize;

use super::check::flat::{Memory, Quiet};
use super::check::ledger::Ledger;
use super::installation::gateway::Gateway;
use super::installation::vitals::{DROPPED, Vitals};
use super::phase::Phase;
use super::world::World;

/// The interval of progress lines.
const PROGRESS: Duration = Duration::from_secs(10);
/// The time that a quiet moment waits for turns to end.
const PATIENCE: Duration = Duration::from_secs(25);
/// The number of memory samples in a quiet moment, and the time between two of them.
const LOOKS: usize = 4;
const LOOK: Duration = Duration::from_secs(1);

/// A watched gateway.
pub(crate) struct WatchedGateway {
    pub(crate) world: Arc<World>,
    pub(crate) gateway: Arc<Gateway>,
    /// Its vitals before anybody came.
    pub(crate) before: Vitals,
    /// Its files at that time.
    pub(crate) files: Vec<String>,
    pub(crate) course: Course,
}

/// The observations of one gateway.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Course {
    /// Its processes in order: each kill is followed by a new one.
    pub(crate) lives: Vec<Life>,
    /// The maximum of each figure.
    pub(crate) most: BTreeMap<&'static str, u64>,
    /// All vitals, every ten seconds.
    samples: Vec<Sample>,
}

/// One process of a gateway.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Life {
    pid: u32,
    /// Seconds since the beginning of the run.
    born_s: f64,
    /// Memory in quiet moments after the process's own warm-up.
    quiet: Vec<Quiet>,
    /// The number of dropped signals at the last sample.
    pub(crate) dropped: i64,
}

impl Life {
    /// Judges its memory, if it lived long enough.
    pub(crate) fn memory(&self) -> Option<Memory> {
        Memory::of(&self.quiet)
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sample {
    at_s: u64,
    #[serde(flatten)]
    vitals: Vitals,
}

/// The times of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) began: Instant,
    pub(crate) whole: Duration,
}

impl Times {
    /// Returns the index of the current part of the run, of `parts` equal parts.
    pub(crate) fn part(self, parts: usize) -> usize {
        let share = self.began.elapsed().as_secs_f64() / self.whole.as_secs_f64();
        (1..parts)
            .filter(|part| share >= *part as f64 / parts as f64)
            .count()
    }

    /// Returns the age from which the memory of a process is compared.
    fn warm(self) -> Duration {
        self.whole.mul_f64(0.15).min(Duration::from_mins(10))
    }

    /// Returns the time at which faults stop.
    fn calm(self) -> Duration {
        self.whole.mul_f64(0.95)
    }

    /// Returns the times of quiet moments: the first after the warm-up, the last when faults have stopped.
    fn lulls(self) -> Vec<Duration> {
        let minutes = self.whole.as_secs() / 60;
        let count = u32::try_from(minutes / 4).unwrap_or(u32::MAX).clamp(2, 12);
        let between = self.calm().saturating_sub(self.warm()) / count;
        (0..=count)
            .map(|index| self.warm() + between * index)
            .collect()
    }
}

/// Watches until the end of the run.
pub(crate) async fn watch(
    all: &mut [WatchedGateway],
    phase: &Phase,
    ledger: &Ledger,
    times: Times,
) {
    let mut lulls = times.lulls().into_iter().peekable();
    let mut next_line = PROGRESS;
    while times.began.elapsed() < times.whole {
        let now = times.began.elapsed();
        if now >= times.calm() && !phase.calm.is_cancelled() {
            eprintln!("{:>5} s: faults stop", now.as_secs());
            phase.calm.cancel();
        }
        for one in all.iter_mut() {
            one.notice_birth(now);
        }
        if lulls.peek().is_some_and(|at| now >= *at) {
            lulls.next();
            lull(all, phase, times).await;
        }
        if now >= next_line {
            next_line = now + PROGRESS;
            for one in all.iter_mut() {
                one.sample(times).await;
            }
            line(all, ledger, times);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Lets all turns end, samples memory, and continues.
async fn lull(all: &mut [WatchedGateway], phase: &Phase, times: Times) {
    phase.set_lull(true);
    let began = Instant::now();
    while phase.busy() > 0 && began.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let eras: Vec<_> = all.iter().map(|one| one.gateway.era()).collect();
    let mut least = vec![u64::MAX; all.len()];
    for _ in 0..LOOKS {
        tokio::time::sleep(LOOK).await;
        for (one, least) in all.iter().zip(&mut least) {
            if let Ok(now) = one.vitals().await {
                *least = now.memory_kib.min(*least);
            }
        }
    }
    phase.set_lull(false);
    let at = times.began.elapsed();
    for ((one, memory_kib), era) in all.iter_mut().zip(least).zip(eras) {
        // Samples of two processes, or of none, do not count.
        if !one.gateway.was_killed_since(era) {
            one.notice_birth(at);
            one.course.was_quiet(at, memory_kib, times);
        }
    }
}

impl Course {
    fn was_quiet(&mut self, at: Duration, memory_kib: u64, times: Times) {
        let at_s = at.as_secs_f64();
        if let Some(life) = self.lives.last_mut()
            && at_s - life.born_s >= times.warm().as_secs_f64()
        {
            life.quiet.push(Quiet { at_s, memory_kib });
        }
    }
}

impl WatchedGateway {
    /// Records the state of a gateway before anybody comes.
    pub(crate) async fn new(world: &Arc<World>, gateway: &Arc<Gateway>) -> Result<Self> {
        Ok(Self {
            world: Arc::clone(world),
            gateway: Arc::clone(gateway),
            before: vitals(world, gateway).await?,
            files: gateway.files(),
            course: Course::default(),
        })
    }

    /// Records a failure.
    pub(crate) fn fail(&self, what: impl Into<String>) {
        self.world.fail(&self.gateway.name, what);
    }

    /// Returns its current vitals.
    pub(crate) async fn vitals(&self) -> Result<Vitals> {
        vitals(&self.world, &self.gateway).await
    }

    fn notice_birth(&mut self, now: Duration) {
        let last = self.course.lives.last().map(|life| life.pid);
        if let Some(pid) = self.gateway.pid().filter(|pid| Some(*pid) != last) {
            // The first processes were running before anybody came.
            let born_s = last.map_or(0.0, |_| now.as_secs_f64());
            self.course.lives.push(Life {
                pid,
                born_s,
                quiet: Vec::new(),
                dropped: 0,
            });
        }
    }

    async fn sample(&mut self, times: Times) {
        let era = self.gateway.era();
        let vitals = match self.vitals().await {
            // The sample may combine two processes.
            _ if self.gateway.was_killed_since(era) => return,
            Ok(vitals) => vitals,
            Err(error) => return self.fail(format!("it cannot be looked at: {error:#}")),
        };
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        for (name, value) in [
            ("memoryKib", vitals.memory_kib),
            ("threads", vitals.threads),
            ("handles", count(vitals.file_count())),
            ("processes", count(vitals.child_count())),
            ("tasks", vitals.gauge("sepal_tasks").unsigned_abs()),
        ] {
            let most = self.course.most.entry(name).or_default();
            *most = value.max(*most);
        }
        self.notice_birth(times.began.elapsed());
        if let Some(life) = self.course.lives.last_mut() {
            life.dropped = vitals.gauge(DROPPED);
        }
        self.course.samples.push(Sample {
            at_s: times.began.elapsed().as_secs(),
            vitals,
        });
    }
}

async fn vitals(world: &World, gateway: &Gateway) -> Result<Vitals> {
    let pid = gateway.pid();
    let pid = pid.ok_or_else(|| anyhow!("the gateway does not run"))?;
    let records = world
        .installation
        .records
        .as_ref()
        .map(|records| records.port);
    Vitals::of(pid, gateway.metrics, &world.client, records).await
}

fn line(all: &[WatchedGateway], ledger: &Ledger, times: Times) {
    let counts = ledger.counts();
    let sum = |begins: &str| -> u64 {
        let of = counts.iter().filter(|(name, _)| name.starts_with(begins));
        of.map(|(_, count)| count).sum()
    };
    eprintln!(
        "{:>5} s: {} turns answered, {} failed, {} stopped; {} sessions audited; {} faults; {} FAILURES",
        times.began.elapsed().as_secs(),
        sum("turns answered"),
        sum("turns failed"),
        sum("turns cancelled"),
        sum("sessions audited"),
        sum("fault: "),
        sum("failures"),
    );
    for one in all {
        let Some(Sample { vitals, .. }) = one.course.samples.last() else {
            continue;
        };
        eprintln!(
            "         {}: {} MiB, {} threads, {} handles, {} processes, {} sessions, {} sockets, {} tasks, {:.0} s of processor",
            one.gateway.name,
            vitals.memory_kib / 1024,
            vitals.threads,
            vitals.file_count(),
            vitals.child_count(),
            vitals.gauge("sepal_sessions_live"),
            vitals.gauge("sepal_sockets_open"),
            vitals.gauge("sepal_tasks"),
            one.gateway.cpu_seconds().unwrap_or_default(),
        );
    }
}
