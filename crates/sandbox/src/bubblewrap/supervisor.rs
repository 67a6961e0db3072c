//! Supervises one sandbox per task: waits for its end, determines the reason, and cleans up.

use std::{
    convert::Infallible,
    future::{Future, pending},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    process::ChildStderr,
    sync::{mpsc, watch},
    time::sleep,
};
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::limits::cgroup::Cgroup;
use super::limits::watchdog;
use super::overlay::Mount;
use super::stage::{Init, StagedSandbox};
use crate::disk::DiskWatch;
use crate::workspace::quota::{self, Pace};
use crate::{Access, Bounds, Launch, Life, ProgramEnd, Running};

/// The most lines of stderr that wait to be received.
const MAX_WAITING_LINES: usize = 256;
/// Most bytes that are kept of one line.
const MAX_LINE_BYTES: u64 = 4096;

/// The inputs of a supervisor beside the process itself.
pub(super) struct Care {
    pub(super) launch: Launch,
    /// The folder whose size is measured: the upper layer of a copy on write.
    pub(super) workspace: PathBuf,
    /// The mount, if the workspace is a copy on write.
    pub(super) mount: Option<Mount>,
    /// Watches the disk that the workspace is on.
    pub(super) disk: DiskWatch,
    /// A moment before the sandbox started.
    pub(super) start: SystemTime,
    pub(super) tasks: TaskTracker,
    /// Becomes true when everything has to end.
    pub(super) closing: watch::Receiver<bool>,
}

/// The storage that a sandbox may fill.
#[derive(Clone)]
struct Writable {
    workspace: PathBuf,
    disk: DiskWatch,
    start: SystemTime,
}

/// Returns the streams to the caller and starts a supervisor for the rest.
pub(super) fn take_over(mut staged: StagedSandbox, care: Care) -> Running {
    let (told, end) = watch::channel(None);
    let (lines, stderr) = mpsc::channel(MAX_WAITING_LINES);
    if let Some(stream) = staged.child.stderr.take() {
        care.tasks.spawn(forward(stream, lines));
    }
    let stdin = staged.stdin.take();
    let stdout = staged.child.stdout.take();
    let init = staged.init.clone();
    let was_killed = Arc::new(AtomicBool::new(false));
    let (launch, mount) = (care.launch, care.mount);
    let writable = Writable {
        workspace: care.workspace,
        disk: care.disk,
        start: care.start,
    };
    let supervisor = Supervisor {
        name: format!("{}/{}", launch.sandbox, launch.server),
        bounds: launch.bounds,
        writable: (launch.workspace == Access::ReadWrite).then_some(writable),
        staged,
        was_killed: Arc::clone(&was_killed),
        closing: care.closing,
    };
    let workspace = supervisor.writable.as_ref().map(|it| it.workspace.clone());
    care.tasks.spawn(async move {
        let ended = supervisor.run().await;
        // The overlay's mount ended with the last process that saw it.
        drop(mount);
        told.send_replace(Some(ended));
        // A sandbox that ended by itself may have ended before its workspace was measured.
        if let Some(workspace) = workspace.filter(|_| ended != ProgramEnd::Killed) {
            quota::trim(workspace, launch.bounds.workspace_bytes).await;
        }
    });
    Running {
        stdin: stdin.map_or_else(|| Box::new(tokio::io::sink()) as _, |it| Box::new(it) as _),
        stdout: stdout.map_or_else(|| Box::new(tokio::io::empty()) as _, |it| Box::new(it) as _),
        stderr,
        image: None,
        life: Life::new(
            move || {
                was_killed.store(true, Ordering::Release);
                if let Some(init) = &init {
                    init.kill();
                }
            },
            end,
        ),
    }
}

struct Supervisor {
    name: String,
    bounds: Bounds,
    /// The workspace to measure and the disk that it can fill, if it is writable.
    writable: Option<Writable>,
    staged: StagedSandbox,
    /// True if the owner killed the sandbox.
    was_killed: Arc<AtomicBool>,
    closing: watch::Receiver<bool>,
}

impl Supervisor {
    async fn run(mut self) -> ProgramEnd {
        let verdict = match self.staged.init.clone() {
            Some(init) => self.wait(&init).await,
            None => None,
        };
        let status = self.staged.child.wait().await.ok();
        let memory = self
            .staged
            .cgroup
            .as_ref()
            .and_then(Cgroup::memory_exceeded);
        if let Some(cgroup) = self.staged.cgroup.take() {
            cgroup.remove().await;
        }
        let ended = verdict.unwrap_or_else(|| self.reason(status, memory));
        if matches!(ended, ProgramEnd::Exited(_) | ProgramEnd::Killed) {
            info!(sandbox.id = %self.name, "Sandbox: {ended}");
        } else {
            warn!(sandbox.id = %self.name, "Sandbox: {ended}");
        }
        ended
    }

    /// Waits for the end of all processes, or kills them for the returned reason.
    async fn wait(&mut self, init: &Init) -> Option<ProgramEnd> {
        let limits = limits(&self.staged, self.bounds, self.writable.clone());
        let closing = self.closing.wait_for(|is_closing| *is_closing);
        let verdict = tokio::select! {
            passed = limits => Some(passed),
            _ = closing => Some(ProgramEnd::Killed),
            () = init.gone() => None,
            // Bubblewrap ends a moment before the last process does.
            _ = self.staged.child.wait() => None,
        };
        init.kill();
        init.gone().await;
        verdict
    }

    /// Returns the reason of the end, if we did not cause it.
    fn reason(&self, status: Option<ExitStatus>, memory: Option<u64>) -> ProgramEnd {
        if self.was_killed.load(Ordering::Acquire) {
            return ProgramEnd::Killed;
        }
        let Some(status) = status else {
            return ProgramEnd::Lost;
        };
        // Bubblewrap exits with 128 plus the signal's number if a signal ended the program.
        let signal = status
            .signal()
            .or_else(|| status.code().filter(|it| *it > 128).map(|it| it - 128));
        match (signal, memory, status.code()) {
            (Some(9), Some(limit), _) => ProgramEnd::OverMemory(limit),
            (Some(signal), ..) => ProgramEnd::Signalled(signal),
            (None, _, Some(code)) => ProgramEnd::Exited(code),
            (None, _, None) => ProgramEnd::Lost,
        }
    }
}

/// Returns the first exceeded limit that the kernel does not enforce.
fn limits(
    staged: &StagedSandbox,
    bounds: Bounds,
    writable: Option<Writable>,
) -> impl Future<Output = ProgramEnd> + Send + use<> {
    let init = staged.init.as_ref().map(|init| init.pid);
    let freezer = staged.cgroup.as_ref().map(Cgroup::freezer);
    let disk = writable.as_ref().map(|it| it.disk.clone());
    let usage = async move {
        match (init, freezer, disk) {
            (Some(init), None, disk) => watchdog::watch(init, bounds, disk).await,
            (Some(_), Some(Some(freezer)), Some(disk)) => match freeze(freezer, disk).await {},
            (Some(init), Some(None), Some(disk)) => {
                match watchdog::stand_still(init, disk).await {}
            }
            (Some(_), Some(_), None) | (None, ..) => pending().await,
        }
    };
    let time = async move {
        match bounds.lifetime {
            Some(lifetime) => sleep(lifetime).await,
            None => pending().await,
        }
    };
    let quota = async move {
        match writable {
            Some(Writable {
                workspace,
                disk,
                start,
            }) => {
                let limit = bounds.workspace_bytes;
                let before = quota::count_before(workspace.clone(), start, limit);
                let count = |bound| quota::count(workspace.clone(), bound);
                quota::watch(limit, Pace::HERE, disk, before, count).await
            }
            None => pending().await,
        }
    };
    async move {
        tokio::select! {
            ended = usage => ended,
            () = time => ProgramEnd::OverTime(bounds.lifetime.unwrap_or_default().as_secs()),
            ended = quota => ended,
        }
    }
}

/// Freezes a control group while the disk is nearly full.
async fn freeze(freezer: PathBuf, mut disk: DiskWatch) -> Infallible {
    loop {
        for is_pressed in [true, false] {
            disk.until_pressed(is_pressed).await;
            // The freezing takes effect later by itself; a group that is gone has nothing to stop.
            if let Err(error) = std::fs::write(&freezer, if is_pressed { "1" } else { "0" }) {
                warn!(%error, is_pressed, "A sandbox is not paused or resumed");
            }
        }
    }
}

/// Forwards lines without waiting for the receiver: a full buffer loses lines and does not block the sandbox.
async fn forward(stderr: ChildStderr, lines: mpsc::Sender<String>) {
    let mut reader = BufReader::new(stderr);
    while let Some(line) = line(&mut reader).await {
        let _ = lines.try_send(line);
    }
}

async fn line(reader: &mut BufReader<impl AsyncRead + Unpin>) -> Option<String> {
    let mut bytes = Vec::new();
    let read = reader
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', &mut bytes)
        .await;
    match read {
        Ok(1..) => Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
        Ok(0) | Err(_) => None,
    }
}
