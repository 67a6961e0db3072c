//! A command's process group, and the list of all that are alive.

use std::{
    collections::HashSet,
    io,
    os::fd::OwnedFd,
    process::ExitStatus,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::{
    io::{Interest, unix::AsyncFd},
    process::{Child, ChildStderr, ChildStdout, Command},
};

/// The process groups that were started and not ended yet.
#[derive(Clone, Default)]
pub(crate) struct Groups(Arc<Mutex<HashSet<Pid>>>);

impl Groups {
    /// The last thing this server does.
    pub(crate) fn kill_all(&self) {
        for leader in self.lock().drain() {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process group whose leader we have started.
///
/// The leader stays unreaped until [`Group::end`], so its number cannot be given to another group
/// while we may still send signals to it.
pub(crate) struct Group {
    child: Child,
    leader: Pid,
    end: AsyncFd<OwnedFd>,
    groups: Groups,
}

impl Group {
    pub(crate) fn spawn(mut command: Command, groups: &Groups) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = child
            .id()
            .and_then(|id| Pid::from_raw(id.try_into().ok()?))
            .ok_or_else(|| io::Error::other("the new process has no number"))?;
        let end = watched(pidfd_open(leader, PidfdFlags::NONBLOCK)?)?;
        groups.lock().insert(leader);
        Ok(Self {
            child,
            leader,
            end,
            groups: groups.clone(),
        })
    }

    pub(crate) fn pipes(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Resolves when the leader has ended; does not reap it.
    pub(crate) async fn ended(&self) {
        // The descriptor stays readable for ever; an error means that the runtime ends.
        let _ = self.end.readable().await;
    }

    pub(crate) fn kill(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
    }

    /// Kills what is left of the group and reaps the leader.
    pub(crate) async fn end(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        self.forget();
        self.child.wait().await
    }

    fn forget(&self) -> bool {
        self.groups.lock().remove(&self.leader)
    }
}

#[expect(
    deprecated,
    reason = "its replacement is unsafe; here the descriptor is owned until it is dropped"
)]
fn watched(end: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(end, Interest::READABLE)
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.forget() {
            self.kill();
        }
    }
}
