//! What people do with the files of a workspace, asked for by the gateway: requests that are no tools.
//!
//! The model's commands may have made anything of the folder, and may change it meanwhile. So no
//! symbolic link is ever followed here, whether it leads out or not: each folder of a path is opened in
//! the one before, and only files are read and replaced.

mod list;
mod put;
mod read;
mod remove;
mod room;

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Component,
};

use cap_std::fs::{Dir, Metadata, MetadataExt};
use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use self::{
    list::list_folder,
    put::{Uploads, put_file},
    read::read_file,
    remove::remove_file,
};
use super::{MAX_PATH_BYTES, name};

/// Why something is not done, for the gateway to give it a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// It is not there.
    Missing,
    /// It is there, and it is no file.
    NotFile,
    /// It is there, and it is no folder.
    NotFolder,
    /// Something of that name is there that may not be replaced.
    Exists,
    /// It is not as it was.
    Changed,
    /// The workspace has no room for it.
    Full,
    /// No path, or no answer to what was asked.
    Invalid,
    /// The file system forbids it.
    Forbidden,
    /// Too much goes on at the same time.
    Busy,
    /// The file system broke.
    Failed,
}

/// Something that was not done.
#[derive(Debug, Serialize)]
pub(crate) struct FileRefusal {
    kind: Kind,
    /// For people.
    pub(in crate::files) text: String,
}

impl FileRefusal {
    pub(in crate::files) fn new(kind: Kind, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { kind, text }
    }

    /// What went wrong with what people call `path`.
    pub(in crate::files) fn of(path: &str, error: &io::Error) -> Self {
        let (kind, text) = match Errno::from_io_error(error) {
            Some(Errno::NOENT) => (Kind::Missing, format!("`{path}` does not exist")),
            Some(Errno::NOTDIR) => (Kind::NotFolder, format!("`{path}` is not in a folder")),
            Some(Errno::LOOP) => (Kind::NotFile, format!("`{path}` is a symbolic link")),
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => (
                Kind::Full,
                format!("`{path}` does not fit: the workspace is full; delete files first"),
            ),
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => (
                Kind::Forbidden,
                format!("`{path}` may not be used this way: {error}"),
            ),
            Some(Errno::NAMETOOLONG | Errno::INVAL) => {
                (Kind::Invalid, format!("`{path}` is no name: {error}"))
            }
            _ => (Kind::Failed, format!("`{path}` cannot be used: {error}")),
        };
        Self::new(kind, text)
    }
}

/// An answer, as the gateway reads it. A refusal is one too.
pub(crate) fn answer<T: Serialize>(done: Result<T, FileRefusal>) -> Value {
    match done {
        Ok(done) => json!(done),
        Err(refused) => json!({ "refused": refused }),
    }
}

/// The parts of a path that people named, from the workspace down; none for the workspace itself.
fn parts(path: &str) -> Result<Vec<OsString>, FileRefusal> {
    let invalid = |text: &str| FileRefusal::new(Kind::Invalid, text);
    if path.len() > MAX_PATH_BYTES {
        return Err(invalid("the path is too long"));
    }
    if path.contains('\0') {
        return Err(invalid("the path holds a NUL character"));
    }
    let named = name::parse(path);
    let mut parts = Vec::new();
    for part in named.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_owned()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                let text = "a path names folders and files below the workspace, without `..`";
                return Err(invalid(text));
            }
        }
    }
    Ok(parts)
}

/// The name at the end of a path, and the folders before it.
pub(in crate::files) fn split(path: &str) -> Result<(Vec<OsString>, OsString), FileRefusal> {
    let mut folders = parts(path)?;
    let name = folders.pop();
    let none = || FileRefusal::new(Kind::Invalid, "the path names the workspace itself");
    Ok((folders, name.ok_or_else(none)?))
}

/// The folder in which those folders lie. `makes` those that are missing.
pub(in crate::files) fn open_folder(
    root: &Dir,
    folders: &[OsString],
    makes: bool,
) -> io::Result<Dir> {
    let mut folder = root.try_clone()?;
    for part in folders {
        folder = match open_one(&folder, part) {
            Err(error) if makes && error.kind() == io::ErrorKind::NotFound => {
                match folder.create_dir(part) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    Ok(()) | Err(_) => open_one(&folder, part)?,
                }
            }
            opened => opened?,
        };
    }
    Ok(folder)
}

/// A folder in another one, if it is a folder itself.
fn open_one(folder: &Dir, name: &OsStr) -> io::Result<Dir> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = openat(folder, name, flags, Mode::empty())?;
    Ok(Dir::from_std_file(opened.into()))
}

/// Which content it is: another number of the file, another size or another time of its last change is
/// another one.
pub(in crate::files) fn version(found: &Metadata) -> String {
    let changed = i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec());
    format!("{:x}-{:x}-{changed:x}", found.ino(), found.len())
}

/// When the content was changed, in milliseconds since 1970.
fn modified_ms(found: &Metadata) -> i64 {
    let seconds = found.mtime().saturating_mul(1_000);
    seconds.saturating_add(found.mtime_nsec() / 1_000_000)
}

/// What it is, in one word.
pub(in crate::files) fn kind_of(found: &Metadata) -> &'static str {
    if found.is_dir() {
        "folder"
    } else if found.is_symlink() {
        "link"
    } else if found.is_file() {
        "file"
    } else {
        "special"
    }
}

/// Only files are read and replaced.
fn check_file(found: &Metadata, path: &str) -> Result<(), FileRefusal> {
    let what = match kind_of(found) {
        "file" => return Ok(()),
        "folder" => "a folder",
        "link" => "a symbolic link, which is not followed; open the file that it leads to",
        _ => "a pipe, socket or device",
    };
    Err(FileRefusal::new(
        Kind::NotFile,
        format!("`{path}` is {what}"),
    ))
}

/// It is still what people were shown.
fn check_version(found: &Metadata, wanted: &str, path: &str) -> Result<(), FileRefusal> {
    if version(found) == wanted {
        return Ok(());
    }
    Err(FileRefusal::new(
        Kind::Changed,
        format!("`{path}` was changed meanwhile; look at it as it is now"),
    ))
}
