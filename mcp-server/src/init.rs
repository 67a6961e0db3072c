//! What the server does as process 1 of a container: run itself as a child and bury orphans.

use std::{
    io,
    process::{Command, ExitCode},
};

use rustix::process::{WaitOptions, wait};
use tokio::signal::unix::{SignalKind, signal};

/// Starts this program again as a child and reaps every process that ends, until the child does or
/// SIGTERM comes. The kernel kills the rest of the container when process 1 leaves.
pub(crate) async fn supervise() -> io::Result<ExitCode> {
    let mut ended = signal(SignalKind::child())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .spawn()?;
    let child = i32::try_from(child.id()).map_err(io::Error::other)?;
    loop {
        tokio::select! {
            _ = ended.recv() => if let Some(code) = reap(child) { return Ok(code) },
            _ = terminated.recv() => return Ok(ExitCode::SUCCESS),
            _ = interrupted.recv() => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// Buries all that is dead; the exit code once `child` is among them.
fn reap(child: i32) -> Option<ExitCode> {
    let mut code = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid.as_raw_nonzero().get() == child {
            let value = status
                .exit_status()
                .and_then(|value| u8::try_from(value).ok());
            code = Some(value.map_or(ExitCode::FAILURE, ExitCode::from));
        }
    }
    code
}
