//! A model that reviews calls in the place of the person who would be asked (docs/rules.md, "The
//! reviewer"): what it said of one, and how a session stands with it.

use serde::{Deserialize, Serialize};

use crate::domain::{CallId, Digest, MicroUsd, TurnId};

/// Reviews without a yes after which a session asks its person alone.
pub(super) const MAX_REFUSALS: u32 = 3;

/// What came of a review. All but [`Self::Allowed`] leave the call to the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// The model says yes.
    Allowed,
    /// The model says no.
    Refused,
    /// The model is not sure, or what it said has not the form that was asked for.
    Doubted,
    /// There is no answer: an error, no time left, no budget, or too much to read.
    Failed,
}

impl ReviewVerdict {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Doubted => "doubted",
            Self::Failed => "failed",
        }
    }
}

/// What a model said of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub verdict: ReviewVerdict,
    /// Who said it, as its provider calls it; none = nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// In one line, for people.
    pub reason: String,
    /// What the review cost, with every attempt, as far as prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
}

/// How far the review of a call is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum CallReview {
    /// A model is asked, and the person may decide all the same.
    Running,
    /// This came of it.
    Over(Review),
}

/// A call that a model is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningReview {
    /// The turn that pays for it.
    pub turn: TurnId,
    pub call: CallId,
    /// What would run: a yes is for this alone.
    pub digest: Digest,
}

/// How a session stands with its reviewer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewing {
    /// One at a time, so that nothing is asked in vain after the last refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningReview>,
    /// Reviews that were no yes since a person last approved a call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refusals: u32,
}

impl Reviewing {
    pub(super) fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the person is asked alone, until they approve a call.
    pub fn is_off(&self) -> bool {
        self.refusals >= MAX_REFUSALS
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
