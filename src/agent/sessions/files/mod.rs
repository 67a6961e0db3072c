//! Reads and changes the files of a session's workspace, for the owner. All access goes through the server in
//! the sandbox: only inside it can no link lead outside.

pub(in crate::agent) mod changes;

use std::time::Duration;

use super::{Sessions, may_act};
use crate::agent::mailbox::{Message, WorkspaceDoor};
use crate::domain::{Caller, Code, Holder, SessionKey, Share, UserId};
use crate::mcp::{
    FileAccess, FileError, FilePart, FileRefusal, FolderPage, UploadPart, UploadedFile,
};
use crate::session::{Command, Refusal};

/// The time limit of one request to the server in the sandbox.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// The number of times that a file is read again if it changes while its first part is read.
const READ_ATTEMPTS: u32 = 4;
/// The time limit for deleting a folder.
const REMOVAL_LIMIT: Duration = Duration::from_mins(2);

/// The kind of access to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePurpose {
    Read,
    /// Requires a role that may act.
    Change,
}

/// The files of one session, for the duration of one request of its owner.
pub struct SessionFiles {
    door: Box<dyn WorkspaceDoor>,
    by: UserId,
    upload_limit: u64,
    _share: Share,
}

impl SessionFiles {
    /// Opens the files for the owner of the session; to anybody else the session does not exist. Starts
    /// nothing yet.
    pub async fn open(
        sessions: &Sessions,
        key: &SessionKey,
        caller: &Caller,
        purpose: FilePurpose,
    ) -> Result<Self, Refusal> {
        if purpose == FilePurpose::Change {
            may_act(caller)?;
            // Store the session, so that the files belong to it.
            let open = Command::Open { title: None };
            sessions.submit(key, caller, open.into()).await?;
        }
        let by = caller.user.id.clone();
        let whose = by.clone();
        let door = sessions.request(key, caller, |reply| Message::Files { by: whose, reply });
        let door = door.await?;
        let share = sessions.attachments().use_files(Holder {
            tenant: caller.tenant.id.clone(),
            user: caller.user.id.clone(),
        })?;
        Ok(Self {
            door,
            by,
            upload_limit: sessions.attachments().limits().upload,
            _share: share,
        })
    }

    /// The configured size limit of one uploaded file, in bytes.
    pub fn upload_limit(&self) -> u64 {
        self.upload_limit
    }

    /// Lists a page of a folder. If the session certainly has no files, nothing is started.
    pub async fn list(
        &self,
        path: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<FolderPage, Refusal> {
        if self.door.is_unused().await {
            if path.is_empty() {
                return Ok(FolderPage {
                    entries: Vec::new(),
                    total: 0,
                    next: None,
                });
            }
            return Err(missing(path));
        }
        self.ask(ANSWER_LIMIT, async |files| {
            files.list(path, after, limit).await
        })
        .await
    }

    /// Reads a part of a file; only of that version, if one is named.
    pub async fn read(
        &self,
        path: &str,
        offset: u64,
        length: usize,
        version: Option<&str>,
    ) -> Result<FilePart, Refusal> {
        if self.door.is_unused().await {
            return Err(missing(path));
        }
        let mut attempts = 0;
        loop {
            let read = self.ask(ANSWER_LIMIT, async |files| {
                files.read(path, offset, length, version).await
            });
            attempts += 1;
            match read.await {
                // The caller has not seen other content yet: the file is being written right now.
                Err(refusal) if version.is_none() && refusal.code == Code::ChangedSinceShown => {
                    if attempts == READ_ATTEMPTS {
                        let text = format!("`{path}` is being written right now; try again");
                        return Err(Refusal::of_field(Code::SandboxUnavailable, "path", text));
                    }
                }
                read => return read,
            }
        }
    }

    /// Writes a part of an upload, within the limit of the workspace. Returns the file with the last part.
    pub async fn put(&self, part: UploadPart<'_>) -> Result<Option<UploadedFile>, Refusal> {
        let room = self.door.room();
        let part = UploadPart { room, ..part };
        let put = async |files: FileAccess<'_>| files.put(part).await;
        if part.is_last {
            return self.change(ANSWER_LIMIT, put).await;
        }
        self.ask(ANSWER_LIMIT, put).await
    }

    /// Deletes a file or link, or a folder.
    pub async fn remove(
        &self,
        path: &str,
        version: Option<&str>,
        is_recursive: bool,
    ) -> Result<(), Refusal> {
        if self.door.is_unused().await {
            return Err(missing(path));
        }
        self.change(REMOVAL_LIMIT, async |files| {
            files.remove(path, version, is_recursive).await
        })
        .await
    }

    /// Asks for something that changes files; what it changed is kept as this person's.
    async fn change<T>(
        &self,
        limit: Duration,
        request: impl AsyncFnOnce(FileAccess<'_>) -> Result<T, FileError>,
    ) -> Result<T, Refusal> {
        let opened = self.door.open().await?;
        let changing = request(FileAccess::new(&opened.connection, limit));
        let kept = self.door.checkpoints();
        let done = kept.by_person(&self.by, &opened.connection, changing);
        done.await.map_err(refused)
    }

    /// Asks the server in the sandbox, which is started if need be.
    async fn ask<T>(
        &self,
        limit: Duration,
        request: impl AsyncFnOnce(FileAccess<'_>) -> Result<T, FileError>,
    ) -> Result<T, Refusal> {
        let opened = self.door.open().await?;
        let done = request(FileAccess::new(&opened.connection, limit)).await;
        done.map_err(refused)
    }
}

fn missing(path: &str) -> Refusal {
    Refusal::of_field(Code::NotFound, "path", format!("`{path}` does not exist"))
}

fn refused(error: FileError) -> Refusal {
    match error {
        FileError::Refused { kind, text } => {
            let code = match kind {
                FileRefusal::Missing => Code::NotFound,
                FileRefusal::NotFile
                | FileRefusal::NotFolder
                | FileRefusal::Invalid
                | FileRefusal::Forbidden => Code::InvalidArguments,
                FileRefusal::Exists => Code::FileExists,
                FileRefusal::Changed => Code::ChangedSinceShown,
                FileRefusal::Full => Code::TooLarge,
                FileRefusal::Busy => Code::TooManyRequests,
                FileRefusal::Failed => Code::SandboxUnavailable,
            };
            Refusal::of_field(code, "path", text)
        }
        FileError::Outdated => {
            let text = format!("{error}; have the operator pull the image of this version");
            Refusal::new(Code::SandboxUnavailable, text)
        }
        FileError::Server(error) => {
            tracing::warn!(?error, "The files of a session cannot be reached");
            let text = format!("the sandbox of this session did not answer: {error}; try again");
            Refusal::new(Code::SandboxUnavailable, text)
        }
    }
}
