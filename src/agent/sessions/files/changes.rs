//! Shows the changes of a session's workspace and who made them, to the owner; and undoes them.

use super::{SessionFiles, refused};
use crate::agent::Sessions;
use crate::agent::checkpoints::{CheckpointError, UndoError, UndoPlan, UndoResult};
use crate::agent::mailbox::store_away;
use crate::domain::{Caller, Code, FileChange, FileState, SessionKey, WorkspaceChange};
use crate::mcp::FileError;
use crate::session::Refusal;
use crate::store::Error;

/// A file before and after a step, with its content if that is stored.
type ChangedFile = (
    Option<(FileState, Option<Vec<u8>>)>,
    Option<(FileState, Option<Vec<u8>>)>,
);

/// The history of one session's workspace. It is read from the records, without starting a sandbox.
pub struct WorkspaceHistory<'s> {
    sessions: &'s Sessions,
    key: &'s SessionKey,
}

impl<'s> WorkspaceHistory<'s> {
    /// Opens the history for the owner of the session; to anybody else the session does not exist.
    pub async fn open(
        sessions: &'s Sessions,
        key: &'s SessionKey,
        caller: &Caller,
    ) -> Result<Self, Refusal> {
        sessions.admit(key, caller).await?;
        Ok(Self { sessions, key })
    }

    /// Lists the stored steps, newest first.
    pub async fn steps(&self) -> Result<Vec<WorkspaceChange>, Refusal> {
        let rows = self.sessions.0.factory.parts.place.records.checkpoints();
        rows.history(self.key).await.map_err(|error| away(&error))
    }

    /// Returns one step with the paths that it changed.
    pub async fn step(&self, number: u64) -> Result<(WorkspaceChange, Vec<FileChange>), Refusal> {
        let rows = self.sessions.0.factory.parts.place.records.checkpoints();
        let step = rows.change(self.key, number).await;
        let step = step.map_err(|error| away(&error))?;
        step.ok_or_else(|| Refusal::new(Code::NotFound, UndoError::Gone.to_string()))
    }

    /// Returns a path that a step changed, with its contents.
    pub async fn file(&self, number: u64, path: &str) -> Result<ChangedFile, Refusal> {
        let (_, changes) = self.step(number).await?;
        let change = changes.into_iter().find(|change| change.path == path);
        let missing = || {
            let text = format!("`{path}` is not among the files of that change");
            Refusal::of_field(Code::NotFound, "path", text)
        };
        let change = change.ok_or_else(missing)?;
        Ok((
            self.with_content(change.before).await?,
            self.with_content(change.after).await?,
        ))
    }

    async fn with_content(
        &self,
        state: Option<FileState>,
    ) -> Result<Option<(FileState, Option<Vec<u8>>)>, Refusal> {
        let Some(state) = state else { return Ok(None) };
        let rows = self.sessions.0.factory.parts.place.records.checkpoints();
        let content = match &state.content {
            Some(hash) => rows.content(self.key, hash).await,
            None => Ok(None),
        };
        let content = content.map_err(|error| away(&error))?;
        Ok(Some((state, content)))
    }
}

impl SessionFiles {
    /// Plans what restoring the workspace to its state before a step would change now.
    pub async fn plan_undo(&self, number: u64) -> Result<UndoPlan, Refusal> {
        self.check_history()?;
        let opened = self.door.open().await?;
        let kept = self.door.checkpoints();
        let plan = kept.plan_undo(number, &opened.connection).await;
        plan.map_err(not_undone)
    }

    /// Restores that state, if the plan is still the one that was shown.
    pub async fn undo(&self, number: u64, shown: &str) -> Result<UndoResult, Refusal> {
        self.check_history()?;
        let opened = self.door.open().await?;
        let kept = self.door.checkpoints();
        let undone = kept.undo(number, shown, &self.by, &opened.connection);
        undone.await.map_err(not_undone)
    }

    fn check_history(&self) -> Result<(), Refusal> {
        if self.door.checkpoints().is_on() {
            return Ok(());
        }
        let text = "no history of workspaces is kept here (`sandbox.checkpoints`)";
        Err(Refusal::new(Code::NotAllowed, text))
    }
}

fn not_undone(error: UndoError) -> Refusal {
    let text = error.to_string();
    match error {
        UndoError::CallsRun => Refusal::new(Code::NothingToDo, text),
        UndoError::Gone => Refusal::new(Code::NotFound, text),
        UndoError::Changed => Refusal::of_field(Code::ChangedSinceShown, "digest", text),
        UndoError::Checkpoint(CheckpointError::Store(error)) => away(&error),
        UndoError::Checkpoint(CheckpointError::Overtaken) => {
            let text = "another gateway changed the files of this session meanwhile; try again";
            Refusal::new(Code::SandboxUnavailable, text)
        }
        UndoError::Checkpoint(CheckpointError::Files(FileError::Refused { text, .. })) => {
            let text = format!("the workspace cannot be looked at: {text}; delete files first");
            Refusal::new(Code::TooLarge, text)
        }
        UndoError::Checkpoint(CheckpointError::Files(error)) => refused(error),
    }
}

fn away(error: &Error) -> Refusal {
    tracing::warn!(?error, "The history of a workspace cannot be read");
    store_away()
}
