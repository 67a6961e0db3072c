//! Puts people's attachments into the session's workspace, where a model's tools can read what the model
//! cannot. The server in the sandbox writes them: the model may have made links there, and only inside the
//! sandbox can they not lead outside.

pub(in crate::agent::effects) mod instructions;
mod skill_files;
pub(in crate::agent::effects) mod undone;

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::SessionTools;
use crate::agent::attachments::{file_name, is_file_name};
use crate::agent::checkpoints::Checkpoints;
use crate::agent::mailbox::WorkspaceDoor;
use crate::domain::{Attachment, BlobId, Code, TurnId};
use crate::servers::{BUNDLED, Held, Source};
use crate::session::Refusal;

/// The folder in the workspace, as every sandbox names it.
const FOLDER: &str = "/workspace/attachments";
/// The time limit of writing a part of a file.
const PART_LIMIT: Duration = Duration::from_secs(10);
/// The time limit of starting a sandbox for a person who looks at files.
const START_LIMIT: Duration = Duration::from_secs(45);
/// The time limit of one file, including the start of its sandbox.
const PLACE_LIMIT: Duration = Duration::from_secs(45);

/// The workspace of a session, for attachments.
#[derive(Clone, Copy)]
pub(in crate::agent) struct Workspace<'a>(&'a SessionTools);

impl<'a> Workspace<'a> {
    /// Returns the workspace of a session whose tools can read it; `None` = there are no such tools.
    pub(in crate::agent) fn of(tools: &'a SessionTools) -> Option<Self> {
        let view = tools.view();
        let entry = view.entry(BUNDLED);
        let is_ours = entry.is_some_and(|entry| entry.source == Source::Bundled);
        (tools.place.is_on() && is_ours).then_some(Self(tools))
    }

    /// Puts a file into the workspace, and returns its path. Doing it twice makes only one file.
    pub(in crate::agent) async fn put(
        self,
        attachment: &Attachment,
        content: &[u8],
    ) -> Result<String, String> {
        let placing = tokio::time::timeout(PLACE_LIMIT, self.write(attachment, content));
        placing.await.unwrap_or_else(|_| {
            let seconds = PLACE_LIMIT.as_secs();
            Err(format!("it took longer than {seconds} s"))
        })
    }

    /// Returns the server in the sandbox, started if necessary.
    pub(super) async fn open(self) -> Result<Held, String> {
        let view = self.0.view();
        let server = view.entry(BUNDLED).ok_or("there is no sandbox")?;
        let opened = self.0.open(server).await;
        opened.map_err(|refused| refused.text())
    }

    async fn write(self, attachment: &Attachment, content: &[u8]) -> Result<String, String> {
        let opened = self.open().await?;
        let name = file_name(attachment);
        let placed = opened
            .connection
            .place_attachment(&name, content, PART_LIMIT);
        let placed = placed.await.map_err(|error| error.to_string())?;
        if is_file_name(&placed) {
            Ok(format!("{FOLDER}/{placed}"))
        } else {
            Err("the sandbox gave it another name".to_owned())
        }
    }

    /// Remembers for the rest of the turn that a file cannot be put there: the text of its requests stays the
    /// same, and nobody waits again.
    pub(in crate::agent) fn note_unplaced(self, turn: TurnId, attachment: &Attachment) {
        let mut unplaced = self.unplaced();
        if unplaced.0 != turn {
            *unplaced = (turn, Vec::new());
        }
        unplaced.1.push(attachment.id.clone());
    }

    /// Returns true if that was recorded in this turn.
    pub(in crate::agent) fn is_unplaced(self, turn: TurnId, attachment: &Attachment) -> bool {
        let unplaced = self.unplaced();
        unplaced.0 == turn && unplaced.1.contains(&attachment.id)
    }

    fn unplaced(self) -> MutexGuard<'a, (TurnId, Vec<BlobId>)> {
        let unplaced = &self.0.unplaced;
        unplaced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The owner's access to the session's workspace.
pub(in crate::agent) struct OwnersDoor {
    pub(in crate::agent) tools: Arc<SessionTools>,
    /// Keeps the session and its sandbox in memory.
    pub(in crate::agent) _guest: Arc<()>,
}

#[async_trait]
impl WorkspaceDoor for OwnersDoor {
    async fn is_unused(&self) -> bool {
        self.tools.assignment.is_unclaimed().await
    }

    async fn open(&self) -> Result<Held, Refusal> {
        let unavailable = |text: String| Refusal::new(Code::SandboxUnavailable, text);
        let workspace = Workspace::of(&self.tools).ok_or_else(|| {
            let lack = self.tools.place.runtime.lack();
            let why = lack.map_or_else(
                || "its own sandbox is switched off".to_owned(),
                |lack| lack.to_string(),
            );
            unavailable(format!("this session has no files: {why}"))
        })?;
        let opening = tokio::time::timeout(START_LIMIT, workspace.open());
        let opened = opening.await.unwrap_or_else(|_| {
            let seconds = START_LIMIT.as_secs();
            Err(format!(
                "the sandbox did not start within {seconds} s; try again"
            ))
        });
        opened.map_err(unavailable)
    }

    fn room(&self) -> u64 {
        self.tools.place.bounds.workspace_bytes
    }

    fn checkpoints(&self) -> &Checkpoints {
        &self.tools.checkpoints
    }
}
