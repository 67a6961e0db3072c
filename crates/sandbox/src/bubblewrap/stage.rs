//! Starts a command line and waits until its process is in its namespaces.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, PipeReader, PipeWriter, Write},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use rustix::{
    fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, memfd_create},
    process::{Pid, Signal, pidfd_send_signal},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader, Interest, unix::AsyncFd},
    net::unix::pipe,
    process::{Child, ChildStderr, ChildStdin, Command},
};

use super::arguments::Arguments;
use super::limits::cgroup::Cgroup;
use super::spawner::Spawner;
use super::{leftovers, probe};
use crate::Error;

/// Runs outside, as the first program of the chain. It closes all descriptors but the three standard ones and
/// those that bubblewrap reads, enters the control groups, and executes bubblewrap.
///
/// Descriptors are opened through `/proc/$PPID`: passing them on needs `unsafe`. If we are gone, `$PPID` is
/// another process and the script fails.
///
/// The program's streams are passed as descriptors 6 and 7: bubblewrap's own first process keeps the standard
/// streams open, and if it runs as the program's user, a command inside could write to stdout there and forge
/// answers of the server.
const SCRIPT: &str = r#"set -e
for fd in /proc/self/fd/*; do
  fd=${fd##*/}
  [ "$fd" -le 2 ] || eval "exec $fd>&-"
done
exec 3>"/proc/$PPID/fd/$1" 4<"/proc/$PPID/fd/$2" 8<"/proc/$PPID/fd/$3"
[ "$4" = - ] || exec 5<"/proc/$PPID/fd/$4"
shift 4
while [ "$1" != -- ]; do echo 0 >"$1"; shift; done
shift
exec 6<&0 7>&1 </dev/null >/dev/null
exec "$@"
"#;
/// The only variable of our own environment that is needed outside.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Most bytes that bubblewrap reports about the process that it has created.
const MAX_INFO_BYTES: u64 = 4096;

/// The inputs of a start.
pub(super) struct Chain {
    pub(super) arguments: Arguments,
    pub(super) cgroup: Option<Cgroup>,
    /// The filter of system calls, for everything that runs inside.
    pub(super) filter: Arc<File>,
    /// The mark by which the first process is recognised.
    pub(super) mark: String,
    /// The working folder of the command line; `None` = any.
    pub(super) folder: Option<PathBuf>,
}

/// A sandbox whose namespaces exist, or existed a moment ago.
pub(super) struct StagedSandbox {
    pub(super) child: Child,
    pub(super) stdin: Option<ChildStdin>,
    /// `None` if everything has already ended.
    pub(super) init: Option<Arc<Init>>,
    pub(super) cgroup: Option<Cgroup>,
}

/// The first process of the namespace: when it ends, the kernel kills all others before reporting the end.
#[derive(Debug)]
pub(super) struct Init {
    pub(super) pid: i32,
    process: AsyncFd<OwnedFd>,
}

impl Init {
    /// Returns `None` if `pid` no longer exists, or is another process.
    fn hold(pid: Pid, mark: &str) -> io::Result<Option<Self>> {
        let Some(process) = leftovers::hold(pid, mark) else {
            return Ok(None);
        };
        Ok(Some(Self {
            pid: pid.as_raw_nonzero().get(),
            process: watched(process)?,
        }))
    }

    /// Kills everything in the sandbox immediately. Has no effect if it has ended.
    pub(super) fn kill(&self) {
        let _ = pidfd_send_signal(self.process.get_ref(), Signal::KILL);
    }

    /// Resolves when no process of the sandbox is left.
    pub(super) async fn gone(&self) {
        let _ = self.process.readable().await;
    }
}

/// Starts the chain and waits until bubblewrap has created the namespaces, or has failed.
pub(super) async fn start(spawner: &Spawner, chain: Chain) -> Result<StagedSandbox, Error> {
    let (info, told) = io::pipe()?;
    let walls = in_memory(&chain.arguments.walls)?;
    let inner = in_memory(&chain.arguments.inner)?;
    let mut command = Command::new(bash());
    command.args(["-c", SCRIPT, "sepal-sandbox"]);
    for descriptor in [
        told.as_raw_fd(),
        walls.as_raw_fd(),
        chain.filter.as_raw_fd(),
    ] {
        command.arg(descriptor.to_string());
    }
    let inner_name = match chain.arguments.inner.as_slice() {
        [] => "-".to_owned(),
        _ => inner.as_raw_fd().to_string(),
    };
    command
        .arg(inner_name)
        .args(chain.cgroup.iter().flat_map(Cgroup::entrances))
        .arg("--")
        .args(&chain.arguments.line)
        .env_clear()
        .env("PATH", PATH)
        .current_dir(chain.folder.as_deref().unwrap_or(Path::new("/")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = spawner.spawn(command).await.map_err(unstarted)?;
    // Waiting for a child closes its stdin, unless it was taken before.
    let stdin = child.stdin.take();
    match first_process(info, told, &mut child).await? {
        Some(pid) => Ok(StagedSandbox {
            init: Init::hold(pid, &chain.mark)?.map(Arc::new),
            child,
            stdin,
            cgroup: chain.cgroup,
        }),
        None => Err(probe::refused(last_words(child.stderr.take()).await)),
    }
}

/// Returns the path of bash. The standard library starts a program by its path with `posix_spawn`. By its name it
/// forks, to search the new program's `PATH`: a fork copies the page tables of this process, so each sandbox would
/// start more slowly the more memory the gateway uses.
fn bash() -> PathBuf {
    let places = PATH.split(':').map(|folder| Path::new(folder).join("bash"));
    let mut found = places.filter(|place| place.exists());
    found.next().unwrap_or_else(|| PathBuf::from("bash"))
}

fn unstarted(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        Error::NotInstalled {
            program: "bash".to_owned(),
            package: "bash",
        }
    } else {
        Error::Start(error)
    }
}

/// Writes arguments in the format of bubblewrap's `--args` to an anonymous file.
fn in_memory(arguments: &[OsString]) -> io::Result<File> {
    let mut file = File::from(memfd_create("sepal-sandbox", MemfdFlags::CLOEXEC)?);
    for argument in arguments {
        file.write_all(argument.as_encoded_bytes())?;
        file.write_all(&[0])?;
    }
    Ok(file)
}

/// Reads the process number of the namespace's first process, which bubblewrap reports on `info`; `None` if
/// bubblewrap ended without a report. `told` is our own handle of the other end: the chain opens it by its
/// number in our process.
async fn first_process(
    info: PipeReader,
    told: PipeWriter,
    child: &mut Child,
) -> io::Result<Option<Pid>> {
    let info = pipe::Receiver::from_owned_fd_unchecked(nonblocking(info.into())?)?;
    let mut lines = BufReader::new(info.take(MAX_INFO_BYTES)).lines();
    let mut told = Some(told);
    let mut pid = None;
    loop {
        let line = tokio::select! {
            line = lines.next_line() => line?,
            // Earlier output is still in the pipe, which ends when all writers have closed it.
            _ = child.wait(), if told.is_some() => {
                told = None;
                continue;
            }
        };
        let Some(line) = line else {
            return Ok(pid);
        };
        if let Some((_, value)) = line.split_once("\"child-pid\":") {
            let number = value.trim().trim_end_matches(',').parse().ok();
            pid = number.and_then(Pid::from_raw);
        }
        if line.contains('}') {
            return Ok(pid);
        }
    }
}

fn nonblocking(fd: OwnedFd) -> io::Result<OwnedFd> {
    let flags = fcntl_getfl(fd.as_fd())?;
    fcntl_setfl(fd.as_fd(), flags | OFlags::NONBLOCK)?;
    Ok(fd)
}

#[expect(
    deprecated,
    reason = "its replacement is unsafe; here the descriptor is owned until it is dropped"
)]
fn watched(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(process, Interest::READABLE)
}

async fn last_words(stderr: Option<ChildStderr>) -> String {
    let mut said = Vec::new();
    if let Some(stderr) = stderr {
        let _ = stderr.take(MAX_INFO_BYTES).read_to_end(&mut said).await;
    }
    String::from_utf8_lossy(&said).trim().to_owned()
}
