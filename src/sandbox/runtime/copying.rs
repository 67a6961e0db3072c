//! One workspace made into another: what is asked, what is told meanwhile, and what came of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::domain::SandboxId;
use crate::sandbox::Bounds;

/// A copy to make.
#[derive(Debug, Clone)]
pub struct CopyOrder {
    /// Whose workspace is copied. Its programs may run and go on writing.
    pub from: SandboxId,
    /// Which gets it: a fresh sandbox, that nothing was started in.
    pub to: SandboxId,
    /// A workspace above its limit is not copied.
    pub bounds: Bounds,
    /// How it is made.
    pub way: CopyWay,
    /// Where the copy tells how far it is, and is told to stop.
    pub watch: CopyWatch,
}

/// How a copy is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyWay {
    /// All files at once: nothing that happens to the other workspace later is seen.
    Whole,
    /// Where the runtime can, only what is written later; else whole. Until it is removed it shows what is
    /// changed in the other workspace, and one sandbox at a time can see it.
    OnWrite,
}

/// What came of a copy that did not break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// It is there; how much is in it, in bytes, as the limit of workspaces counts.
    Whole(u64),
    /// It shows the other one, and nothing was copied ([`CopyWay::OnWrite`]).
    OnWrite,
    /// There is nothing to copy.
    Missing,
    /// It is larger than a workspace may be, or nested too deep, and nothing of it is kept.
    TooLarge,
}

/// How far a copy is. Clones watch the same one.
#[derive(Debug, Clone, Default)]
pub struct CopyWatch {
    bytes: Arc<AtomicU64>,
    stop: CancellationToken,
}

impl CopyWatch {
    /// Bytes that were copied so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Ends the copy: nobody wants it any more.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Stops the copy when it is dropped.
    pub(in crate::sandbox) fn stop_on_drop(&self) -> DropGuard {
        self.stop.clone().drop_guard()
    }

    /// Counts what was copied; the sum.
    pub(in crate::sandbox) fn add(&self, bytes: u64) -> u64 {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    pub(in crate::sandbox) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(in crate::sandbox) async fn stopped(&self) {
        self.stop.cancelled().await;
    }
}
