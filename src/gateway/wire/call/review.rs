//! What a model says of a call that it reviews, as cards and decisions carry it.

use serde::Serialize;

use crate::domain::MicroUsd;
use crate::session::{CallReview, Decider, ReviewVerdict};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReviewShown<'a> {
    /// `running`, or what came of it.
    status: &'static str,
    /// Who was asked, as its provider calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// In US dollars, if the price is known.
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

    /// Of a decision; none where no model made it.
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
