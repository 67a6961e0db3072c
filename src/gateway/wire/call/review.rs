//! Encodes a model's review of a call for cards and decisions.

use serde::Serialize;

use crate::domain::MicroUsd;
use crate::session::{CallReview, Decider, ReviewVerdict};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReviewShown<'a> {
    /// `running`, or the verdict.
    status: &'static str,
    /// The reviewing model, by its provider's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// The cost in US dollars, if the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

impl<'a> ReviewShown<'a> {
    pub(super) fn of(review: &'a CallReview) -> Self {
        match review {
            CallReview::Running => Self {
                status: "running",
                model: None,
                reason: None,
                cost_usd: None,
            },
            CallReview::Over(review) => Self {
                status: review.verdict.as_str(),
                model: review.model.as_deref(),
                reason: Some(&review.reason),
                cost_usd: review.cost.map(MicroUsd::as_usd),
            },
        }
    }

    /// Returns the review behind a decision; `None` if no model decided.
    pub(super) fn of_decider(by: &'a Decider) -> Option<Self> {
        let Decider::Reviewer {
            model,
            reason,
            cost,
        } = by
        else {
            return None;
        };
        Some(Self {
            status: ReviewVerdict::Allowed.as_str(),
            model: Some(model),
            reason: Some(reason),
            cost_usd: cost.map(MicroUsd::as_usd),
        })
    }
}
