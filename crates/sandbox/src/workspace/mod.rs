//! Manages the workspace folders of sessions: creates, measures and deletes them without trusting their
//! content.
//!
//! Everything below a workspace was written by a model's commands. So nothing here follows a symbolic link,
//! recurses on the stack, or holds more than a fixed number of descriptors.

pub(super) mod copy;
pub(super) mod measure;
pub(super) mod quota;
pub(super) mod reading;
pub(super) mod trim;

use std::{
    ffi::{CStr, CString},
    fs::{DirBuilder, Permissions},
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, chmodat, open, openat, renameat, unlinkat},
    io::Errno,
};

pub(super) use self::measure::{Size, enter, entry_bytes, measure, measure_older};

use super::Error;
use sepal_core::domain::SandboxId;

/// The deepest supported nesting: deeper than that of any project; deeper folders would need too many
/// descriptors.
pub(super) const MAX_DEPTH: usize = 256;
/// The most folders that are open at once while a workspace is deleted.
const MAX_HELD: usize = 128;

/// The first user id of a sandbox: above those of containers, and below those that are negative to some
/// programs (systemd, "Users, Groups, UIDs and GIDs on systemd Systems").
const FIRST_USER: u32 = 0x7000_0000;
/// The number of user ids for sandboxes; two sandboxes may get the same one by chance.
const USERS: u32 = 1 << 24;

/// Returns the user id for the programs of a new sandbox. The kernel counts inotify instances, pipes, pending
/// signals and more for each user, so with one user for all, a sandbox could exhaust the limits of others.
fn user_of(sandbox: &SandboxId) -> u32 {
    let id = sandbox.as_str();
    let random = id.get(id.len().saturating_sub(6)..).unwrap_or_default();
    FIRST_USER + u32::from_str_radix(random, 16).unwrap_or(0) % USERS
}

/// All workspaces of this installation.
#[derive(Debug, Clone)]
pub(super) struct Workspaces {
    folder: PathBuf,
    /// True if each workspace belongs to a user of its own instead of the server's user, which then has to be
    /// root.
    has_users: bool,
}

impl Workspaces {
    pub(super) fn open(folder: PathBuf, has_users: bool) -> Result<Self, Error> {
        let workspaces = Self { folder, has_users };
        private_folder(&workspaces.folder).map_err(|source| workspaces.error(source))?;
        Ok(workspaces)
    }

    /// Returns the folder of all workspaces.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the folder of `sandbox`, whether or not it exists.
    pub(super) fn path(&self, sandbox: &SandboxId) -> PathBuf {
        self.folder.join(sandbox.as_str())
    }

    /// Returns the folder of `sandbox`, and creates it if it is missing. A folder that already has its own
    /// user keeps it, and its owner may always enter it, whatever commands did to its mode.
    pub(super) fn provide(&self, sandbox: &SandboxId) -> Result<PathBuf, Error> {
        let path = self.path(sandbox);
        let provided = || {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&path)?;
            let found = path.metadata()?;
            if found.mode() & 0o700 != 0o700 {
                std::fs::set_permissions(&path, Permissions::from_mode(0o700))?;
            }
            if self.has_users && found.uid() == 0 {
                let user = Some(user_of(sandbox));
                chown(&path, user, user)?;
            }
            Ok(())
        };
        match provided() {
            Ok(()) => Ok(path),
            Err(source) => Err(Error::Workspace { path, source }),
        }
    }

    pub(super) fn all(&self) -> Result<Vec<SandboxId>, Error> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(|source| self.error(source))? {
            let name = entry.map_err(|source| self.error(source))?.file_name();
            found.extend(name.to_str().and_then(SandboxId::parse));
        }
        found.sort();
        Ok(found)
    }

    pub(super) fn remove(&self, sandbox: &SandboxId) -> Result<(), Error> {
        let path = self.path(sandbox);
        match remove_tree(&path) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(Error::Workspace {
                path,
                source: errno.into(),
            }),
        }
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Workspace {
            path: self.folder.clone(),
            source,
        }
    }
}

/// Creates a folder at `path` that only its owner can enter.
fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o700))
}

pub(super) const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::RDONLY)
    .union(OFlags::CLOEXEC);

pub(super) fn is_self_or_parent(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// Deletes `path` and everything in it.
fn remove_tree(path: &Path) -> Result<(), Errno> {
    empty_tree(&open(path, FOLDER, Mode::empty())?)?;
    rustix::fs::rmdir(path)
}

/// Deletes everything in a folder. Folders deeper than [`MAX_HELD`] are first moved up to the root, so that a
/// chain of a million folders needs no stack and few descriptors.
pub(super) fn empty_tree(root: &OwnedFd) -> Result<(), Errno> {
    let mut levels = vec![Level::of(
        CString::default(),
        root.try_clone().map_err(|_| Errno::MFILE)?,
    )?];
    let mut moved = 0_u64;
    let mut depth = 1;
    while let Some(level) = levels.last_mut() {
        match level.empty()? {
            Some((inner, folder)) if depth < MAX_HELD => {
                levels.push(Level::of(inner, folder)?);
                depth += 1;
            }
            Some((inner, _)) => raise(level.dir.fd()?, &inner, root, &mut moved)?,
            None => {
                let name = levels.pop().map(|level| level.name).unwrap_or_default();
                depth -= 1;
                if let Some(parent) = levels.last() {
                    unlinkat(parent.dir.fd()?, &name, AtFlags::REMOVEDIR)?;
                }
            }
        }
    }
    Ok(())
}

/// A folder that is being emptied.
struct Level {
    name: CString,
    dir: Dir,
    /// True if nothing was found since the last rewind.
    is_empty: bool,
}

impl Level {
    fn of(name: CString, folder: OwnedFd) -> Result<Self, Errno> {
        Ok(Self {
            name,
            dir: Dir::new(folder)?,
            is_empty: true,
        })
    }

    /// Deletes files until a folder is found; `None` when nothing is left.
    fn empty(&mut self) -> Result<Option<(CString, OwnedFd)>, Errno> {
        loop {
            let Some(entry) = self.dir.read() else {
                if self.is_empty {
                    return Ok(None);
                }
                self.dir.rewind();
                self.is_empty = true;
                continue;
            };
            let entry = entry?;
            let name = entry.file_name();
            if is_self_or_parent(name) {
                continue;
            }
            self.is_empty = false;
            let folder = self.dir.fd()?;
            match unlinkat(folder, name, AtFlags::empty()) {
                Err(Errno::ISDIR) => {
                    // The folder may be closed to its own owner. It is not a link, and no program is left
                    // that could replace it.
                    let _ = chmodat(folder, name, Mode::RWXU, AtFlags::empty());
                    let inner = openat(folder, name, FOLDER, Mode::empty())?;
                    return Ok(Some((name.to_owned(), inner)));
                }
                removed => removed?,
            }
        }
    }
}

/// Moves a folder to a free name in `root`.
fn raise(
    folder: BorrowedFd<'_>,
    name: &CStr,
    root: &OwnedFd,
    moved: &mut u64,
) -> Result<(), Errno> {
    loop {
        *moved += 1;
        let free = CString::new(format!(".sepal-removed-{moved}")).map_err(|_| Errno::INVAL)?;
        match renameat(folder, name, root, &free) {
            // The session created an entry of that name.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            renamed => return renamed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn workspaces() -> (tempfile::TempDir, Workspaces) {
        let home = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::open(home.path().join("workspaces"), false).unwrap();
        (home, workspaces)
    }

    #[test]
    fn a_workspace_is_private_kept_by_id_and_removed_for_good() {
        let (_home, workspaces) = workspaces();
        let (one, two) = (SandboxId::from_bits(1), SandboxId::from_bits(2));
        let path = workspaces.provide(&one).unwrap();
        workspaces.provide(&two).unwrap();
        std::fs::write(path.join("kept"), "x").unwrap();
        assert_eq!(workspaces.provide(&one).unwrap(), path);
        assert!(path.join("kept").exists());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(workspaces.all().unwrap(), [one.clone(), two.clone()]);
        workspaces.remove(&one).unwrap();
        workspaces.remove(&one).unwrap();
        assert_eq!(workspaces.all().unwrap(), [two]);
    }

    #[test]
    fn sandboxes_have_users_of_their_own() {
        let users = [1, 2, 0xff_ffff, u128::MAX].map(|bits| user_of(&SandboxId::from_bits(bits)));
        assert_eq!(users, [0x7000_0001, 0x7000_0002, 0x70ff_ffff, 0x70ff_ffff]);
    }

    #[test]
    fn removal_follows_no_link_and_survives_what_commands_can_build() {
        let (home, workspaces) = workspaces();
        let sandbox = SandboxId::from_bits(1);
        let path = workspaces.provide(&sandbox).unwrap();
        let outside = home.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("precious"), "x").unwrap();
        symlink(&outside, path.join("out")).unwrap();
        std::fs::create_dir_all(path.join("a/b/c")).unwrap();
        symlink("../../../../outside", path.join("a/b/out")).unwrap();
        std::fs::create_dir(path.join(".sepal-removed-1")).unwrap();
        std::fs::write(path.join(".sepal-removed-1/x"), "x").unwrap();
        std::fs::write(path.join(".sepal-removed-2"), "x").unwrap();
        std::fs::set_permissions(path.join("a/b/c"), Permissions::from_mode(0o000)).unwrap();
        workspaces.remove(&sandbox).unwrap();
        assert!(!path.exists());
        assert!(outside.join("precious").exists());
    }

    /// Makes a chain of `depth` folders, far past the longest path.
    fn dig(path: &Path, depth: usize) {
        let mut folder = open(path, FOLDER, Mode::empty()).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn a_very_deep_chain_is_uncountable_but_can_be_removed() {
        let (_home, workspaces) = workspaces();
        let sandbox = SandboxId::from_bits(1);
        let path = workspaces.provide(&sandbox).unwrap();
        dig(&path, 3_000);
        assert_eq!(measure(&path, u64::MAX), Ok(Size::Uncountable));
        workspaces.remove(&sandbox).unwrap();
        assert!(!path.exists());
    }
}
