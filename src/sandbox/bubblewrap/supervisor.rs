//! One task per sandbox: waits for its end, knows why it came, and leaves nothing behind.

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
use super::stage::{Init, Staged};
use crate::sandbox::disk::DiskWatch;
use crate::sandbox::workspace::quota::{self, Pace};
use crate::sandbox::{Access, Bounds, Ended, Launch, Life, Running};

/// Lines of stderr that wait for somebody to take them.
const MAX_WAITING_LINES: usize = 256;
/// The most that is kept of one line.
const MAX_LINE_BYTES: u64 = 4096;

/// What a supervisor has to know beside the process itself.
pub(super) struct Care {
    pub(super) launch: Launch,
    /// What is counted: of a copy on write the layer that is written.
    pub(super) workspace: PathBuf,
    /// Where it is a copy on write.
    pub(super) mount: Option<Mount>,
    /// Of the disk that the workspace is on.
    pub(super) disk: DiskWatch,
    /// A moment before anything of it ran.
    pub(super) start: SystemTime,
    pub(super) tasks: TaskTracker,
    /// Becomes true when everything has to end.
    pub(super) closing: watch::Receiver<bool>,
}

/// What a sandbox may fill.
#[derive(Clone)]
struct Writable {
    workspace: PathBuf,
    disk: DiskWatch,
    start: SystemTime,
}

/// Gives the streams to the owner and the rest to a supervisor.
pub(super) fn take_over(mut staged: Staged, care: Care) -> Running {
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
        // The overlay went with the last process that saw it.
        drop(mount);
        told.send_replace(Some(ended));
        // Whoever ended itself may have done so before it was looked at.
        if let Some(workspace) = workspace.filter(|_| ended != Ended::Killed) {
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
    /// Where it has to be counted, and the disk that it can fill.
    writable: Option<Writable>,
    staged: Staged,
    /// The owner let go.
    was_killed: Arc<AtomicBool>,
    closing: watch::Receiver<bool>,
}

impl Supervisor {
    async fn run(mut self) -> Ended {
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
        if matches!(ended, Ended::Exited(_) | Ended::Killed) {
            info!(sandbox.id = %self.name, "Sandbox: {ended}");
        } else {
            warn!(sandbox.id = %self.name, "Sandbox: {ended}");
        }
        ended
    }

    /// Waits for the end of all processes, or brings it about for the reason returned.
    async fn wait(&mut self, init: &Init) -> Option<Ended> {
        let limits = limits(&self.staged, self.bounds, self.writable.clone());
        let closing = self.closing.wait_for(|is_closing| *is_closing);
        let verdict = tokio::select! {
            passed = limits => Some(passed),
            _ = closing => Some(Ended::Killed),
            () = init.gone() => None,
            // Bubblewrap leaves a moment before the last process does.
            _ = self.staged.child.wait() => None,
        };
        init.kill();
        init.gone().await;
        verdict
    }

    /// Why it ended, where we did not decide it.
    fn reason(&self, status: Option<ExitStatus>, memory: Option<u64>) -> Ended {
        if self.was_killed.load(Ordering::Acquire) {
            return Ended::Killed;
        }
        let Some(status) = status else {
            return Ended::Lost;
        };
        // Bubblewrap says 128 and the signal's number for a program that a signal ended.
        let signal = status
            .signal()
            .or_else(|| status.code().filter(|it| *it > 128).map(|it| it - 128));
        match (signal, memory, status.code()) {
            (Some(9), Some(limit), _) => Ended::OverMemory(limit),
            (Some(signal), ..) => Ended::Signalled(signal),
            (None, _, Some(code)) => Ended::Exited(code),
            (None, _, None) => Ended::Lost,
        }
    }
}

/// The first limit that is passed and that the kernel does not hold.
fn limits(
    staged: &Staged,
    bounds: Bounds,
    writable: Option<Writable>,
) -> impl Future<Output = Ended> + Send + use<> {
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
            () = time => Ended::OverTime(bounds.lifetime.unwrap_or_default().as_secs()),
            ended = quota => ended,
        }
    }
}

/// Freezes a control group while the disk is nearly full.
async fn freeze(freezer: PathBuf, mut disk: DiskWatch) -> Infallible {
    loop {
        for is_pressed in [true, false] {
            disk.until_pressed(is_pressed).await;
            // It takes effect without our waiting; a group that is gone has nothing to stop.
            if let Err(error) = std::fs::write(&freezer, if is_pressed { "1" } else { "0" }) {
                warn!(%error, is_pressed, "A sandbox is not paused or resumed");
            }
        }
    }
}

/// Passes lines on and never waits for who takes them: a full buffer loses lines, not the sandbox.
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
