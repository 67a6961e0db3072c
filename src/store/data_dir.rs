//! The data folder: private to its user, and one server's at a time.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Error;

const LOCK_FILE: &str = "lock";

/// Who holds a data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Where it listens, once it said so.
    pub address: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, &self.address) {
            (0, _) => f.write_str("another server"),
            (pid, None) => write!(f, "the server with process id {pid}"),
            (pid, Some(address)) => {
                write!(f, "the server with process id {pid} at {address}")
            }
        }
    }
}

/// A data folder. While a clone of a locked one lives and it was not released, no second server
/// starts on it.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
    /// Never held across an await. `None` for a program beside the server.
    lock: Option<Arc<Mutex<File>>>,
}

impl DataDir {
    /// Opens the folder for the server; a second one is refused and told the holder.
    pub fn lock(path: &Path) -> Result<Self, Error> {
        create(path)?;
        let file = open_private(&path.join(LOCK_FILE))?;
        match try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked {
                    what: "data folder",
                    path: path.to_owned(),
                    holder: read_holder(file),
                });
            }
            Err(TryLockError::Error(error)) => {
                return Err(Error::unusable(path, "it cannot be locked", error));
            }
        }
        let dir = Self {
            path: path.to_owned(),
            lock: Some(Arc::new(Mutex::new(file))),
        };
        dir.write_holder(None)?;
        Ok(dir)
    }

    /// Opens the folder for a command that works beside the server.
    pub fn open_beside(path: &Path) -> Result<Self, Error> {
        create(path)?;
        Ok(Self {
            path: path.to_owned(),
            lock: None,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says where the server listens, for the message to a second one and for `sepal link`.
    pub fn announce(&self, address: &str) -> Result<(), Error> {
        self.write_holder(Some(address))
    }

    /// The server that holds the folder now, if one does.
    pub fn holder(&self) -> Option<Holder> {
        if self.lock.is_some() {
            return None;
        }
        let file = File::open(self.path.join(LOCK_FILE)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(read_holder(file)),
            // Closing the file gives the shared lock back.
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }

    /// Writes a file that only its user reads, whole or not at all.
    pub fn write_private(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let (target, draft) = (self.path.join(name), self.path.join(format!(".{name}.new")));
        let write = || {
            let mut file = private().truncate(true).open(&draft)?;
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(content)?;
            file.sync_all()?;
            fs::rename(&draft, &target)
        };
        write().map_err(|error| Error::unusable(&target, "it cannot be written", error))
    }

    /// Removes a file of the folder; a missing one is fine.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let target = self.path.join(name);
        match fs::remove_file(&target) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::unusable(target, "it cannot be removed", error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn write_holder(&self, address: Option<&str>) -> Result<(), Error> {
        let Some(lock) = &self.lock else {
            return Ok(());
        };
        let mut file = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{} {}", std::process::id(), address.unwrap_or("-"))
        };
        write(&mut file).map_err(|error| Error::unusable(&self.path, "it cannot be written", error))
    }
}

/// Creates an empty file that only its user reads, or closes an existing one to others.
pub(super) fn touch_private(path: &Path) -> Result<(), Error> {
    let file = open_private(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))
        .map_err(|error| Error::unusable(path, "it cannot be made private", error))
}

fn create(path: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| Error::unusable(path, "the folder cannot be created", error))
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    options
}

fn open_private(path: &Path) -> Result<File, Error> {
    private()
        .open(path)
        .map_err(|error| Error::unusable(path, "it cannot be opened", error))
}

impl DataDir {
    /// Gives the lock back, for all clones. To be called when nothing can be written any more.
    pub(super) fn release(&self) {
        let Some(lock) = &self.lock else { return };
        let file = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.unlock() {
            tracing::warn!(%error, "The data folder was not unlocked; it is when this process ends");
        }
    }
}

/// Tries for a moment: a command beside the server looks at the lock by sharing it for an instant.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..4 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            answer => return answer,
        }
    }
    file.try_lock()
}

/// What the lock file says; a holder that is just starting may not have written yet.
fn read_holder(mut file: File) -> Holder {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    let mut words = text.split_whitespace();
    Holder {
        pid: words.next().and_then(|pid| pid.parse().ok()).unwrap_or(0),
        address: words.next().filter(|a| *a != "-").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::DataDir;

    #[test]
    fn a_second_server_is_told_who_holds_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("data");
        let first = DataDir::lock(&path).unwrap();
        let beside = DataDir::open_beside(&path).unwrap();
        first.announce("127.0.0.1:3000").unwrap();
        let refusal = DataDir::lock(&path).unwrap_err().to_string();
        let pid = std::process::id();
        assert_eq!(
            refusal,
            format!(
                "data folder `{}` is in use by the server with process id {pid} at 127.0.0.1:3000",
                path.display()
            )
        );
        assert_eq!(beside.holder().unwrap().pid, pid);
        drop(first);
        assert_eq!(beside.holder(), None);
        let second = DataDir::lock(&path).unwrap();
        // Somebody who holds on to a closed store keeps nobody out.
        let straggler = second.clone();
        second.release();
        DataDir::lock(&path).unwrap();
        drop(straggler);
    }

    #[test]
    fn folder_and_files_are_private() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/data");
        let dir = DataDir::lock(&path).unwrap();
        dir.write_private("setup-link", b"one").unwrap();
        dir.write_private("setup-link", b"two").unwrap();
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&path.join("lock")), 0o600);
        assert_eq!(mode(&path.join("setup-link")), 0o600);
        assert_eq!(fs::read(path.join("setup-link")).unwrap(), b"two");
        dir.remove("setup-link").unwrap();
        dir.remove("setup-link").unwrap();
    }
}
