//! The tokens of a request: what counts them, and what the provider's report teaches.

use super::model_request::ModelRequest;
use crate::domain::Entry;
use crate::llm;
use crate::llm::tokens::Counter;
use crate::session::ModelChoice;

impl ModelRequest {
    /// Counts what was never counted, beside the async threads where that takes a while.
    pub(super) async fn weigh(&self, choice: &ModelChoice) -> Counter {
        let counter = self.agent.counter(choice);
        if counter.is_quick(self.entries.iter().map(|entry| &**entry)) {
            return counter;
        }
        let entries = self.entries.clone();
        let weighed = tokio::task::spawn_blocking(move || {
            for entry in &entries {
                counter.of_entry(entry);
            }
        });
        if weighed.await.is_err() {
            return Counter::default();
        }
        counter
    }

    /// Learns from what the provider counted.
    pub(super) fn calibrate(&self, choice: &ModelChoice, answer: &llm::Answer, counted: u64) {
        let agent = &self.agent;
        let offer = agent.providers.find(&agent.tenant, &choice.provider);
        // What pictures cost is a guess, and would make texts look dearer or cheaper than they are.
        let has_attachments = self.entries.iter().any(|entry| match &***entry {
            Entry::User { attachments, .. } | Entry::ToolResult { attachments, .. } => {
                !attachments.is_empty()
            }
            Entry::Assistant { .. } | Entry::Note { .. } => false,
        });
        if let (Some(offer), Some(usage)) = (offer, &answer.usage)
            && !usage.is_estimated
            && !has_attachments
        {
            offer.calibrate(&choice.model, counted, usage.input_tokens);
        }
    }
}
