//! The catalogue files, and the entries that are read from them.

use serde_json::Value;

use super::{Abilities, Ability, BY_HAND, GENERATED, Model, OPENROUTER, Overrides, Price, Tier};
use super::{Vendor, Windows, all, describe, read};
use crate::ProviderKind;
use sepal_core::domain::{MicroUsd, TokenUsage};

/// The vendor of models with this kind of name.
fn vendor(model: &str) -> Vendor {
    let model = model.strip_prefix("models/").unwrap_or(model);
    let kind = match model.split('-').next().unwrap() {
        "claude" => ProviderKind::Anthropic,
        "gemini" => ProviderKind::Gemini,
        "scripted" => ProviderKind::Scripted,
        _ => ProviderKind::OpenAi,
    };
    Vendor::of(kind, None)
}

fn find(model: &str) -> Option<Model> {
    super::find(vendor(model), model)
}

fn at(url: &str) -> Vendor {
    Vendor::of(ProviderKind::OpenAiCompatible, Some(url))
}

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
    let headers = [GENERATED, OPENROUTER, BY_HAND].map(|file| file.lines().next().unwrap());
    let headers = headers.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let [generated, openrouter, by_hand] = headers;
    for word in [
        "source", "url", "version", "date", "licence", "sha256", "unit",
    ] {
        assert!(generated[word].is_string(), "{word}");
        assert!(openrouter[word].is_string(), "{word}");
    }
    assert!(by_hand["source"].is_string() && by_hand["date"].is_string());
    let lines = [GENERATED, OPENROUTER, BY_HAND].map(|file| file.lines().skip(1));
    let lines: Vec<&str> = lines.into_iter().flatten().collect();
    assert_eq!(lines.len(), all().count(), "one stands twice");
    for line in lines {
        let model = read(line).unwrap_or_else(|| panic!("{line}"));
        assert!(model.max_output <= model.context_window, "{line}");
        assert!(
            model.max_input.is_none_or(|it| it < model.context_window),
            "{line}"
        );
        // A model without prices has an unknown price.
        let mut prices = model.prices.iter();
        let is_usual = |price: &Price| price.above == 0 && price.tier == Tier::Standard;
        assert!(model.prices.is_empty() || prices.any(is_usual), "{line}");
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
        assert!(find(id).is_some(), "{id}");
    }
    for id in [
        "gpt-4o-audio-preview",
        "gpt-9",
        "gpt",
        "",
        "-",
        "llama3.2:3b",
    ] {
        assert!(find(id).is_none(), "{id}");
    }
}

#[test]
fn a_price_counts_cached_tokens_apart_and_rounds_up() {
    fn check(model: &str, usage: &TokenUsage, expected: Option<u64>) {
        let model = describe(vendor(model), model, &Overrides::default());
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
    check("gpt-4-turbo", &usage(10, 0, 0), Some(100));
    // Tokens of a class without a price make the total unknown.
    check("gpt-4-turbo", &usage(10, 10, 0), None);
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
    check("gpt-4o", &written, None);
    let long = TokenUsage {
        cache_write_long_tokens: 400_000,
        ..written
    };
    check(
        "claude-sonnet-4-5-20250929",
        &long,
        Some(3_000_000 + 150_000 + 600_000 * 15 / 4 + 400_000 * 6),
    );
    check("claude-3-5-sonnet-20241022", &long, None);
    // Above a threshold everything costs more, also the output.
    let thinking = TokenUsage {
        reasoning_tokens: 50_000,
        ..usage(272_000, 0, 100_000)
    };
    check("gpt-6-luna", &thinking, Some(27_200 + 50_000));
    let thinking = TokenUsage {
        input_tokens: 272_001,
        ..thinking
    };
    check("gpt-6-luna", &thinking, Some(54_401 + 75_000));
    check("gpt-4o", &usage(u64::MAX, 0, u64::MAX), Some(u64::MAX));
}

#[test]
fn a_dated_version_is_that_of_the_longest_name() {
    for (version, id) in [
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("gemini-2.5-flash-lite-001", "gemini-2.5-flash-lite"),
    ] {
        assert_eq!(find(version).unwrap().id, id);
    }
    assert!(find("claude-opus-4-9").is_none());
}

#[test]
fn a_window_is_what_was_said_what_is_known_or_assumed() {
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
        let described = describe(vendor(model), model, said);
        let got = (described.context_window, described.is_window_assumed);
        assert_eq!(got, (window, is_assumed), "{model} {said:?}");
    }
}

/// Asserts S3.11.
#[test]
fn settings_win_and_an_unknown_model_is_described_carefully() {
    let guessed = describe(vendor("my-own"), "my-own", &Overrides::default());
    assert_eq!(
        (guessed.context_window, guessed.max_output),
        (32_768, 4_096)
    );
    assert_eq!(guessed.abilities, [Ability::Tools]);
    assert_eq!(guessed.price(&usage(5, 0, 0)), None, "unknown is not free");
    let price = Price {
        tier: Tier::Standard,
        above: 0,
        input: 1_000_000,
        cached: None,
        cache_write: None,
        cache_write_long: None,
        output: 0,
        reasoning: None,
    };
    let said = Overrides {
        windows: Windows::default(),
        max_outputs: [("gpt-4o".into(), 999), ("my-own".into(), 7_000)].into(),
        prices: [("gpt-4o".into(), price), ("my-own".into(), price)].into(),
        ..Overrides::default()
    };
    for (model, max_output) in [("gpt-4o", 999), ("my-own", 7_000)] {
        let own = describe(vendor(model), model, &said);
        assert_eq!(own.max_output, max_output, "{model}");
        // A class without a set price costs as much as the related class.
        assert_eq!(own.price(&usage(5, 2, 9)), Some(MicroUsd(5)), "{model}");
    }
    // Other models keep their catalogue entries, and records from before these fields can still be read.
    let other = describe(vendor("gpt-4o-mini"), "gpt-4o-mini", &said);
    assert_eq!(other, find("gpt-4o-mini").unwrap());
    let kept = r#"{"usual":8192,"of_models":{"a":2048}}"#;
    let kept: Overrides = serde_json::from_str(kept).unwrap();
    assert_eq!(kept.windows.usual, Some(8_192));
    assert_eq!(kept.windows.of_models["a"], 2_048);
}

/// Asserts S3.11.
#[test]
fn models_of_openrouter_have_its_prices_and_what_nobody_knows_stays_unknown() {
    let openrouter = at("https://openrouter.ai/api/v1");
    let find = |model: &str| super::find(openrouter, model);
    let claude = find("anthropic/claude-opus-4.6").unwrap();
    assert!(claude.can(Ability::Images) && claude.abilities_are == Abilities::Known);
    assert_eq!(
        claude.price(&usage(1_000_000, 0, 0)),
        Some(MicroUsd(5_000_000))
    );
    // A dated version is found as the model itself, and the maker is part of the name.
    assert_eq!(find("anthropic/claude-opus-4.6-20260205"), Some(claude));
    let gemini = find("google/gemini-2.5-pro").unwrap();
    assert_eq!(gemini.price(&usage(100_000, 0, 0)), Some(MicroUsd(125_000)));
    assert_eq!(
        gemini.price(&usage(400_000, 0, 0)),
        Some(MicroUsd(1_000_000))
    );
    // Abilities of this model are unknown.
    let small = find("01-ai/yi-large").unwrap();
    assert_eq!(
        (small.abilities_are, small.is_window_assumed),
        (Abilities::Assumed, true)
    );
    // Another route to the same model may have another price.
    for other in [
        "anthropic/claude-opus-4.6:online",
        "claude-opus-4.6",
        "nobody/nothing",
    ] {
        assert_eq!(find(other), None, "{other}");
    }
}

#[test]
fn a_name_means_the_price_of_its_vendor_and_elsewhere_none() {
    let used = usage(100_000, 0, 0);
    let price = |vendor: Vendor, model: &str| super::find(vendor, model)?.price(&used);
    let cohere = at("https://api.cohere.ai/compatibility/v1");
    assert!(price(cohere, "command-a-03-2025").is_some());
    let groq = price(at("https://api.groq.com/openai/v1"), "openai/gpt-oss-120b");
    let other = price(
        at("https://api.deepinfra.com/v1/openai"),
        "openai/gpt-oss-120b",
    );
    assert_eq!(
        (groq, other),
        (Some(MicroUsd(15_000)), Some(MicroUsd(3_700)))
    );
    // A region may cost more, and its address does not tell how much.
    let luna = |url| price(at(url), "gpt-6-luna");
    assert_eq!(luna("https://api.openai.com/v1"), Some(MicroUsd(10_000)));
    assert_eq!(luna("https://eu.api.openai.com/v1"), None);
    // At an unknown server the model's abilities are known, its price is not.
    let proxy = at("http://proxy.example/v1");
    let found = super::find(proxy, "gpt-4o").unwrap();
    assert_eq!(found.context_window, 128_000);
    assert_eq!((found.price(&used), found.retires_at), (None, None));
    assert_eq!(super::find(proxy, "command-a-03-2025"), None);
}

#[test]
fn a_line_says_what_a_model_can_do_what_it_refuses_and_when_it_ends() {
    let gpt = find("gpt-4o").unwrap();
    assert_eq!(gpt.retires_at, Some(jiff::civil::date(2027, 1, 14)));
    assert_eq!(gpt.name, "GPT-4o");
    let claude = find("claude-opus-5-5").unwrap();
    assert!(claude.can(Ability::Pdf) && claude.can(Ability::Reasoning));
    let refused = [
        super::Unwanted::Temperature,
        super::Unwanted::ForcedToolChoice,
        super::Unwanted::NoThinking,
    ];
    assert_eq!(claude.refuses, refused);
    let luna = find("gpt-6-luna").unwrap();
    assert_eq!(
        (luna.context_window, luna.max_input),
        (1_050_000, Some(922_000))
    );
    let used = usage(1_000, 0, 0);
    let tiers = [Tier::Standard, Tier::Flex, Tier::Priority, Tier::Batch];
    let prices = tiers.map(|tier| luna.price_in(tier, &used).map(|price| price.0));
    assert_eq!(prices, [Some(100), Some(50), Some(200), Some(50)]);
}
