//! Sets project quotas, if the file system of the workspaces enforces them (`prjquota`, on XFS and ext4): the
//! kernel then limits each workspace, however fast it is written to.
//!
//! The quota is the ceiling of a workspace, twice its limit: between both, the watch ends sandboxes that grow
//! the workspace and lets people clear up, as it does everywhere. The system calls that set a quota need
//! `unsafe`, so the system's own programs do it.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{major, minor};
use tokio::process::Command;

use crate::workspace::{entry_bytes, trim};

/// The folders of the system's programs.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Our project numbers have the highest bit set: tools that assign numbers begin at 1.
const OURS: u64 = 1 << 31;

/// A file system that enforces project quotas.
#[derive(Debug)]
pub(in crate::bubblewrap) struct ProjectQuota {
    mount: PathBuf,
    /// The program of e2fsprogs that assigns a folder to a project.
    chattr: PathBuf,
    /// The program of quota that sets a project's limits.
    setquota: PathBuf,
}

impl ProjectQuota {
    /// Returns the quotas of the file system of `workspaces`, after a trial; `None` if quotas are not in
    /// force, a program is missing, or we are not root.
    pub(in crate::bubblewrap) async fn find(workspaces: &Path) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let device = fs::metadata(workspaces).ok()?.dev();
        let mount = mount_with_quotas(&mounts, (major(device), minor(device)))?;
        let found = Self {
            mount,
            chattr: program("chattr")?,
            setquota: program("setquota")?,
        };
        let trial = workspaces.join("quota-trial");
        let tried = async {
            fs::create_dir_all(&trial)?;
            found.hold(&trial, 1 << 20).await
        };
        let tried = tried.await;
        // The folder is empty and otherwise unused.
        let _ = fs::remove_dir(&trial);
        match tried {
            Ok(()) => Some(found),
            Err(error) => {
                tracing::warn!(%error, "Project quotas are in force but cannot be set");
                None
            }
        }
    }

    /// Limits what is created in the folder from now on to the ceiling of `limit` bytes.
    pub(in crate::bubblewrap) async fn hold(&self, workspace: &Path, limit: u64) -> io::Result<()> {
        let project = project_of(fs::metadata(workspace)?.ino()).to_string();
        // `+P`: new entries of the folder belong to the same project.
        let mut mark = Command::new(&self.chattr);
        mark.args(["-p", &project, "+P", "--"]).arg(workspace);
        run(mark).await?;
        let most = trim::ceiling(limit);
        let kibibytes = (most >> 10).to_string();
        let files = (most / entry_bytes(0)).to_string();
        let mut set = Command::new(&self.setquota);
        set.args(["-P", &project, "0", &kibibytes, "0", &files])
            .arg(&self.mount);
        run(set).await
    }
}

/// Returns a project number that no other folder of the file system has.
fn project_of(inode: u64) -> u64 {
    OURS | (inode & (OURS - 1))
}

async fn run(mut command: Command) -> io::Result<()> {
    let told = command.env_clear().kill_on_drop(true).output().await?;
    if told.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&told.stderr);
    let program = command.as_std().get_program().display().to_string();
    Err(io::Error::other(format!("{program}: {}", said.trim())))
}

fn program(name: &str) -> Option<PathBuf> {
    let paths = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    paths.into_iter().find(|path| path.is_file())
}

/// Finds the mount point of a device with project quotas in force (`man 5 proc_pid_mountinfo`).
fn mount_with_quotas(mounts: &str, device: (u32, u32)) -> Option<PathBuf> {
    let device = format!("{}:{}", device.0, device.1);
    mounts.lines().find_map(|line| {
        let (about, file_system) = line.split_once(" - ")?;
        let mut fields = about.split(' ').skip(2);
        let (of, _root, at) = (fields.next()?, fields.next()?, fields.next()?);
        let options = file_system.split(' ').nth(2)?;
        let has_quotas = options
            .split(',')
            .any(|it| matches!(it, "prjquota" | "pquota"));
        (of == device && has_quotas).then(|| PathBuf::from(unescaped(at)))
    })
}

/// Decodes octal escapes such as `\040` for a space.
fn unescaped(field: &str) -> String {
    let mut text = String::new();
    let mut parts = field.split('\\');
    text.extend(parts.next());
    for part in parts {
        let letter = part.get(..3).and_then(|it| u8::from_str_radix(it, 8).ok());
        match letter {
            Some(letter) => {
                text.push(char::from(letter));
                text.extend(part.get(3..));
            }
            None => text.extend(["\\", part]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_mount_with_quotas_is_found_by_its_device() {
        let mounts = "22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/a rw,discard\n\
                      36 22 259:2 / /srv/my\\040data rw - xfs /dev/b rw,attr2,prjquota\n\
                      37 22 259:3 / /x rw shared:2 master:1 - ext4 /dev/c rw,usrquota,prjquota\n";
        let found = |device| mount_with_quotas(mounts, device);
        assert_eq!(found((259, 1)), None, "it has none in force");
        assert_eq!(found((259, 2)), Some(PathBuf::from("/srv/my data")));
        assert_eq!(found((259, 3)), Some(PathBuf::from("/x")));
        assert_eq!(found((8, 1)), None);
    }

    #[test]
    fn projects_are_ours_and_differ() {
        assert_eq!(project_of(5), (1 << 31) | 5);
        assert_ne!(project_of(5), project_of(6));
        assert!(u32::try_from(project_of(u64::MAX)).is_ok());
    }

    /// Creates stubs for the two programs, which few machines have installed: they record their arguments,
    /// and the second one can fail.
    fn stand_ins(home: &Path, refusal: &str) -> ProjectQuota {
        let program = |name: &str, rest: &str| {
            let path = home.join(name);
            let asked = home.join("asked").display().to_string();
            let script = format!("#!/bin/sh\necho {name} \"$@\" >> '{asked}'\n{rest}\n");
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        ProjectQuota {
            mount: PathBuf::from("/srv"),
            chattr: program("chattr", ""),
            setquota: program("setquota", refusal),
        }
    }

    #[tokio::test]
    async fn the_folder_gets_a_project_and_the_project_the_ceiling() {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let quota = stand_ins(home.path(), "");
        quota.hold(&workspace, 64 << 20).await.unwrap();
        let project = project_of(fs::metadata(&workspace).unwrap().ino());
        let asked = fs::read_to_string(home.path().join("asked")).unwrap();
        let folder = workspace.display();
        let expected = format!(
            "chattr -p {project} +P -- {folder}\nsetquota -P {project} 0 131072 0 262144 /srv\n"
        );
        assert_eq!(asked, expected);
    }

    #[tokio::test]
    async fn what_a_program_refuses_is_said() {
        let home = tempfile::tempdir().unwrap();
        let quota = stand_ins(home.path(), "echo no quota here >&2; exit 2");
        let error = quota.hold(home.path(), 1 << 20).await.unwrap_err();
        assert!(
            error.to_string().ends_with("setquota: no quota here"),
            "{error}"
        );
    }
}
