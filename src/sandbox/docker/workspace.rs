//! The volume of a workspace: where it lies and how much is in it.
//!
//! An engine on this machine shows its volumes to root, and counting there costs nothing but time.
//! Where the folder cannot be seen (a remote or rootless engine, a gateway in a container), a short
//! run of our own image counts it once a minute, with the volume read-only.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use bollard::models::ContainerCreateBody;
use tokio::io::AsyncReadExt as _;
use tokio_util::task::TaskTracker;

use super::{attach, making::Maker, owned::Owned, problem::Problem};
use crate::sandbox::{quota, workspace::Size};

/// The shortest time between two runs that count.
const RUN_PACE: Duration = Duration::from_mins(1);
/// How long such a run may take.
const RUN_LIMIT: Duration = Duration::from_secs(50);
/// More than a number and a path.
const MAX_ANSWER_BYTES: u64 = 4096;

/// A workspace that has to be counted.
#[derive(Debug)]
pub(super) enum Volume {
    /// Its folder is seen from here.
    Here(PathBuf),
    /// Only the engine sees it: it is counted this often.
    There(Arc<Measuring>, Duration),
}

/// What a run that counts is made of.
#[derive(Debug)]
pub(super) struct Measuring {
    pub(super) maker: Maker,
    pub(super) name: String,
    pub(super) body: ContainerCreateBody,
    pub(super) owned: Owned,
    /// What has to be seen through.
    pub(super) runs: TaskTracker,
    /// Streams.
    pub(super) pumps: TaskTracker,
}

impl Volume {
    /// Counted by runs this often, where that is wanted; else where its folder cannot be seen.
    pub(super) fn at(mountpoint: String, measuring: Measuring, by_runs: Option<Duration>) -> Self {
        let folder = PathBuf::from(mountpoint);
        if by_runs.is_none() && std::fs::read_dir(&folder).is_ok() {
            Self::Here(folder)
        } else {
            Self::There(Arc::new(measuring), by_runs.unwrap_or(RUN_PACE))
        }
    }

    pub(super) fn pace(&self) -> Duration {
        match self {
            Self::Here(_) => quota::PACE,
            Self::There(_, pace) => *pace,
        }
    }

    /// Counts, up to a little more than `bound` where that saves work.
    pub(super) async fn count(&self, bound: u64) -> Option<Size> {
        match self {
            Self::Here(folder) => quota::count(folder.clone(), bound).await,
            Self::There(measuring, _) => {
                let run = Arc::clone(measuring);
                // A task, because a run that is given up half-way would leave its container behind.
                let counted = measuring.runs.spawn(async move { run.run().await });
                match counted.await.map_err(io::Error::other) {
                    Ok(Ok(size)) => size,
                    Ok(Err(error)) => uncounted(&error),
                    Err(error) => uncounted(&error),
                }
            }
        }
    }
}

fn uncounted(error: &dyn std::error::Error) -> Option<Size> {
    tracing::debug!(%error, "A workspace is not counted this time");
    None
}

impl Measuring {
    async fn run(&self) -> Result<Option<Size>, Problem> {
        let _owner = self.owned.own(self.name.clone());
        let id = self.maker.create(&self.name, &self.body).await?;
        let counted = tokio::time::timeout(RUN_LIMIT, self.count(&id)).await;
        self.maker.engine.remove(&id).await?;
        counted.unwrap_or(Ok(None))
    }

    async fn count(&self, id: &str) -> Result<Option<Size>, Problem> {
        let engine = &self.maker.engine;
        let attached = engine.attach(id).await?;
        engine.start(id).await?;
        let streams = attach::pump(attached, &self.pumps);
        let mut said = String::new();
        let mut stdout = streams.stdout.take(MAX_ANSWER_BYTES);
        if stdout.read_to_string(&mut said).await.is_err() {
            return Ok(None);
        }
        let bytes = said.split_whitespace().next();
        Ok(bytes.and_then(|it| it.parse().ok()).map(Size::Bytes))
    }
}
