//! The requests of one answer: the vendor pauses it, and compacts what it was sent.

use std::collections::VecDeque;
use std::sync::PoisonError;

use serde_json::Value;

use super::{Assembler, MAX_PAUSES, Open, index};
use crate::anthropic::wire::Event;
use crate::{CompactedInput, Finish, ModelEvent};
use sepal_core::domain::TokenUsage;

impl Assembler {
    /// A piece of what stands for all that was said before: each of its texts grows by its own name.
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

    /// What all requests of this answer used, as far as the vendor told it.
    pub(super) fn used(&self) -> Option<TokenUsage> {
        match self.usage.tokens() {
            Some(usage) => Some(self.spent.and(usage)),
            None => (self.pauses > 0).then_some(self.spent),
        }
    }

    /// Whether the vendor only paused the answer: then it is told, and goes on with the next message.
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

    /// What the vendor compacted before it answered, as far as it tells.
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
