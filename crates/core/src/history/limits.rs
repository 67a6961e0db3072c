//! Limits how much of the past a model is sent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::strategies::CompactionStrategy;
use crate::domain::StrategyName;
use crate::session::{Compaction, Control};

/// The limits of the history in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Tokens of history; `None` = no limit.
    pub max_tokens: Option<u64>,
    /// Entries of history; `None` = no limit.
    pub max_messages: Option<usize>,
}

/// The settings of the working context.
#[derive(Clone, Default)]
pub struct ContextRules {
    pub limits: Limits,
    /// The strategies for dropping earlier turns, applied one after the other until the rest fits.
    pub strategies: Arc<[StrategyName]>,
    /// Strategies of the program that embeds the gateway. They come before a session's, unless the session
    /// drops nothing.
    pub own: Arc<[Arc<dyn CompactionStrategy>]>,
}

impl ContextRules {
    /// The limits of a session; none if the session reads the model's whole window, or never drops entries.
    pub fn limits(&self, control: &Control) -> Limits {
        let keeps_all = self.strategies(control).contains(&StrategyName::None);
        if control.context.reads_whole || keeps_all {
            Limits::default()
        } else {
            self.limits
        }
    }

    /// All strategies of a session, in order.
    pub fn all(&self, control: &Control) -> Vec<Arc<dyn CompactionStrategy>> {
        let named = self.strategies(control);
        let own = self
            .own
            .iter()
            .filter(|_| !named.contains(&StrategyName::None));
        let named = named
            .iter()
            .map(|name| Arc::new(*name) as Arc<dyn CompactionStrategy>);
        own.cloned().chain(named).collect()
    }

    /// The named strategies of a session.
    pub fn strategies<'a>(&'a self, control: &'a Control) -> &'a [StrategyName] {
        control
            .context
            .strategies
            .as_deref()
            .unwrap_or(&self.strategies)
    }
}

impl Limits {
    /// These limits for a model with a window of `window` tokens, `taken` of which are not history. A tenth
    /// of the window stays free, because counts are estimates (S3.35).
    #[must_use]
    pub fn within(self, window: u64, taken: u64) -> Self {
        self.at_most((window - window.div_ceil(10)).saturating_sub(taken))
    }

    /// These limits with at most `tokens` tokens.
    #[must_use]
    pub fn at_most(self, tokens: u64) -> Self {
        Self {
            max_tokens: Some(self.max_tokens.map_or(tokens, |most| most.min(tokens))),
            ..self
        }
    }

    /// These limits, lowered by earlier requests of the session that were too long for their provider.
    #[must_use]
    pub fn lowered(self, control: &Control) -> Self {
        let turn = control.turn.as_ref().and_then(|turn| turn.max_tokens);
        let told = [control.context.max_tokens, turn]
            .into_iter()
            .flatten()
            .min();
        told.map_or(self, |most| self.at_most(most))
    }

    /// Returns true if `others` are at least as wide as these limits.
    pub fn are_within(self, others: Self) -> bool {
        is_within(self.max_tokens, others.max_tokens)
            && is_within(self.max_messages, others.max_messages)
    }

    /// Returns true if a compaction made for other limits still applies, because these limits are at most a
    /// quarter wider in tokens and no wider in messages. Prompt and tools change slightly between requests,
    /// which must not change the history.
    pub(super) fn keep(self, made: &Compaction) -> bool {
        let tokens = made.max_tokens.map(|made| made.saturating_add(made / 4));
        let messages = self.max_messages.map(|most| most as u64);
        is_within(self.max_tokens, tokens) && is_within(messages, made.max_messages)
    }

    /// The target of a compaction, a quarter below the limits, so that the next requests fit without
    /// another one.
    #[must_use]
    pub(super) fn lower(self) -> Self {
        Self {
            max_tokens: self.max_tokens.map(|most| most - most / 4),
            max_messages: self.max_messages.map(|most| most - most / 4),
        }
    }
}

fn is_within<T: Ord>(most: Option<T>, other: Option<T>) -> bool {
    match (most, other) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(most), Some(other)) => most <= other,
    }
}
