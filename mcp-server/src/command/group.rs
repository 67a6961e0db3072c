//! The commands that run, each with its process group, and the end of everything that they started.
//!
//! A process that leaves its group with `setsid` becomes our child when its parent ends, because
//! this server is a subreaper. It is known by a mark in its environment. Whoever hid from that too
//! ends with the last command that runs.

use std::{
    collections::{HashMap, HashSet},
    io,
    os::fd::OwnedFd,
    process::ExitStatus,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, set_child_subreaper,
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::{Instant, sleep},
};

use super::census::{Census, MARK, Process};

/// How long the end of what a command left may take.
const SWEEP_LIMIT: Duration = Duration::from_secs(3);
/// Looks that may find nobody, but not for certain.
const UNCLEAR_LOOKS: u32 = 3;
/// How long killed processes get to be gone.
const PAUSE: Duration = Duration::from_millis(2);

/// The commands that were started and have not ended yet.
#[derive(Clone, Default)]
pub(crate) struct Groups(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    /// By the leader of the group.
    alive: HashMap<i32, Call>,
    started: u64,
    /// Whether every process that we can reach is below us: the sandbox is ours alone.
    is_alone: bool,
}

#[derive(Clone, Copy)]
struct Call {
    number: u64,
    /// Its processes are being ended.
    is_over: bool,
}

impl Groups {
    /// Makes this server the parent of every process below it that loses its own, and looks who else
    /// is here. Call it before anything is started.
    pub(crate) fn adopt_orphans(&self) -> io::Result<()> {
        set_child_subreaper(Some(getpid()))?;
        // Never on a mere look: a signal to everybody reaches whoever that look has missed.
        self.lock().is_alone = Census::is_apart() && Census::take().is_alone();
        Ok(())
    }

    /// Stops all that is below us in one moment, where we are alone and no command goes on: not even
    /// a process that lives for microseconds and leaves a child gets away. Whether it was possible.
    fn stop_everybody(&self) -> bool {
        let calls = self.lock();
        let is_idle = calls.alive.values().all(|call| call.is_over);
        let may = calls.is_alone && is_idle;
        if may {
            // This number stands for everybody but us and the first process.
            let _ = kill_process_group(Pid::INIT, Signal::STOP);
        }
        may
    }

    /// Buries what has ended below us and nobody else waits for.
    pub(crate) fn bury(&self) {
        self.bury_dead(&Census::take());
    }

    /// The last thing this server does.
    pub(crate) fn kill_all(&self) {
        for call in self.lock().alive.values_mut() {
            call.is_over = true;
        }
        self.sweep_now();
    }

    /// Ends what calls have left that are over. Other calls go on meanwhile.
    async fn sweep(&self) {
        let deadline = Instant::now() + SWEEP_LIMIT;
        let mut sweep = Sweep::default();
        while Instant::now() < deadline {
            match sweep.step(self) {
                Step::Done => return,
                Step::Again => tokio::task::yield_now().await,
                Step::Wait => sleep(PAUSE).await,
            }
        }
    }

    /// The same where nobody can wait, so as far as it goes at once.
    fn sweep_now(&self) {
        let deadline = std::time::Instant::now() + Duration::from_millis(200);
        let mut sweep = Sweep::default();
        while std::time::Instant::now() < deadline {
            if matches!(sweep.step(self), Step::Done) {
                return;
            }
        }
    }

    /// Leaders are left to those who wait for their status.
    fn bury_dead(&self, census: &Census) {
        let calls = self.lock();
        for process in &census.processes {
            if !calls.alive.contains_key(&raw(process.id)) {
                process.bury();
            }
        }
    }

    /// Whether a call still runs that started the process.
    fn is_wanted(&self, process: &Process) -> bool {
        let calls = self.lock();
        let led = [process.root, process.group];
        if let Some(call) = led.iter().find_map(|leader| calls.alive.get(leader)) {
            return !call.is_over;
        }
        let mut running = calls.alive.values().filter(|call| !call.is_over);
        match process.call() {
            Some(number) => running.any(|call| call.number == number),
            // It may be anybody's: it is left as long as somebody runs.
            None => running.next().is_some(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends processes that start others as fast as they can: all are stopped before the first is
/// killed, and what is stopped still takes its place below the limit of processes.
#[derive(Default)]
struct Sweep {
    stopped: HashSet<(Pid, u64)>,
    /// Looks that found nobody, but not for certain.
    unclear: u32,
}

enum Step {
    Done,
    /// Look again at once.
    Again,
    /// Look again when what was killed may be gone.
    Wait,
}

impl Sweep {
    fn step(&mut self, groups: &Groups) -> Step {
        let are_stopped = groups.stop_everybody();
        let census = Census::take();
        groups.bury_dead(&census);
        if are_stopped {
            return end_all(&census);
        }
        let alive = census.processes.iter().filter(|process| !process.is_dead);
        let unwanted: Vec<_> = alive.filter(|process| !groups.is_wanted(process)).collect();
        let is_empty = unwanted.is_empty();
        let mut is_news = false;
        for process in &unwanted {
            if self.stopped.insert(process.name()) {
                is_news = true;
                process.signal(Signal::STOP);
            }
        }
        if is_news {
            return Step::Again;
        }
        for process in unwanted {
            process.signal(Signal::KILL);
        }
        // Where others start processes all the time, no look is ever clear; who is missed ends with
        // the last call.
        self.unclear += u32::from(is_empty);
        if is_empty && (!census.is_unclear || self.unclear > UNCLEAR_LOOKS) {
            Step::Done
        } else {
            Step::Wait
        }
    }
}

/// Kills everybody below us; those above, who were stopped with them, go on.
fn end_all(census: &Census) -> Step {
    let mut step = Step::Done;
    for process in census.processes.iter().filter(|it| !it.is_dead) {
        process.signal(Signal::KILL);
        step = Step::Wait;
    }
    for process in &census.others {
        process.signal(Signal::CONT);
    }
    step
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
        let number = {
            let mut calls = groups.lock();
            calls.started += 1;
            calls.started
        };
        let child = command
            .env(MARK, number.to_string())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let leader = child
            .id()
            .and_then(|id| Pid::from_raw(id.try_into().ok()?))
            .ok_or_else(|| io::Error::other("the new process has no number"))?;
        let end = watched(pidfd_open(leader, PidfdFlags::NONBLOCK)?)?;
        let call = Call {
            number,
            is_over: false,
        };
        groups.lock().alive.insert(raw(leader), call);
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

    /// What the leader reads, and what it says.
    pub(crate) fn streams(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>) {
        (self.child.stdin.take(), self.child.stdout.take())
    }

    /// Resolves when the leader has ended; does not reap it.
    pub(crate) async fn ended(&self) {
        // The descriptor stays readable for ever; an error means that the runtime ends.
        let _ = self.end.readable().await;
    }

    pub(crate) fn kill(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
    }

    /// Kills whatever the command has started and reaps the leader.
    pub(crate) async fn end(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        self.is_over();
        self.groups.sweep().await;
        let status = self.child.wait().await;
        // Not before: nobody else may reap it.
        self.forget();
        status
    }

    fn is_over(&self) {
        if let Some(call) = self.groups.lock().alive.get_mut(&raw(self.leader)) {
            call.is_over = true;
        }
    }

    fn forget(&self) -> bool {
        let mut calls = self.groups.lock();
        calls.alive.remove(&raw(self.leader)).is_some()
    }
}

#[expect(
    deprecated,
    reason = "its replacement is unsafe; here the descriptor is owned until it is dropped"
)]
fn watched(end: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(end, Interest::READABLE)
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.groups.lock().alive.contains_key(&raw(self.leader)) {
            self.kill();
            self.is_over();
            self.groups.sweep_now();
            self.forget();
        }
    }
}
