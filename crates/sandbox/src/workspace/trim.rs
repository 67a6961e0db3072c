//! Shrinks a workspace that grew beyond its ceiling before its sandbox was ended.
//!
//! The watch measures at intervals, and a disk is fast. What was written in between would stay, and the disk
//! is shared. So what exceeds [`ceiling`] once its sandbox has ended is deleted.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString},
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, Stat, open, statat, unlinkat},
    io::Errno,
};

use super::{FOLDER, MAX_DEPTH, Size, empty_tree, enter, entry_bytes, is_self_or_parent, measure};

/// Returns the most bytes that a workspace with that limit keeps. Between limit and ceiling, files may be
/// read and deleted.
pub(crate) fn ceiling(limit: u64) -> u64 {
    limit.saturating_mul(2)
}

/// If the workspace at `path` exceeds its ceiling, deletes the most recently changed files, by whole seconds,
/// until it is within `limit`; if it is nested too deep, deletes the folders that are too deep. Returns true
/// if it had to trim. Programs may still run: links are not followed.
pub(crate) fn trim(path: &Path, limit: u64) -> Result<bool, Errno> {
    let found = measure(path, ceiling(limit))?;
    if matches!(found, Size::Bytes(size) if size <= ceiling(limit)) {
        return Ok(false);
    }
    let mut ages = Ages::default();
    walk(path, &mut ages)?;
    if let Some(since) = ages.since(limit) {
        walk(path, &mut Newest { since })?;
    }
    Ok(true)
}

/// The action at each entry of a tree.
trait Visit {
    /// Called for an entry before its content.
    fn see(&mut self, folder: BorrowedFd<'_>, name: &CStr, found: &Stat) -> Result<(), Errno>;

    /// Called after the content of a folder; `found` is the folder's state before.
    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr, found: &Stat);
}

/// A folder that is being walked through.
struct Level {
    dir: Dir,
    /// The name and the initial state of the folder; `None` at the root.
    known: Option<(CString, Stat)>,
}

/// Walks through everything below `path`. Folders that are nested too deep are deleted: measuring would fail
/// there.
fn walk(path: &Path, visitor: &mut impl Visit) -> Result<(), Errno> {
    let mut levels = vec![Level {
        dir: Dir::new(open(path, FOLDER, Mode::empty())?)?,
        known: None,
    }];
    while let Some(level) = levels.last_mut() {
        let Some(entry) = level.dir.read() else {
            let known = levels.pop().and_then(|level| level.known);
            if let (Some((name, found)), Some(parent)) = (known, levels.last()) {
                visitor.leave(parent.dir.fd()?, &name, &found);
            }
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if is_self_or_parent(name) {
            continue;
        }
        let folder = level.dir.fd()?;
        // The entry may vanish meanwhile.
        let Ok(found) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        let inner = is_folder.then(|| enter(folder, name));
        if let Some(Ok(inner)) = &inner
            && levels.len() == MAX_DEPTH
        {
            remove_folder(levels.last(), name, inner)?;
            continue;
        }
        if let Some(level) = levels.last() {
            visitor.see(level.dir.fd()?, name, &found)?;
        }
        if let Some(Ok(inner)) = inner {
            levels.push(Level {
                dir: Dir::new(inner)?,
                known: Some((name.to_owned(), found)),
            });
        }
    }
    Ok(())
}

fn remove_folder(parent: Option<&Level>, name: &CStr, folder: &OwnedFd) -> Result<(), Errno> {
    empty_tree(folder)?;
    match parent {
        Some(parent) => unlinkat(parent.dir.fd()?, name, AtFlags::REMOVEDIR),
        None => Ok(()),
    }
}

/// The bytes that were last changed in each second.
#[derive(Default)]
struct Ages(BTreeMap<i64, u64>);

impl Ages {
    /// Returns the first second from which on the sum exceeds `limit`; `None` if it does not.
    fn since(&self, limit: u64) -> Option<i64> {
        let mut bytes = 0_u64;
        for (second, changed) in &self.0 {
            bytes = bytes.saturating_add(*changed);
            if bytes > limit {
                return Some(*second);
            }
        }
        None
    }
}

impl Visit for Ages {
    fn see(&mut self, _folder: BorrowedFd<'_>, _name: &CStr, found: &Stat) -> Result<(), Errno> {
        let blocks = u64::try_from(found.st_blocks).unwrap_or_default();
        let changed = self.0.entry(found.st_ctime).or_default();
        *changed = changed.saturating_add(entry_bytes(blocks));
        Ok(())
    }

    fn leave(&mut self, _parent: BorrowedFd<'_>, _name: &CStr, _found: &Stat) {}
}

/// Deletes what was changed since that second. Only the kernel sets the change time.
struct Newest {
    since: i64,
}

impl Visit for Newest {
    fn see(&mut self, folder: BorrowedFd<'_>, name: &CStr, found: &Stat) -> Result<(), Errno> {
        let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if is_folder || found.st_ctime < self.since {
            return Ok(());
        }
        match unlinkat(folder, name, AtFlags::empty()) {
            // The entry is gone, or became a folder.
            Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
            removed => removed,
        }
    }

    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr, found: &Stat) {
        if found.st_ctime >= self.since {
            // Older files may be left in the folder.
            let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::fs::{mkdirat, openat};

    use super::*;

    /// Waits until the file system's clock shows a later second than the file's.
    fn next_second(folder: &Path, last: &str) {
        let changed = |name: &str| rustix::fs::lstat(folder.join(name)).unwrap().st_ctime;
        let deadline = Instant::now() + Duration::from_secs(10);
        let probe = folder.join("probe");
        loop {
            std::fs::write(&probe, "").unwrap();
            if changed("probe") > changed(last) {
                break;
            }
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
        std::fs::remove_file(probe).unwrap();
    }

    #[test]
    fn what_is_above_the_ceiling_goes_the_newest_first() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("workspace");
        std::fs::create_dir_all(path.join("kept")).unwrap();
        std::fs::write(home.path().join("outside"), "x").unwrap();
        std::fs::write(path.join("kept/file"), vec![1; 600 << 10]).unwrap();
        next_second(&path, "kept/file");
        let limit = 1 << 20;
        std::fs::write(path.join("more"), vec![1; 1 << 20]).unwrap();
        assert_eq!(trim(&path, limit), Ok(false), "it is within the ceiling");
        assert!(path.join("more").exists());
        std::fs::create_dir_all(path.join("new/inner")).unwrap();
        std::fs::write(path.join("new/inner/file"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink(home.path(), path.join("new/out")).unwrap();
        assert_eq!(trim(&path, limit), Ok(true));
        assert!(path.join("kept/file").exists());
        assert!(!path.join("new").exists() && !path.join("more").exists());
        assert!(home.path().join("outside").exists());
        assert_eq!(trim(&path, limit), Ok(false), "once is enough");
    }

    #[test]
    fn many_empty_folders_go_too() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..300 {
            std::fs::create_dir_all(home.path().join(format!("{number}/a"))).unwrap();
        }
        let limit = 64 << 10;
        assert_eq!(trim(home.path(), limit), Ok(true));
        let left = measure(home.path(), u64::MAX);
        assert!(
            matches!(left, Ok(Size::Bytes(size)) if size <= limit),
            "{left:?}"
        );
    }

    #[test]
    fn what_is_nested_too_deep_goes_and_the_rest_stays() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("file"), "x").unwrap();
        let mut folder = open(home.path(), FOLDER, Mode::empty()).unwrap();
        for _ in 0..1_000 {
            mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
        assert_eq!(measure(home.path(), u64::MAX), Ok(Size::Uncountable));
        assert_eq!(trim(home.path(), 1 << 30), Ok(true));
        let left = measure(home.path(), u64::MAX);
        assert!(matches!(left, Ok(Size::Bytes(_))), "{left:?}");
        assert!(home.path().join("file").exists());
        assert!(home.path().join("d/d/d").exists());
    }
}
