//! The calls of a turn as they stand.

use std::sync::Arc;

use crate::domain::{Actor, Entry, Memo, Role, Timestamp, UserId};
use crate::session::{
    Call, Control, Elicitation, SessionState, elicitations_wait_since, waiting_since,
};

/// The calls of the running turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueState {
    /// All calls of the last answer, and those of views that have not ended.
    pub calls: Vec<Arc<Call>>,
    /// What servers ask while calls run, as far as nobody has answered.
    pub elicitations: Vec<Arc<Elicitation>>,
    /// What the model said with them.
    pub said: String,
    /// The `seq` that this reflects.
    pub seq: u64,
}

/// What waits for one person.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::agent) struct QueueView {
    /// The calls: all of the owner's, and of another's session those that the person may decide.
    pub queue: QueueState,
    /// What led to them, where the session is another's: nothing else of it is theirs to see.
    pub others: Option<OthersSession>,
}

/// What somebody is told of another's session in which they may decide.
#[derive(Debug, Clone, PartialEq)]
pub struct OthersSession {
    /// Whose it is.
    pub owner: Actor,
    /// The newest message of a person, which the calls are for.
    pub prompt: String,
}

impl QueueView {
    /// What that person may see of what waits; nothing where nothing waits for them.
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
            call.is_pending() && wants.may_approve((who, Some(role)), Some(&owner.id))
        };
        let calls = queue.calls.iter().filter(may_decide);
        // The card that is kept has its place among all of them.
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
                // What its server asks is its owner's to answer.
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
    /// The calls of a session as its journal says.
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

    /// Since when the oldest of the calls and forms waits that wait for a person; none = none does.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        let asked = elicitations_wait_since(&self.elicitations);
        waiting_since(&self.calls).into_iter().chain(asked).min()
    }
}
