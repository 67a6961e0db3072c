//! Deletes what people named: a link itself, and a folder only where they said so.

use std::io;

use serde::{Deserialize, Serialize};

use super::{FileRefusal, Kind, check_version, open_folder, split};
use crate::files::Workspace;

/// The request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoveFile {
    path: String,
    /// What the file has to be; none = whatever is there.
    #[serde(default)]
    version: Option<String>,
    /// Whether a folder goes with all that is in it.
    #[serde(default)]
    is_recursive: bool,
}

/// It is gone.
#[derive(Debug, Serialize)]
pub(crate) struct RemovedEntry {
    kind: &'static str,
}

pub(crate) fn remove_file(
    workspace: &Workspace,
    asked: &RemoveFile,
) -> Result<RemovedEntry, FileRefusal> {
    let path = asked.path.as_str();
    let failed = |error: io::Error| FileRefusal::of(path, &error);
    let (folders, name) = split(path)?;
    let folder = open_folder(&workspace.root, &folders, false).map_err(failed)?;
    let found = folder.symlink_metadata(&name).map_err(failed)?;
    if let Some(wanted) = &asked.version {
        check_version(&found, wanted, path)?;
    }
    if !found.is_dir() {
        folder.remove_file(&name).map_err(failed)?;
    } else if asked.is_recursive {
        folder.remove_dir_all(&name).map_err(failed)?;
    } else {
        folder.remove_dir(&name).map_err(|error| {
            if error.kind() == io::ErrorKind::DirectoryNotEmpty {
                let text = format!("the folder `{path}` is not empty");
                FileRefusal::new(Kind::Exists, text)
            } else {
                failed(error)
            }
        })?;
    }
    Ok(RemovedEntry {
        kind: super::kind_of(&found),
    })
}
