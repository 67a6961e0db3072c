//! Compares the catalogue's prices with those of another published list.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use genai_prices::{PriceRequest, Usage, UsageKey};

use super::{Model, Tier, all};
use sepal_core::domain::TokenUsage;

/// The date of the other list, whose prices are compared.
const DAY: Duration = Duration::from_hours(498_333);

/// The vendors in both lists: our name and the other list's.
const VENDORS: [(&str, &str); 8] = [
    ("anthropic", "anthropic"),
    ("cohere", "cohere"),
    ("deepseek", "deepseek"),
    ("gemini", "google"),
    ("groq", "groq"),
    ("mistral", "mistral"),
    ("openai", "openai"),
    ("xai", "x-ai"),
];

/// Models for which the lists differ, because they are near their end or their price changed in between.
const DISPUTED: [&str; 20] = [
    "deepseek-chat",
    "deepseek-r1",
    "deepseek-reasoner",
    "deepseek-v3.2",
    "devstral-small-latest",
    "gemini-1.5-pro",
    "gpt-4o-search-preview",
    "gpt-4o-search-preview-2025-03-11",
    "gpt-5.6-cyber",
    "grok-code-fast",
    "grok-code-fast-1",
    "grok-code-fast-1-0825",
    "magistral-medium-latest",
    "magistral-small-latest",
    "mistral-large-4",
    "mistral-large-4-0",
    "mistral-large-latest",
    "mistral-medium",
    "open-mistral-nemo",
    "pixtral-large-latest",
];

/// A usage with tokens of every class that the model has a price for.
fn usage(model: &Model, input_tokens: u64) -> TokenUsage {
    let mut prices = model.prices.iter();
    let usual = prices.find(|price| price.tier == Tier::Standard && price.above == 0);
    let share = |price: Option<u64>| price.map_or(0, |_| input_tokens / 4);
    let long = share(usual.and_then(|price| price.cache_write_long)) / 2;
    TokenUsage {
        input_tokens,
        cached_tokens: share(usual.and_then(|price| price.cached)),
        cache_write_tokens: share(usual.and_then(|price| price.cache_write)),
        // The other list has the price of long cache writes for one vendor only.
        cache_write_long_tokens: if model.id.starts_with("claude") {
            long
        } else {
            0
        },
        output_tokens: 10_000,
        ..TokenUsage::default()
    }
}

/// The price in the other list, in micro-dollars; `None` if it does not know the model.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "numbers of a few million, compared as whole ones"
)]
fn theirs(provider: &str, model: &str, used: &TokenUsage) -> Option<i64> {
    let counts = [
        (UsageKey::INPUT_TOKENS, used.input_tokens),
        (UsageKey::CACHE_READ_TOKENS, used.cached_tokens),
        (UsageKey::CACHE_WRITE_TOKENS, used.cache_write_tokens),
        (
            UsageKey::CACHE_WRITE_1H_TOKENS,
            used.cache_write_long_tokens,
        ),
        (UsageKey::OUTPUT_TOKENS, used.output_tokens),
    ];
    let counts = counts.into_iter().filter(|(_, tokens)| *tokens > 0);
    let counts: Usage = counts.map(|(key, tokens)| (key, tokens as f64)).collect();
    let request = PriceRequest::new(model, &counts)
        .with_provider_id(provider)
        .with_timestamp(UNIX_EPOCH + DAY);
    let price = genai_prices::calculate(&request).ok()?;
    (price.total_price > 0.0).then(|| (price.total_price * 1e6).round() as i64)
}

/// Asserts S3.11.
#[test]
fn prices_agree_with_another_list() {
    let (mut same, mut other) = (0, BTreeSet::new());
    for (vendor, model) in all() {
        let known = VENDORS.iter().find(|(ours, _)| *ours == vendor);
        let Some((_, provider)) = known else { continue };
        for input in [40_000, 400_000] {
            if input > model.context_window {
                continue;
            }
            let used = usage(&model, input);
            let ours = model
                .price(&used)
                .and_then(|cost| i64::try_from(cost.0).ok());
            let (Some(ours), Some(theirs)) = (ours, theirs(provider, &model.id, &used)) else {
                continue;
            };
            if (ours - theirs).abs() <= 1 {
                same += 1;
            } else {
                other.insert(model.id.clone());
            }
        }
    }
    let other: Vec<&str> = other.iter().map(String::as_str).collect();
    assert_eq!(other, DISPUTED);
    assert!(same >= 200, "only {same} could be compared");
}
