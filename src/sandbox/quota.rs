//! The watch over a workspace's size, for all runtimes.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use tokio::{sync::Semaphore, time::sleep};

use super::{
    Ended, trim,
    workspace::{Size, measure},
};

/// The shortest time between two looks at a folder of this machine.
pub(super) const PACE: Duration = Duration::from_secs(1);
/// Looking may take this part of the time at most, unless one look takes very long.
const SHARE: u32 = 20;
/// The longest time that nobody looks, however long a look takes.
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// Looks in a row that may tell nothing; then nothing holds the size.
const MAX_FAILURES: u32 = 2;
/// Folders that are counted at the same time: each needs a thread, which the memory that it once used
/// outlives. Enough that a few sandboxes with folders that take long keep nobody else's from being
/// looked at.
static COUNTERS: Semaphore = Semaphore::const_new(16);

/// Counts again and again until it is too much. A workspace that was too large from the beginning
/// may not grow, so that a session can still start and delete its files; one that is above the
/// ceiling may not even start. `count` gets the number of bytes after which it may stop, and gives
/// `None` where it cannot tell now.
pub(super) async fn watch<Counting>(
    limit: u64,
    pace: Duration,
    count: impl Fn(u64) -> Counting,
) -> Ended
where
    Counting: Future<Output = Option<Size>>,
{
    let mut allowed = None;
    let mut failures = 0;
    loop {
        let started = Instant::now();
        let most = allowed.unwrap_or_else(|| trim::ceiling(limit));
        match count(most).await {
            Some(Size::Bytes(size)) if size > most => return Ended::OverWorkspace(limit),
            Some(Size::Bytes(size)) => {
                allowed.get_or_insert_with(|| limit.max(size));
                failures = 0;
            }
            Some(Size::Uncountable) => return Ended::UncountableWorkspace,
            None => {
                failures += 1;
                if failures == MAX_FAILURES {
                    return Ended::UnmeasuredWorkspace;
                }
            }
        }
        sleep(pace.max((started.elapsed() * SHARE).min(MAX_PAUSE))).await;
    }
}

/// Counts a folder of this machine.
pub(super) async fn count(folder: PathBuf, bound: u64) -> Option<Size> {
    // The semaphore is never closed.
    let _place = COUNTERS.acquire().await;
    let counted = tokio::task::spawn_blocking(move || measure(&folder, bound)).await;
    counted.ok()?.ok()
}

/// Looks once more at a folder of this machine after its sandbox has ended, and deletes what is
/// above the ceiling.
pub(super) async fn trim(folder: PathBuf, limit: u64) {
    // The semaphore is never closed.
    let _place = COUNTERS.acquire().await;
    match tokio::task::spawn_blocking(move || trim::trim(&folder, limit)).await {
        Ok(Ok(false)) => {}
        Ok(Ok(true)) => warn_trimmed(),
        Ok(Err(error)) => tracing::warn!(%error, "A workspace cannot be trimmed"),
        Err(error) => tracing::warn!(%error, "A workspace cannot be trimmed"),
    }
}

/// Tells the operator that somebody's files were deleted.
pub(super) fn warn_trimmed() {
    tracing::warn!("A workspace was more than twice its size, or nested too deep, and is trimmed");
}

#[cfg(test)]
mod tests {
    use std::{future::ready, sync::Mutex};

    use super::*;

    /// What the watch says of these sizes, the last of which stays.
    async fn watched(limit: u64, sizes: &[Option<Size>]) -> Ended {
        let left = Mutex::new(sizes.iter().copied());
        let count = |_| ready(left.lock().unwrap().next().expect("it has to end by now"));
        watch(limit, Duration::from_secs(1), count).await
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_too_large_may_not_grow_and_what_is_far_too_large_not_start() {
        let sizes = |sizes: &[u64]| {
            sizes
                .iter()
                .map(|it| Some(Size::Bytes(*it)))
                .collect::<Vec<_>>()
        };
        let over = Ended::OverWorkspace(100);
        assert_eq!(watched(100, &sizes(&[50, 100, 101])).await, over);
        assert_eq!(watched(100, &sizes(&[150, 120, 150, 151])).await, over);
        assert_eq!(watched(100, &sizes(&[200, 201])).await, over);
        assert_eq!(watched(100, &sizes(&[201])).await, over);
    }

    #[tokio::test(start_paused = true)]
    async fn a_size_that_nobody_can_tell_twice_in_a_row_ends_it() {
        let some = Some(Size::Bytes(1));
        let ended = watched(100, &[None, some, None, some, None, None]).await;
        assert_eq!(ended, Ended::UnmeasuredWorkspace);
        assert_eq!(
            watched(100, &[None, None]).await,
            Ended::UnmeasuredWorkspace
        );
        let ended = watched(100, &[some, Some(Size::Uncountable)]).await;
        assert_eq!(ended, Ended::UncountableWorkspace);
    }
}
