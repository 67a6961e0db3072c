//! Watches the free space on the disks of data and workspaces, and pauses sandboxes when it runs low.
//!
//! The disk is shared: what one command fills, the database cannot write to. Limits of workspaces alone do
//! not prevent that, because their sum may exceed the disk. So below a floor there is *disk pressure*: every
//! sandbox that may write to a workspace is paused, no new one of that kind starts, and people are told. The
//! pressure ends a little above the floor.

use std::{
    collections::BTreeSet,
    future::pending,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::sleep,
};
use tokio_util::task::TaskTracker;

use super::Error;
use sepal_jobs::Pool;
use sepal_telemetry::instruments;

/// The interval of checks while something runs that may write. A fast disk takes some hundred megabytes in
/// that time, so a floor should not be much lower.
const BUSY_PACE: Duration = Duration::from_millis(100);
/// The interval of checks while nothing runs that may write.
const IDLE_PACE: Duration = Duration::from_secs(5);
/// The most bytes above the floor at which pressure ends, so that it does not toggle with each file.
const MAX_MARGIN: u64 = 64 << 20;

/// Returns the free bytes on the file systems of these folders; `None` if they cannot be read now.
type ReadFree = Arc<dyn Fn(&BTreeSet<PathBuf>) -> Option<u64> + Send + Sync>;

/// Watches the free space on the disks of data and workspaces. Clones share the same watch, which ends with
/// the last clone.
#[derive(Clone)]
pub struct DiskMonitor(Arc<Shared>);

struct Shared {
    /// The free bytes below which there is pressure; 0 = never.
    floor: u64,
    read: ReadFree,
    /// Allows one check at a time: a concurrent one would see the same.
    reads: Pool,
    folders: Mutex<BTreeSet<PathBuf>>,
    /// The free bytes at the newest check.
    free: watch::Sender<u64>,
    is_pressed: watch::Sender<bool>,
    /// Notified when a close watch begins.
    woken: Notify,
}

/// A close watch of the disks, for a program that may fill them. While a watch exists, the disks are checked
/// ten times a second.
#[derive(Debug, Clone)]
pub(super) struct DiskWatch {
    free: watch::Receiver<u64>,
    is_pressed: watch::Receiver<bool>,
}

/// Returns the free bytes of the fullest file system of these folders.
fn least_free(folders: &BTreeSet<PathBuf>) -> Option<u64> {
    let free = folders.iter().filter_map(|folder| free_bytes(folder).ok());
    free.min()
}

/// Returns the bytes that an ordinary user can still write on the file system of `folder`.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

impl DiskMonitor {
    /// Starts watching the disk of `folder`; there is pressure below `floor` bytes, never if it is 0. The
    /// first check is done when this returns.
    pub async fn start(folder: PathBuf, floor: u64) -> Self {
        let monitor = Self::with(Arc::new(least_free), floor);
        monitor.add(folder);
        monitor.begin().await
    }

    /// Does the same with another source of the free bytes.
    pub async fn reading(read: impl Fn() -> u64 + Send + Sync + 'static, floor: u64) -> Self {
        Self::with(Arc::new(move |_| Some(read())), floor)
            .begin()
            .await
    }

    async fn begin(self) -> Self {
        self.0.measure().await;
        // The task ends one check after the last clone is dropped, and nothing has to wait for that.
        let shared = Arc::downgrade(&self.0);
        TaskTracker::new().spawn(async move {
            while let Some(shared) = shared.upgrade() {
                let is_busy = shared.free.receiver_count() > 0;
                let pace = if is_busy { BUSY_PACE } else { IDLE_PACE };
                let woken = async {
                    if is_busy {
                        pending::<()>().await;
                    }
                    shared.woken.notified().await;
                };
                tokio::select! {
                    () = sleep(pace) => {}
                    () = woken => {}
                }
                shared.measure().await;
            }
        });
        self
    }

    /// Creates a monitor that never checks and never reports pressure.
    pub fn off() -> Self {
        Self::with(Arc::new(|_| None), 0)
    }

    fn with(read: ReadFree, floor: u64) -> Self {
        Self(Arc::new(Shared {
            floor,
            read,
            reads: Pool::new("disks", 1),
            folders: Mutex::default(),
            free: watch::Sender::new(u64::MAX),
            is_pressed: watch::Sender::new(false),
            woken: Notify::new(),
        }))
    }

    /// Also watches the disk of `folder`; the fullest disk counts.
    pub(super) fn add(&self, folder: PathBuf) {
        let folders = &self.0.folders;
        let mut folders = folders.lock().unwrap_or_else(PoisonError::into_inner);
        folders.insert(folder);
    }

    /// Returns the free bytes at the last check; `None` if nothing could be read yet.
    pub fn free(&self) -> Option<u64> {
        let free = *self.0.free.borrow();
        (free != u64::MAX).then_some(free)
    }

    /// Returns the free bytes below which there is pressure; 0 = never.
    pub fn floor(&self) -> u64 {
        self.0.floor
    }

    /// Fails under pressure, when nothing that writes to a workspace may start.
    pub(super) fn check(&self) -> Result<(), Error> {
        if !self.is_pressed() {
            return Ok(());
        }
        Err(Error::DiskFull {
            free: self.free().unwrap_or_default(),
            floor: self.floor(),
        })
    }

    /// Returns true if there is pressure, so that everything that may write to a workspace is paused.
    pub fn is_pressed(&self) -> bool {
        *self.0.is_pressed.borrow()
    }

    /// Subscribes to the pressure.
    pub fn pressure(&self) -> watch::Receiver<bool> {
        self.0.is_pressed.subscribe()
    }

    /// Begins a close watch, for a program that may write.
    pub(super) fn watch(&self) -> DiskWatch {
        let watch = DiskWatch {
            free: self.0.free.subscribe(),
            is_pressed: self.pressure(),
        };
        self.0.woken.notify_one();
        watch
    }
}

impl Shared {
    async fn measure(&self) {
        let read = Arc::clone(&self.read);
        let folders = self.folders.lock();
        let folders = folders.unwrap_or_else(PoisonError::into_inner).clone();
        // A network file system may block.
        let found = self.reads.run(move || read(&folders)).await;
        let Some(free) = found.ok().flatten() else {
            return;
        };
        instruments().disk_free(free);
        self.free.send_replace(free);
        let floor = self.floor;
        self.is_pressed.send_if_modified(|was| {
            let is = is_pressed(*was, free, floor);
            let has_changed = is != *was;
            *was = is;
            if has_changed {
                log(is, free, floor);
            }
            has_changed
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if *self.is_pressed.borrow() {
            instruments().disk_pressure(false);
        }
    }
}

impl std::fmt::Debug for DiskMonitor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("DiskMonitor")
            .field("floor", &self.0.floor)
            .field("free", &self.free())
            .field("is_pressed", &self.is_pressed())
            .finish_non_exhaustive()
    }
}

impl DiskWatch {
    /// Returns true if there is pressure.
    pub(super) fn is_pressed(&self) -> bool {
        *self.is_pressed.borrow()
    }

    /// Resolves when there is pressure, or with `false` when there is none.
    pub(super) async fn until_pressed(&mut self, is_pressed: bool) {
        let reached = self.is_pressed.wait_for(|is| *is == is_pressed);
        let is_over = reached.await.is_err();
        if is_over && is_pressed {
            // The monitor is gone.
            pending::<()>().await;
        }
    }

    /// Returns the free bytes at the last check.
    pub(super) fn free(&self) -> u64 {
        *self.free.borrow()
    }

    /// Resolves when fewer bytes are free.
    pub(super) async fn until_below(&mut self, bytes: u64) {
        let is_over = self.free.wait_for(|free| *free < bytes).await.is_err();
        if is_over {
            pending::<()>().await;
        }
    }
}

/// Returns true if there is pressure: it begins below the floor and ends a little above it.
fn is_pressed(was: bool, free: u64, floor: u64) -> bool {
    let margin = if was { (floor / 4).min(MAX_MARGIN) } else { 0 };
    floor > 0 && free < floor.saturating_add(margin)
}

fn log(is_pressed: bool, free: u64, floor: u64) {
    instruments().disk_pressure(is_pressed);
    let (free, floor) = (free >> 20, floor >> 20);
    if is_pressed {
        tracing::warn!(
            disk.free_mb = free,
            "Sandboxes stand still: the disk has less than {floor} MB left \
             (`sandbox.min_free_mb`); free some space, or delete sessions that nobody needs"
        );
    } else {
        tracing::info!(
            disk.free_mb = free,
            "Sandboxes go on: the disk has room again"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn pressure_begins_below_the_floor_and_ends_a_little_above_it() {
        for (was, free, floor, is) in [
            (false, 512 * MB, 512 * MB, false),
            (false, 512 * MB - 1, 512 * MB, true),
            (true, 512 * MB, 512 * MB, true),
            (true, 576 * MB - 1, 512 * MB, true),
            (true, 576 * MB, 512 * MB, false),
            // A quarter of a small floor.
            (true, 10 * MB - 1, 8 * MB, true),
            (true, 10 * MB, 8 * MB, false),
            (true, 0, 0, false),
            (false, 0, 0, false),
        ] {
            assert_eq!(is_pressed(was, free, floor), is, "{was} {free} {floor}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_watches_hears_of_pressure_and_of_its_end() {
        let left = Arc::new(AtomicU64::new(100 * MB));
        let read = Arc::clone(&left);
        let read = move || read.load(Ordering::Relaxed);
        let monitor = DiskMonitor::reading(read, 50 * MB).await;
        assert_eq!(
            (monitor.free(), monitor.is_pressed()),
            (Some(100 * MB), false)
        );
        let mut watch = monitor.watch();
        left.store(60 * MB, Ordering::Relaxed);
        watch.until_below(70 * MB).await;
        assert!(!watch.is_pressed());
        left.store(40 * MB, Ordering::Relaxed);
        watch.until_pressed(true).await;
        left.store(80 * MB, Ordering::Relaxed);
        watch.until_pressed(false).await;
        assert_eq!(watch.free(), 80 * MB);
    }

    #[tokio::test]
    async fn a_floor_above_what_is_left_is_pressure_from_the_beginning() {
        let home = tempfile::tempdir().unwrap();
        let floor = free_bytes(home.path()).unwrap().saturating_mul(2);
        let start = |floor| DiskMonitor::start(home.path().to_owned(), floor);
        let monitor = start(floor).await;
        monitor.add(PathBuf::from("/nowhere/at/all"));
        assert!(monitor.is_pressed());
        assert!(!start(0).await.is_pressed(), "0 is off");
        assert!(!DiskMonitor::off().is_pressed());
    }

    #[tokio::test]
    async fn nobody_looks_after_the_last_one_is_dropped() {
        let monitor = DiskMonitor::reading(|| 1, 0).await;
        let mut watch = monitor.watch();
        drop(monitor);
        let over = watch.free.wait_for(|free| *free == 2).await;
        assert!(over.is_err());
    }
}
