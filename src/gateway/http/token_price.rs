//! The prices of models, as administrators set them for the providers that they add.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{Code, MicroUsd};
use crate::gateway::error::ApiError;
use crate::llm::catalogue::{Price, Tier};

/// The prices of one model's tokens, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TokenPrice {
    /// The price of input tokens that were not cached.
    #[schema(minimum = 0, maximum = 1_000_000)]
    input: f64,
    /// The price of input tokens that were read from the cache; if absent or `null`, the same as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    cached: Option<f64>,
    /// The price of input tokens that the provider wrote to its cache; if absent or `null`, the same as
    /// `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    cache_write: Option<f64>,
    /// The price of input tokens that the provider wrote to its cache for a longer time; if absent or `null`,
    /// the same as `cacheWrite`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    cache_write_long: Option<f64>,
    /// The price of output tokens, including reasoning.
    #[schema(minimum = 0, maximum = 1_000_000)]
    output: f64,
}

impl TokenPrice {
    pub(super) fn of(price: &Price) -> Self {
        let usd = |micro: u64| MicroUsd(micro).as_usd();
        Self {
            input: usd(price.input),
            cached: price.cached.map(usd),
            cache_write: price.cache_write.map(usd),
            cache_write_long: price.cache_write_long.map(usd),
            output: usd(price.output),
        }
    }

    /// Returns the price in micro-dollars; `None` if an amount is outside of 0 to 1,000,000 dollars.
    fn checked(self) -> Option<Price> {
        let all = [
            Some(self.input),
            self.cached,
            self.cache_write,
            self.cache_write_long,
            Some(self.output),
        ];
        let mut said = all.into_iter().flatten();
        let micro = |usd: f64| MicroUsd::from_usd(usd).0;
        said.all(|usd| (0.0..=1e6).contains(&usd)).then(|| Price {
            tier: Tier::Standard,
            above: 0,
            input: micro(self.input),
            cached: self.cached.map(micro),
            cache_write: self.cache_write.map(micro),
            cache_write_long: self.cache_write_long.map(micro),
            output: micro(self.output),
            reasoning: None,
        })
    }
}

pub(super) fn checked_prices(
    given: BTreeMap<String, TokenPrice>,
) -> Result<BTreeMap<String, Price>, ApiError> {
    let of_model = |(model, said): (String, TokenPrice)| Some((model, said.checked()?));
    let checked: Option<BTreeMap<String, Price>> = given.into_iter().map(of_model).collect();
    checked.ok_or_else(|| {
        let text = "a price is 0 to 1000000 US dollars per million tokens";
        ApiError::of_field(Code::InvalidArguments, "prices", text)
    })
}
