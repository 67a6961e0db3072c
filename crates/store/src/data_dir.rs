//! Manages the data folder, which is private to its user and used by one server at a time.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Error;

const LOCK_FILE: &str = "lock";

/// The server that holds the lock of a data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// The address at which the server listens, once it has announced it.
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

/// A data folder. While a clone of a locked one exists and the lock was not released, no second server can
/// start on the folder.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
    /// The locked file, never kept locked across an await. `None` for a program that runs beside the server.
    lock: Option<Arc<HeldLock>>,
}

/// The locked file of a data folder.
#[derive(Debug)]
struct HeldLock(Mutex<File>);

impl Drop for HeldLock {
    /// Closing the file would not suffice: a child process that is just being started has a copy of its
    /// descriptor, and would hold the lock until it runs its program.
    fn drop(&mut self) {
        let file = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = file.unlock();
    }
}

impl DataDir {
    /// Creates and locks the folder for the server. Returns [`Error::Locked`] with the holder if another
    /// server uses it.
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
            lock: Some(Arc::new(HeldLock(Mutex::new(file)))),
        };
        dir.write_holder(None)?;
        Ok(dir)
    }

    /// Opens the folder without a lock, for a command that runs beside the server.
    pub fn open_beside(path: &Path) -> Result<Self, Error> {
        create(path)?;
        Ok(Self {
            path: path.to_owned(),
            lock: None,
        })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records the address at which the server listens, for the error of a second server and for `sepal
    /// link`.
    pub fn announce(&self, address: &str) -> Result<(), Error> {
        self.write_holder(Some(address))
    }

    /// The server that holds the lock, if there is one. Always `None` if this value itself was opened with
    /// [`DataDir::lock`].
    pub fn holder(&self) -> Option<Holder> {
        if self.lock.is_some() {
            return None;
        }
        let file = File::open(self.path.join(LOCK_FILE)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(read_holder(file)),
            // Closing the file releases the shared lock.
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }

    /// Writes a file atomically, readable only by its owner.
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

    /// Removes a file of the folder. Succeeds if the file does not exist.
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
        let mut file = lock.0.lock().unwrap_or_else(PoisonError::into_inner);
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{} {}", std::process::id(), address.unwrap_or("-"))
        };
        write(&mut file).map_err(|error| Error::unusable(&self.path, "it cannot be written", error))
    }
}

/// Creates an empty file that is readable only by its owner, or restricts an existing file to its owner. An
/// existing file is not opened: closing it again would release the locks that this process has on it
/// (`fcntl(2)`), such as those of SQLite.
pub(super) fn touch_private(path: &Path) -> Result<(), Error> {
    match private().create_new(true).open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Error::unusable(path, "it cannot be opened", error)),
    }
    if path.is_dir() {
        let error = io::Error::from(io::ErrorKind::IsADirectory);
        return Err(Error::unusable(path, "it cannot be opened", error));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
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
    /// Releases the lock for all clones. Call this only when nothing writes to the folder any more.
    pub(super) fn release(&self) {
        let Some(lock) = &self.lock else { return };
        let file = lock.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.unlock() {
            tracing::warn!(%error, "The data folder was not unlocked; it is when this process ends");
        }
    }
}

/// Retries for a moment, because [`DataDir::holder`] takes a shared lock for an instant.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..4 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            answer => return answer,
        }
    }
    file.try_lock()
}

/// Parses the lock file. A server that is just starting may not have written it yet.
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
        // A leftover clone of a released folder does not keep a new server out.
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

    #[test]
    fn a_file_is_made_private_and_a_folder_in_its_place_is_left_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (new, old, folder) = ["new", "old", "folder"]
            .map(|name| root.path().join(name))
            .into();
        fs::write(&old, "kept").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o644)).unwrap();
        fs::create_dir(&folder).unwrap();
        let before = mode(&folder);
        super::touch_private(&new).unwrap();
        super::touch_private(&old).unwrap();
        super::touch_private(&folder).unwrap_err();
        assert_eq!(
            (mode(&new), mode(&old), mode(&folder)),
            (0o600, 0o600, before)
        );
        assert_eq!(fs::read(&old).unwrap(), b"kept");
    }
}
