//! Uses compaction by a model's vendor: decides when to request it, adapts the limits, and reports the
//! result.

use super::PreparedRequest;
use crate::agent::effects::session_agent::RequestBase;
use crate::agent::feed::{FeedItem, Notice};
use crate::domain::{MicroUsd, TokenUsage, TurnId};
use crate::history::{Limits, Window};
use crate::llm::catalogue::Model;
use crate::llm::{self, CompactedInput, Compacting, Compactor};
use crate::providers::Candidate;
use crate::session::{CompactedByVendor, ModelChoice};

/// The percentage by which a vendor may count more input than was counted here.
const MARGIN: u64 = 5;

/// The compaction by the vendor of the current model.
#[derive(Debug, Default)]
pub(in crate::agent) struct ByVendor {
    /// The limits of the history that the vendor may read.
    pub(in crate::agent) lowered: Limits,
    /// The vendor's compactor; `None` = Sepal compacts.
    pub(in crate::agent) compactor: Option<Compactor>,
    /// True if a vendor refused its own compacted block.
    pub(in crate::agent) is_block_refused: bool,
}

impl ByVendor {
    /// Sets the compactor for a candidate. A history that context providers have changed is excluded: its
    /// positions do not match those of the compacted block.
    pub(super) fn ask(&mut self, candidate: &Candidate, is_whole: bool) {
        let compactor = candidate.provider.compactor(&candidate.choice.model);
        self.compactor = compactor.filter(|_| is_whole);
    }

    /// The family whose compacted blocks can replace the entries before them.
    pub(super) fn resumable(&self) -> Option<&str> {
        let compactor = self.compactor.as_ref().filter(|_| !self.is_block_refused);
        compactor.map(|it| it.family.as_str())
    }

    /// Returns how much of the history the model may read: the whole window if its vendor compacts, otherwise
    /// what the session lets it read.
    pub(super) fn limits(&self, own: Limits) -> Limits {
        match self.compactor {
            Some(_) => self.lowered,
            None => own,
        }
    }

    /// Returns the compaction to request from the vendor.
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

    /// Returns true if the request should be repeated without the vendor's compacted block, because the
    /// vendor refused it, which can happen with another of its models. The repeated request has the
    /// conversation itself.
    pub(super) fn forgets_block(&mut self, asked: &PreparedRequest, error: &llm::Error) -> bool {
        let is_refused = asked.shown.resumed.is_some() && error.is_refused_request();
        if is_refused {
            tracing::warn!(?error, "A vendor refuses what it has compacted");
            self.is_block_refused = true;
        }
        is_refused
    }
}

/// The notice that a vendor refused its own block.
pub(super) fn refused(turn: TurnId) -> FeedItem {
    FeedItem::Notice(Notice {
        text:
            "The provider does not take back what it compacted: the conversation is sent again, as \
               far as it fits"
                .to_owned(),
        code: "compaction_refused".into(),
        turn,
        retry: None,
    })
}

/// Describes a vendor's compaction for people.
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

impl PreparedRequest {
    /// Returns the input tokens to pay for: twice the request if the vendor is going to compact, because it
    /// reads the request once more, and what it then writes and reads is less than that.
    pub(super) fn paid_tokens(&self) -> u64 {
        let counted = self.tokens.saturating_mul(100 + MARGIN) / 100;
        let compacting = self.body.compacting.filter(|it| counted >= it.threshold);
        compacting.map_or(self.tokens, |_| self.tokens.saturating_mul(2))
    }
}

/// Returns the cost of an answer. A compaction before it is priced separately, because prices may depend on
/// the length of each pass.
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
