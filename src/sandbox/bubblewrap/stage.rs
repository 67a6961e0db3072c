//! From a command line to a process in its namespaces.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, PipeReader, PipeWriter, Write},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    process::Stdio,
    sync::Arc,
};

use rustix::{
    fs::{MemfdFlags, memfd_create},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader, Interest, unix::AsyncFd},
    net::unix::pipe,
    process::{Child, ChildStderr, Command},
};

use super::{arguments::Arguments, cgroup::Cgroup, probe, spawner::Spawner};
use crate::sandbox::Error;

/// Runs outside, as the first link of the chain. It leaves no descriptor open but the three standard
/// ones and those that bubblewrap reads, enters the control groups, and becomes bubblewrap.
///
/// Descriptors come by way of `/proc/$PPID`: passing them on needs `unsafe`. When we are gone,
/// `$PPID` is somebody else and the script ends.
const SCRIPT: &str = r#"set -e
for fd in /proc/self/fd/*; do
  fd=${fd##*/}
  [ "$fd" -le 2 ] || eval "exec $fd>&-"
done
exec 3>"/proc/$PPID/fd/$1" 4<"/proc/$PPID/fd/$2"
[ "$3" = - ] || exec 5<"/proc/$PPID/fd/$3"
shift 3
while [ "$1" != -- ]; do echo 0 >"$1"; shift; done
shift
exec "$@"
"#;
/// Outside, nothing of our own environment is needed but this.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The most that bubblewrap says about the process it has made.
const MAX_INFO_BYTES: u64 = 4096;

/// A sandbox whose namespaces exist.
pub(super) struct Staged {
    pub(super) child: Child,
    pub(super) init: Arc<Init>,
    pub(super) cgroup: Option<Cgroup>,
}

/// The first process of the namespace: when it ends, the kernel ends all others before it says so.
#[derive(Debug)]
pub(super) struct Init {
    pub(super) pid: i32,
    process: AsyncFd<OwnedFd>,
}

impl Init {
    /// Kills everything in the sandbox, now. Harmless when it has ended.
    pub(super) fn kill(&self) {
        let _ = pidfd_send_signal(self.process.get_ref(), Signal::KILL);
    }

    /// Resolves when no process of the sandbox is left.
    pub(super) async fn gone(&self) {
        let _ = self.process.readable().await;
    }
}

/// Starts the chain and waits until bubblewrap has made the namespaces, or has said why not.
pub(super) async fn start(
    spawner: &Spawner,
    arguments: &Arguments,
    cgroup: Option<Cgroup>,
) -> Result<Staged, Error> {
    let (info, told) = io::pipe()?;
    let walls = in_memory(&arguments.walls)?;
    let inner = in_memory(&arguments.inner)?;
    let mut command = Command::new("bash");
    command
        .args(["-c", SCRIPT, "sepal-sandbox"])
        .arg(told.as_raw_fd().to_string())
        .arg(walls.as_raw_fd().to_string());
    if arguments.inner.is_empty() {
        command.arg("-");
    } else {
        command.arg(inner.as_raw_fd().to_string());
    }
    command
        .args(cgroup.iter().flat_map(Cgroup::entrances))
        .arg("--")
        .args(&arguments.line)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = spawner.spawn(command).await.map_err(unstarted)?;
    let init = tokio::select! {
        pid = first_process(info, told) => pid,
        _ = child.wait() => None,
    };
    match init {
        Some(pid) => Ok(Staged {
            init: Arc::new(hold(pid, &child)?),
            child,
            cgroup,
        }),
        None => Err(probe::refused(last_words(child.stderr.take()).await)),
    }
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

/// Arguments as bubblewrap's `--args` reads them, in a file that has no name.
fn in_memory(arguments: &[OsString]) -> io::Result<File> {
    let mut file = File::from(memfd_create("sepal-sandbox", MemfdFlags::CLOEXEC)?);
    for argument in arguments {
        file.write_all(argument.as_encoded_bytes())?;
        file.write_all(&[0])?;
    }
    Ok(file)
}

/// Reads the number of the namespace's first process from `--info-fd`. `told` is our own end of the
/// pipe; without it the script could not open it.
async fn first_process(info: PipeReader, told: PipeWriter) -> Option<i32> {
    let receiver = pipe::Receiver::from_owned_fd_unchecked(nonblocking(info.into()).ok()?).ok()?;
    let mut lines = BufReader::new(receiver.take(MAX_INFO_BYTES)).lines();
    let mut pid = None;
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some((_, value)) = line.split_once("\"child-pid\":") {
            pid = value.trim().trim_end_matches(',').parse().ok();
        }
        if line.contains('}') {
            break;
        }
    }
    drop(told);
    pid
}

fn nonblocking(fd: OwnedFd) -> io::Result<OwnedFd> {
    let flags = rustix::fs::fcntl_getfl(fd.as_fd())?;
    rustix::fs::fcntl_setfl(fd.as_fd(), flags | rustix::fs::OFlags::NONBLOCK)?;
    Ok(fd)
}

/// A descriptor of `pid`, which must still be the child of bubblewrap, itself not yet buried.
fn hold(pid: i32, child: &Child) -> io::Result<Init> {
    let number = Pid::from_raw(pid).ok_or_else(|| io::Error::other("an impossible process"))?;
    let process = pidfd_open(number, PidfdFlags::NONBLOCK)?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    if parent.and_then(|parent| parent.trim().parse().ok()) != child.id() {
        return Err(io::Error::other("the sandbox ended while it was started"));
    }
    Ok(Init {
        pid,
        process: watched(process)?,
    })
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
