//! Who lives below this server, as `/proc` shows it: the commands, and whatever they left behind.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read},
};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, pidfd_open, pidfd_send_signal, waitpid,
};

/// The variable that tells which call started a process. Its children have it too, unless they take
/// care not to.
pub(super) const MARK: &str = "SEPAL_CALL";
/// The machine's own namespace of process numbers, which is the same on every Linux
/// (`PROC_PID_INIT_INO`).
const MACHINE: &str = "pid:[4026531836]";
/// Bytes of an environment that are searched for it.
const ENVIRONMENT_BYTES: u64 = 256 * 1024;

/// A process below this server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) id: Pid,
    /// Its process group.
    pub(super) group: i32,
    /// The ancestor that is our own child.
    pub(super) root: i32,
    /// It has ended, and waits to be buried.
    pub(super) is_dead: bool,
    parent: i32,
    /// Since when, in ticks of the kernel: another process with the same number began later.
    since: u64,
}

/// All processes below this server in one look, which is no moment: they go on meanwhile.
#[derive(Debug, Default)]
pub(super) struct Census {
    pub(super) processes: Vec<Process>,
    /// Somebody vanished during the look, so that children of theirs may not be listed.
    pub(super) is_unclear: bool,
    /// Everybody else but us and the first process.
    pub(super) others: Vec<Process>,
}

impl Census {
    /// Empty where there is no `/proc`.
    pub(super) fn take() -> Self {
        let Ok((all, is_unclear)) = everybody() else {
            return Self::default();
        };
        let me = getpid().as_raw_nonzero().get();
        let mut census = Self {
            is_unclear,
            ..Self::default()
        };
        for process in all.values() {
            match root(&all, process, me) {
                Root::Below(root) => census.processes.push(Process { root, ..*process }),
                Root::Unclear => census.is_unclear = true,
                Root::Elsewhere if [1, me].contains(&process.number()) => {}
                Root::Elsewhere => census.others.push(*process),
            }
        }
        census
    }

    /// Whether the processes that we see are a sandbox's and not the machine's.
    pub(super) fn is_apart() -> bool {
        let namespace = fs::read_link("/proc/self/ns/pid");
        namespace.is_ok_and(|namespace| namespace.as_os_str() != MACHINE)
    }

    /// Whether those others only stand between us and the first process, as what builds a sandbox's
    /// walls does: then the sandbox is ours alone.
    pub(super) fn is_alone(&self) -> bool {
        let mut above = getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
        let mut found = 0;
        while let Some(parent) = self.others.iter().find(|it| it.number() == above) {
            above = parent.parent;
            found += 1;
        }
        // What is left of the chain is the first process, or us where we are that.
        found == self.others.len() && above <= 1 && !self.is_unclear
    }
}

enum Root {
    Below(i32),
    Elsewhere,
    Unclear,
}

fn root(all: &HashMap<i32, Process>, process: &Process, me: i32) -> Root {
    let mut at = process;
    // No chain is longer than there are processes; one that is was seen while it changed.
    for _ in 0..=all.len() {
        if at.parent == me {
            return Root::Below(at.number());
        }
        // Parents outside of the container's sight have the number 0.
        if at.parent == 0 || at.number() == me {
            return Root::Elsewhere;
        }
        match all.get(&at.parent) {
            Some(parent) => at = parent,
            None => return Root::Unclear,
        }
    }
    Root::Unclear
}

/// All that can be seen, and whether somebody vanished meanwhile.
fn everybody() -> io::Result<(HashMap<i32, Process>, bool)> {
    let numbers = fs::read_dir("/proc")?.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<i32>().ok()
    });
    let (mut all, mut has_vanished) = (HashMap::new(), false);
    for number in numbers {
        match look(number) {
            Some(process) => drop(all.insert(number, process)),
            None => has_vanished = true,
        }
    }
    Ok((all, has_vanished))
}

/// `None` if there is no such process any more.
fn look(number: i32) -> Option<Process> {
    let text = fs::read(format!("/proc/{number}/stat")).ok()?;
    // The second field is the program's own name, which may hold anything.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Process {
        id: Pid::from_raw(number)?,
        is_dead: matches!(field(3)?, "Z" | "X"),
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        since: field(22)?.parse().ok()?,
        root: 0,
    })
}

impl Process {
    pub(super) fn number(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    /// What the same process is called in every look.
    pub(super) fn name(&self) -> (Pid, u64) {
        (self.id, self.since)
    }

    /// Sends it a signal, and never to another one that got its number meanwhile.
    pub(super) fn signal(&self, signal: Signal) {
        let Ok(handle) = pidfd_open(self.id, PidfdFlags::empty()) else {
            return;
        };
        let now = look(self.number());
        if now.is_some_and(|now| now.since == self.since) {
            let _ = pidfd_send_signal(&handle, signal);
        }
    }

    /// Buries it, if it is our child and dead.
    pub(super) fn bury(&self) {
        if self.is_dead && self.root == self.number() {
            let _ = waitpid(Some(self.id), WaitOptions::NOHANG);
        }
    }

    /// The call that started it, if it still says so.
    pub(super) fn call(&self) -> Option<u64> {
        let path = format!("/proc/{}/environ", self.id.as_raw_nonzero());
        let mut environment = Vec::new();
        let file = File::open(path).ok()?;
        file.take(ENVIRONMENT_BYTES)
            .read_to_end(&mut environment)
            .ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let value = variables.find_map(|variable| {
            let value = variable.strip_prefix(MARK.as_bytes())?;
            value.strip_prefix(b"=")
        })?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }
}
