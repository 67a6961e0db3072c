//! The states of sessions' workspaces: looked at around everything that may change files, kept with what
//! changed and why, and brought back on wish.
//!
//! The server in the sandbox looks, because only inside the walls do links lead nowhere. What it tells is
//! kept in the records, which no command of a model reaches and every gateway reads.

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
use self::tracked::Tracked;
use self::undo::UndosSeen;
use self::window::Window;
use crate::domain::{CallId, ChangeCause, SessionKey, UserId};
use crate::mcp::{Connection, FileAccess, FileError, Found};
use crate::sandbox::host::{CheckpointLimits, SandboxHost};
use crate::store::{self, Records};

pub use self::plan::{PlannedChange, UndoPlan};
pub(in crate::agent) use self::restoring::{Restoring, steps};
pub(in crate::agent) use self::undo::UndoError;
pub use self::undo::Undone;

/// How long one question to the server in the sandbox may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The history of one session's workspace.
pub(in crate::agent) struct Checkpoints {
    records: Records,
    key: SessionKey,
    limits: CheckpointLimits,
    /// Held while the workspace is looked at: what is found then belongs to one cause.
    state: Mutex<State>,
    undos: UndosSeen,
}

#[derive(Default)]
struct State {
    /// The workspace as it was last seen; read from the store at the first look.
    tracked: Option<Tracked>,
    window: Window,
    /// What changed files and could not be followed by a look.
    late: Option<ChangeCause>,
}

/// Why the workspace could not be looked at.
#[derive(Debug, thiserror::Error)]
pub(in crate::agent) enum CheckpointError {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Files(#[from] FileError),
    #[error("another gateway went on with the history")]
    Overtaken,
}

/// What a look at a workspace shows.
pub(in crate::agent) enum Seen {
    /// Every entry, and each file would have another version if it were changed from now on.
    Settled(Vec<Found>),
    /// A file was changed a moment ago: look again in a moment.
    Fresh,
    /// Calls run, nothing is kept here, or the server gave no answer.
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

    /// Whether anything is kept at all.
    pub(in crate::agent) fn is_on(&self) -> bool {
        self.limits.steps > 0 && self.limits.bytes > 0
    }

    /// Notes that a call is about to run that may change files. What changed before is kept first, unless
    /// other calls run already.
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

    /// Notes that the call has ended, and keeps what changed, once no other call runs. Without a
    /// connection that is left to the next look. Nothing where the call was not noted before.
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

    /// Does what a person wants with files, and keeps what changed by it.
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

    /// The workspace as it is now. The server tells only what is not as it was last seen, which is kept as
    /// at any look.
    pub(in crate::agent) async fn see(&self, connection: &Connection) -> Seen {
        if !self.is_on() {
            return Seen::Unknown;
        }
        let mut state = self.state.lock().await;
        if !state.window.is_idle() {
            return Seen::Unknown;
        }
        self.note(&mut state, Some(connection), None).await;
        match &state.tracked {
            Some(tracked) if tracked.is_settled => Seen::Settled(tracked.found()),
            Some(_) => Seen::Fresh,
            None => Seen::Unknown,
        }
    }

    /// Changes files in the place of a call that does not run, and keeps what changed by it, unless `change`
    /// fails: then it has changed nothing. None where calls run.
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

    /// Looks at the workspace and keeps what changed. What goes wrong is a matter of the log: nothing that
    /// changes files is held up by it, and the next look finds the same.
    async fn note(
        &self,
        state: &mut State,
        connection: Option<&Connection>,
        cause: Option<ChangeCause>,
    ) {
        let noted = match connection {
            Some(connection) => self.look(state, connection, cause.as_ref()).await,
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

    async fn look(
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
        self.look_again(state, access, &cause).await.map_err(Some)?;
        state.late = None;
        Ok(())
    }

    /// Where another gateway was faster, its history is read, and the look repeated once.
    async fn look_again(
        &self,
        state: &mut State,
        access: FileAccess<'_>,
        cause: &ChangeCause,
    ) -> Result<(), CheckpointError> {
        let mut is_second = false;
        loop {
            let mut tracked = match state.tracked.take() {
                Some(tracked) => tracked,
                None => Tracked::load(&self.records, &self.key).await?,
            };
            match self.take_in(&mut tracked, access, cause).await {
                Ok(()) => {
                    prune((&self.records, &self.key), self.limits, &mut tracked).await?;
                    state.tracked = Some(tracked);
                    return Ok(());
                }
                Err(CheckpointError::Overtaken) if !is_second => is_second = true,
                Err(error) => return Err(error),
            }
        }
    }
}
