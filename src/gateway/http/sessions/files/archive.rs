//! Streams all files of a folder as one archive.

use std::collections::VecDeque;
use std::io;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::Response;
use futures::stream;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::attachments::POLICY;
use super::super::key_of;
use super::portable_name::portable;
use super::shown_name::{bytes, join};
use super::tape::Tape;
use crate::agent::{FilePurpose, SessionFiles};
use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Query, SessionPath};
use crate::mcp::{EntryKind, FOLDER_PAGE, FolderEntry};
use crate::session::Refusal;

/// The bytes of a file that are read and compressed in one step. Other tasks get the processor in between.
const PART: usize = 128 * 1024;
/// The size, in bytes, from which on a piece of the archive is sent.
const PIECE: usize = 64 * 1024;
/// The most lines of the list of left-out and renamed entries.
const MOST_NOTES: usize = 10_000;
/// The top folder's name in an archive of the whole workspace.
const WORKSPACE: &str = "workspace";
/// The file in the archive that lists left-out and renamed entries.
const NOTES: &[u8] = b"LEFT-OUT.txt";

/// The folder to download.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct ArchiveQuery {
    /// The folder, as in `path` of its entry; if absent, the whole workspace.
    #[param(max_length = 20_480)]
    path: Option<String>,
}

/// Returns a folder of the workspace as a `.tar.gz` archive, which contains one folder of the same name.
///
/// Links, pipes, sockets and devices are left out, and names that Windows does not accept are changed. The
/// file `LEFT-OUT.txt` in the archive lists them.
#[utoipa::path(get, path = "/api/sessions/{id}/files-archive", tag = "sessions",
    params(("id" = String, Path), ArchiveQuery),
    responses((status = 200, description = "The archive.", content_type = "application/gzip",
        body = Vec<u8>), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 503, body = Problem)),
)]
pub(in crate::gateway::http) async fn download_files(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Query(query): Query<ArchiveQuery>,
) -> Result<Response, ApiError> {
    let key = key_of(&caller, session);
    let files = SessionFiles::open(&state.sessions, &key, &caller, FilePurpose::Read).await?;
    let path = query.path.unwrap_or_default();
    // Listed before the response begins, so that a missing folder is reported as an error.
    files.list(&path, None, 1).await?;
    let name = path.rsplit('/').next().filter(|name| !name.is_empty());
    let name = name.unwrap_or(WORKSPACE).to_owned();
    let walk = Walk::begin(files, path, &name);
    let pieces = stream::try_unfold(walk, |mut walk| async move {
        let piece = walk.piece().await?;
        Ok::<_, io::Error>(piece.map(|piece| (piece, walk)))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    for (header, value) in [
        (CONTENT_TYPE, "application/gzip"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(header, HeaderValue::from_static(value));
    }
    let saved = String::from_utf8_lossy(&portable(name.as_bytes())).into_owned();
    let encoded = utf8_percent_encode(&saved, NON_ALPHANUMERIC);
    let disposition = format!("attachment; filename*=UTF-8''{encoded}.tar.gz");
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// A folder whose first or next page is still to be read.
struct Folder {
    path: String,
    /// Its name in the archive.
    name: Vec<u8>,
    after: Option<String>,
}

/// A file that is being written.
struct File {
    path: String,
    version: String,
    bytes: u64,
    written: u64,
}

/// The walk through the folders. Only one page of entries is in memory.
struct Walk {
    files: SessionFiles,
    tape: Tape,
    folders: Vec<Folder>,
    /// The entries left of the current page; `at` is their folder's path and its name in the archive.
    entries: VecDeque<FolderEntry>,
    at: (String, Vec<u8>),
    file: Option<File>,
    notes: Vec<String>,
    /// The top folder's name in the archive, below which the notes go.
    top: Vec<u8>,
    is_finished: bool,
}

impl Walk {
    fn begin(files: SessionFiles, path: String, name: &str) -> Self {
        let top = portable(&bytes(name));
        Self {
            files,
            tape: Tape::new(),
            folders: vec![Folder {
                path,
                name: top.clone(),
                after: None,
            }],
            entries: VecDeque::new(),
            at: (String::new(), Vec::new()),
            file: None,
            notes: Vec::new(),
            top,
            is_finished: false,
        }
    }

    /// Returns the next piece of the archive; `None` at its end.
    async fn piece(&mut self) -> io::Result<Option<Bytes>> {
        while self.tape.len() < PIECE && !self.is_finished {
            self.step().await?;
        }
        let piece = self.tape.take();
        Ok((!piece.is_empty()).then(|| piece.into()))
    }

    async fn step(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            return self.go_on(file).await;
        }
        if let Some(entry) = self.entries.pop_front() {
            return self.enter(entry).await;
        }
        if let Some(folder) = self.folders.pop() {
            return self.open(folder).await;
        }
        self.end()
    }

    /// Reads the next page of a folder.
    async fn open(&mut self, folder: Folder) -> io::Result<()> {
        let listed = self
            .files
            .list(&folder.path, folder.after.as_deref(), FOLDER_PAGE);
        let page = match listed.await {
            Ok(page) => page,
            Err(refusal) => return self.skip(&folder.path, refusal),
        };
        if folder.after.is_none() {
            self.tape.folder(&folder.name, 0)?;
        }
        self.at = (folder.path.clone(), folder.name.clone());
        self.entries = page.entries.into();
        if page.next.is_some() {
            let after = page.next;
            self.folders.push(Folder { after, ..folder });
        }
        Ok(())
    }

    async fn enter(&mut self, entry: FolderEntry) -> io::Result<()> {
        let path = join(&self.at.0, &entry.name);
        let own = bytes(&entry.name);
        let portable = portable(&own);
        if portable != own {
            let portable = String::from_utf8_lossy(&portable);
            self.note(format!(
                "{path}: in the archive as {portable}, because not every system takes its name"
            ));
        }
        let name = [&self.at.1[..], b"/", &portable].concat();
        match entry.kind {
            EntryKind::Folder => {
                let after = None;
                self.folders.push(Folder { path, name, after });
                Ok(())
            }
            EntryKind::File => {
                let first = match self.files.read(&path, 0, PART, None).await {
                    Ok(first) => first,
                    Err(refusal) => return self.skip(&path, refusal),
                };
                self.tape.file(&name, first.bytes, first.modified_ms)?;
                self.tape.content(&first.data)?;
                self.file = Some(File {
                    path,
                    version: first.version,
                    bytes: first.bytes,
                    written: first.data.len() as u64,
                });
                Ok(())
            }
            EntryKind::Link => {
                let target = entry.target.unwrap_or_default();
                self.note(format!("{path}: a symbolic link to {target}"));
                Ok(())
            }
            EntryKind::Special => {
                self.note(format!("{path}: a pipe, socket or device"));
                Ok(())
            }
        }
    }

    /// Writes the next part of a file, or its end. A file that changed meanwhile is filled up with zeros,
    /// because its length is already written.
    async fn go_on(&mut self, mut file: File) -> io::Result<()> {
        if file.written >= file.bytes {
            return self.tape.pad(file.bytes);
        }
        let left = usize::try_from(file.bytes - file.written).unwrap_or(PART);
        let length = left.min(PART);
        let part = self
            .files
            .read(&file.path, file.written, length, Some(&file.version));
        match part.await {
            Ok(part) if !part.data.is_empty() => {
                self.tape.content(&part.data)?;
                file.written += part.data.len() as u64;
            }
            Err(refusal) if is_gone(&refusal) => {
                return Err(io::Error::other(refusal));
            }
            Ok(_) | Err(_) => {
                if file.version != CHANGED {
                    self.note(format!(
                        "{}: changed while it was read; only its first {} bytes are here",
                        file.path, file.written
                    ));
                    CHANGED.clone_into(&mut file.version);
                }
                let zeros = left.min(PART);
                self.tape.zeros(zeros)?;
                file.written += zeros as u64;
            }
        }
        self.file = Some(file);
        Ok(())
    }

    /// Leaves out an entry that cannot be read. If the sandbox is gone, the archive ends with an error, so
    /// that nobody takes it for complete.
    fn skip(&mut self, path: &str, refusal: Refusal) -> io::Result<()> {
        if is_gone(&refusal) {
            return Err(io::Error::other(refusal));
        }
        self.note(format!("{path}: {refusal}"));
        Ok(())
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(note);
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if !self.notes.is_empty() {
            let mut text = self.notes.join("\n");
            text.push('\n');
            let name = [&self.top[..], b"/", NOTES].concat();
            let length = text.len() as u64;
            self.tape.file(&name, length, 0)?;
            self.tape.content(text.as_bytes())?;
            self.tape.pad(length)?;
        }
        self.is_finished = true;
        self.tape.finish()
    }
}

/// Returns true if no file can be read any more, not only the one at hand.
fn is_gone(refusal: &Refusal) -> bool {
    refusal.code == Code::SandboxUnavailable && refusal.field.is_none()
}

/// The version that marks a file as changed: no file has it.
const CHANGED: &str = "changed";
