//! Enforces limits without control groups: measures the process tree, and stops or kills it. Also stops the
//! processes while the disk is nearly full.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::{Bounds, ProgramEnd, disk::DiskWatch};

/// The interval of measurements.
const TICK: Duration = Duration::from_millis(100);
/// Ticks of processor time per second in `/proc`: the same on all machines that we support.
const CLOCK_HZ: u64 = 100;
/// Processor time that may be used in advance, so that short work is not slowed down.
const BURST: Duration = Duration::from_millis(500);

/// Watches the processes below `init`, the first process of a sandbox, until a limit is exceeded. Processor
/// time is limited by stopping the processes for a while, so it never ends a sandbox; nor does a full disk,
/// during which the processes are stopped too, if `disk` is given.
pub(in crate::bubblewrap) async fn watch(
    init: i32,
    bounds: Bounds,
    disk: Option<DiskWatch>,
) -> ProgramEnd {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut throttle = Throttle::new(bounds.cpu_millis);
    let mut before = Instant::now();
    let mut stopped = StoppedProcesses::default();
    loop {
        ticks.tick().await;
        let tree = Tree::below(init);
        if tree.tasks > u64::from(bounds.processes) {
            return ProgramEnd::OverProcesses(bounds.processes);
        }
        if tree.resident > bounds.memory_bytes && tree.proportional() > bounds.memory_bytes {
            return ProgramEnd::OverMemory(bounds.memory_bytes);
        }
        let now = Instant::now();
        let is_throttled = throttle.tick(tree.processor_time, now - before);
        before = now;
        if is_throttled || disk.as_ref().is_some_and(DiskWatch::is_pressed) {
            // Sent at every tick, because new children may start between measuring and stopping.
            stopped.add(&tree);
        } else {
            stopped.resume();
        }
    }
}

/// Stops the processes below `init` while the disk is nearly full, if a control group enforces all other
/// limits.
pub(in crate::bubblewrap) async fn stand_still(init: i32, mut disk: DiskWatch) -> Infallible {
    let mut stopped = StoppedProcesses::default();
    loop {
        disk.until_pressed(true).await;
        while disk.is_pressed() {
            stopped.add(&Tree::below(init));
            tokio::select! {
                () = sleep(TICK) => {}
                () = disk.until_pressed(false) => {}
            }
        }
        stopped.resume();
    }
}

/// The processes that we stopped. They are resumed from this list: a measurement may miss a process that is
/// being reparented, and a stopped process that is missed once would never be resumed.
#[derive(Debug, Default)]
struct StoppedProcesses(BTreeSet<Process>);

impl StoppedProcesses {
    fn add(&mut self, tree: &Tree) {
        self.0.extend(tree.stop());
    }

    fn resume(&mut self) {
        for process in std::mem::take(&mut self.0) {
            process.signal(Signal::CONT);
        }
    }
}

/// The total resource use of a sandbox's processes.
#[derive(Debug, Default)]
struct Tree {
    /// The processes without `init` itself, which has to keep running to reap the others.
    pids: BTreeSet<i32>,
    tasks: u64,
    /// An upper bound: shared pages count in each process.
    resident: u64,
    /// The time of everything that ever ran: a process counts its reaped children's time.
    processor_time: Duration,
}

impl Tree {
    fn below(init: i32) -> Self {
        let mut tree = Self::default();
        let mut waiting = vec![init];
        while let Some(pid) = waiting.pop() {
            tree.add(pid);
            for child in children(pid) {
                if tree.pids.insert(child) {
                    waiting.push(child);
                }
            }
        }
        tree
    }

    fn add(&mut self, pid: i32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        self.tasks += number_after(&status, "Threads:").unwrap_or(1);
        self.resident += number_after(&status, "VmRSS:").unwrap_or_default() * 1024;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        self.processor_time += processor_time(&stat).unwrap_or_default();
    }

    /// Returns the memory with shared pages counted once; slower to read, so only used when it matters.
    fn proportional(&self) -> u64 {
        let of = |pid: &i32| {
            let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
            let exact = rollup
                .as_deref()
                .and_then(|text| number_after(text, "Pss:"));
            let rough = || {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
                number_after(&status, "VmRSS:")
            };
            exact.or_else(rough).unwrap_or_default() * 1024
        };
        self.pids.iter().map(of).sum()
    }

    /// Stops all processes, and returns those that were stopped.
    fn stop(&self) -> impl Iterator<Item = Process> {
        let named = self.pids.iter().filter_map(|pid| Process::with(*pid));
        named.filter(|process| process.signal(Signal::STOP))
    }
}

/// A process number with its start time, which together identify a process uniquely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: i32,
    born: u64,
}

impl Process {
    fn with(pid: i32) -> Option<Self> {
        let born = born(pid)?;
        Some(Self { pid, born })
    }

    /// Sends a signal, and returns true if the process still exists. A process number may be reused between
    /// checking and signalling; a descriptor is not.
    fn signal(self, signal: Signal) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return false;
        };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        born(self.pid) == Some(self.born) && pidfd_send_signal(&process, signal).is_ok()
    }
}

/// Returns when the process was started, in ticks since boot.
fn born(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    fields(&stat)?.nth(19)?.parse().ok()
}

fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|it| it.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the fields of `/proc/<pid>/stat` after the name, which may itself contain spaces and brackets.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}

fn processor_time(stat: &str) -> Option<Duration> {
    let ticks: u64 = fields(stat)?
        .skip(11)
        .take(4)
        .filter_map(|it| it.parse::<u64>().ok())
        .sum();
    Some(Duration::from_millis(ticks * 1000 / CLOCK_HZ))
}

/// Decides when a process tree has to pause (token bucket): time adds credit, work uses it.
#[derive(Debug)]
struct Throttle {
    cpu_millis: u32,
    seen: Duration,
    /// Processor time that may be used at once.
    credit: Duration,
    debt: Duration,
}

impl Throttle {
    fn new(cpu_millis: u32) -> Self {
        Self {
            cpu_millis,
            seen: Duration::ZERO,
            credit: BURST,
            debt: Duration::ZERO,
        }
    }

    /// Returns true if the tree has to be stopped until the next tick. `total` only grows.
    fn tick(&mut self, total: Duration, passed: Duration) -> bool {
        let used = total.saturating_sub(self.seen);
        self.seen = self.seen.max(total);
        let available = self.credit + passed * self.cpu_millis / 1000;
        let wanted = self.debt + used;
        self.credit = available.saturating_sub(wanted).min(BURST);
        self.debt = wanted.saturating_sub(available);
        !self.debt.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_tree_gets_its_share_and_an_idle_one_may_burst() {
        let mut throttle = Throttle::new(500);
        let (tick, mut total, mut running) = (Duration::from_millis(100), Duration::ZERO, 0);
        let mut must_stop = false;
        for _ in 0..1000 {
            if !must_stop {
                total += tick;
                running += 1;
            }
            must_stop = throttle.tick(total, tick);
        }
        assert!(
            (495..=515).contains(&running),
            "ran {running} of 1000 ticks"
        );
        let mut throttle = Throttle::new(500);
        assert!(!throttle.tick(Duration::from_millis(500), tick));
        assert!(throttle.tick(Duration::from_millis(1500), tick));
    }

    #[test]
    fn numbers_are_read_from_proc() {
        let stat = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 100 50 25 25 20 0 1 0 4242 0";
        assert_eq!(processor_time(stat), Some(Duration::from_secs(2)));
        assert_eq!(fields(stat).unwrap().nth(19), Some("4242"));
        assert_eq!(number_after("VmRSS:\t  12 kB\n", "VmRSS:"), Some(12));
    }

    #[test]
    fn the_tree_of_this_process_has_memory_and_tasks() {
        let tree = Tree::below(i32::try_from(std::process::id()).unwrap());
        assert!(tree.resident > 0 && tree.tasks > 0);
    }
}
