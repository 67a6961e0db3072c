//! What is known about models: windows, limits, prices, abilities, from `models.json`. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::{MicroUsd, TokenUsage};
use crate::llm::CacheTtl;

/// The window of a model that nobody described: what small local servers start with.
const UNKNOWN_WINDOW: u64 = 32_768;
/// Its longest answer.
const UNKNOWN_OUTPUT: u64 = 4_096;

/// The known models.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Catalogue {
    /// Where the entries come from.
    pub source: String,
    /// When they were looked up.
    pub date: String,
    pub models: Vec<Model>,
}

/// One model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Its name in requests.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Tokens of request and answer together, as the vendor counts them.
    pub context_window: u64,
    /// Tokens of the longest answer.
    pub max_output: u64,
    /// What it costs, by size of the request; empty = unknown.
    #[serde(default)]
    pub prices: Vec<Price>,
    /// What it can do.
    #[serde(default)]
    pub abilities: Vec<Ability>,
    /// Whether nobody said how large the window is.
    #[serde(skip)]
    pub is_window_assumed: bool,
}

/// What an operator or an admin says of the windows of one provider's models, in tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// Of every model that the catalogue does not know.
    #[serde(default)]
    pub usual: Option<u64>,
    /// Of single models; they win over the catalogue too.
    #[serde(default)]
    pub of_models: BTreeMap<String, u64>,
}

/// What an operator or an admin says of one provider's models (S3.11).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    #[serde(flatten)]
    pub windows: Windows,
    /// Tokens of the longest answer, by model; they win over the catalogue.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_outputs: BTreeMap<String, u64>,
    /// Prices by model; they win over the catalogue.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
    /// How long the provider's cache keeps what it is given, where that can be chosen.
    #[serde(default, skip_serializing_if = "CacheTtl::is_usual")]
    pub cache_ttl: CacheTtl,
}

/// Micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// Holds for requests of more input tokens than this.
    #[serde(default)]
    pub above: u64,
    /// Input that was not cached.
    pub input: u64,
    /// Input that was; none = like other input.
    #[serde(default)]
    pub cached: Option<u64>,
    /// Input that the provider put into its cache; none = like other input.
    #[serde(default)]
    pub cache_write: Option<u64>,
    pub output: u64,
}

/// What a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// Asks for tools.
    Tools,
    /// Reads images.
    Images,
    /// Thinks before it answers.
    Reasoning,
}

impl Catalogue {
    /// The entries that come with this version.
    pub fn built_in() -> Self {
        // A test holds that the file can be read; without it nothing would be known.
        serde_json::from_str(include_str!("models.json")).unwrap_or_default()
    }

    /// The entry of a model, or of the model that it is a dated version of.
    pub fn find(&self, model: &str) -> Option<&Model> {
        let id = model.strip_prefix("models/").unwrap_or(model);
        let exact = self.models.iter().find(|known| known.id == id);
        exact.or_else(|| {
            let bases = without_version(id);
            let mut known = bases.filter_map(|base| self.models.iter().find(|m| m.id == base));
            known.next()
        })
    }

    /// The entry of a model, or conservative guesses, with what somebody said of it.
    pub fn describe(&self, model: &str, said: &Overrides) -> Model {
        let windows = &said.windows;
        let mut described = self.find(model).cloned().unwrap_or_else(|| Model {
            id: model.to_owned(),
            name: model.to_owned(),
            context_window: windows.usual.unwrap_or(UNKNOWN_WINDOW),
            max_output: UNKNOWN_OUTPUT,
            prices: Vec::new(),
            abilities: vec![Ability::Tools],
            is_window_assumed: windows.usual.is_none(),
        });
        if let Some(window) = windows.of_models.get(model) {
            described.context_window = *window;
            described.is_window_assumed = false;
        }
        if let Some(longest) = said.max_outputs.get(model) {
            described.max_output = *longest;
        }
        if let Some(price) = said.prices.get(model) {
            described.prices = vec![*price];
        }
        described
    }
}

impl Model {
    /// What a request cost, rounded up; none = the price is unknown, which is not free.
    pub fn price(&self, usage: &TokenUsage) -> Option<MicroUsd> {
        let prices = &self.prices;
        let price = prices
            .iter()
            .filter(|price| price.above == 0 || usage.input_tokens > price.above)
            .max_by_key(|price| price.above)?;
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let rest = usage.input_tokens.saturating_sub(cached);
        let written = usage.cache_write_tokens.min(rest);
        let fresh = rest.saturating_sub(written);
        let parts = [
            (fresh, price.input),
            (cached, price.cached.unwrap_or(price.input)),
            (written, price.cache_write.unwrap_or(price.input)),
            (usage.output_tokens, price.output),
        ];
        let millionths: u128 = parts
            .iter()
            .map(|&(tokens, rate)| u128::from(tokens).saturating_mul(u128::from(rate)))
            .fold(0, u128::saturating_add);
        let cost = millionths.div_ceil(1_000_000);
        Some(MicroUsd(u64::try_from(cost).unwrap_or(u64::MAX)))
    }
}

/// What `gpt-4o-2024-08-06`, `claude-…-20250929`, `gemini-…-001` or `…-latest` may be versions of.
fn without_version(id: &str) -> impl Iterator<Item = &str> {
    let is_version = |ending: &str| {
        ending == "latest"
            || ending.len() >= 3 && ending.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    // The longest base first: `claude-opus-4-5-20251101` is no version of `claude-opus-4`.
    id.rmatch_indices('-')
        .filter(move |&(at, dash)| is_version(id.get(at + dash.len()..).unwrap_or_default()))
        .filter_map(|(at, _)| id.get(..at))
}

#[cfg(test)]
mod tests {
    use super::{Ability, Catalogue, Overrides, Price, Windows};
    use crate::domain::{MicroUsd, TokenUsage};

    fn usage(input: u64, cached: u64, output: u64) -> TokenUsage {
        TokenUsage {
            input_tokens: input,
            cached_tokens: cached,
            output_tokens: output,
            ..TokenUsage::default()
        }
    }

    /// Asserts S2.21.
    #[test]
    fn the_file_is_sound_and_holds_the_models_of_the_requirements() {
        let catalogue: Catalogue = serde_json::from_str(include_str!("models.json")).unwrap();
        assert_eq!(catalogue, Catalogue::built_in());
        for model in &catalogue.models {
            let same = catalogue.models.iter().filter(|m| m.id == model.id);
            assert_eq!(same.count(), 1, "{} stands twice", model.id);
            assert!(model.max_output <= model.context_window, "{}", model.id);
            // A model without prices is one whose price is unknown.
            assert!(
                model.prices.is_empty() || model.prices.iter().any(|price| price.above == 0),
                "{}",
                model.id
            );
        }
        for id in [
            "claude-sonnet-4-5-20250929",
            "claude-opus-4-6",
            "claude-haiku-4-5-20251001",
            "claude-3-opus-20240229",
            "claude-3-5-sonnet-latest",
            "claude-3-haiku-20240307",
            "gemini-2.0-flash-exp",
            "gemini-2.0-flash",
            "models/gemini-1.5-flash-002",
            "gemini-1.5-pro-latest",
            "gpt-4o",
            "gpt-4o-2024-08-06",
            "gpt-4o-mini",
            "gpt-4-turbo-2024-04-09",
            "gpt-3.5-turbo-0125",
            "scripted",
        ] {
            assert!(catalogue.find(id).is_some(), "{id}");
        }
        for id in [
            "gpt-4o-audio-preview",
            "gpt-9",
            "gpt",
            "",
            "-",
            "llama3.2:3b",
        ] {
            assert!(catalogue.find(id).is_none(), "{id}");
        }
    }

    #[test]
    fn a_price_counts_cached_tokens_apart_and_rounds_up() {
        fn check(model: &str, usage: &TokenUsage, expected: Option<u64>) {
            let model = Catalogue::built_in().describe(model, &Overrides::default());
            let price = model.price(usage);
            assert_eq!(price, expected.map(MicroUsd), "{} {usage:?}", model.id);
        }
        check("gpt-4o", &usage(1_000_000, 0, 0), Some(2_500_000));
        check(
            "gpt-4o",
            &usage(1_000_000, 400_000, 1_000_000),
            Some(1_500_000 + 500_000 + 10_000_000),
        );
        check("gpt-4o", &usage(1, 0, 0), Some(3));
        check("gpt-4o", &usage(0, 0, 0), Some(0));
        check("gpt-4o", &usage(10, 20, 0), Some(13));
        check("gpt-4-turbo", &usage(10, 10, 0), Some(100));
        check("gemini-1.5-flash", &usage(128_000, 0, 0), Some(9_600));
        check("gemini-1.5-flash", &usage(128_001, 0, 0), Some(19_201));
        check("scripted", &usage(1_000, 0, 1_000), Some(0));
        check("my-own-model", &usage(1, 0, 0), None);
        let written = TokenUsage {
            cache_write_tokens: 1_000_000,
            ..usage(2_500_000, 500_000, 0)
        };
        check(
            "claude-sonnet-4-5-20250929",
            &written,
            Some(3_000_000 + 150_000 + 3_750_000),
        );
        check("gpt-4o", &written, Some(2 * 2_500_000 + 625_000));
        check("gpt-4o", &usage(u64::MAX, 0, u64::MAX), Some(u64::MAX));
    }

    #[test]
    fn a_dated_version_is_that_of_the_longest_name() {
        let catalogue = Catalogue::built_in();
        for (version, id) in [
            ("claude-opus-4-20250514", "claude-opus-4"),
            ("claude-opus-4-1-20250805", "claude-opus-4-1"),
            ("claude-opus-4-5-20251101", "claude-opus-4-5"),
            ("gemini-2.5-flash-lite-001", "gemini-2.5-flash-lite"),
        ] {
            assert_eq!(catalogue.find(version).unwrap().id, id);
        }
        assert!(catalogue.find("claude-opus-4-9").is_none());
    }

    #[test]
    fn a_window_is_what_was_said_what_is_known_or_assumed() {
        let catalogue = Catalogue::built_in();
        let none = Overrides::default();
        let windows = Windows {
            usual: Some(8_192),
            of_models: [("gpt-4o".into(), 64_000), ("qwen3:8b".into(), 40_960)].into(),
        };
        let said = Overrides {
            windows,
            ..Overrides::default()
        };
        for (model, said, window, is_assumed) in [
            ("qwen3:8b", &none, 32_768, true),
            ("gpt-4o", &none, 128_000, false),
            ("llama3.2:3b", &said, 8_192, false),
            ("qwen3:8b", &said, 40_960, false),
            ("gpt-4o", &said, 64_000, false),
            ("gpt-4o-mini", &said, 128_000, false),
        ] {
            let described = catalogue.describe(model, said);
            let got = (described.context_window, described.is_window_assumed);
            assert_eq!(got, (window, is_assumed), "{model} {said:?}");
        }
    }

    /// Asserts S3.11.
    #[test]
    fn settings_win_and_an_unknown_model_is_described_carefully() {
        let catalogue = Catalogue::built_in();
        let guessed = catalogue.describe("my-own", &Overrides::default());
        assert_eq!(
            (guessed.context_window, guessed.max_output),
            (32_768, 4_096)
        );
        assert_eq!(guessed.abilities, [Ability::Tools]);
        assert_eq!(guessed.price(&usage(5, 0, 0)), None, "unknown is not free");
        let price = Price {
            above: 0,
            input: 1_000_000,
            cached: None,
            cache_write: None,
            output: 0,
        };
        let said = Overrides {
            windows: Windows::default(),
            max_outputs: [("gpt-4o".into(), 999), ("my-own".into(), 7_000)].into(),
            prices: [("gpt-4o".into(), price), ("my-own".into(), price)].into(),
            ..Overrides::default()
        };
        for (model, max_output) in [("gpt-4o", 999), ("my-own", 7_000)] {
            let own = catalogue.describe(model, &said);
            assert_eq!(own.max_output, max_output, "{model}");
            assert_eq!(own.price(&usage(5, 0, 9)), Some(MicroUsd(5)), "{model}");
        }
        // Others stay as they are known, and what was kept before there were such fields is read.
        let other = catalogue.describe("gpt-4o-mini", &said);
        assert_eq!(other, *catalogue.find("gpt-4o-mini").unwrap());
        let kept = r#"{"usual":8192,"of_models":{"a":2048}}"#;
        let kept: Overrides = serde_json::from_str(kept).unwrap();
        assert_eq!(kept.windows.usual, Some(8_192));
        assert_eq!(kept.windows.of_models["a"], 2_048);
    }
}
