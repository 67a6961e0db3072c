//! Supervises one container per task: waits for its end, determines the reason, and cleans up.
//!
//! The engine does not remove containers by itself: whether memory ran out is known only while the container
//! exists. A container of a killed gateway has ended with its stdin, and is removed at the next start.

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::engine::pause::PauseState;
use super::engine::problem::Problem;
use super::engine::{ContainerEnd, Engine};
use super::owned::Owner;
use super::workspace::Volume;
use crate::disk::DiskWatch;
use crate::workspace::quota;
use crate::{Bounds, ProgramEnd};

/// The time for which an engine may be unreachable until its container is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time for which pausing a container that fills the disk may fail.
const PAUSE_PATIENCE: Duration = Duration::from_secs(3);
/// The pause between two requests to an unreachable engine.
const PAUSE: Duration = Duration::from_millis(500);

/// Watches a running container.
pub(super) struct Supervisor {
    pub(super) engine: Arc<Engine>,
    /// The id of the container that this process created: its name may have another owner by now.
    pub(super) id: String,
    pub(super) owner: Owner,
    pub(super) bounds: Bounds,
    /// The workspace, if its size has to be watched.
    pub(super) workspace: Option<Arc<Volume>>,
    /// A moment before the container started.
    pub(super) start: SystemTime,
    /// The disk that the workspace is on, if it is visible here.
    pub(super) disk: DiskWatch,
    /// Cancelled when the owner kills the container.
    pub(super) killed: CancellationToken,
    /// Becomes true when everything has to end.
    pub(super) closing: watch::Receiver<bool>,
}

impl Supervisor {
    /// Returns when nothing of the container is left, or the engine does not answer.
    pub(super) async fn run(mut self) -> ProgramEnd {
        let may_write = self.workspace.is_some();
        let workspace = self.workspace.as_deref().map(|it| (it, self.start));
        let closing = self.closing.wait_for(|is_closing| *is_closing);
        let ended = tokio::select! {
            biased;
            () = self.killed.cancelled() => ProgramEnd::Killed,
            _ = closing => ProgramEnd::Killed,
            ended = limits(self.bounds, workspace, &self.disk) => ended,
            ended = stand_still(&self.engine, &self.id, self.disk.clone()), if may_write => ended,
            gone = until_gone(&self.engine, &self.id) => reason(gone, self.bounds),
        };
        let name = &self.owner.name;
        log(name, ended);
        if let Err(error) = self.engine.remove(&self.id).await {
            warn!(container.name = %name, %error, "A container is left to the janitor");
        }
        ended
    }
}

fn log(name: &str, ended: ProgramEnd) {
    if matches!(ended, ProgramEnd::Exited(_) | ProgramEnd::Killed) {
        info!(container.name = %name, "Sandbox: {ended}");
    } else {
        warn!(container.name = %name, "Sandbox: {ended}");
    }
}

/// Waits for the end of the container, through restarts of the engine.
async fn until_gone(engine: &Engine, id: &str) -> ContainerEnd {
    let mut last_seen = Instant::now();
    loop {
        engine.wait(id).await;
        match engine.gone(id).await {
            Ok(ContainerEnd::Not) => last_seen = Instant::now(),
            Ok(gone) => return gone,
            Err(_) if last_seen.elapsed() > PATIENCE => return ContainerEnd::Not,
            Err(error) => tracing::debug!(%error, "The engine is away"),
        }
        sleep(PAUSE).await;
    }
}

/// Returns the reason of the end, if we did not cause it.
fn reason(gone: ContainerEnd, bounds: Bounds) -> ProgramEnd {
    match gone {
        ContainerEnd::Exited {
            code: 137,
            was_out_of_memory: true,
        } => ProgramEnd::OverMemory(bounds.memory_bytes),
        // The engine reports a signal as 128 plus the signal's number.
        ContainerEnd::Exited { code, .. } if code > 128 => ProgramEnd::Signalled(code - 128),
        ContainerEnd::Exited { code, .. } => ProgramEnd::Exited(code),
        ContainerEnd::Removed | ContainerEnd::Not => ProgramEnd::Lost,
    }
}

/// Returns the first exceeded limit that the kernel does not enforce.
async fn limits(
    bounds: Bounds,
    workspace: Option<(&Volume, SystemTime)>,
    disk: &DiskWatch,
) -> ProgramEnd {
    let time = async {
        match bounds.lifetime {
            Some(lifetime) => sleep(lifetime).await,
            None => pending().await,
        }
    };
    let size = async {
        match workspace {
            Some((volume, start)) => {
                let limit = bounds.workspace_bytes;
                let before = volume.count_before(start, limit);
                let count = |bound| volume.count(bound);
                quota::watch(limit, volume.pace(), disk.clone(), before, count).await
            }
            None => pending().await,
        }
    };
    tokio::select! {
        () = time => ProgramEnd::OverTime(bounds.lifetime.unwrap_or_default().as_secs()),
        ended = size => ended,
    }
}

/// Pauses the container while the disk is nearly full. Returns only if that fails: the container could go on
/// writing, so it has to end.
///
/// A gateway that dies meanwhile leaves a paused container, which its next start removes like any other.
async fn stand_still(engine: &Engine, id: &str, mut disk: DiskWatch) -> ProgramEnd {
    loop {
        disk.until_pressed(true).await;
        if let Err(error) = set_paused(engine, id, PauseState::Yes, PAUSE_PATIENCE).await {
            warn!(%error, "A container cannot be paused");
            return ProgramEnd::DiskFull;
        }
        disk.until_pressed(false).await;
        if let Err(error) = set_paused(engine, id, PauseState::No, PATIENCE).await {
            warn!(%error, "A container cannot be resumed");
            return ProgramEnd::Lost;
        }
    }
}

/// Pauses or resumes a container, with retries for at most `patience`.
async fn set_paused(
    engine: &Engine,
    id: &str,
    paused: PauseState,
    patience: Duration,
) -> Result<(), Problem> {
    let since = Instant::now();
    loop {
        match engine.set_paused(id, paused).await {
            Err(_) if since.elapsed() < patience => sleep(PAUSE).await,
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_by_code_and_memory() {
        let bounds = Bounds::default();
        let check = |code, was_out_of_memory, expected| {
            let gone = ContainerEnd::Exited {
                code,
                was_out_of_memory,
            };
            assert_eq!(reason(gone, bounds), expected);
        };
        check(0, false, ProgramEnd::Exited(0));
        check(3, false, ProgramEnd::Exited(3));
        check(137, true, ProgramEnd::OverMemory(512 << 20));
        check(137, false, ProgramEnd::Signalled(9));
        // A child was killed, and the program went on to its own end.
        check(0, true, ProgramEnd::Exited(0));
        assert_eq!(reason(ContainerEnd::Removed, bounds), ProgramEnd::Lost);
    }
}
