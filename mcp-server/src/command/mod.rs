//! `execute_command`: bash in a process group of its own, with a deadline, bounded output, live
//! progress, and nothing left behind.

mod census;
mod deadline;
mod group;
mod output;
mod progress;

use std::{future::Future, io, path::Path, pin::pin, process::Stdio, time::Duration};

use rustix::io::Errno;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
    time::Instant,
};

use self::{deadline::Deadline, output::Stop};
pub(crate) use self::{
    group::{Group, Groups},
    output::Report,
    progress::Progress,
};
use crate::failure::Failure;

/// How long we wait for the last output once bash has ended. Background children may hold the pipes
/// open for ever; `>(tee file)` needs a moment.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// How much is read at once.
const CHUNK: usize = 16 * 1024;

/// A command line to run.
pub(crate) struct Order<'a> {
    pub(crate) line: &'a str,
    pub(crate) folder: &'a Path,
    pub(crate) timeout: Duration,
    /// Most that is kept of each stream.
    pub(crate) output_bytes: usize,
}

/// Runs `order` to its end, its deadline, or until `stop`; whichever comes first, whatever it started
/// is gone afterwards.
pub(crate) async fn run(
    order: Order<'_>,
    groups: &Groups,
    progress: Progress,
    stop: impl Future<Output = ()>,
) -> Result<Report, Failure> {
    let mut command = Command::new("bash");
    command
        .arg("-c")
        .arg(order.line)
        .current_dir(order.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut group = Group::spawn(command, groups).map_err(|error| refused(&error))?;
    let started = Instant::now();
    let mut watch = Watch {
        report: Report::new(order.timeout, order.output_bytes),
        progress,
        deadline: Deadline::after(order.timeout),
    };
    watch.follow(&mut group, stop).await;
    let status = group
        .end()
        .await
        .map_err(|error| Failure::new(format!("The command's end is unknown: {error}.")))?;
    watch.report.ended(status, started.elapsed());
    Ok(watch.report)
}

/// Why bash did not start.
fn refused(error: &io::Error) -> Failure {
    Failure::new(match Errno::from_io_error(error) {
        Some(Errno::NOENT) => {
            "There is no bash in this sandbox, or its workspace folder is gone. Tell the user that \
             commands cannot run here."
                .to_owned()
        }
        Some(Errno::AGAIN) => {
            "The sandbox has no process left. Wait for running commands to end, then try again."
                .to_owned()
        }
        Some(Errno::TOOBIG) => {
            "The command line is too long. Write it to a file with write_file and run that."
                .to_owned()
        }
        None if error.kind() == io::ErrorKind::InvalidInput => {
            "The command holds a NUL character. Leave it out.".to_owned()
        }
        _ => format!("The command did not start: {error}."),
    })
}

/// What is known about a running command.
struct Watch {
    report: Report,
    progress: Progress,
    deadline: Deadline,
}

impl Watch {
    /// Collects output until the command has ended, or had to be stopped. Returns with the group
    /// killed and the pipes drained as far as that goes without waiting for strangers.
    async fn follow(&mut self, group: &mut Group, stop: impl Future<Output = ()>) {
        let (Some(mut stdout), Some(mut stderr)) = group.pipes() else {
            return;
        };
        let mut stop = pin!(stop);
        let mut alive = Alive::Running;
        let (mut out, mut err) = (Pipe::default(), Pipe::default());
        while !(alive.is_over() && out.is_closed && err.is_closed) {
            tokio::select! {
                () = out.read(&mut stdout), if !out.is_closed => {
                    self.report.stdout.push(&out.chunk);
                    self.progress.push(&out.chunk).await;
                }
                () = err.read(&mut stderr), if !err.is_closed => {
                    self.report.stderr.push(&err.chunk);
                    self.progress.push(&err.chunk).await;
                }
                () = self.progress.due() => self.progress.send().await,
                () = group.ended(), if alive == Alive::Running => {
                    self.wait_for_last_output(&mut alive, Alive::Ended);
                }
                () = self.deadline.passed() => match alive {
                    Alive::Running => {
                        self.report.stop = Some(Stop::Timeout);
                        group.kill();
                        self.wait_for_last_output(&mut alive, Alive::Killed);
                    }
                    Alive::Ended => {
                        group.kill();
                        self.wait_for_last_output(&mut alive, Alive::Killed);
                    }
                    Alive::Killed => break,
                },
                () = &mut stop, if self.report.stop.is_none() => {
                    self.report.stop = Some(Stop::Cancelled);
                    group.kill();
                    self.wait_for_last_output(&mut alive, Alive::Killed);
                }
            }
        }
        self.progress.send().await;
    }

    fn wait_for_last_output(&mut self, alive: &mut Alive, now: Alive) {
        *alive = now;
        self.deadline = Deadline::after(LAST_OUTPUT);
    }
}

/// How far the end of a command has come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Alive {
    Running,
    /// Bash is gone, background children may be there.
    Ended,
    /// The whole group got SIGKILL; only what left the group can still hold the pipes.
    Killed,
}

impl Alive {
    fn is_over(self) -> bool {
        self != Self::Running
    }
}

/// One of the command's two streams.
#[derive(Default)]
struct Pipe {
    chunk: Vec<u8>,
    is_closed: bool,
}

impl Pipe {
    /// The next bytes, in `chunk`. Loses nothing when dropped: `read_buf` is cancel safe.
    async fn read(&mut self, stream: &mut (impl AsyncRead + Unpin)) {
        self.chunk.clear();
        self.chunk.reserve(CHUNK);
        let read = stream.read_buf(&mut self.chunk).await;
        self.is_closed = !matches!(read, Ok(1..));
    }
}
