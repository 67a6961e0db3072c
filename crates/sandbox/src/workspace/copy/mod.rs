//! Copies a workspace without trusting its content: its commands may go on running meanwhile.
//!
//! Files share their blocks with the originals if the file system supports that (`FICLONE` on Btrfs, XFS and
//! others); otherwise they are written anew, with their holes. Links are copied as links and never followed.
//! Sockets and devices are left out: sockets are useless without their program, and no sandbox can create
//! devices.

#[cfg(test)]
mod tests;

use std::{
    cell::Cell,
    ffi::CStr,
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::FileExt as _,
    },
    path::Path,
    sync::LazyLock,
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid,
        chmod, chownat, fchmod, fchown, fstat, ftruncate, futimens, ioctl_ficlone, mkdirat,
        mknodat, open, openat, readlinkat, seek, statat, symlinkat, utimensat,
    },
    io::Errno,
    process::geteuid,
};

use super::{FOLDER, MAX_DEPTH, Size, enter, entry_bytes, is_self_or_parent, measure};
use crate::runtime::copying::{CopyResult, CopyWatch};
use sepal_jobs::Pool;

/// Limits the copies that are made at the same time, by any method; others wait.
pub(crate) static COPIES: LazyLock<Pool> = LazyLock::new(|| Pool::new("copies of workspaces", 2));
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;
/// The unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;
/// The flags for opening a file whose type is uncertain.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);
const WRITE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Copies the content of one folder of this machine into another, which exists and is empty. The caller has
/// to remove the target unless the result is [`CopyResult::Whole`].
pub(crate) async fn copy(
    from: std::path::PathBuf,
    to: std::path::PathBuf,
    limit: u64,
    watch: CopyWatch,
) -> io::Result<CopyResult> {
    let copying = COPIES.run(move || copy_tree(&from, &to, limit, &watch));
    Ok(copying.await.map_err(io::Error::other)??)
}

fn copy_tree(from: &Path, to: &Path, limit: u64, watch: &CopyWatch) -> Result<CopyResult, Errno> {
    let root = match open(from, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(CopyResult::Missing),
        opened => opened?,
    };
    match measure(from, limit)? {
        Size::Bytes(bytes) if bytes <= limit => {}
        Size::Bytes(_) | Size::Uncountable => return Ok(CopyResult::TooLarge),
    }
    let to = open(to, FOLDER, Mode::empty())?;
    let copying = Copying {
        limit,
        watch,
        owner: owner(&to)?,
        may_share: Cell::new(true),
    };
    if copying.run(root, to)? {
        return Ok(CopyResult::Whole(watch.bytes()));
    }
    Ok(CopyResult::TooLarge)
}

/// A folder whose entries are being copied.
struct Level {
    from: Dir,
    to: OwnedFd,
    /// The folder's initial state.
    found: Stat,
}

/// The owner of copied files.
enum Owner {
    /// The owner of the target folder.
    OfFolder(Uid, Gid),
    /// The owner in the source: a new volume still belongs to root.
    First,
    /// The gateway's own user, because only root may give files to others.
    Ourselves,
}

fn owner(to: &OwnedFd) -> Result<Owner, Errno> {
    if !geteuid().is_root() {
        return Ok(Owner::Ourselves);
    }
    let found = fstat(to)?;
    Ok(match found.st_uid {
        0 => Owner::First,
        user => Owner::OfFolder(Uid::from_raw(user), Gid::from_raw(found.st_gid)),
    })
}

struct Copying<'a> {
    limit: u64,
    watch: &'a CopyWatch,
    owner: Owner,
    /// True until the file system is known not to support shared blocks.
    may_share: Cell<bool>,
}

impl Copying<'_> {
    /// Returns true if everything fitted: a program may have written meanwhile.
    fn run(&self, from: OwnedFd, to: OwnedFd) -> Result<bool, Errno> {
        let mut levels = vec![Level::of(from, to)?];
        while let Some(level) = levels.last_mut() {
            if self.watch.is_stopped() {
                return Err(Errno::CANCELED);
            }
            let Some(entry) = level.from.read() else {
                if let Some(done) = levels.pop() {
                    self.dress(done.to.as_fd(), &done.found)?;
                }
                continue;
            };
            let entry = entry?;
            let name = entry.file_name();
            if is_self_or_parent(name) {
                continue;
            }
            match self.copy_entry(level, name) {
                Ok(Some(_)) if levels.len() == MAX_DEPTH => return Ok(false),
                Ok(Some(inner)) => levels.push(inner),
                // Or a program removed the entry, or replaced it.
                Ok(None) | Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::NXIO) => {}
                Err(Errno::FBIG) => return Ok(false),
                Err(error) => return Err(error),
            }
            if self.watch.bytes() > self.limit {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies one entry; returns a folder, whose entries have to be copied next.
    fn copy_entry(&self, level: &Level, name: &CStr) -> Result<Option<Level>, Errno> {
        let folder = level.from.fd()?;
        let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let to = level.to.as_fd();
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                let from = enter(folder, name)?;
                mkdirat(to, name, Mode::RWXU)?;
                let made = openat(to, name, FOLDER, Mode::empty())?;
                self.count(0);
                return Ok(Some(Level {
                    from: Dir::new(from)?,
                    to: made,
                    found,
                }));
            }
            FileType::RegularFile => self.copy_file(folder, to, name)?,
            FileType::Symlink => {
                let target = readlinkat(folder, name, Vec::new())?;
                symlinkat(&target, to, name)?;
                self.count(found.st_blocks);
                self.dress_unopened(to, name, &found)?;
            }
            FileType::Fifo => {
                mknodat(to, name, FileType::Fifo, mode(&found), 0)?;
                self.count(0);
                self.dress_unopened(to, name, &found)?;
            }
            FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {}
        }
        Ok(None)
    }

    fn copy_file(
        &self,
        folder: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<(), Errno> {
        let from = open_file(folder, name)?;
        let found = fstat(&from)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        let made = openat(to, name, WRITE, Mode::RUSR | Mode::WUSR)?;
        if self.shares_blocks(&from, &made) {
            self.count(found.st_blocks);
        } else {
            self.count(0);
            let (from, made) = (File::from(from), File::from(made));
            self.copy_content(&from, &made, &found)?;
            return self.dress(made.as_fd(), &found);
        }
        self.dress(made.as_fd(), &found)
    }

    /// Lets both files share their blocks; if the file system does not support that, it is not tried again.
    fn shares_blocks(&self, from: &OwnedFd, made: &OwnedFd) -> bool {
        if !self.may_share.get() {
            return false;
        }
        let shared = ioctl_ficlone(made, from);
        if matches!(shared, Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::NOTTY)) {
            self.may_share.set(false);
        }
        shared.is_ok()
    }

    /// Writes the content anew, with its holes.
    fn copy_content(&self, from: &File, made: &File, found: &Stat) -> Result<(), Errno> {
        let size = u64::try_from(found.st_size).unwrap_or_default();
        let most = usize::try_from(size).unwrap_or(BUFFER_BYTES);
        let mut buffer = vec![0; most.min(BUFFER_BYTES)];
        // Small files are numerous: files without holes skip the search for holes.
        let has_holes = u64::try_from(found.st_blocks).unwrap_or_default() * BLOCK_BYTES < size;
        let mut at = 0;
        while at < size {
            if !has_holes {
                at = self.copy_part(from, made, &mut buffer, at, size)?;
                continue;
            }
            let data = match seek(from, SeekFrom::Data(at)) {
                Ok(data) => data,
                // Only a hole is left.
                Err(Errno::NXIO) => break,
                // The file system does not report holes.
                Err(_) => at,
            };
            let end = seek(from, SeekFrom::Hole(data)).unwrap_or(size).min(size);
            at = data;
            while at < end {
                at = self.copy_part(from, made, &mut buffer, at, end)?;
            }
        }
        ftruncate(made, size)
    }

    /// Copies as much of the range as fits into the buffer. Returns the next position, which is far past the
    /// end for a file that was truncated.
    fn copy_part(
        &self,
        from: &File,
        made: &File,
        buffer: &mut [u8],
        at: u64,
        end: u64,
    ) -> Result<u64, Errno> {
        if self.watch.is_stopped() {
            return Err(Errno::CANCELED);
        }
        let room = usize::try_from(end - at).unwrap_or(usize::MAX);
        let room = room.min(buffer.len());
        let part = buffer.get_mut(..room).unwrap_or_default();
        let read = from.read_at(part, at).map_err(|error| errno(&error))?;
        let Some(part) = part.get(..read).filter(|part| !part.is_empty()) else {
            // The file was truncated meanwhile.
            return Ok(u64::MAX);
        };
        made.write_all_at(part, at).map_err(|error| errno(&error))?;
        if self.watch.add(read as u64) > self.limit {
            return Err(Errno::FBIG);
        }
        Ok(at + read as u64)
    }

    /// Counts an entry of that many blocks, by the rule of the limit.
    fn count(&self, blocks: i64) {
        let blocks = u64::try_from(blocks).unwrap_or_default();
        self.watch.add(entry_bytes(blocks));
    }

    /// Returns the owner of a copy; `None` = it stays ours.
    fn owner_of(&self, found: &Stat) -> Option<(Uid, Gid)> {
        match self.owner {
            Owner::OfFolder(user, group) => Some((user, group)),
            Owner::First => Some((Uid::from_raw(found.st_uid), Gid::from_raw(found.st_gid))),
            Owner::Ourselves => None,
        }
    }

    /// Sets owner, mode and times, in this order: changing the owner clears parts of the mode.
    fn dress(&self, made: BorrowedFd<'_>, found: &Stat) -> Result<(), Errno> {
        if let Some((user, group)) = self.owner_of(found) {
            fchown(made, Some(user), Some(group))?;
        }
        fchmod(made, mode(found))?;
        futimens(made, &times(found))
    }

    /// Does the same for an entry that cannot be opened.
    fn dress_unopened(&self, to: BorrowedFd<'_>, name: &CStr, found: &Stat) -> Result<(), Errno> {
        if let Some((user, group)) = self.owner_of(found) {
            chownat(to, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        utimensat(to, name, &times(found), AtFlags::SYMLINK_NOFOLLOW)
    }
}

impl Level {
    fn of(from: OwnedFd, to: OwnedFd) -> Result<Self, Errno> {
        let found = fstat(&from)?;
        Ok(Self {
            from: Dir::new(from)?,
            to,
            found,
        })
    }
}

/// Opens a file for reading. A file that is closed even to its owner is made readable for a moment; the
/// descriptor ensures that nothing else is changed.
fn open_file(folder: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let opened = openat(folder, name, READ, Mode::empty());
    if !matches!(opened, Err(Errno::ACCESS)) {
        return opened;
    }
    let handle = openat(
        folder,
        name,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let found = fstat(&handle)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(Errno::LOOP);
    }
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    chmod(&path, mode(&found) | Mode::RUSR)?;
    let opened = open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    chmod(&path, mode(&found))?;
    opened
}

fn mode(found: &Stat) -> Mode {
    Mode::from_raw_mode(found.st_mode)
}

fn times(found: &Stat) -> Timestamps {
    let time = |seconds, nanoseconds: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or_default(),
    };
    Timestamps {
        last_access: time(found.st_atime, found.st_atime_nsec),
        last_modification: time(found.st_mtime, found.st_mtime_nsec),
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
