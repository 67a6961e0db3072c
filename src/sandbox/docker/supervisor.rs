//! One task per container: waits for its end, knows why it came, and leaves nothing behind.
//!
//! The engine is not told to remove containers by itself: whether memory ran out is only known as
//! long as the container exists. What a killed gateway leaves has ended with its stdin, and is
//! removed at the next start.

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

use super::engine::pause::Paused;
use super::engine::problem::Problem;
use super::engine::{Engine, Gone};
use super::owned::Owner;
use super::workspace::Volume;
use crate::sandbox::disk::DiskWatch;
use crate::sandbox::workspace::quota;
use crate::sandbox::{Bounds, Ended};

/// How long an engine may be away until we give its container up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a container that fills the disk may refuse to be paused.
const PAUSE_PATIENCE: Duration = Duration::from_secs(3);
/// The wait between two questions to an engine that is away.
const PAUSE: Duration = Duration::from_millis(500);

/// What waits beside a running container.
pub(super) struct Supervisor {
    pub(super) engine: Arc<Engine>,
    /// The container that this process made: its name may have another owner by now.
    pub(super) id: String,
    pub(super) owner: Owner,
    pub(super) bounds: Bounds,
    /// Where it has to be counted.
    pub(super) workspace: Option<Arc<Volume>>,
    /// A moment before anything of it ran.
    pub(super) start: SystemTime,
    /// The disk that the workspace is on, as far as it can be seen from here.
    pub(super) disk: DiskWatch,
    /// The owner let go.
    pub(super) killed: CancellationToken,
    /// Becomes true when everything has to end.
    pub(super) closing: watch::Receiver<bool>,
}

impl Supervisor {
    /// Comes back when nothing of the container is left, or the engine does not answer.
    pub(super) async fn run(mut self) -> Ended {
        let may_write = self.workspace.is_some();
        let workspace = self.workspace.as_deref().map(|it| (it, self.start));
        let closing = self.closing.wait_for(|is_closing| *is_closing);
        let ended = tokio::select! {
            biased;
            () = self.killed.cancelled() => Ended::Killed,
            _ = closing => Ended::Killed,
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

fn log(name: &str, ended: Ended) {
    if matches!(ended, Ended::Exited(_) | Ended::Killed) {
        info!(container.name = %name, "Sandbox: {ended}");
    } else {
        warn!(container.name = %name, "Sandbox: {ended}");
    }
}

/// Waits through restarts of the engine.
async fn until_gone(engine: &Engine, id: &str) -> Gone {
    let mut last_seen = Instant::now();
    loop {
        engine.wait(id).await;
        match engine.gone(id).await {
            Ok(Gone::Not) => last_seen = Instant::now(),
            Ok(gone) => return gone,
            Err(_) if last_seen.elapsed() > PATIENCE => return Gone::Not,
            Err(error) => tracing::debug!(%error, "The engine is away"),
        }
        sleep(PAUSE).await;
    }
}

/// Why it ended, where we did not decide it.
fn reason(gone: Gone, bounds: Bounds) -> Ended {
    match gone {
        Gone::Exited {
            code: 137,
            was_out_of_memory: true,
        } => Ended::OverMemory(bounds.memory_bytes),
        // 128 and the signal's number is how the engine tells of a signal.
        Gone::Exited { code, .. } if code > 128 => Ended::Signalled(code - 128),
        Gone::Exited { code, .. } => Ended::Exited(code),
        Gone::Removed | Gone::Not => Ended::Lost,
    }
}

/// The first limit that is passed and that the kernel does not hold.
async fn limits(
    bounds: Bounds,
    workspace: Option<(&Volume, SystemTime)>,
    disk: &DiskWatch,
) -> Ended {
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
        () = time => Ended::OverTime(bounds.lifetime.unwrap_or_default().as_secs()),
        ended = size => ended,
    }
}

/// Pauses the container while the disk is nearly full. Comes back only where that cannot be done:
/// what could go on writing then has to end.
///
/// A gateway that dies meanwhile leaves a paused container, which its next start removes like any
/// other.
async fn stand_still(engine: &Engine, id: &str, mut disk: DiskWatch) -> Ended {
    loop {
        disk.until_pressed(true).await;
        if let Err(error) = set_paused(engine, id, Paused::Yes, PAUSE_PATIENCE).await {
            warn!(%error, "A container cannot be paused");
            return Ended::DiskFull;
        }
        disk.until_pressed(false).await;
        if let Err(error) = set_paused(engine, id, Paused::No, PATIENCE).await {
            warn!(%error, "A container cannot be resumed");
            return Ended::Lost;
        }
    }
}

/// Asks until it is done, for that long at most.
async fn set_paused(
    engine: &Engine,
    id: &str,
    paused: Paused,
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
            let gone = Gone::Exited {
                code,
                was_out_of_memory,
            };
            assert_eq!(reason(gone, bounds), expected);
        };
        check(0, false, Ended::Exited(0));
        check(3, false, Ended::Exited(3));
        check(137, true, Ended::OverMemory(512 << 20));
        check(137, false, Ended::Signalled(9));
        // A child was killed, and the program went on to its own end.
        check(0, true, Ended::Exited(0));
        assert_eq!(reason(Gone::Removed, bounds), Ended::Lost);
    }
}
