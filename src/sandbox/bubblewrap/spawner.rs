//! The one thread from which sandboxes are started.
//!
//! Bubblewrap's `--die-with-parent` fires when the *thread* that started it ends, and a runtime's
//! worker threads come and go. So one thread of ours starts them all and lives as long as the
//! runtime.

use std::{io, sync::mpsc, thread};

use tokio::{
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
};

/// The hold on the thread; it ends, and all sandboxes with it, when the last of these is dropped.
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
                    let _inside = runtime.enter();
                    let _ = answer.send(command.spawn());
                }
            })?;
        Ok(Self { jobs })
    }

    /// Starts `command`; its end is reported to the caller's own runtime.
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
