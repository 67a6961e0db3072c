//! `write_file`: a reader sees the old content or the new one, never a mixture.

use std::{
    ffi::OsStr,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use cap_std::fs::{Dir, Metadata, OpenOptions, Permissions};

use super::{ResolvedPath, Workspace};
use crate::{failure::Failure, tools::WriteFile};

/// The most that one call may write.
const MAX_WRITE_BYTES: usize = 10 * 1024 * 1024;

/// Makes temporary names differ within this process.
static TEMPORARY: AtomicU64 = AtomicU64::new(0);

pub(crate) fn write(workspace: &Workspace, arguments: &WriteFile) -> Result<Vec<String>, Failure> {
    let path = arguments.path.as_str();
    let content = arguments.content.as_bytes();
    if content.len() > MAX_WRITE_BYTES {
        return Err(Failure::new(format!(
            "The content has {} bytes; one call may write {MAX_WRITE_BYTES}. Write it in parts with \
             execute_command.",
            content.len()
        )));
    }
    let target = target(workspace, path)?;
    let name = target.file_name().unwrap_or_default();
    let folder = parent(&workspace.root, &target).map_err(|error| Failure::of(path, &error))?;
    let permissions = permissions(&folder, name, path)?;
    replace(&folder, name, content, permissions).map_err(|error| Failure::of(path, &error))?;
    Ok(vec![format!("Wrote {} bytes to `{path}`.", content.len())])
}

/// The file that would be written, as a path for `root`; whether it is there is not looked at.
pub(super) fn target(workspace: &Workspace, path: &str) -> Result<PathBuf, Failure> {
    let target = follow(&workspace.root, workspace.resolve(path)?, path)?;
    if target.file_name().is_none() || path.ends_with('/') {
        return Err(Failure::new(format!(
            "`{path}` names a folder. Add a file name."
        )));
    }
    Ok(target)
}

/// Writes through a symbolic link as every editor does, as long as it stays in the workspace.
fn follow(root: &Dir, resolved: ResolvedPath, path: &str) -> Result<PathBuf, Failure> {
    let target = resolved.path;
    let failed = |error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            Failure::new(format!(
                "`{path}` is a symbolic link to nothing. Remove it first, or write its target."
            ))
        } else {
            Failure::of(path, &error)
        }
    };
    match root.symlink_metadata(&target) {
        Ok(found) if found.is_symlink() => root.canonicalize(&target).map_err(failed),
        Err(error) if resolved.ends_in_link => Err(failed(error)),
        Ok(_) | Err(_) => Ok(target),
    }
}

fn parent(root: &Dir, target: &Path) -> io::Result<Dir> {
    match target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        Some(parent) => {
            root.create_dir_all(parent)?;
            root.open_dir(parent)
        }
        None => root.try_clone(),
    }
}

/// The permissions that the file keeps; `None` when it is new.
fn permissions(folder: &Dir, name: &OsStr, path: &str) -> Result<Option<Permissions>, Failure> {
    match folder.symlink_metadata(name) {
        Ok(found) => {
            check_file(&found, path)?;
            Ok(Some(found.permissions()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::of(path, &error)),
    }
}

/// Only files are replaced.
pub(super) fn check_file(found: &Metadata, path: &str) -> Result<(), Failure> {
    if found.is_file() {
        return Ok(());
    }
    Err(Failure::new(if found.is_dir() {
        format!("`{path}` is a folder. Choose another name, or add a file name.")
    } else {
        format!("`{path}` is a pipe, socket, device or link, not a file. Choose another name.")
    }))
}

fn replace(
    folder: &Dir,
    name: &OsStr,
    content: &[u8],
    permissions: Option<Permissions>,
) -> io::Result<()> {
    let temporary = format!(
        ".sepal-{}-{}.tmp",
        std::process::id(),
        TEMPORARY.fetch_add(1, Ordering::Relaxed)
    );
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = folder.open_with(&temporary, &options)?;
    let written = file
        .write_all(content)
        .and_then(|()| permissions.map_or(Ok(()), |kept| file.set_permissions(kept)))
        .and_then(|()| folder.rename(&temporary, folder, name));
    if written.is_err() {
        let _ = folder.remove_file(&temporary);
    }
    written
}
