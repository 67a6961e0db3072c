//! Records the states of sessions' workspaces: scans around everything that may change files, stores the
//! changes with their causes, and restores earlier states.
//!
//! The server in the sandbox scans, because only inside it can no link lead outside. The results are stored
//! in the records, which a model's commands cannot reach and every gateway can read.

mod intake;
mod plan;
mod pruning;
mod restoring;
mod tracked;
mod undo;
mod window;

use std::time::Duration;

use tokio::sync::Mutex;

use self::pruning::prune;
use self::tracked::TrackedWorkspace;
use self::undo::UndosSeen;
use self::window::Window;
use crate::domain::{CallId, ChangeCause, SessionKey, UserId};
use crate::mcp::{Connection, FileAccess, FileError, Found};
use crate::sandbox::host::{CheckpointLimits, SandboxHost};
use crate::store::{self, Records};

pub use self::plan::{PlannedChange, UndoPlan};
pub(in crate::agent) use self::restoring::{Restoring, steps};
pub(in crate::agent) use self::undo::UndoError;
pub use self::undo::UndoResult;

/// The time limit of one request to the server in the sandbox.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The history of one session's workspace.
pub(in crate::agent) struct Checkpoints {
    records: Records,
    key: SessionKey,
    limits: CheckpointLimits,
    /// Locked during a scan, so that all changes it finds have one cause.
    state: Mutex<State>,
    undos: UndosSeen,
}

#[derive(Default)]
struct State {
    /// The workspace as of the last scan; read from the store at the first scan.
    tracked: Option<TrackedWorkspace>,
    window: Window,
    /// The cause of changes that no scan could follow.
    late: Option<ChangeCause>,
}

/// The reason the workspace could not be scanned.
#[derive(Debug, thiserror::Error)]
pub(in crate::agent) enum CheckpointError {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Files(#[from] FileError),
    #[error("another gateway went on with the history")]
    Overtaken,
}

/// The result of a scan of the workspace.
pub(in crate::agent) enum ScanResult {
    /// All entries. Any later change to a file changes its version.
    Settled(Vec<Found>),
    /// A file changed a moment ago: scan again shortly.
    Fresh,
    /// Calls run, checkpoints are off, or the server did not answer.
    Unknown,
}

impl Checkpoints {
    pub(in crate::agent) fn new(place: &SandboxHost, key: &SessionKey) -> Self {
        Self {
            records: place.records.clone(),
            key: key.clone(),
            limits: place.checkpoints,
            state: Mutex::default(),
            undos: UndosSeen::default(),
        }
    }

    /// Returns true if checkpoints are on.
    pub(in crate::agent) fn is_on(&self) -> bool {
        self.limits.steps > 0 && self.limits.bytes > 0
    }

    /// Records that a call that may change files is about to run. Stores earlier changes first, unless other
    /// calls already run.
    pub(in crate::agent) async fn before_call(&self, call: &CallId, connection: &Connection) {
        if !self.is_on() {
            return;
        }
        let mut state = self.state.lock().await;
        if state.window.is_idle() {
            self.note(&mut state, Some(connection), None).await;
        }
        state.window.enter(call);
    }

    /// Records that the call ended, and stores the changes once no other call runs. Without a connection the
    /// next scan does that. Does nothing if `before_call` did not record the call.
    pub(in crate::agent) async fn after_call(
        &self,
        call: &CallId,
        connection: Option<&Connection>,
    ) {
        let mut state = self.state.lock().await;
        if let Some(cause) = state.window.leave(call) {
            self.note(&mut state, connection, Some(cause)).await;
        }
    }

    /// Carries out a person's change to files and stores the result.
    pub(in crate::agent) async fn by_person<T>(
        &self,
        person: &UserId,
        connection: &Connection,
        change: impl Future<Output = T>,
    ) -> T {
        if !self.is_on() {
            return change.await;
        }
        let mut state = self.state.lock().await;
        if !state.window.is_idle() {
            state.window.join(person);
            return change.await;
        }
        self.note(&mut state, Some(connection), None).await;
        let done = change.await;
        let cause = ChangeCause {
            people: vec![person.clone()],
            ..ChangeCause::default()
        };
        self.note(&mut state, Some(connection), Some(cause)).await;
        done
    }

    /// Scans the workspace. The server reports only differences from the last scan, and they are stored as
    /// after any scan.
    pub(in crate::agent) async fn see(&self, connection: &Connection) -> ScanResult {
        if !self.is_on() {
            return ScanResult::Unknown;
        }
        let mut state = self.state.lock().await;
        if !state.window.is_idle() {
            return ScanResult::Unknown;
        }
        self.note(&mut state, Some(connection), None).await;
        match &state.tracked {
            Some(tracked) if tracked.is_settled => ScanResult::Settled(tracked.found()),
            Some(_) => ScanResult::Fresh,
            None => ScanResult::Unknown,
        }
    }

    /// Changes files in the place of a call that does not run, and stores the result. If `change` fails, it
    /// has changed nothing. Returns `None` if calls run.
    pub(in crate::agent) async fn by_call<T, E>(
        &self,
        call: &CallId,
        connection: &Connection,
        change: impl Future<Output = Result<T, E>>,
    ) -> Option<Result<T, E>> {
        let mut state = self.state.lock().await;
        if !state.window.is_idle() {
            return None;
        }
        if !self.is_on() {
            return Some(change.await);
        }
        self.note(&mut state, Some(connection), None).await;
        let done = change.await;
        if done.is_err() {
            return Some(done);
        }
        let cause = ChangeCause {
            calls: vec![call.clone()],
            ..ChangeCause::default()
        };
        self.note(&mut state, Some(connection), Some(cause)).await;
        Some(done)
    }

    /// Scans the workspace and stores the changes. Errors are only logged: they delay nothing that changes
    /// files, and the next scan finds the same changes.
    async fn note(
        &self,
        state: &mut State,
        connection: Option<&Connection>,
        cause: Option<ChangeCause>,
    ) {
        let noted = match connection {
            Some(connection) => self.scan(state, connection, cause.as_ref()).await,
            None => Err(None),
        };
        if let Err(error) = noted {
            if let Some(error) = error {
                tracing::warn!(session.id = %self.key.session, %error, "A state of a workspace is not kept");
            }
            let cause = cause.unwrap_or_default();
            state.late = Some(window::late(state.late.take(), cause));
        }
    }

    async fn scan(
        &self,
        state: &mut State,
        connection: &Connection,
        cause: Option<&ChangeCause>,
    ) -> Result<(), Option<CheckpointError>> {
        let access = FileAccess::new(connection, ANSWER_LIMIT);
        let cause = match (state.late.clone(), cause) {
            (Some(late), cause) => window::late(Some(late), cause.cloned().unwrap_or_default()),
            (None, cause) => cause.cloned().unwrap_or_default(),
        };
        self.scan_with_retry(state, access, &cause)
            .await
            .map_err(Some)?;
        state.late = None;
        Ok(())
    }

    /// Scans, and if another gateway stored a step first, reads its history and scans once more.
    async fn scan_with_retry(
        &self,
        state: &mut State,
        access: FileAccess<'_>,
        cause: &ChangeCause,
    ) -> Result<(), CheckpointError> {
        let mut is_second = false;
        loop {
            let mut tracked = match state.tracked.take() {
                Some(tracked) => tracked,
                None => TrackedWorkspace::load(&self.records, &self.key).await?,
            };
            match self.take_in(&mut tracked, access, cause).await {
                Ok(()) => {
                    prune(&self.records, &self.key, self.limits, &mut tracked).await?;
                    state.tracked = Some(tracked);
                    return Ok(());
                }
                Err(CheckpointError::Overtaken) if !is_second => is_second = true,
                Err(error) => return Err(error),
            }
        }
    }
}
