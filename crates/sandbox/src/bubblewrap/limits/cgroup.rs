//! Enforces limits with control groups: version 2 if it is delegated to us, version 1 if we may write to it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::Bounds;

const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];
/// The period of the kernel's processor time accounting.
const CPU_PERIOD_US: u64 = 100_000;
/// The time that a group may take to become empty after its processes were killed.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The groups of this installation; one folder per controller (version 1) or one for all.
#[derive(Debug)]
pub(in crate::bubblewrap) struct Cgroups {
    version: Version,
    homes: Vec<PathBuf>,
    started: AtomicU64,
}

impl Cgroups {
    /// Finds a place for `name` below our own groups; `None` if the machine offers none.
    pub(in crate::bubblewrap) fn find(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let (version, parents) = places(&mounts, &own)?;
        if version == Version::Two {
            delegate(parents.first()?).ok()?;
        }
        let groups = Self {
            version,
            homes: parents
                .into_iter()
                .map(|parent| parent.join(name))
                .collect(),
            started: AtomicU64::new(0),
        };
        groups.check().ok().map(|()| groups)
    }

    /// Tries everything that a start does, except running a program.
    fn check(&self) -> io::Result<()> {
        for home in &self.homes {
            make(home)?;
        }
        if self.version == Version::Two
            && let [home] = self.homes.as_slice()
        {
            enable(home)?;
        }
        self.open("probe", &Bounds::default()).map(drop)
    }

    /// Creates a group with the limits of `bounds`.
    pub(in crate::bubblewrap) fn open(&self, name: &str, bounds: &Bounds) -> io::Result<Cgroup> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let folders = self
            .homes
            .iter()
            .map(|home| home.join(format!("{name}-{number}")));
        let group = Cgroup {
            version: self.version,
            folders: folders.collect(),
            memory_bytes: bounds.memory_bytes,
        };
        for folder in &group.folders {
            make(folder)?;
        }
        group.limit(bounds)?;
        Ok(group)
    }

    /// Kills the processes that an earlier process left in our groups, and returns their number.
    pub(in crate::bubblewrap) async fn reap(&self) -> usize {
        let mut killed = 0;
        for home in &self.homes {
            for folder in fs::read_dir(home).into_iter().flatten().flatten() {
                let folder = folder.path();
                if folder.is_dir() {
                    killed += kill_all(&folder).await;
                    remove(&folder).await;
                }
            }
        }
        killed
    }
}

impl Drop for Cgroups {
    /// Succeeds only if no sandbox is left.
    fn drop(&mut self) {
        for home in &self.homes {
            let _ = fs::remove_dir(home);
        }
    }
}

/// Finds the folders of our own groups from the mounts and our membership.
fn places(mounts: &str, own: &str) -> Option<(Version, Vec<PathBuf>)> {
    let one: Option<Vec<PathBuf>> = CONTROLLERS
        .iter()
        .map(|controller| {
            let mount = mounts.lines().find_map(|line| {
                let mut fields = line.split(' ').skip(1);
                let (at, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
                let is_ours = kind == "cgroup" && options.split(',').any(|it| it == *controller);
                is_ours.then_some(at)
            })?;
            let group = own.lines().find_map(|line| {
                let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
                controllers
                    .split(',')
                    .any(|it| it == *controller)
                    .then_some(group)
            })?;
            Some(below(mount, group))
        })
        .collect();
    if let Some(mut parents) = one {
        parents.dedup();
        return Some((Version::One, parents));
    }
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (at, kind) = (fields.next()?, fields.next()?);
        (kind == "cgroup2").then_some(at)
    })?;
    let group = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some((Version::Two, vec![below(mount, group)]))
}

/// Returns the folder of `group`; in a container the group's name may exist only on the host.
fn below(mount: &str, group: &str) -> PathBuf {
    let path = Path::new(mount).join(group.trim_start_matches('/'));
    if path.is_dir() {
        path
    } else {
        PathBuf::from(mount)
    }
}

/// Moves this process into a subgroup if needed: version 2 allows groups with limits only below a group
/// without processes. A service with `Delegate=yes` may do that; if other processes share our group, this
/// fails.
fn delegate(parent: &Path) -> io::Result<()> {
    if enable(parent).is_ok() {
        return Ok(());
    }
    let own = std::process::id().to_string();
    if fs::read_to_string(parent.join("cgroup.procs"))?
        .lines()
        .any(|pid| pid != own)
    {
        return Err(io::Error::other("other processes share our control group"));
    }
    let aside = parent.join("sepal-server");
    make(&aside)?;
    fs::write(aside.join("cgroup.procs"), own)?;
    enable(parent)
}

fn enable(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.subtree_control"), "+memory +cpu +pids")
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The control group of one sandbox.
#[derive(Debug)]
pub(in crate::bubblewrap) struct Cgroup {
    version: Version,
    folders: Vec<PathBuf>,
    memory_bytes: u64,
}

impl Cgroup {
    /// Returns the files to which the first process writes itself before it executes anything else.
    pub(in crate::bubblewrap) fn entrances(&self) -> impl Iterator<Item = PathBuf> {
        self.folders
            .iter()
            .map(|folder| folder.join("cgroup.procs"))
    }

    fn limit(&self, bounds: &Bounds) -> io::Result<()> {
        let memory = bounds.memory_bytes.to_string();
        let quota = CPU_PERIOD_US * u64::from(bounds.cpu_millis.max(10)) / 1000;
        let processes = bounds.processes.to_string();
        match self.version {
            Version::One => {
                self.set("memory.limit_in_bytes", &memory)?;
                // The file is missing if the kernel does not count swap; the same value as the memory limit
                // means no swap.
                let _ = self.set("memory.memsw.limit_in_bytes", &memory);
                self.set("cpu.cfs_period_us", &CPU_PERIOD_US.to_string())?;
                self.set("cpu.cfs_quota_us", &quota.to_string())?;
            }
            Version::Two => {
                self.set("memory.max", &memory)?;
                let _ = self.set("memory.swap.max", "0");
                self.set("cpu.max", &format!("{quota} {CPU_PERIOD_US}"))?;
            }
        }
        self.set("pids.max", &processes)
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.find(file)?, value)
    }

    /// Returns the path of `file` in the controller that has it.
    fn find(&self, file: &str) -> io::Result<PathBuf> {
        let mut paths = self.folders.iter().map(|folder| folder.join(file));
        paths
            .find(|path| path.exists())
            .ok_or_else(|| io::Error::other(format!("no control group has `{file}`")))
    }

    /// Returns the memory limit, if the kernel killed a process for exceeding it.
    pub(in crate::bubblewrap) fn memory_exceeded(&self) -> Option<u64> {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.find(file).ok()?).ok()?;
        let killed = text
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "))?;
        (killed.trim() != "0").then_some(self.memory_bytes)
    }

    /// Returns the file that freezes the whole group; `None` on version 1, which has a separate controller
    /// for that. Frozen processes can still be killed.
    pub(in crate::bubblewrap) fn freezer(&self) -> Option<PathBuf> {
        self.find("cgroup.freeze").ok()
    }

    /// Removes the group after its processes have ended.
    pub(in crate::bubblewrap) async fn remove(self) {
        for folder in &self.folders {
            remove(folder).await;
        }
    }
}

impl Drop for Cgroup {
    /// Cleans up after cancelled starts; has no effect if the folders are already removed.
    fn drop(&mut self) {
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes a group, with retries: `rmdir` reports "busy" for a moment after the last process ended.
async fn remove(folder: &Path) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match fs::remove_dir(folder) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) if Instant::now() > deadline => {
                warn!(path = %folder.display(), %error, "Leave a control group behind");
                return;
            }
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn kill_all(folder: &Path) -> usize {
    let mut killed = std::collections::BTreeSet::new();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let members = members(folder);
        if members.is_empty() || Instant::now() > deadline {
            return killed.len();
        }
        for pid in members {
            // Membership is checked again once the descriptor is open: the process number may have been
            // reused before.
            if let Some(number) = Pid::from_raw(pid)
                && let Ok(process) = pidfd_open(number, PidfdFlags::empty())
                && self::members(folder).contains(&pid)
                && pidfd_send_signal(&process, Signal::KILL).is_ok()
            {
                killed.insert(pid);
            }
        }
        sleep(Duration::from_millis(5)).await;
    }
}

fn members(folder: &Path) -> Vec<i32> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_one_has_a_folder_per_controller() {
        let mounts = "cgroup /nowhere/cpu cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /nowhere/memory cgroup rw,memory 0 0\n\
                      cgroup /nowhere/pids cgroup rw,pids 0 0\n\
                      cgroup2 /nowhere/unified cgroup2 rw 0 0\n";
        let own = "3:pids:/x\n2:memory:/y\n1:cpu,cpuacct:/z\n0::/\n";
        let expected = ["/nowhere/memory", "/nowhere/cpu", "/nowhere/pids"].map(PathBuf::from);
        assert_eq!(places(mounts, own), Some((Version::One, expected.to_vec())));
    }

    #[test]
    fn version_two_has_one_folder() {
        let mounts = "cgroup2 /nowhere cgroup2 rw,nsdelegate 0 0\n";
        let found = places(mounts, "0::/system.slice/sepal.service\n");
        assert_eq!(found, Some((Version::Two, vec![PathBuf::from("/nowhere")])));
        assert_eq!(places("", "0::/\n"), None);
    }

    /// A plain folder replaces the file system of version 2, which this machine may not have.
    #[test]
    fn version_two_is_given_the_limits() {
        let home = tempfile::tempdir().unwrap();
        let group = Cgroup {
            version: Version::Two,
            folders: vec![home.path().to_owned()],
            memory_bytes: 7,
        };
        for file in ["memory.max", "memory.swap.max", "cpu.max", "pids.max"] {
            fs::write(home.path().join(file), "").unwrap();
        }
        group.limit(&Bounds::default()).unwrap();
        let value = |file| fs::read_to_string(home.path().join(file)).unwrap();
        assert_eq!(value("memory.max"), (512 << 20).to_string());
        assert_eq!(value("memory.swap.max"), "0");
        assert_eq!(value("cpu.max"), "50000 100000");
        assert_eq!(value("pids.max"), "128");
        fs::write(home.path().join("memory.events"), "oom 3\noom_kill 0\n").unwrap();
        assert_eq!(group.memory_exceeded(), None);
        fs::write(home.path().join("memory.events"), "oom 3\noom_kill 2\n").unwrap();
        assert_eq!(group.memory_exceeded(), Some(7));
        assert_eq!(group.freezer(), None);
        fs::write(home.path().join("cgroup.freeze"), "0\n").unwrap();
        assert_eq!(group.freezer(), Some(home.path().join("cgroup.freeze")));
    }
}
