//! Measures and trims the volume of a workspace.
//!
//! An engine on this machine shows its volumes to root, and measuring there costs nothing but time. If the
//! folder is not visible (a remote or rootless engine, a gateway in a container), short-lived containers of
//! our own image measure it, with the volume read-only: once a minute, and the more often the faster it
//! grows.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use bollard::models::ContainerCreateBody;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader, DuplexStream};
use tokio_util::task::TaskTracker;

use super::attach;
use super::engine::problem::Problem;
use super::making::Maker;
use super::owned::OwnedNames;
use crate::workspace::quota::{self, Pace};
use crate::workspace::{MAX_DEPTH, Size, entry_bytes};

/// The interval of measuring containers while nothing grows.
const RUN_PACE: Duration = Duration::from_mins(1);
/// The shortest interval of measuring containers.
const FASTEST_RUN_PACE: Duration = Duration::from_secs(1);
/// The time limit of a measuring container.
const RUN_LIMIT: Duration = Duration::from_secs(50);
/// The time limit of a container that trims the workspace.
const TRIM_LIMIT: Duration = Duration::from_mins(10);
/// More bytes than a line with two numbers has.
const MAX_LINE_BYTES: u64 = 64;

/// A workspace whose size has to be watched.
#[derive(Debug)]
pub(super) enum Volume {
    /// The folder of the volume is visible here.
    Here(PathBuf),
    /// Only the engine sees the volume: containers measure it, at this interval while nothing grows.
    There(Arc<Measuring>, Duration),
}

/// A short-lived container.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) body: ContainerCreateBody,
}

/// The containers that measure and trim a workspace.
#[derive(Debug)]
pub(super) struct Measuring {
    pub(super) maker: Maker,
    pub(super) count: Job,
    pub(super) trim: Job,
    pub(super) owned: OwnedNames,
    /// Runs that have to complete.
    pub(super) runs: TaskTracker,
    /// Tasks that pump streams.
    pub(super) pumps: TaskTracker,
}

impl Volume {
    /// Uses containers at the interval `by_runs` if it is given; otherwise only if the folder is not visible.
    pub(super) fn at(mountpoint: String, measuring: Measuring, by_runs: Option<Duration>) -> Self {
        let folder = PathBuf::from(mountpoint);
        if by_runs.is_none() && std::fs::read_dir(&folder).is_ok() {
            Self::Here(folder)
        } else {
            Self::There(Arc::new(measuring), by_runs.unwrap_or(RUN_PACE))
        }
    }

    pub(super) fn pace(&self) -> Pace {
        match self {
            Self::Here(_) => Pace::HERE,
            Self::There(_, calm) => Pace {
                calm: *calm,
                fastest: FASTEST_RUN_PACE.min(*calm),
            },
        }
    }

    /// Returns the folder on this machine that holds all volumes of the engine; `None` if it is not visible.
    pub(super) fn home(&self) -> Option<&Path> {
        // `…/volumes/<name>/_data`
        self.folder().and_then(|folder| folder.ancestors().nth(2))
    }

    /// Returns the volume's folder, if it is visible here.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Here(folder) => Some(folder),
            Self::There(..) => None,
        }
    }

    /// Returns the bytes that existed at `start`, counted up to the ceiling of `limit`; `None` if a container
    /// would have to count them, with another machine's clock.
    pub(super) async fn count_before(&self, start: SystemTime, limit: u64) -> Option<u64> {
        match self {
            Self::Here(folder) => quota::count_before(folder.clone(), start, limit).await,
            Self::There(..) => None,
        }
    }

    /// Measures the workspace, and may stop a little above `bound`.
    pub(super) async fn count(&self, bound: u64) -> Option<Size> {
        match self {
            Self::Here(folder) => quota::count(folder.clone(), bound).await,
            Self::There(measuring, _) => {
                let run = Arc::clone(measuring);
                // Runs as a task, because a run that is cancelled half-way would leave its container behind.
                let counted = measuring.runs.spawn(async move {
                    let counting = |said| tally(said, bound);
                    run.run(&run.count, RUN_LIMIT, counting).await
                });
                match counted.await.map_err(io::Error::other) {
                    Ok(Ok(size)) => size,
                    Ok(Err(error)) => uncounted(&error),
                    Err(error) => uncounted(&error),
                }
            }
        }
    }

    /// Deletes what exceeds the ceiling, once the sandbox has ended. Must run to completion: call it on a
    /// task.
    pub(super) async fn trim(&self, limit: u64) {
        match self {
            Self::Here(folder) => quota::trim(folder.clone(), limit).await,
            Self::There(run, _) => match run.run(&run.trim, TRIM_LIMIT, answer).await {
                Ok(Some(said)) if said.is_empty() => {}
                Ok(Some(_)) => quota::warn_trimmed(),
                Ok(None) => tracing::warn!("A workspace cannot be trimmed: it takes too long"),
                Err(error) => tracing::warn!(%error, "A workspace cannot be trimmed"),
            },
        }
    }
}

fn uncounted(error: &dyn std::error::Error) -> Option<Size> {
    tracing::warn!(%error, "A workspace is not counted this time");
    None
}

impl Measuring {
    /// Runs a container to the end of its output; `None` if the output was not understood, or did not come in
    /// time.
    async fn run<T, Reading>(
        &self,
        job: &Job,
        limit: Duration,
        read: impl FnOnce(DuplexStream) -> Reading,
    ) -> Result<Option<T>, Problem>
    where
        Reading: Future<Output = io::Result<Option<T>>>,
    {
        let _owner = self.owned.own(job.name.clone());
        let id = self.maker.create(&job.name, &job.body).await?;
        let running = async {
            let engine = &self.maker.engine;
            let attached = engine.attach(&id).await?;
            engine.start(&id).await?;
            let streams = attach::pump(attached, &self.pumps);
            Ok(read(streams.stdout).await.unwrap_or_default())
        };
        let said = tokio::time::timeout(limit, running).await;
        self.maker.engine.remove(&id).await?;
        said.unwrap_or(Ok(None))
    }
}

/// Reads the output of a trimming container: nothing, or a few words.
async fn answer(said: impl AsyncRead + Unpin) -> io::Result<Option<String>> {
    let mut words = String::new();
    said.take(MAX_LINE_BYTES).read_to_string(&mut words).await?;
    Ok(Some(words))
}

/// Sums up the output of a measuring container, by the same rule as for a visible folder; `None` if the
/// output broke off. It may stop above `bound`.
async fn tally(said: impl AsyncRead + Unpin, bound: u64) -> io::Result<Option<Size>> {
    let mut said = BufReader::new(said);
    let mut line = String::new();
    let mut bytes = 0_u64;
    loop {
        line.clear();
        (&mut said)
            .take(MAX_LINE_BYTES)
            .read_line(&mut line)
            .await?;
        let numbers = line.strip_suffix('\n').and_then(|it| it.split_once(' '));
        let numbers = numbers.and_then(|(depth, blocks)| {
            Some((depth.parse::<usize>().ok()?, blocks.parse::<u64>().ok()?))
        });
        match numbers {
            None => return Ok(None),
            // The workspace itself comes last, and costs nothing.
            Some((0, _)) => return Ok(Some(Size::Bytes(bytes))),
            Some((depth, _)) if depth > MAX_DEPTH => return Ok(Some(Size::Uncountable)),
            Some((_, blocks)) => bytes = bytes.saturating_add(entry_bytes(blocks)),
        }
        if bytes > bound {
            return Ok(Some(Size::Bytes(bytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn counted(said: &str, bound: u64) -> Option<Size> {
        tally(said.as_bytes(), bound).await.unwrap()
    }

    #[tokio::test]
    async fn entries_and_blocks_count_once_all_of_them_were_told() {
        let all = "2 8\n1 8\n1 0\n0 8\n";
        let bytes = 3 * 512 + 16 * 512;
        assert_eq!(counted(all, u64::MAX).await, Some(Size::Bytes(bytes)));
        assert_eq!(counted("0 8\n", 0).await, Some(Size::Bytes(0)));
        for broken in ["", "2 8\n1 8\n", "2 8\n1", "0 8", "x\n", "1 -8\n0 8\n"] {
            assert_eq!(counted(broken, u64::MAX).await, None, "{broken:?}");
        }
        let stopped = counted("1 8\n1 8\n1 8\n", 5000).await;
        assert_eq!(stopped, Some(Size::Bytes(9 * 1024)));
        let deep = counted("257 0\n", u64::MAX).await;
        assert_eq!(deep, Some(Size::Uncountable));
    }
}
