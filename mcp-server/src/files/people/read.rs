//! A part of a file. Nothing is kept from part to part: the version says that it is the same file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cap_std::fs::{Dir, Metadata};
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use super::{FileRefusal, check_file, check_version, modified_ms, open_folder, split, version};
use crate::files::Workspace;

/// Bytes of a part: as base64 it is a line of JSON in a sandbox with little memory.
const MAX_PART: u64 = 512 * 1024;

/// The request.
#[derive(Debug, Deserialize)]
pub(crate) struct ReadFile {
    path: String,
    offset: u64,
    /// 0 = only what is known of it.
    length: u64,
    /// What it has to be; none = whatever is there.
    #[serde(default)]
    version: Option<String>,
}

/// A part, and what is known of the whole.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    version: String,
    /// Of the whole file.
    bytes: u64,
    modified_ms: i64,
    /// As base64; shorter than asked only at the end of the file.
    data: String,
}

pub(crate) fn read_file(workspace: &Workspace, asked: &ReadFile) -> Result<Part, FileRefusal> {
    let path = asked.path.as_str();
    let failed = |error: io::Error| FileRefusal::of(path, &error);
    let (folders, name) = split(path)?;
    let folder = open_folder(&workspace.root, &folders, false).map_err(failed)?;
    // Before it is opened: a device is never touched.
    check_file(&folder.symlink_metadata(&name).map_err(failed)?, path)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = openat(&folder, &name, flags | OFlags::CLOEXEC, Mode::empty());
    let mut file = File::from(opened.map_err(|error| failed(error.into()))?);
    let found = metadata(&file).map_err(failed)?;
    check_file(&found, path)?;
    if let Some(wanted) = &asked.version {
        check_version(&found, wanted, path)?;
    }
    let mut content = Vec::new();
    if asked.length > 0 {
        file.seek(SeekFrom::Start(asked.offset)).map_err(failed)?;
        let mut part = file.by_ref().take(asked.length.min(MAX_PART));
        part.read_to_end(&mut content).map_err(failed)?;
    }
    let version = version(&found);
    // What was read is of one content, or of none that ever was.
    check_version(&metadata(&file).map_err(failed)?, &version, path)?;
    Ok(Part {
        version,
        bytes: found.len(),
        modified_ms: modified_ms(&found),
        data: STANDARD.encode(&content),
    })
}

fn metadata(file: &File) -> io::Result<Metadata> {
    Metadata::from_file(file)
}

/// What is known of the file of that name in a folder, link or not; none = there is nothing.
pub(super) fn look(folder: &Dir, name: &std::ffi::OsStr) -> io::Result<Option<Metadata>> {
    match folder.symlink_metadata(name) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
