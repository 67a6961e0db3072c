//! Holds the reviews of calls by a model that stands in for the person (docs/rules.md, "The reviewer"), and
//! the state of the reviewer in a session.

use serde::{Deserialize, Serialize};

use crate::domain::{CallId, Digest, MicroUsd, TurnId};

/// Reviews that did not allow their call after which the session stops asking the reviewer.
pub(super) const MAX_REFUSALS: u32 = 3;

/// The result of a review. Every verdict except [`Self::Allowed`] leaves the call to the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// The model allows the call.
    Allowed,
    /// The model refuses the call.
    Refused,
    /// The model is unsure, or its answer does not have the requested form.
    Doubted,
    /// There is no answer: an error, a timeout, no budget, or too much to read.
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

/// A model's review of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub verdict: ReviewVerdict,
    /// The model's name at its provider; `None` = no model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// One line for people.
    pub reason: String,
    /// The cost of the review with all its attempts, as far as prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
}

/// The progress of a call's review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum CallReview {
    /// A model is being asked; the person may still decide the call.
    Running,
    /// The finished review.
    Over(Review),
}

/// A review that a model is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningReview {
    /// The turn that pays for the review.
    pub turn: TurnId,
    pub call: CallId,
    /// Hash of what would run: an approval covers only this digest.
    pub digest: Digest,
}

/// The state of the reviewer in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewing {
    /// The running review. Only one runs at a time, so that no further review starts in vain after the last
    /// allowed refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningReview>,
    /// Reviews that did not allow their call since a person last approved one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refusals: u32,
}

impl Reviewing {
    pub(super) fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if the reviewer is switched off until the person approves a call.
    pub fn is_off(&self) -> bool {
        self.refusals >= MAX_REFUSALS
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
