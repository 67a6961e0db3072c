//! Looks at the gateways while people talk: progress, quiet moments, the end of faults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::flat::Quiet;
use super::ledger::Place;
use super::talk::World;
use super::vitals::Vitals;

/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long a quiet moment waits for turns to end.
const PATIENCE: Duration = Duration::from_secs(25);
/// Looks at memory in a quiet moment, and how far apart.
const LOOKS: usize = 4;
const LOOK: Duration = Duration::from_secs(1);

/// What was seen of one gateway.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Course {
    /// Memory in quiet moments after the warm-up.
    pub(crate) quiet: Vec<Quiet>,
    /// The most of everything that was ever seen.
    pub(crate) most: BTreeMap<&'static str, u64>,
    /// Everything, every ten seconds.
    samples: Vec<Sample>,
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
    /// Memory is compared from here on.
    fn warm(self) -> Duration {
        self.whole.mul_f64(0.15).min(Duration::from_mins(10))
    }

    /// Faults stop.
    fn calm(self) -> Duration {
        self.whole.mul_f64(0.95)
    }

    /// Quiet moments: the first after the warm-up, the last when faults have stopped.
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
pub(crate) async fn watch(worlds: &[Arc<World>], times: Times) -> Vec<Course> {
    let mut courses: Vec<Course> = worlds.iter().map(|_| Course::default()).collect();
    let mut lulls = times.lulls().into_iter().peekable();
    let mut next_line = PROGRESS;
    while times.began.elapsed() < times.whole {
        let now = times.began.elapsed();
        for world in worlds {
            if now >= times.calm() && !world.sky.calm.is_cancelled() {
                eprintln!("{:>5} s: faults stop", now.as_secs());
                world.sky.calm.cancel();
            }
        }
        if lulls.peek().is_some_and(|at| now >= *at) {
            lulls.next();
            lull(worlds, &mut courses, times).await;
        }
        if now >= next_line {
            next_line = now + PROGRESS;
            for (world, course) in worlds.iter().zip(&mut courses) {
                if let Err(error) = sample(world, course, times).await {
                    let place = Place {
                        house: world.house.name,
                        session: "",
                        seq: 0,
                    };
                    world
                        .ledger
                        .fail(place, format!("it cannot be looked at: {error:#}"));
                }
            }
            line(worlds, &courses, times);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    courses
}

/// Lets all turns end, looks at memory, and goes on.
async fn lull(worlds: &[Arc<World>], courses: &mut [Course], times: Times) {
    let Some(sky) = worlds.first().map(|world| &world.sky) else {
        return;
    };
    sky.set_lull(true);
    let began = Instant::now();
    while sky.busy() > 0 && began.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut least = vec![u64::MAX; courses.len()];
    for _ in 0..LOOKS {
        tokio::time::sleep(LOOK).await;
        for (world, least) in worlds.iter().zip(&mut least) {
            if let Ok(now) = vitals(world).await {
                *least = now.memory_kib.min(*least);
            }
        }
    }
    sky.set_lull(false);
    let at_s = times.began.elapsed().as_secs_f64();
    for (course, memory_kib) in courses.iter_mut().zip(least) {
        course.quiet.push(Quiet { at_s, memory_kib });
    }
}

/// A look at the gateway of this world.
pub(crate) async fn vitals(world: &World) -> Result<Vitals> {
    let pid = world.house.gateway.pid();
    let pid = pid.ok_or_else(|| anyhow::anyhow!("the gateway does not run"))?;
    Vitals::of(pid, world.house.gateway.metrics, &world.client).await
}

async fn sample(world: &World, course: &mut Course, times: Times) -> Result<()> {
    let vitals = vitals(world).await?;
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    for (name, value) in [
        ("memoryKib", vitals.memory_kib),
        ("threads", vitals.threads),
        ("handles", count(vitals.file_count())),
        ("processes", count(vitals.child_count())),
        ("tasks", vitals.gauge("sepal_tasks").unsigned_abs()),
    ] {
        let most = course.most.entry(name).or_default();
        *most = value.max(*most);
    }
    course.samples.push(Sample {
        at_s: times.began.elapsed().as_secs(),
        vitals,
    });
    Ok(())
}

fn line(worlds: &[Arc<World>], courses: &[Course], times: Times) {
    let Some(ledger) = worlds.first().map(|world| &world.ledger) else {
        return;
    };
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
    for (world, course) in worlds.iter().zip(courses) {
        let Some(Sample { vitals, .. }) = course.samples.last() else {
            continue;
        };
        eprintln!(
            "         {}: {} MiB, {} threads, {} handles, {} processes, {} sessions, {} sockets, {} tasks, {:.0} s of processor",
            world.house.name,
            vitals.memory_kib / 1024,
            vitals.threads,
            vitals.file_count(),
            vitals.child_count(),
            vitals.gauge("sepal_sessions_live"),
            vitals.gauge("sepal_sockets_open"),
            vitals.gauge("sepal_tasks"),
            world.house.gateway.cpu_seconds().unwrap_or_default(),
        );
    }
}
