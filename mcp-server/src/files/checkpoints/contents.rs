//! The contents of files that a scan told of, several in one answer.

use std::{fs::File, io::Read};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cap_std::fs::Metadata;
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use crate::files::Workspace;
use crate::files::people::{FileRefusal, open_folder, split, version};

/// Bytes of one file, and about those of an answer: as base64 it is a line of JSON in a sandbox with little
/// memory, of which the gateway reads 4 MiB.
const MAX_BYTES: u64 = 1 << 20;

/// The request.
#[derive(Debug, Deserialize)]
pub(crate) struct ReadContents {
    files: Vec<WantedContent>,
}

#[derive(Debug, Deserialize)]
struct WantedContent {
    path: String,
    /// What it has to be.
    version: String,
}

/// The answer: the contents of the first of those files, as many as fit; at least one.
#[derive(Debug, Serialize)]
pub(crate) struct Contents {
    /// As base64; null where the file was changed meanwhile, is too long, or cannot be read.
    contents: Vec<Option<String>>,
}

pub(crate) fn read_contents(workspace: &Workspace, asked: &ReadContents) -> Contents {
    let (mut contents, mut bytes) = (Vec::new(), 0);
    for wanted in &asked.files {
        if bytes > MAX_BYTES {
            break;
        }
        let content = read(workspace, wanted).ok().flatten();
        bytes += content.as_ref().map_or(0, |content| content.len() as u64);
        contents.push(content.map(|content| STANDARD.encode(content)));
    }
    Contents { contents }
}

/// The whole of one file, if it is that version before and after.
fn read(workspace: &Workspace, wanted: &WantedContent) -> Result<Option<Vec<u8>>, FileRefusal> {
    let path = wanted.path.as_str();
    let failed = |error: std::io::Error| FileRefusal::of(path, &error);
    let (folders, name) = split(path)?;
    let folder = open_folder(&workspace.root, &folders, false).map_err(failed)?;
    let is_it = |found: &Metadata| found.is_file() && version(found) == wanted.version;
    // Before it is opened: a device is never touched.
    if !is_it(&folder.symlink_metadata(&name).map_err(failed)?) {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = openat(&folder, &name, flags | OFlags::CLOEXEC, Mode::empty());
    let file = File::from(opened.map_err(|error| failed(error.into()))?);
    let mut content = Vec::new();
    let mut part = (&file).take(MAX_BYTES + 1);
    part.read_to_end(&mut content).map_err(failed)?;
    let now = Metadata::from_file(&file).map_err(failed)?;
    let is_whole = content.len() as u64 == now.len() && now.len() <= MAX_BYTES;
    Ok((is_it(&now) && is_whole).then_some(content))
}
