//! Brings an earlier state back, step by step, as the gateway says. Each step does what it says or is told
//! as failed; nothing else of the workspace is touched.

use std::io::{self, Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};
use rustix::fs::{Mode, chmodat, symlinkat};
use serde::{Deserialize, Serialize};

use crate::files::people::{FileRefusal, Kind, open_folder, split};
use crate::files::{Workspace, name};

/// The name of a file that is not whole yet.
const UNFINISHED: &str = ".sepal-undo.tmp";

/// The request.
#[derive(Debug, Deserialize)]
pub(crate) struct RestoreFiles {
    steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase")]
enum Step {
    /// Deletes a file, a link, or a folder that is empty. What is not there is no failure.
    Remove { path: String },
    /// Makes a folder, which its owner may write to until its mode is set.
    Folder { path: String },
    /// Writes a file, in the place of whatever file or link has the name.
    File {
        path: String,
        mode: u32,
        /// The content, as base64.
        data: String,
    },
    /// Makes a link.
    Link { path: String, target: String },
    /// Sets who may use a file or folder.
    Mode { path: String, mode: u32 },
}

/// The answer.
#[derive(Debug, Serialize)]
pub(crate) struct RestoreAnswer {
    failed: Vec<FailedStep>,
}

/// A step that was not done.
#[derive(Debug, Serialize)]
struct FailedStep {
    path: String,
    text: String,
}

pub(crate) fn restore_files(workspace: &Workspace, asked: &RestoreFiles) -> RestoreAnswer {
    let mut failed = Vec::new();
    for step in &asked.steps {
        if let Err(refused) = step.run(workspace) {
            failed.push(FailedStep {
                path: step.path().to_owned(),
                text: refused.text,
            });
        }
    }
    RestoreAnswer { failed }
}

impl Step {
    fn path(&self) -> &str {
        match self {
            Self::Remove { path }
            | Self::Folder { path }
            | Self::File { path, .. }
            | Self::Link { path, .. }
            | Self::Mode { path, .. } => path,
        }
    }

    fn run(&self, workspace: &Workspace) -> Result<(), FileRefusal> {
        let path = self.path();
        let (folders, name) = split(path)?;
        let failed = |error: io::Error| FileRefusal::of(path, &error);
        let folder = open_folder(&workspace.root, &folders, false);
        let folder = match (folder, self) {
            (Err(error), Self::Remove { .. }) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(());
            }
            (folder, _) => folder.map_err(failed)?,
        };
        let done = match self {
            Self::Remove { .. } => remove(&folder, &name),
            Self::Folder { .. } => folder.create_dir(&name),
            Self::File { mode, data, .. } => {
                let data = STANDARD.decode(data);
                let data =
                    data.map_err(|_| FileRefusal::new(Kind::Invalid, "the data is no base64"))?;
                write(&folder, &name, *mode, &data)
            }
            Self::Link { target, .. } => {
                symlinkat(name::parse(target), &folder, &name).map_err(Into::into)
            }
            Self::Mode { mode, .. } => set_mode(&folder, &name, *mode),
        };
        done.map_err(failed)
    }
}

fn remove(folder: &Dir, name: &std::ffi::OsStr) -> io::Result<()> {
    let removed = folder.symlink_metadata(name).and_then(|found| {
        if found.is_dir() {
            folder.remove_dir(name)
        } else {
            folder.remove_file(name)
        }
    });
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Writes beside the name first: a file is there whole, or as it was.
fn write(folder: &Dir, name: &std::ffi::OsStr, mode: u32, data: &[u8]) -> io::Result<()> {
    remove(folder, UNFINISHED.as_ref())?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = folder.open_with(UNFINISHED, &options)?;
    let written = file
        .write_all(data)
        .and_then(|()| file.set_permissions(Permissions::from_mode(mode & 0o7777)))
        .and_then(|()| folder.rename(UNFINISHED, folder, name));
    if written.is_err() {
        remove(folder, UNFINISHED.as_ref())?;
    }
    written
}

/// Only of what is no link: a mode belongs to what a link leads to.
fn set_mode(folder: &Dir, name: &std::ffi::OsStr, mode: u32) -> io::Result<()> {
    if folder.symlink_metadata(name)?.is_symlink() {
        return Err(rustix::io::Errno::LOOP.into());
    }
    let mode = Mode::from_bits_truncate(mode & 0o7777);
    // Whoever swaps it for a link now is the session itself, and the walls are around what it leads to.
    chmodat(folder, name, mode, rustix::fs::AtFlags::empty())?;
    Ok(())
}
