//! How much of the past a session lets a model read whose vendor compacts.

use super::session_agent::SessionAgent;
use crate::history;
use crate::llm::Compactor;
use crate::session::{Control, ModelChoice};

impl SessionAgent {
    /// How much of the past a request to that model may read: where its vendor compacts, as much as its window holds.
    pub(in crate::agent) fn limits_of(
        &self,
        control: &Control,
        choice: &ModelChoice,
    ) -> history::Limits {
        match self.compactor(choice) {
            Some(_) => lowered(control),
            None => self.turn_limits(control),
        }
    }

    /// How a model's vendor compacts what it is sent; none = Sepal does.
    pub(in crate::agent) fn compactor(&self, choice: &ModelChoice) -> Option<Compactor> {
        let offer = self.providers.find(&self.tenant, &choice.provider);
        offer?.provider.compactor(&choice.model)
    }
}

/// What requests may still read since one was too long for its provider.
pub(in crate::agent) fn lowered(control: &Control) -> history::Limits {
    let turn = control.turn.as_ref().and_then(|turn| turn.max_tokens);
    history::Limits {
        max_tokens: [control.max_tokens, turn].into_iter().flatten().min(),
        max_messages: None,
    }
}
