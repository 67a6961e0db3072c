//! Counts tokens and money. Totals only grow (S1.4).

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// An amount in millionths of a US dollar; an integer, so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// Converts an amount in dollars, clamped to 0 and a million.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "kept between 0 and 10^12"
    )]
    pub fn from_usd(usd: f64) -> Self {
        Self((usd.clamp(0.0, 1e6) * 1_000_000.0).round() as u64)
    }

    /// The amount in dollars, for the wire.
    #[expect(
        clippy::cast_precision_loss,
        reason = "shown, never summed; exact below 9 billion USD"
    )]
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / 1_000_000.0
    }
}

/// Tokens of one model request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// All tokens sent, including cached ones.
    pub input_tokens: u64,
    /// The part of `input_tokens` that was read from the provider's cache.
    pub cached_tokens: u64,
    /// The part of `input_tokens` that was written to the provider's cache, if that costs extra.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// The part of `cache_write_tokens` with the longer of the cache's lifetimes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_long_tokens: u64,
    /// All tokens generated, including reasoning.
    pub output_tokens: u64,
    /// The part of `output_tokens` that was reasoning.
    pub reasoning_tokens: u64,
    /// True if we counted the tokens because the provider reported none.
    pub is_estimated: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl TokenUsage {
    /// Input plus output.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Subtracts the usage of a part.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(part.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(part.cached_tokens),
            cache_write_tokens: self
                .cache_write_tokens
                .saturating_sub(part.cache_write_tokens),
            cache_write_long_tokens: self
                .cache_write_long_tokens
                .saturating_sub(part.cache_write_long_tokens),
            output_tokens: self.output_tokens.saturating_sub(part.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(part.reasoning_tokens),
            is_estimated: self.is_estimated,
        }
    }

    /// Adds the usage of another request.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cache_write_tokens: self
                .cache_write_tokens
                .saturating_add(other.cache_write_tokens),
            cache_write_long_tokens: self
                .cache_write_long_tokens
                .saturating_add(other.cache_write_long_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            is_estimated: self.is_estimated || other.is_estimated,
        }
    }
}

/// The usage of a session since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Input plus output tokens.
    pub total_tokens: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Cost so far, as far as prices are known.
    pub cost: MicroUsd,
    /// Number of requests with an unknown price; they are not in `cost`.
    pub unpriced_requests: u64,
}

impl AddAssign<(TokenUsage, Option<MicroUsd>)> for Totals {
    fn add_assign(&mut self, (usage, cost): (TokenUsage, Option<MicroUsd>)) {
        self.total_tokens = self.total_tokens.saturating_add(usage.total());
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        match cost {
            Some(cost) => self.cost = MicroUsd(self.cost.0.saturating_add(cost.0)),
            None => self.unpriced_requests = self.unpriced_requests.saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MicroUsd, TokenUsage, Totals};

    /// S1.4, S1.17: requests with a price, without one, with nothing at all, and beyond what fits.
    #[test]
    fn totals_are_the_sum_of_all_requests_and_never_fall() {
        let mut totals = Totals::default();
        for ((input, output), cost, expected) in [
            ((3, 2), Some(7), (5, 3, 2, 7, 0)),
            ((4, 1), None, (10, 7, 3, 7, 1)),
            ((0, 0), Some(0), (10, 7, 3, 7, 1)),
            ((0, u64::MAX), Some(1), (u64::MAX, 7, u64::MAX, 8, 1)),
            (
                (u64::MAX, 1),
                Some(u64::MAX),
                (u64::MAX, u64::MAX, u64::MAX, u64::MAX, 1),
            ),
            ((1, 1), Some(1), (u64::MAX, u64::MAX, u64::MAX, u64::MAX, 1)),
        ] {
            let usage = TokenUsage {
                input_tokens: input,
                output_tokens: output,
                cached_tokens: input,
                cache_write_tokens: input,
                cache_write_long_tokens: input,
                reasoning_tokens: output,
                is_estimated: cost.is_none(),
            };
            totals += (usage, cost.map(MicroUsd));
            let (total_tokens, input_tokens, output_tokens, cost, unpriced_requests) = expected;
            let expected = Totals {
                total_tokens,
                input_tokens,
                output_tokens,
                cost: MicroUsd(cost),
                unpriced_requests,
            };
            assert_eq!(totals, expected, "{usage:?}");
        }
    }
}
