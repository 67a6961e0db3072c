//! Defines copies of workspaces: the order, the progress, and the result.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Bounds;
use sepal_core::domain::SandboxId;

/// A copy to make.
#[derive(Debug, Clone)]
pub struct CopyOrder {
    /// The sandbox whose workspace is copied. Its programs may run and go on writing.
    pub from: SandboxId,
    /// The sandbox that gets the copy: a fresh one, in which nothing was started.
    pub to: SandboxId,
    /// The limits: a workspace above its limit is not copied.
    pub bounds: Bounds,
    /// The kind of copy.
    pub way: CopyWay,
    /// Reports the progress of the copy, and stops it.
    pub watch: CopyWatch,
}

/// The kind of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyWay {
    /// All files at once: later changes to the other workspace are not visible.
    Whole,
    /// Copy on write if the runtime supports it; otherwise whole. Until it is removed, a copy on write shows
    /// later changes to the other workspace, and only one sandbox at a time can use it.
    OnWrite,
}

/// The result of a copy that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyResult {
    /// A whole copy; its size in bytes, as the limit of workspaces counts.
    Whole(u64),
    /// A copy on write ([`CopyWay::OnWrite`]): nothing was copied.
    OnWrite,
    /// The workspace does not exist.
    Missing,
    /// The workspace is larger than allowed or nested too deep; nothing of the copy is kept.
    TooLarge,
}

/// The progress of a copy. Clones share the same progress.
#[derive(Debug, Clone, Default)]
pub struct CopyWatch {
    bytes: Arc<AtomicU64>,
    stop: CancellationToken,
}

impl CopyWatch {
    /// Returns the bytes copied so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Stops the copy.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Stops the copy when the guard is dropped.
    pub fn stop_on_drop(&self) -> DropGuard {
        self.stop.clone().drop_guard()
    }

    /// Adds copied bytes and returns the sum.
    pub fn add(&self, bytes: u64) -> u64 {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }
}
