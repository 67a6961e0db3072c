//! Watches a workspace's size, for all runtimes.
//!
//! It measures rarely what does not grow, and the more often the faster it grows. The free space on the disk,
//! which is known without measuring, reveals growth since the last measurement.

use std::{
    path::PathBuf,
    sync::LazyLock,
    time::{Duration, Instant, SystemTime},
};

use tokio::time::sleep;

use super::{Size, measure, measure_older, trim};
use crate::ProgramEnd;
use crate::disk::DiskWatch;
use sepal_jobs::Pool;

/// Measuring takes at most one part in this many of the time while nothing grows, unless one measurement
/// takes very long.
const SHARE: u32 = 20;
/// The same while the workspace grows.
const GROWING_SHARE: u32 = 4;
/// The longest pause between measurements, however long one takes.
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// The number of measurements before a workspace that keeps growing at its rate can be full.
const LOOKS_UNTIL_FULL: u32 = 4;
/// Other programs use up less than this of the disk all the time, which is no reason to measure.
const MIN_FALL: u64 = 4 << 20;
/// The most failed measurements in a row; after that nothing enforces the size.
const MAX_FAILURES: u32 = 2;
/// The most folders that are measured at the same time: each needs a thread, whose memory stays allocated
/// afterwards. High enough that a few sandboxes with slow folders do not delay the measurements of others.
static COUNTERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("sizes of workspaces", 16));

/// The interval at which a workspace is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The interval while nothing grows.
    pub calm: Duration,
    /// The shortest interval.
    pub fastest: Duration,
}

impl Pace {
    /// The pace for a folder of this machine.
    pub(crate) const HERE: Self = Self {
        calm: Duration::from_secs(1),
        fastest: Duration::from_millis(100),
    };

    /// Returns the longest wait after a measurement that took `took`, of a workspace that grew by `grown`
    /// bytes since the previous measurement, `since` ago, and may grow by `left` more.
    fn wait(self, took: Duration, (grown, since): (u64, Duration), left: u64) -> Duration {
        let calm = self.calm.max((took * SHARE).min(MAX_PAUSE));
        if grown == 0 {
            return calm;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rough guess is enough")]
        let until_full = since.as_secs_f64() * left as f64 / grown as f64;
        let wanted = until_full / f64::from(LOOKS_UNTIL_FULL);
        let wanted = Duration::try_from_secs_f64(wanted).unwrap_or(calm);
        wanted.max(self.soonest(took)).min(calm)
    }

    /// Returns the shortest wait after a measurement that took that long.
    fn soonest(self, took: Duration) -> Duration {
        let share = (took * (GROWING_SHARE - 1)).min(MAX_PAUSE);
        self.fastest.max(share)
    }
}

/// Measures repeatedly until the workspace is too large. A workspace that was too large from the beginning
/// may not grow, so that a session can still start and delete files; one above the ceiling may not even
/// start. `before` gives the bytes that existed when the sandbox started; if it gives `None`, the first
/// measurement replaces it and counts what was written until then as existing before. `count` gets the number
/// of bytes after which it may stop, and gives `None` if it fails.
pub(crate) async fn watch<Counting>(
    limit: u64,
    pace: Pace,
    mut disk: DiskWatch,
    before: impl Future<Output = Option<u64>>,
    count: impl Fn(u64) -> Counting,
) -> ProgramEnd
where
    Counting: Future<Output = Option<Size>>,
{
    let before = before.await;
    if before.is_some_and(|size| size > trim::ceiling(limit)) {
        return ProgramEnd::OverWorkspace(limit);
    }
    let mut allowed = before.map(|size| limit.max(size));
    let mut failures = 0;
    let mut last: Option<(u64, Instant)> = None;
    loop {
        let (started, free) = (Instant::now(), disk.free());
        let most = allowed.unwrap_or_else(|| trim::ceiling(limit));
        let mut grown = (0, Duration::ZERO);
        let mut left = most;
        match count(most).await {
            Some(Size::Bytes(size)) if size > most => return ProgramEnd::OverWorkspace(limit),
            Some(Size::Bytes(size)) => {
                let most = *allowed.get_or_insert_with(|| limit.max(size));
                left = most.saturating_sub(size);
                if let Some((before, at)) = last.replace((size, started)) {
                    grown = (size.saturating_sub(before), started - at);
                }
                failures = 0;
            }
            Some(Size::Uncountable) => return ProgramEnd::UncountableWorkspace,
            None => {
                failures += 1;
                if failures == MAX_FAILURES {
                    return ProgramEnd::UnmeasuredWorkspace;
                }
            }
        }
        let took = started.elapsed();
        let soonest = pace.soonest(took);
        sleep(soonest).await;
        let rest = pace.wait(took, grown, left).saturating_sub(soonest);
        // Some program wrote a large part of what this workspace may still take; it may have been this
        // sandbox.
        let fall = (left / u64::from(LOOKS_UNTIL_FULL)).max(MIN_FALL);
        tokio::select! {
            () = sleep(rest) => {}
            () = disk.until_below(free.saturating_sub(fall)) => {}
        }
    }
}

/// Returns the bytes of a folder of this machine that existed at `start`, counted until they exceed the
/// ceiling.
pub(crate) async fn count_before(folder: PathBuf, start: SystemTime, limit: u64) -> Option<u64> {
    let bound = trim::ceiling(limit);
    let counted = COUNTERS.run(move || measure_older(&folder, bound, start));
    match counted.await.ok()?.ok()? {
        Size::Bytes(bytes) => Some(bytes),
        Size::Uncountable => None,
    }
}

/// Measures a folder of this machine.
pub(crate) async fn count(folder: PathBuf, bound: u64) -> Option<Size> {
    let counted = COUNTERS.run(move || measure(&folder, bound));
    counted.await.ok()?.ok()
}

/// Measures a folder of this machine once more after its sandbox has ended, and deletes what exceeds the
/// ceiling.
pub(crate) async fn trim(folder: PathBuf, limit: u64) {
    match COUNTERS.run(move || trim::trim(&folder, limit)).await {
        Ok(Ok(false)) => {}
        Ok(Ok(true)) => warn_trimmed(),
        Ok(Err(error)) => tracing::warn!(%error, "A workspace cannot be trimmed"),
        Err(error) => tracing::warn!(%error, "A workspace cannot be trimmed"),
    }
}

/// Tells the operator that files of a workspace were deleted.
pub(crate) fn warn_trimmed() {
    tracing::warn!("A workspace was more than twice its size, or nested too deep, and is trimmed");
}

#[cfg(test)]
mod tests {
    use std::{
        future::ready,
        sync::{
            Arc, Mutex,
            atomic::{AtomicU64, Ordering},
        },
    };

    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::DiskMonitor;

    const SECOND: Duration = Duration::from_secs(1);
    const MB: u64 = 1 << 20;

    /// Returns the watch's result for these sizes.
    async fn watched(limit: u64, sizes: &[Option<Size>]) -> ProgramEnd {
        watched_since(limit, None, sizes).await
    }

    async fn watched_since(limit: u64, before: Option<u64>, sizes: &[Option<Size>]) -> ProgramEnd {
        let left = Mutex::new(sizes.iter().copied());
        let count = |_| ready(left.lock().unwrap().next().expect("it has to end by now"));
        let disk = DiskMonitor::off().watch();
        watch(limit, Pace::HERE, disk, ready(before), count).await
    }

    #[test]
    fn the_pace_rises_while_bytes_grow() {
        let (none, quick) = (Duration::ZERO, Duration::from_millis(1));
        let wait = |took, grown, left| Pace::HERE.wait(took, grown, left);
        let ms = Duration::from_millis;
        // A workspace that does not grow is measured each second, for at most a twentieth of the time.
        assert_eq!(wait(quick, (0, none), 100 * MB), SECOND);
        assert_eq!(wait(SECOND, (0, SECOND), 100 * MB), SECOND * 20);
        assert_eq!(wait(SECOND * 10, (0, SECOND), 100 * MB), MAX_PAUSE);
        // 100 MB left at 100 MB/s are full in a second.
        assert_eq!(wait(quick, (100 * MB, SECOND), 100 * MB), ms(250));
        assert_eq!(wait(quick, (50 * MB, ms(500)), 100 * MB), ms(250));
        // Ten times as fast, or ten times as full.
        assert_eq!(wait(quick, (1_000 * MB, SECOND), 100 * MB), ms(100));
        assert_eq!(wait(quick, (100 * MB, SECOND), 10 * MB), ms(100));
        // Slow growth needs no haste.
        assert_eq!(wait(quick, (MB, SECOND), 100 * MB), SECOND);
        // Measuring takes a quarter of the time at most.
        assert_eq!(wait(SECOND, (1_000 * MB, SECOND), 100 * MB), SECOND * 3);
        assert_eq!(wait(quick, (MB, SECOND), 0), ms(100));
    }

    /// The free disk space reveals growth between two measurements that are far apart.
    #[tokio::test(start_paused = true)]
    async fn a_disk_that_is_being_filled_is_a_reason_to_look() {
        let free = Arc::new(AtomicU64::new(10_000 * MB));
        let read = Arc::clone(&free);
        let disk = DiskMonitor::reading(move || read.load(Ordering::Relaxed), 0).await;
        let pace = Pace {
            calm: Duration::from_mins(1),
            fastest: SECOND,
        };
        let size = Arc::new(AtomicU64::new(0));
        let (counted, looks) = (Arc::clone(&size), Arc::new(AtomicU64::new(0)));
        let looked = Arc::clone(&looks);
        let count = move |_| {
            looked.fetch_add(1, Ordering::Relaxed);
            ready(Some(Size::Bytes(counted.load(Ordering::Relaxed))))
        };
        let began = tokio::time::Instant::now();
        let watching = watch(1_000 * MB, pace, disk.watch(), ready(None), count);
        let watching = TaskTracker::new().spawn(watching);
        sleep(SECOND * 5).await;
        assert_eq!(looks.load(Ordering::Relaxed), 1);
        // Another program writes a little.
        free.fetch_sub(100 * MB, Ordering::Relaxed);
        sleep(SECOND * 5).await;
        assert_eq!(looks.load(Ordering::Relaxed), 1);
        size.store(1_200 * MB, Ordering::Relaxed);
        free.fetch_sub(1_200 * MB, Ordering::Relaxed);
        let ended = watching.await.unwrap();
        assert_eq!(ended, ProgramEnd::OverWorkspace(1_000 * MB));
        assert!(began.elapsed() < SECOND * 12, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_too_large_may_not_grow_and_what_is_far_too_large_not_start() {
        let sizes = |sizes: &[u64]| {
            sizes
                .iter()
                .map(|it| Some(Size::Bytes(*it)))
                .collect::<Vec<_>>()
        };
        let over = ProgramEnd::OverWorkspace(100);
        assert_eq!(watched(100, &sizes(&[50, 100, 101])).await, over);
        assert_eq!(watched(100, &sizes(&[150, 120, 150, 151])).await, over);
        assert_eq!(watched(100, &sizes(&[200, 201])).await, over);
        assert_eq!(watched(100, &sizes(&[201])).await, over);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_written_before_the_first_look_counts() {
        let over = ProgramEnd::OverWorkspace(100);
        let sizes = [Some(Size::Bytes(150))];
        assert_eq!(watched_since(100, Some(0), &sizes).await, over);
        assert_eq!(watched_since(100, Some(120), &sizes).await, over);
        assert_eq!(watched_since(100, Some(201), &[]).await, over);
        let grown = [150, 151].map(|it| Some(Size::Bytes(it)));
        assert_eq!(watched_since(100, Some(150), &grown).await, over);
    }

    #[tokio::test(start_paused = true)]
    async fn a_size_that_nobody_can_tell_twice_in_a_row_ends_it() {
        let some = Some(Size::Bytes(1));
        let ended = watched(100, &[None, some, None, some, None, None]).await;
        assert_eq!(ended, ProgramEnd::UnmeasuredWorkspace);
        assert_eq!(
            watched(100, &[None, None]).await,
            ProgramEnd::UnmeasuredWorkspace
        );
        let ended = watched(100, &[some, Some(Size::Uncountable)]).await;
        assert_eq!(ended, ProgramEnd::UncountableWorkspace);
    }
}
