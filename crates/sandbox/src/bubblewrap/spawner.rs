//! Runs the only thread that starts sandboxes.
//!
//! Bubblewrap's `--die-with-parent` fires when the *thread* that started it ends, and a runtime's worker
//! threads come and go. So one dedicated thread starts all sandboxes and lives as long as the runtime.

use std::{io, sync::mpsc, thread};

use tokio::{
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
};
use tracing::warn;

/// Gives this thread an empty session keyring, which the next started program inherits: programs inside can
/// read neither the keys of the user who started the gateway, nor each other's.
fn keyring_of_its_own() {
    const NO_SUCH_CALL: i32 = 38;
    const NOT_PERMITTED: i32 = 1;
    match keyutils::Keyring::join_anonymous_session() {
        // If we may not, as in a container, programs inside may not either.
        Ok(_) => {}
        Err(error) if matches!(error.0, NO_SUCH_CALL | NOT_PERMITTED) => {}
        Err(error) => warn!(%error, "A sandbox gets no session keyring of its own"),
    }
}

/// A handle of the thread. When the last handle is dropped, the thread ends, and all sandboxes with it.
#[derive(Debug, Clone)]
pub(super) struct Spawner {
    jobs: mpsc::Sender<Job>,
}

struct Job {
    command: Command,
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("sandbox-spawner".to_owned())
            .spawn(move || {
                for Job {
                    mut command,
                    runtime,
                    answer,
                } in inbox
                {
                    keyring_of_its_own();
                    let _inside = runtime.enter();
                    let _ = answer.send(command.spawn());
                }
            })?;
        Ok(Self { jobs })
    }

    /// Starts `command`; the caller's own runtime watches for its end.
    pub(super) async fn spawn(&self, command: Command) -> io::Result<Child> {
        let gone = || io::Error::other("the thread that starts sandboxes is gone");
        let (answer, child) = oneshot::channel();
        let runtime = Handle::current();
        self.jobs
            .send(Job {
                command,
                runtime,
                answer,
            })
            .map_err(|_| gone())?;
        child.await.map_err(|_| gone())?
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, process::Stdio};

    use tokio::process::Command;

    use super::Spawner;

    /// Prints the id of its session keyring by `keyctl`, with the call's number on each architecture.
    const KEYRING: &str = if cfg!(target_arch = "aarch64") {
        "print syscall(219, 0, -3, 0)"
    } else {
        "print syscall(250, 0, -3, 0)"
    };

    async fn keyring_of(child: tokio::process::Child) -> i64 {
        let said = child.wait_with_output().await.unwrap().stdout;
        String::from_utf8(said).unwrap().parse().unwrap()
    }

    #[tokio::test]
    async fn each_start_has_a_session_keyring_of_its_own() {
        let command = || {
            let mut command = Command::new("perl");
            command.args(["-e", KEYRING]).stdout(Stdio::piped());
            command
        };
        let spawner = Spawner::start().unwrap();
        let mut keyrings = BTreeSet::from([keyring_of(command().spawn().unwrap()).await]);
        for _ in 0..3 {
            let child = spawner.spawn(command()).await.unwrap();
            keyrings.insert(keyring_of(child).await);
        }
        assert!(!keyrings.contains(&-1), "this machine has no keyrings");
        assert_eq!(keyrings.len(), 4);
    }
}
