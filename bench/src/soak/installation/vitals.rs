//! Reads a gateway's vitals from the kernel and from its metrics: memory, threads, handles, children.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use reqwest::Client;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;

/// One sample of a gateway.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Vitals {
    /// Resident memory.
    pub(crate) memory_kib: u64,
    /// Threads.
    pub(crate) threads: u64,
    /// Open files by kind.
    pub(crate) files: BTreeMap<String, usize>,
    /// Descendant processes by name; zombies are `name (dead)`.
    pub(crate) children: BTreeMap<String, usize>,
    /// Its metrics; empty if it did not answer.
    pub(crate) gauges: BTreeMap<String, i64>,
}

/// The metric of signals that clients did not receive in time.
pub(crate) const DROPPED: &str = "sepal_signals_dropped_total";
/// The metrics that are read. All except [`DROPPED`] must return to their initial values.
const GAUGES: &[&str] = &[
    "sepal_sessions_live",
    "sepal_sockets_open",
    "sepal_tasks",
    DROPPED,
];

/// The kind of open files that are connections to a database server.
pub(crate) const TO_RECORDS: &str = "socket to PostgreSQL";

impl Vitals {
    /// Reads the vitals of process `pid` and the metrics at the given address. Connections to the port in
    /// `records`, if present, are counted as a separate kind.
    pub(crate) async fn of(
        pid: u32,
        metrics: SocketAddr,
        client: &Client,
        records: Option<u16>,
    ) -> Result<Self> {
        let gauges = gauges(metrics, client).await.unwrap_or_default();
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            Ok(number.context("a number in /proc")?.parse()?)
        };
        Ok(Self {
            memory_kib: field("VmRSS:")?,
            threads: field("Threads:")?,
            files: files(pid, records),
            children: children(pid),
            gauges,
        })
    }

    /// Returns a gauge, or 0.
    pub(crate) fn gauge(&self, name: &str) -> i64 {
        self.gauges.get(name).copied().unwrap_or(0)
    }

    /// Returns the number of open files.
    pub(crate) fn file_count(&self) -> usize {
        self.files.values().sum()
    }

    /// Returns the number of descendant processes.
    pub(crate) fn child_count(&self) -> usize {
        self.children.values().sum()
    }
}

async fn gauges(address: SocketAddr, client: &Client) -> Result<BTreeMap<String, i64>> {
    let patience = std::time::Duration::from_secs(5);
    let asked = client.get(format!("http://{address}/metrics"));
    let text = asked.timeout(patience).send().await?.text().await?;
    let values = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Ok(values
        .filter(|(name, _)| GAUGES.contains(&name.as_str()))
        .collect())
}

fn files(pid: u32, records: Option<u16>) -> BTreeMap<String, usize> {
    let table = records.and_then(|_| fs::read_to_string(format!("/proc/{pid}/net/tcp")).ok());
    let table = table.unwrap_or_default();
    let to_records = records.map_or_else(BTreeSet::new, |port| sockets_to(port, &table));
    let mut kinds = BTreeMap::new();
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    for entry in entries.flatten() {
        // A file that was closed meanwhile is skipped.
        if let Ok(target) = fs::read_link(entry.path()) {
            let target = target.to_string_lossy();
            let kind = if to_records.contains(&*target) {
                TO_RECORDS.to_owned()
            } else {
                kind_of(&target)
            };
            *kinds.entry(kind).or_default() += 1;
        }
    }
    kinds
}

/// Returns the sockets connected to a port, as the kernel names open files, from a table of all sockets.
fn sockets_to(port: u16, table: &str) -> BTreeSet<String> {
    let there = format!(":{port:04X}");
    let sockets = table.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(2);
        let is_there = fields.next()?.ends_with(&there);
        let inode = fields.nth(6)?;
        is_there.then(|| format!("socket:[{inode}]"))
    });
    sockets.collect()
}

/// Returns the kind of an open file: `socket` for `socket:[7]`, and the last part of a path.
fn kind_of(target: &str) -> String {
    if let Some((kind, _)) = target.split_once(":[")
        && !target.starts_with('/')
    {
        return kind.to_owned();
    }
    let name = target.rsplit('/').next().unwrap_or(target);
    name.to_owned()
}

/// A process as `/proc` describes it.
struct Process {
    pid: u32,
    parent: u32,
    name: String,
    is_dead: bool,
}

fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let is_dead = fields.next() == Some("Z");
    Some(Process {
        pid,
        parent: fields.next()?.parse().ok()?,
        name: head.split_once('(')?.1.to_owned(),
        is_dead,
    })
}

/// Returns all descendants of a process.
fn below(pid: u32) -> Vec<Process> {
    let (mut left, mut found) = (processes(), Vec::new());
    let mut known = BTreeSet::from([pid]);
    loop {
        let (new, others): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|process| known.contains(&process.parent));
        left = others;
        if new.is_empty() {
            return found;
        }
        known.extend(new.iter().map(|process| process.pid));
        found.extend(new);
    }
}

fn children(pid: u32) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for process in below(pid) {
        let sign = if process.is_dead { " (dead)" } else { "" };
        let name = format!("{}{sign}", process.name);
        *names.entry(name).or_default() += 1;
    }
    names
}

/// Kills one process with this name below the gateway; `choose` gets the number of candidates and returns an
/// index, modulo that number.
pub(crate) fn kill_below(gateway: u32, name: &str, choose: impl FnOnce(usize) -> usize) -> bool {
    let of_name = |process: &Process| process.name == name && !process.is_dead;
    let mut victims: Vec<_> = below(gateway).into_iter().filter(of_name).collect();
    if victims.is_empty() {
        return false;
    }
    let victim = victims.swap_remove(choose(victims.len()) % victims.len());
    let held = i32::try_from(victim.pid).ok().and_then(Pid::from_raw);
    let held = held.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
    // A pidfd pins the process, so its id cannot be reused from here on: check the process again.
    held.is_some_and(|held| {
        let is_same =
            process(victim.pid).is_some_and(|now| now.name == name && now.parent == victim.parent);
        is_same && pidfd_send_signal(&held, Signal::KILL).is_ok()
    })
}

/// Returns the processes whose command line names one of these sandboxes.
pub(crate) fn of_sandboxes(sandboxes: &BTreeSet<String>) -> Vec<String> {
    let lines = processes().into_iter().filter_map(|process| {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let is_theirs = sandboxes.iter().any(|sandbox| line.contains(sandbox));
        is_theirs.then(|| format!("{} {line}", process.pid))
    });
    lines.collect()
}

/// Returns the control groups that are named after one of these sandboxes.
pub(crate) fn groups_of(sandboxes: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![("/sys/fs/cgroup".into(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let folder: std::path::PathBuf = folder;
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if sandboxes.iter().any(|sandbox| name.starts_with(sandbox)) {
                found.push(entry.path().display().to_string());
            } else if depth < 8 {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{kind_of, sockets_to};

    #[test]
    fn connections_to_a_port_are_told_apart() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 71 1 0
   1: 0100007F:C350 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 72 1 0
   2: 0100007F:1538 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 73 1 0";
        assert_eq!(sockets_to(5432, table), ["socket:[72]".to_owned()].into());
    }

    #[test]
    fn files_are_counted_by_kind() {
        assert_eq!(kind_of("socket:[71]"), "socket");
        assert_eq!(kind_of("anon_inode:[eventpoll]"), "anon_inode");
        assert_eq!(kind_of("/a/b/sepal.db-wal"), "sepal.db-wal");
        assert_eq!(
            kind_of("/memfd:sepal-sandbox (deleted)"),
            "memfd:sepal-sandbox (deleted)"
        );
    }
}
