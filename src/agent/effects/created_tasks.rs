//! Tasks that servers made of running calls: told to the session, and followed once the journal has them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::Outcomes;
use crate::domain::{CallId, Timestamp};
use crate::mcp::NewTask;
use crate::session::{CallTask, Command, Control};

/// Those that the journal does not have yet.
#[derive(Clone, Default)]
pub(super) struct CreatedTasks {
    /// Never held across an await.
    waiting: Arc<Mutex<BTreeMap<CallId, oneshot::Sender<()>>>>,
}

impl CreatedTasks {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<CallId, oneshot::Sender<()>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the session of a task.
    pub(super) fn tell(
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
        tracker.spawn(async move { outcomes.tell(created).await });
    }

    /// Lets those be followed that the journal has.
    pub(super) fn pass_on(&self, control: &Control) {
        for call in control.calls().filter(|call| call.task.is_some()) {
            if let Some(kept) = self.waiting().remove(&call.id) {
                // The call has ended meanwhile.
                let _ = kept.send(());
            }
        }
    }

    /// Lets go of those whose calls do not run here any more.
    pub(super) fn retain(&self, runs: impl Fn(&CallId) -> bool) {
        self.waiting().retain(|call, _| runs(call));
    }
}
