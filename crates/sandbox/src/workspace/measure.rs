//! Measures the size of a workspace.

use std::{
    ffi::CStr,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, chmod, open, openat, statat},
    io::Errno,
};

use super::{FOLDER, MAX_DEPTH, is_self_or_parent};

/// The cost of a file beside its content, so that many empty files count too.
const ENTRY_BYTES: u64 = 512;
/// The unit of a file's block count, on any file system.
const BLOCK_BYTES: u64 = 512;

/// The size of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// The size in bytes; counting stops soon after the limit.
    Bytes(u64),
    /// A folder is nested too deep or may not be read.
    Uncountable,
}

/// Measures `path` until the size exceeds `limit`.
pub(crate) fn measure(path: &Path, limit: u64) -> Result<Size, Errno> {
    measure_entries(path, limit, |_| true)
}

/// Does the same for files that were neither created nor changed since `moment`. Folders always count:
/// deleting a file changes its folder without making anything larger.
pub(crate) fn measure_older(path: &Path, limit: u64, moment: SystemTime) -> Result<Size, Errno> {
    let moment = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    measure_entries(path, limit, |found| {
        let seconds = u64::try_from(found.st_ctime).unwrap_or_default();
        let nanoseconds = u32::try_from(found.st_ctime_nsec).unwrap_or_default();
        let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        // Only the kernel sets this time, so no command can make a new file look old.
        is_folder || Duration::new(seconds, nanoseconds) < moment
    })
}

fn measure_entries(path: &Path, limit: u64, counts: impl Fn(&Stat) -> bool) -> Result<Size, Errno> {
    let mut levels = vec![Dir::new(open(path, FOLDER, Mode::empty())?)?];
    let mut bytes = 0_u64;
    while let Some(level) = levels.last_mut() {
        if bytes > limit {
            break;
        }
        let Some(entry) = level.read() else {
            levels.pop();
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if is_self_or_parent(name) {
            continue;
        }
        let folder = level.fd()?;
        // The file may vanish meanwhile.
        let Ok(found) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let blocks = u64::try_from(found.st_blocks).unwrap_or_default();
        if counts(&found) {
            bytes = bytes.saturating_add(entry_bytes(blocks));
        }
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            match enter(folder, name) {
                Ok(_) if levels.len() == MAX_DEPTH => return Ok(Size::Uncountable),
                Ok(inner) => levels.push(Dir::new(inner)?),
                Err(Errno::ACCESS) => return Ok(Size::Uncountable),
                // The folder vanished, or became something else.
                Err(_) => {}
            }
        }
    }
    Ok(Size::Bytes(bytes))
}

/// Returns the bytes that an entry with that many blocks counts.
pub(crate) fn entry_bytes(blocks: u64) -> u64 {
    blocks
        .saturating_mul(BLOCK_BYTES)
        .saturating_add(ENTRY_BYTES)
}

/// Opens a folder to measure it. A folder that is closed even to its owner is made accessible first, because
/// it could hide any amount; the descriptor ensures that nothing else is changed.
pub(crate) fn enter(folder: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let opened = openat(folder, name, FOLDER, Mode::empty());
    if !matches!(opened, Err(Errno::ACCESS)) {
        return opened;
    }
    let handle = openat(folder, name, FOLDER | OFlags::PATH, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    chmod(path, Mode::RWXU)?;
    openat(folder, name, FOLDER, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Bytes that a command wrote before the first measurement do not count as initial content.
    #[test]
    fn what_was_there_before_a_moment_is_told_from_what_came_after_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("workspace");
        std::fs::create_dir(&path).unwrap();
        let bytes = |found| match found {
            Ok(Size::Bytes(bytes)) => bytes,
            other => panic!("{other:?}"),
        };
        let (before, after) = (
            SystemTime::UNIX_EPOCH,
            SystemTime::now() + Duration::from_hours(1),
        );
        std::fs::create_dir(path.join("inner")).unwrap();
        let folder = bytes(measure(&path, u64::MAX));
        std::fs::write(path.join("inner/file"), vec![1; 1 << 20]).unwrap();
        assert!(bytes(measure_older(&path, u64::MAX, after)) > 1 << 20);
        assert_eq!(bytes(measure_older(&path, u64::MAX, before)), folder);
    }

    #[test]
    fn size_counts_content_and_entries_but_not_what_links_point_at() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("workspace");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(home.path().join("big"), vec![1; 1 << 20]).unwrap();
        symlink(home.path().join("big"), path.join("link")).unwrap();
        symlink(home.path(), path.join("folder")).unwrap();
        assert!(matches!(measure(&path, u64::MAX), Ok(Size::Bytes(size)) if size < 1 << 16));
        std::fs::create_dir(path.join("inner")).unwrap();
        std::fs::write(path.join("inner/file"), vec![1; 1 << 20]).unwrap();
        assert!(matches!(measure(&path, u64::MAX), Ok(Size::Bytes(size)) if size > 1 << 20));
        for number in 0..100 {
            std::fs::write(path.join(number.to_string()), "").unwrap();
        }
        assert!(matches!(measure(&path, 40_000), Ok(Size::Bytes(size)) if size > 40_000));
    }
}
