//! Joins the requests of one answer: the vendor may pause it and may compact its input.

use std::collections::VecDeque;
use std::sync::PoisonError;

use serde_json::Value;

use super::{Assembler, MAX_PAUSES, Open, index};
use crate::anthropic::wire::Event;
use crate::{CompactedInput, Finish, ModelEvent};
use sepal_core::domain::TokenUsage;

impl Assembler {
    /// Applies a delta of a compaction block: appends each text to the field of the same name.
    pub(super) fn compact(&mut self, event: &Event<'_>) {
        let at = index(event);
        let block = self.blocks.iter().find(|(known, _)| *known == at);
        let Some((_, Open::Compaction(at))) = block else {
            return;
        };
        let delta = event.delta.map(|raw| serde_json::from_str(raw.get()));
        let Some(Ok(Value::Object(pieces))) = delta else {
            return;
        };
        for (name, piece) in pieces.iter().filter(|(name, _)| *name != "type") {
            if let Value::String(piece) = piece {
                self.kept.extend(*at, name, piece);
            }
        }
    }

    /// Tokens that all requests of this answer used, if the vendor reported them.
    pub(super) fn used(&self) -> Option<TokenUsage> {
        match self.usage.tokens() {
            Some(usage) => Some(self.spent.and(usage)),
            None => (self.pauses > 0).then_some(self.spent),
        }
    }

    /// Returns true if the vendor only paused the answer. Reports the pause; the answer goes on with the next
    /// message.
    pub(super) fn goes_on(&mut self, out: &mut VecDeque<ModelEvent>) -> bool {
        let is_paused = self.finish == Some(Finish::Paused) && self.calls == 0;
        let Some(pause) = self.pause.clone() else {
            return false;
        };
        if !is_paused || self.pauses >= MAX_PAUSES {
            return false;
        }
        self.pauses += 1;
        self.close_all(out);
        self.finish = None;
        let used = std::mem::take(&mut self.usage);
        self.spent = self.spent.and(used.tokens().unwrap_or_default());
        if used.compaction().is_some() {
            let compacting = self.compacting.unwrap_or_default();
            self.compacting = Some(compacting.and(used.compaction().unwrap_or_default()));
            self.sizes = used.sizes();
        }
        let said = self.kept.said();
        *pause.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
        true
    }

    /// The compaction that the vendor made before it answered, if it gave a summary.
    pub(super) fn compacted(&self) -> Option<CompactedInput> {
        let summary = self.kept.summary()?;
        let now = self.usage.compaction();
        let (before, after) = now.map_or(self.sizes, |_| self.usage.sizes());
        Some(CompactedInput {
            summary: Some(summary.to_owned()),
            before,
            after,
            usage: self
                .compacting
                .into_iter()
                .chain(now)
                .reduce(TokenUsage::and),
        })
    }
}
