//! Records the tasks that servers create for running calls, and lets them be followed once the journal has
//! them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::Outcomes;
use crate::domain::{CallId, Timestamp};
use crate::mcp::NewTask;
use crate::session::{CallTask, Command, Control};

/// The created tasks that the journal does not have yet.
#[derive(Clone, Default)]
pub(super) struct CreatedTasks {
    /// Never held across an await.
    waiting: Arc<Mutex<BTreeMap<CallId, oneshot::Sender<()>>>>,
}

impl CreatedTasks {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<CallId, oneshot::Sender<()>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a created task to the session.
    pub(super) fn submit(
        &self,
        call: &CallId,
        new: NewTask,
        (outcomes, tracker): (&Outcomes, &TaskTracker),
    ) {
        let NewTask {
            id,
            ttl_ms,
            server,
            kept,
        } = new;
        self.waiting().insert(call.clone(), kept);
        let created = Command::TaskCreated {
            call: call.clone(),
            task: CallTask {
                id,
                server,
                ttl_ms,
                since: Timestamp::default(),
            },
        };
        let outcomes = outcomes.clone();
        tracker.spawn(async move { outcomes.submit(created).await });
    }

    /// Releases the tasks that the journal now has, so that they are followed.
    pub(super) fn pass_on(&self, control: &Control) {
        for call in control.calls().filter(|call| call.task.is_some()) {
            if let Some(kept) = self.waiting().remove(&call.id) {
                // An error means that the call has ended meanwhile.
                let _ = kept.send(());
            }
        }
    }

    /// Drops the tasks of calls that no longer run here.
    pub(super) fn retain(&self, runs: impl Fn(&CallId) -> bool) {
        self.waiting().retain(|call, _| runs(call));
    }
}
