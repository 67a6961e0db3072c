//! Compaction that the vendor of a model makes itself: when it is asked for it, what it makes of the
//! limits, and what is told of it.

use super::Asked;
use crate::agent::effects::session_agent::RequestBase;
use crate::agent::feed::{Notice, What};
use crate::domain::{MicroUsd, TokenUsage, TurnId};
use crate::history::{Limits, Window};
use crate::llm::catalogue::Model;
use crate::llm::{self, CompactedInput, Compacting, Compactor};
use crate::providers::Candidate;
use crate::session::{CompactedByVendor, ModelChoice};

/// Percent by which a vendor may count more input than was counted here.
const MARGIN: u64 = 5;

/// What the vendor of the model that is asked may compact.
#[derive(Debug, Default)]
pub(in crate::agent) struct ByVendor {
    /// How much of the past it may read.
    pub(in crate::agent) lowered: Limits,
    /// How it compacts; none = Sepal makes room.
    pub(in crate::agent) compactor: Option<Compactor>,
    /// Whether a vendor did not take back what it had compacted.
    pub(in crate::agent) is_block_refused: bool,
}

impl ByVendor {
    /// From here on that model is asked, whose vendor may compact. What the session's providers chose of
    /// the history, where it is not whole, has other places than what was compacted.
    pub(super) fn ask(&mut self, candidate: &Candidate, is_whole: bool) {
        let compactor = candidate.provider.compactor(&candidate.choice.model);
        self.compactor = compactor.filter(|_| is_whole);
    }

    /// Whose blocks stand for what was said before them.
    pub(super) fn resumable(&self) -> Option<&str> {
        let compactor = self.compactor.as_ref().filter(|_| !self.is_block_refused);
        compactor.map(|it| it.family.as_str())
    }

    /// How much of the past the model may read: where its vendor compacts, as much as its window holds,
    /// else what the session lets it read.
    pub(super) fn limits(&self, own: Limits) -> Limits {
        match self.compactor {
            Some(_) => self.lowered,
            None => own,
        }
    }

    /// What a request lets its vendor do.
    pub(super) fn compacting(
        &self,
        own: Limits,
        (base, shown): (&RequestBase, &Window),
    ) -> Option<Compacting> {
        let compactor = self.compactor.as_ref()?;
        let with_rest = |history: u64| history.saturating_add(base.tokens);
        let room = base.limits.max_tokens.map_or(u64::MAX, with_rest);
        Some(Compacting {
            threshold: compactor.threshold(room, own.max_tokens.map(with_rest)),
            resumes: shown.resumed.is_some(),
        })
    }

    /// Whether the same is to be asked once more because the vendor refused the request with what it had
    /// compacted before, which another model of its may not read: then the conversation counts again.
    pub(super) fn forgets_block(&mut self, asked: &Asked, error: &llm::Error) -> bool {
        let is_refused = asked.shown.resumed.is_some() && error.is_refused_request();
        if is_refused {
            tracing::warn!(?error, "A vendor refuses what it has compacted");
            self.is_block_refused = true;
        }
        is_refused
    }
}

/// What people are told where a vendor refuses its own block.
pub(super) fn refused(turn: TurnId) -> What {
    What::Notice(Notice {
        text:
            "The provider does not take back what it compacted: the conversation is sent again, as \
               far as it fits"
                .to_owned(),
        code: "compaction_refused".into(),
        turn,
        retry: None,
    })
}

/// What people are told of what a vendor compacted.
pub(super) fn told(
    compacted: &CompactedInput,
    choice: &ModelChoice,
    model: &Model,
) -> CompactedByVendor {
    let CompactedInput {
        summary,
        before,
        after,
        usage,
    } = compacted;
    tracing::info!(
        llm.provider = %choice.provider,
        llm.model = %choice.model,
        before.tokens = before,
        after.tokens = after,
        "The vendor compacted the context"
    );
    CompactedByVendor {
        provider: choice.provider.clone(),
        model: choice.model.clone(),
        summary: summary.clone(),
        before: *before,
        after: *after,
        usage: *usage,
        cost: usage.and_then(|usage| model.price(&usage)),
    }
}

impl Asked {
    /// Tokens of input that have to be paid for. Where the vendor is going to compact, it reads them once
    /// more: what it writes and what the model reads then is less than that.
    pub(super) fn paid_tokens(&self) -> u64 {
        let counted = self.tokens.saturating_mul(100 + MARGIN) / 100;
        let compacting = self.body.compacting.filter(|it| counted >= it.threshold);
        compacting.map_or(self.tokens, |_| self.tokens.saturating_mul(2))
    }
}

/// What an answer cost. What was compacted before it was a pass of its own, with a length of its own, on
/// which prices may depend.
pub(super) fn price(
    model: &Model,
    usage: TokenUsage,
    compacted: Option<&CompactedByVendor>,
) -> Option<MicroUsd> {
    let Some(part) = compacted.and_then(|it| it.usage) else {
        return model.price(&usage);
    };
    let (own, compacting) = (usage.without(part), model.price(&part)?);
    Some(MicroUsd(model.price(&own)?.0.saturating_add(compacting.0)))
}
