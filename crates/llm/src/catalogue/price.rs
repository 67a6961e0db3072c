//! What tokens cost, by everything that vendors price apart.
//!
//! An axis without a price is unknown: a request that used tokens of that class has no price, and
//! counts as unpriced. Reasoning is output unless the list prices it apart.

use serde::{Deserialize, Serialize};

use sepal_core::domain::{MicroUsd, TokenUsage};

/// Micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// How soon the vendor answers.
    #[serde(default, skip_serializing_if = "Tier::is_standard")]
    pub tier: Tier,
    /// Holds for requests of more input tokens than this.
    #[serde(default)]
    pub above: u64,
    /// Input that was not cached.
    pub input: u64,
    /// Input that was; none = unknown.
    #[serde(default)]
    pub cached: Option<u64>,
    /// Input that the provider put into its cache; none = unknown.
    #[serde(default)]
    pub cache_write: Option<u64>,
    /// The same, kept for longer; none = unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long: Option<u64>,
    /// Output, reasoning included unless that is priced apart.
    pub output: u64,
    /// Reasoning; none = like other output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

/// How soon a vendor answers, at what price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// What a request gets that asks for nothing.
    #[default]
    Standard,
    /// Later, for less.
    Flex,
    /// Sooner, for more.
    Priority,
    /// Within a day.
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
    /// Whether it is that of a request with so much input.
    pub(super) fn holds_for(&self, input_tokens: u64) -> bool {
        self.above == 0 || input_tokens > self.above
    }

    /// As somebody meant it who left classes out: they cost what the others of their side cost.
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

    /// What that many tokens cost; none, if there are some whose price is unknown.
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
