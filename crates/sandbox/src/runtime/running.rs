//! Defines a started program: its streams, its life, and how it ended.

use std::{fmt, future::Future, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, watch},
};

use crate::ImageId;
use crate::usage::{Usage, Using};

/// Kills a program; has no effect if it has ended.
pub(crate) type Kill = Arc<dyn Fn() + Send + Sync>;

/// A program that runs in a sandbox. Streams and life can be separated: the streams go to the MCP connection,
/// the life stays with the owner.
pub struct Running {
    /// The program's input; closing it asks the program to exit.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// The program's output.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Lines of the program's stderr, bounded in length and number: lines that are not received in time are
    /// dropped.
    pub stderr: mpsc::Receiver<String>,
    /// The content id of the image that it was started from, if known.
    pub image: Option<ImageId>,
    /// Ends everything inside when it is dropped.
    pub life: Life,
}

impl fmt::Debug for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Running")
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

/// The ownership of a running program. Dropping it kills the program and everything that it started.
pub struct Life {
    kill: Option<Kill>,
    end: watch::Receiver<Option<ProgramEnd>>,
    /// `None` if uses are not counted.
    usage: Option<Arc<Usage>>,
    /// The use for which the program was started, until its owner takes it.
    first: Option<Using>,
}

impl Life {
    /// Creates the life of a program. `kill` must act at once without blocking, and have no effect after the
    /// end; `end` gets its value when everything is gone.
    pub fn new(
        kill: impl Fn() + Send + Sync + 'static,
        end: watch::Receiver<Option<ProgramEnd>>,
    ) -> Self {
        Self {
            kill: Some(Arc::new(kill)),
            end,
            usage: None,
            first: None,
        }
    }

    /// Starts counting the program's uses, and returns the function that kills it.
    pub(crate) fn count(&mut self, usage: Arc<Usage>, first: Using) -> Kill {
        (self.usage, self.first) = (Some(usage), Some(first));
        self.kill.clone().unwrap_or_else(|| Arc::new(|| {}))
    }

    /// Returns true if the program is not in use.
    pub fn is_unused(&self) -> bool {
        let is_idle = |usage: &Arc<Usage>| usage.idle_since().is_some();
        self.first.is_none() && self.usage.as_ref().is_none_or(is_idle)
    }

    /// Begins a use: while the returned value exists, the program is not ended as idle. `None` if it was
    /// already ended.
    pub fn using(&mut self) -> Option<Using> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        match &self.usage {
            Some(usage) => usage.join(),
            None => Some(Using::default()),
        }
    }

    /// Kills the program and waits until nothing of it is left.
    pub async fn kill(mut self) -> ProgramEnd {
        let ended = self.ended();
        if let Some(kill) = self.kill.take() {
            kill();
        }
        ended.await
    }

    /// Returns true if nothing of the program is left.
    pub fn has_ended(&self) -> bool {
        self.end.borrow().is_some()
    }

    /// Resolves when nothing of the program is left; may be called any number of times.
    pub fn ended(&self) -> impl Future<Output = ProgramEnd> + Send + use<> {
        let mut end = self.end.clone();
        async move {
            match end.wait_for(Option::is_some).await {
                Ok(ended) => (*ended).unwrap_or(ProgramEnd::Lost),
                Err(_) => ProgramEnd::Lost,
            }
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if let Some(kill) = self.kill.take() {
            kill();
        }
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Life")
            .field("end", &*self.end.borrow())
            .finish_non_exhaustive()
    }
}

/// The reason that a program has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProgramEnd {
    /// It exited by itself.
    #[error("it ended with exit code {0}")]
    Exited(i32),
    /// A signal that was not ours ended it.
    #[error("it was ended by signal {0}")]
    Signalled(i32),
    /// Its owner stopped it.
    #[error("it was stopped")]
    Killed,
    /// It exceeded its memory limit.
    #[error("it used more than its {} MB of memory", .0 >> 20)]
    OverMemory(u64),
    /// It exceeded its limit of processes and threads.
    #[error("it started more than its {0} processes")]
    OverProcesses(u32),
    /// It exceeded its lifetime.
    #[error("its time of {0} s was over")]
    OverTime(u64),
    /// Its workspace is full.
    #[error(
        "its workspace is full: more than {} MB; files must be deleted first (where it was more than \
         twice that, the newest ones are being deleted)",
        .0 >> 20
    )]
    OverWorkspace(u64),
    /// Its workspace has folders that are nested too deep to be measured.
    #[error("its workspace holds a folder that is nested too deep, which is being deleted")]
    UncountableWorkspace,
    /// Its workspace could not be measured twice in a row.
    #[error("its workspace could not be counted, so nothing holds its size; the log says why")]
    UnmeasuredWorkspace,
    /// The disk is nearly full, and it could not be paused until there is room.
    #[error("the disk is nearly full, and it could not be paused until there is room")]
    DiskFull,
    /// The runtime lost track of it.
    #[error("it is not known how it ended")]
    Lost,
}
