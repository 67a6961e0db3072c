//! Computes the queue of a session as people see it.

use std::sync::Arc;

use crate::domain::{Actor, Entry, Memo, Role, Timestamp, UserId};
use crate::session::{
    Call, Control, Elicitation, SessionState, elicitations_wait_since, waiting_since,
};

/// The calls of the running turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueState {
    /// All calls of the last answer, and the open calls of views.
    pub calls: Vec<Arc<Call>>,
    /// The open elicitations of servers whose calls run.
    pub elicitations: Vec<Arc<Elicitation>>,
    /// The text of the answer that asked for the calls.
    pub said: String,
    /// The `seq` of this state.
    pub seq: u64,
}

/// The queue as one person may see it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::agent) struct QueueView {
    /// For the owner all calls; in another's session only those that the person may decide.
    pub queue: QueueState,
    /// The context of the calls, if the session is another's: nothing else of it is visible to the person.
    pub others: Option<OthersSession>,
}

/// The visible part of another's session in which a person may decide.
#[derive(Debug, Clone, PartialEq)]
pub struct OthersSession {
    /// The owner of the session.
    pub owner: Actor,
    /// The newest message of a person, which led to the calls.
    pub prompt: String,
}

impl QueueView {
    /// Returns the part of the queue that the person may see; empty if nothing waits for them.
    pub(in crate::agent) fn of(state: &SessionState, (who, role): (&UserId, Role)) -> Self {
        let control = &state.control;
        let queue = QueueState::of(control);
        let Some(owner) = &control.owner else {
            return Self::default();
        };
        if owner.id == *who {
            return Self {
                queue,
                others: None,
            };
        }
        let may_decide = |call: &&Arc<Call>| {
            let wants = &call.wants;
            call.is_pending() && wants.may_approve(who, Some(role), Some(&owner.id))
        };
        let calls = queue.calls.iter().filter(may_decide);
        // The cached card includes the call's place among all calls, so it is dropped.
        let alone = calls.map(|call| {
            Arc::new(Call {
                card: Memo::default(),
                ..Call::clone(call)
            })
        });
        let prompt = state
            .entries
            .iter()
            .rev()
            .find_map(|entry| match &***entry {
                Entry::User { text, .. } => Some(text.clone()),
                Entry::Assistant { .. } | Entry::ToolResult { .. } | Entry::Note { .. } => None,
            });
        Self {
            queue: QueueState {
                calls: alone.collect(),
                // Elicitations are for the owner to answer.
                elicitations: Vec::new(),
                ..queue
            },
            others: Some(OthersSession {
                owner: owner.clone(),
                prompt: prompt.unwrap_or_default(),
            }),
        }
    }
}

impl QueueState {
    /// Computes the queue from the journal's state.
    pub(in crate::agent) fn of(control: &Control) -> Self {
        let turn = control.turn.as_ref();
        let queue = turn.into_iter().flat_map(|turn| &turn.queue);
        let asked = control.elicitations();
        Self {
            calls: queue.chain(control.views.open()).cloned().collect(),
            elicitations: asked.filter(|asked| asked.is_open()).cloned().collect(),
            said: turn.map(|turn| turn.said.clone()).unwrap_or_default(),
            seq: control.seq,
        }
    }

    /// The time since which the oldest call or form waits for a person; `None` if none waits.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        let asked = elicitations_wait_since(&self.elicitations);
        waiting_since(&self.calls).into_iter().chain(asked).min()
    }
}
