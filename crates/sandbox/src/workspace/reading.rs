//! Lets every user read the packages that were installed in a sandbox: the sandboxes of others mount them.

use std::{
    ffi::CStr,
    fs::{self, Permissions},
    io,
    os::{
        fd::{AsRawFd, BorrowedFd},
        unix::fs::PermissionsExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, chmod, fstat, open, openat, statat},
    io::Errno,
};

use super::{FOLDER, MAX_DEPTH, enter, is_self_or_parent};

/// The mode of the folder itself afterwards, which marks it as done. Its parent folder is closed to everybody
/// but the server.
const OPEN: u32 = 0o755;

/// Lets every user read all files below `folder` and enter all folders, unless that was done before. Follows
/// no links.
pub(crate) fn open_to_all(folder: &Path) -> io::Result<()> {
    if fs::metadata(folder)?.permissions().mode() & 0o777 == OPEN {
        return Ok(());
    }
    let mut levels = vec![Dir::new(open(folder, FOLDER, Mode::empty())?)?];
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else {
            break;
        };
        let Some(entry) = level.read() else {
            levels.pop();
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if is_self_or_parent(name) {
            continue;
        }
        let inside = level.fd()?;
        match FileType::from_raw_mode(statat(inside, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode) {
            FileType::Directory if depth == MAX_DEPTH => return Err(Errno::LOOP.into()),
            FileType::Directory => {
                widen(inside, name)?;
                let inner = enter(inside, name)?;
                levels.push(Dir::new(inner)?);
            }
            FileType::RegularFile => widen(inside, name)?,
            FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {}
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(OPEN))
}

/// Gives every user the owner's permissions on a file or folder, except writing.
fn widen(folder: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    let only = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(folder, name, only, Mode::empty())?;
    let found = fstat(&handle)?;
    if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
        return Ok(());
    }
    let mode = Mode::from_raw_mode(found.st_mode);
    let mut wide = mode | Mode::RUSR | Mode::RGRP | Mode::ROTH;
    if mode.contains(Mode::XUSR) {
        wide |= Mode::XGRP | Mode::XOTH;
    }
    if wide != mode {
        chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), wide)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn everybody_may_read_and_run_what_its_owner_may() {
        let home = tempfile::tempdir().unwrap();
        let (folder, outside) = (home.path().join("packages"), home.path().join("outside"));
        fs::create_dir_all(folder.join("inner")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let make = |path: &Path, mode| {
            fs::write(path, "x").unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        make(&outside, 0o600);
        make(&folder.join("data"), 0o600);
        make(&folder.join("inner/program"), 0o700);
        symlink(&outside, folder.join("link")).unwrap();
        for closed in [folder.join("inner"), folder.clone()] {
            fs::set_permissions(closed, Permissions::from_mode(0o700)).unwrap();
        }
        open_to_all(&folder).unwrap();
        let found = ["", "data", "inner", "inner/program"].map(|name| mode(&folder.join(name)));
        assert_eq!(found, [0o755, 0o644, 0o755, 0o755]);
        assert_eq!(mode(&outside), 0o600);
        // It is done only once.
        make(&folder.join("data"), 0o600);
        open_to_all(&folder).unwrap();
        assert_eq!(mode(&folder.join("data")), 0o600);
    }
}
