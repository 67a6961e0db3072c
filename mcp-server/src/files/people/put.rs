//! A file that people upload, in parts that each fit a message. It gets its name in one step, once it is
//! whole, and replaces only what whoever sends it has seen.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Write},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cap_std::fs::{Dir, Metadata, OpenOptions};
use serde::{Deserialize, Serialize};

use super::{
    FileRefusal, Kind, check_file, check_version, open_folder, read::look, room, split, version,
};
use crate::files::Workspace;

/// Uploads that are under way.
const MOST_UPLOADS: usize = 8;
/// An upload of which nothing came for so long gives its place to another one.
const IDLE: Duration = Duration::from_secs(30);
/// Replaces whatever file is there.
const ANYTHING: &str = "*";

/// The request: one part of a file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PutFile {
    /// Names the upload, from its first part to its last.
    id: String,
    path: String,
    /// Where this part begins; the part at 0 begins the upload.
    offset: u64,
    /// The content of this part, as base64.
    data: String,
    /// Whether the file ends with it.
    is_last: bool,
    /// Bytes of the whole, as far as its sender knows.
    #[serde(default)]
    bytes: u64,
    /// The version of the file that may be replaced, `*` for any; none = no file may be.
    #[serde(default)]
    replaces: Option<String>,
    /// Bytes that the workspace may have in all.
    room: u64,
}

/// The answer to a part.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Put {
    /// There is more to come.
    Going {},
    /// The file is there.
    Done {
        version: String,
        bytes: u64,
        /// Whether there was none before.
        created: bool,
    },
}

/// What comes in now.
#[derive(Default)]
pub(crate) struct Uploads(Mutex<Vec<Upload>>);

struct Upload {
    id: String,
    /// Which of the names for unfinished files it has.
    place: usize,
    folder: Dir,
    name: OsString,
    file: File,
    written: u64,
    /// When the last part came.
    last: Instant,
}

impl Uploads {
    fn all(&self) -> MutexGuard<'_, Vec<Upload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn put_file(
    workspace: &Workspace,
    uploads: &Uploads,
    part: &PutFile,
) -> Result<Put, FileRefusal> {
    let path = part.path.as_str();
    let failed = |error: io::Error| FileRefusal::of(path, &error);
    let invalid = |text: &str| FileRefusal::new(Kind::Invalid, text);
    let data = STANDARD.decode(&part.data);
    let data = data.map_err(|_| invalid("the data is no base64"))?;
    let mut all = uploads.all();
    let mut upload = if part.offset == 0 {
        begin(workspace, &mut all, part)?
    } else {
        let at = all.iter().position(|upload| upload.id == part.id);
        let found = at.map(|at| all.swap_remove(at));
        found.ok_or_else(|| invalid("the upload was given up; begin it anew"))?
    };
    if upload.written != part.offset {
        return Err(invalid("the part does not follow the one before"));
    }
    upload.written += data.len() as u64;
    if upload.written > part.room {
        return Err(no_room(path, part.room));
    }
    upload.file.write_all(&data).map_err(failed)?;
    if part.is_last {
        return upload.finish(part);
    }
    upload.last = Instant::now();
    all.push(upload);
    Ok(Put::Going {})
}

fn begin(
    workspace: &Workspace,
    all: &mut Vec<Upload>,
    part: &PutFile,
) -> Result<Upload, FileRefusal> {
    let path = part.path.as_str();
    let failed = |error: io::Error| FileRefusal::of(path, &error);
    all.retain(|upload| upload.id != part.id);
    if all.len() >= MOST_UPLOADS {
        all.retain(|upload| upload.last.elapsed() < IDLE);
    }
    let taken = |place: &usize| all.iter().any(|upload| upload.place == *place);
    let place = (0..MOST_UPLOADS)
        .find(|place| !taken(place))
        .ok_or_else(|| {
            let text = "too many files are being uploaded to this session; wait for one of them";
            FileRefusal::new(Kind::Busy, text)
        })?;
    let (folders, name) = split(path)?;
    if room::used(&workspace.root).saturating_add(part.bytes) > part.room {
        return Err(no_room(path, part.room));
    }
    let folder = open_folder(&workspace.root, &folders, true).map_err(failed)?;
    check_replaces(look(&folder, &name).map_err(failed)?.as_ref(), part)?;
    let unfinished = unfinished(place);
    match folder.remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let file = folder.open_with(&unfinished, &options).map_err(failed)?;
    Ok(Upload {
        id: part.id.clone(),
        place,
        folder,
        name,
        file: file.into_std(),
        written: 0,
        last: Instant::now(),
    })
}

/// The name of a file that is not whole yet. A server that was ended in the middle leaves one of few.
fn unfinished(place: usize) -> String {
    format!(".sepal-upload-{place}.tmp")
}

/// Whether what is there may be replaced.
fn check_replaces(found: Option<&Metadata>, part: &PutFile) -> Result<(), FileRefusal> {
    let path = part.path.as_str();
    match (found, part.replaces.as_deref()) {
        (None, None | Some(ANYTHING)) => Ok(()),
        (None, Some(_)) => Err(FileRefusal::new(
            Kind::Changed,
            format!("`{path}` was deleted meanwhile"),
        )),
        (Some(_), None) => Err(exists(path)),
        (Some(found), Some(ANYTHING)) => check_file(found, path),
        (Some(found), Some(version)) => {
            check_file(found, path)?;
            check_version(found, version, path)
        }
    }
}

fn exists(path: &str) -> FileRefusal {
    FileRefusal::new(Kind::Exists, format!("`{path}` is there already"))
}

fn no_room(path: &str, room: u64) -> FileRefusal {
    let mebibytes = room >> 20;
    FileRefusal::new(
        Kind::Full,
        format!(
            "`{path}` does not fit: the workspace may have {mebibytes} MiB; delete files first"
        ),
    )
}

impl Upload {
    /// Gives the file its name. Whatever has the name is replaced itself, never what it leads to.
    fn finish(self, part: &PutFile) -> Result<Put, FileRefusal> {
        let path = part.path.as_str();
        let failed = |error: io::Error| FileRefusal::of(path, &error);
        self.file.sync_all().map_err(failed)?;
        let found = look(&self.folder, &self.name).map_err(failed)?;
        check_replaces(found.as_ref(), part)?;
        let unfinished = unfinished(self.place);
        if let Some(found) = &found {
            let permissions = found.permissions();
            let file = cap_std::fs::File::from_std(self.file.try_clone().map_err(failed)?);
            file.set_permissions(permissions).map_err(failed)?;
            let renamed = self.folder.rename(&unfinished, &self.folder, &self.name);
            renamed.map_err(failed)?;
        } else {
            let linked = self.folder.hard_link(&unfinished, &self.folder, &self.name);
            linked.map_err(|error| {
                if error.kind() == io::ErrorKind::AlreadyExists {
                    exists(path)
                } else {
                    failed(error)
                }
            })?;
            self.folder.remove_file(&unfinished).map_err(failed)?;
        }
        // After the link is gone: its end changes the file's times.
        let now = Metadata::from_file(&self.file).map_err(failed)?;
        Ok(Put::Done {
            version: version(&now),
            bytes: self.written,
            created: found.is_none(),
        })
    }
}

impl Drop for Upload {
    /// The file has its name by now, or never gets one.
    fn drop(&mut self) {
        let _ = self.folder.remove_file(unfinished(self.place));
    }
}
