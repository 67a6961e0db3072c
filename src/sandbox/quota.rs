//! The watch over a workspace's size, for all runtimes.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use tokio::{sync::Semaphore, time::sleep};

use super::{
    Ended,
    workspace::{Size, measure},
};

/// The shortest time between two looks at a folder of this machine.
pub(super) const PACE: Duration = Duration::from_secs(1);
/// Looking may take this part of the time at most.
const SHARE: u32 = 20;
/// Folders that are counted at the same time: each needs a thread, which the memory that it once used
/// outlives. Enough that a few sandboxes with folders that take long keep nobody else's from being
/// looked at.
static COUNTERS: Semaphore = Semaphore::const_new(16);

/// Counts again and again until it is too much. A workspace that was too large from the beginning
/// may not grow, so that a session can still start and delete its files. `count` gets the number of
/// bytes after which it may stop, and gives `None` where it cannot tell now.
pub(super) async fn watch<Counting>(
    limit: u64,
    pace: Duration,
    count: impl Fn(u64) -> Counting,
) -> Ended
where
    Counting: Future<Output = Option<Size>>,
{
    let mut allowed = None;
    loop {
        let started = Instant::now();
        match (count(allowed.unwrap_or(u64::MAX)).await, allowed) {
            (Some(Size::Bytes(size)), None) => allowed = Some(limit.max(size)),
            (Some(Size::Bytes(size)), Some(allowed)) if size > allowed => {
                return Ended::OverWorkspace(limit);
            }
            (Some(Size::Uncountable), _) => return Ended::UncountableWorkspace,
            (Some(Size::Bytes(_)) | None, _) => {}
        }
        sleep(pace.max(started.elapsed() * SHARE)).await;
    }
}

/// Counts a folder of this machine.
pub(super) async fn count(folder: PathBuf, bound: u64) -> Option<Size> {
    // The semaphore is never closed.
    let _place = COUNTERS.acquire().await;
    let counted = tokio::task::spawn_blocking(move || measure(&folder, bound)).await;
    counted.ok()?.ok()
}
