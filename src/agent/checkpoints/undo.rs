//! Restores the workspace to its state before a step, and stores that as a step too.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::{PlannedChange, UndoPlan, plan};
use super::restoring::restore;
use super::tracked::TrackedWorkspace;
use super::{CheckpointError, Checkpoints, State};
use crate::domain::{ChangeCause, UserId};
use crate::mcp::{Connection, FileAccess, Unrestored};
use crate::store::Error;

/// The result of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoResult {
    /// The step of the undo itself; `None` if nothing had to change.
    pub number: Option<u64>,
    /// The number of restored paths.
    pub restored: u64,
    /// The paths that are not restored, with reasons.
    pub unrestored: Vec<Unrestored>,
}

/// The reason an undo was refused.
#[derive(Debug, thiserror::Error)]
pub(in crate::agent) enum UndoError {
    #[error("calls run in this session; wait until they have ended, or stop them, and undo then")]
    CallsRun,
    #[error("that change is not kept any more: only the newest changes of a session are")]
    Gone,
    #[error("the files have changed since this was shown; look at what would change now")]
    Changed,
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

impl Checkpoints {
    /// Plans what restoring the workspace to its state before that step would change now.
    pub(in crate::agent) async fn plan_undo(
        &self,
        number: u64,
        connection: &Connection,
    ) -> Result<UndoPlan, UndoError> {
        let mut state = self.state.lock().await;
        self.plan(&mut state, number, connection).await
    }

    /// Restores the workspace to its state before that step, if the plan is the one that was shown. Paths
    /// that cannot be restored stay as they are.
    pub(in crate::agent) async fn undo(
        &self,
        number: u64,
        shown: &str,
        by: &UserId,
        connection: &Connection,
    ) -> Result<UndoResult, UndoError> {
        let mut state = self.state.lock().await;
        let plan = self.plan(&mut state, number, connection).await?;
        if plan.digest != shown {
            return Err(UndoError::Changed);
        }
        let before = state.tracked.as_ref().map_or(0, |tracked| tracked.number);
        let access = FileAccess::new(connection, super::ANSWER_LIMIT);
        let failed = restore(&self.records, &self.key, &plan, access).await;
        let cause = ChangeCause {
            people: vec![by.clone()],
            undoes: Some(number),
            ..ChangeCause::default()
        };
        // Also after a failure: the partial result is a step that can be undone.
        let scanned = self.scan_with_retry(&mut state, access, &cause).await;
        self.undos.add();
        scanned?;
        let failed = failed?;
        let Some(tracked) = &state.tracked else {
            return Err(CheckpointError::Overtaken.into());
        };
        Ok(undone(plan, tracked, before, &failed))
    }

    /// Returns the paths that people restored since the last call that changed files, sorted.
    pub(in crate::agent) async fn undone_since_calls(&self) -> Result<Vec<String>, Error> {
        if self.undos.are_known_as_none() {
            return Ok(Vec::new());
        }
        let undos = self.undos.count();
        let rows = self.records.checkpoints();
        let history = rows.history(&self.key).await?;
        let newest = history
            .iter()
            .take_while(|step| step.cause.calls.is_empty());
        let mut paths = BTreeSet::new();
        for step in newest.filter(|step| step.cause.undoes.is_some()) {
            let change = rows.change(&self.key, step.number).await?;
            let changes = change.map(|(_, changes)| changes).unwrap_or_default();
            paths.extend(changes.into_iter().map(|change| change.path));
        }
        if paths.is_empty() {
            self.undos.none_until(undos);
        }
        Ok(paths.into_iter().collect())
    }

    async fn plan(
        &self,
        state: &mut State,
        number: u64,
        connection: &Connection,
    ) -> Result<UndoPlan, UndoError> {
        if !state.window.is_idle() {
            return Err(UndoError::CallsRun);
        }
        let access = FileAccess::new(connection, super::ANSWER_LIMIT);
        let cause = state.late.clone().unwrap_or_default();
        self.scan_with_retry(state, access, &cause).await?;
        state.late = None;
        let rows = self.records.checkpoints();
        let steps = rows.changes_from(&self.key, number).await;
        let steps = steps.map_err(CheckpointError::from)?;
        let Some(tracked) = &state.tracked else {
            return Err(CheckpointError::Overtaken.into());
        };
        if steps.first().is_none_or(|(first, _)| *first != number) {
            return Err(UndoError::Gone);
        }
        Ok(plan(number, tracked, &steps))
    }
}

/// Remembers whether the history has to be read for undos. Only the gateway that runs the session undoes, so
/// once the history shows no undo, that holds until one is made here.
#[derive(Debug)]
pub(super) struct UndosSeen {
    /// The number of undos made here.
    made: AtomicU64,
    /// The value of `made` when the history had no undo since the last call.
    none_at: AtomicU64,
}

impl Default for UndosSeen {
    fn default() -> Self {
        Self {
            made: AtomicU64::new(0),
            none_at: AtomicU64::new(u64::MAX),
        }
    }
}

impl UndosSeen {
    fn count(&self) -> u64 {
        self.made.load(Ordering::Acquire)
    }

    fn add(&self) {
        self.made.fetch_add(1, Ordering::AcqRel);
    }

    fn none_until(&self, count: u64) {
        self.none_at.store(count, Ordering::Release);
    }

    fn are_known_as_none(&self) -> bool {
        self.none_at.load(Ordering::Acquire) == self.count()
    }
}

/// Sorts the paths of a plan into restored and not restored ones.
fn undone(
    plan: UndoPlan,
    tracked: &TrackedWorkspace,
    before: u64,
    failed: &[Unrestored],
) -> UndoResult {
    let (mut restored, mut unrestored) = (0, Vec::new());
    for PlannedChange {
        change,
        is_possible,
    } in plan.changes
    {
        let is_done = match (tracked.entries.get(&change.path), &change.after) {
            (Some(is), Some(was)) => is.is_like(was),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_done {
            restored += 1;
            continue;
        }
        let why = failed.iter().find(|failed| failed.path == change.path);
        let text = match why {
            Some(failed) => failed.text.clone(),
            None if is_possible => "it was changed meanwhile".to_owned(),
            None => "its content is not kept".to_owned(),
        };
        unrestored.push(Unrestored {
            path: change.path,
            text,
        });
    }
    UndoResult {
        number: (tracked.number > before).then_some(tracked.number),
        restored,
        unrestored,
    }
}
