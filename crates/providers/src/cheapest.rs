//! Finds the cheapest model of a provider for small requests. Pure.

use jiff::civil::Date;

use super::offer::Offer;
use sepal_core::domain::{MicroUsd, TokenUsage};
use sepal_llm::catalogue::PriceSource;

/// The size of the request whose price is compared: a short question with its answer.
const SIZE: TokenUsage = TokenUsage {
    input_tokens: 1_000,
    output_tokens: 50,
    cached_tokens: 0,
    cache_write_tokens: 0,
    cache_write_long_tokens: 0,
    reasoning_tokens: 0,
    is_estimated: false,
};

/// Returns the cheapest model that the provider offers, if it costs less than `model`; `None` = `model` is as
/// cheap, or its price is unknown.
pub(super) fn cheaper_than(offer: &Offer, model: &str, today: Date) -> Option<String> {
    let own = cost(offer, model, today)?;
    let offered = offer.offered_models();
    let known = offered.into_iter().filter_map(|other| {
        let cost = cost(offer, &other, today)?;
        Some((cost, other))
    });
    let (least, other) = known.min()?;
    (least < own).then_some(other)
}

/// Returns the cost of a model, if it may be used. Free models of a list are excluded: they are seldom
/// available, and often paid for with the conversation's data.
fn cost(offer: &Offer, model: &str, today: Date) -> Option<MicroUsd> {
    let known = offer.describe(model);
    let is_over = known.retires_at.is_some_and(|end| end <= today);
    let cost = known.price(&SIZE).filter(|_| !is_over)?;
    let is_given = cost.0 == 0 && known.price_source == PriceSource::Catalogue;
    (!is_given).then_some(cost)
}
