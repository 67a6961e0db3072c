//! Computes the cost of tokens, by every class that vendors price separately.
//!
//! If a class has no price, a request that used such tokens has no price either and counts as unpriced.
//! Reasoning is billed as output unless the list prices it separately.

use serde::{Deserialize, Serialize};

use sepal_core::domain::{MicroUsd, TokenUsage};

/// Prices in micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// The service tier that the price is for.
    #[serde(default, skip_serializing_if = "Tier::is_standard")]
    pub tier: Tier,
    /// The price applies to requests with more input tokens than this; 0 = to every request.
    #[serde(default)]
    pub above: u64,
    /// Input that is neither read from nor written to the cache.
    pub input: u64,
    /// Input read from the cache; `None` = unknown.
    #[serde(default)]
    pub cached: Option<u64>,
    /// Input written to the cache; `None` = unknown.
    #[serde(default)]
    pub cache_write: Option<u64>,
    /// Input written to the cache for the longer lifetime; `None` = unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long: Option<u64>,
    /// Output, including reasoning unless that is priced separately.
    pub output: u64,
    /// Reasoning; `None` = the price of other output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

/// The vendor's service tier, which sets speed and price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The tier of a request that names none.
    #[default]
    Standard,
    /// Slower and cheaper.
    Flex,
    /// Faster and more expensive.
    Priority,
    /// Answered within a day.
    Batch,
}

impl Tier {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands out references"
    )]
    fn is_standard(&self) -> bool {
        *self == Self::Standard
    }
}

impl Price {
    /// Returns true if the price applies to a request with this many input tokens.
    pub(super) fn holds_for(&self, input_tokens: u64) -> bool {
        self.above == 0 || input_tokens > self.above
    }

    /// Fills in missing prices of a hand-written price: cached and cache-written input cost as much as other
    /// input, and long cache writes as much as short ones.
    #[must_use]
    pub fn filled(self) -> Self {
        let cache_write = self.cache_write.unwrap_or(self.input);
        Self {
            cached: self.cached.or(Some(self.input)),
            cache_write: Some(cache_write),
            cache_write_long: self.cache_write_long.or(Some(cache_write)),
            ..self
        }
    }

    /// The cost of the tokens; `None` if a used class has no price.
    pub(super) fn of(&self, usage: &TokenUsage) -> Option<MicroUsd> {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let rest = usage.input_tokens.saturating_sub(cached);
        let written = usage.cache_write_tokens.min(rest);
        let long = usage.cache_write_long_tokens.min(written);
        let reasoning = usage.reasoning_tokens.min(usage.output_tokens);
        let parts = [
            (rest.saturating_sub(written), Some(self.input)),
            (cached, self.cached),
            (written.saturating_sub(long), self.cache_write),
            (long, self.cache_write_long),
            (
                usage.output_tokens.saturating_sub(reasoning),
                Some(self.output),
            ),
            (reasoning, self.reasoning.or(Some(self.output))),
        ];
        let millionths = parts.into_iter().try_fold(0_u128, |sum, (tokens, rate)| {
            let rate = if tokens == 0 { Some(0) } else { rate };
            let cost = u128::from(tokens).saturating_mul(u128::from(rate?));
            Some(sum.saturating_add(cost))
        })?;
        let cost = millionths.div_ceil(1_000_000);
        Some(MicroUsd(u64::try_from(cost).unwrap_or(u64::MAX)))
    }
}
