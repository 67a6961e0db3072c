//! The gathered providers, the default, and the fields of each entry.

use secrecy::ExposeSecret as _;

use super::{check_refused, env, loaded, yaml};
use crate::{CacheTtl, ModelPrice, ProviderKind, Sources};

/// The default, its model, and every entry as `name kind key url`.
fn providers(sources: &Sources) -> (String, String, Vec<String>) {
    let llm = loaded(sources).settings.llm;
    let entries = llm.providers.iter().map(|(name, entry)| {
        let key = entry
            .api_key
            .as_ref()
            .map_or("-", |key| key.expose_secret());
        let url = entry.base_url.as_ref().map_or("-", |url| url.as_str());
        format!("{name} {} {key} {url}", entry.kind.as_str())
    });
    (llm.provider.clone(), llm.model.clone(), entries.collect())
}

#[track_caller]
fn check(sources: &Sources, default: &str, model: &str, entries: &[&str]) {
    let found = providers(sources);
    assert_eq!((found.0.as_str(), found.1.as_str()), (default, model));
    assert_eq!(found.2, entries);
}

const CLAUDE: &str = "claude-sonnet-4-5-20250929";
const URL: &str = "http://localhost:1/v1";

/// Asserts S2.5, S2.14, S2.16.
#[test]
fn the_default_is_the_first_with_a_key_else_a_base_url_else_the_script() {
    let openai = ("OPENAI_API_KEY", "o");
    let anthropic = ("ANTHROPIC_API_KEY", "a");
    let gemini = ("GEMINI_API_KEY", "g");
    check(
        &env(&[]),
        "scripted",
        "scripted",
        &["scripted scripted - -"],
    );
    check(&env(&[openai]), "openai", "gpt-4o", &["openai openai o -"]);
    let own = env(&[("SPL_LLM_API_KEY", "k")]);
    check(&own, "openai", "gpt-4o", &["openai openai k -"]);
    check(
        &env(&[anthropic]),
        "anthropic",
        CLAUDE,
        &["anthropic anthropic a -"],
    );
    let both = ["anthropic anthropic a -", "openai openai o -"];
    check(&env(&[openai, anthropic]), "openai", "gpt-4o", &both);
    let both = ["anthropic anthropic a -", "gemini gemini g -"];
    check(&env(&[gemini, anthropic]), "anthropic", CLAUDE, &both);
    let gemini = ["gemini gemini g -"];
    check(
        &env(&[("GEMINI_API_KEY", "g")]),
        "gemini",
        "gemini-2.0-flash-exp",
        &gemini,
    );
    let compatible = ["openai-compatible openai-compatible - http://localhost:1/v1"];
    let url = env(&[("OPENAI_BASE_URL", URL), ("LLM_MODEL", "m")]);
    check(&url, "openai-compatible", "m", &compatible);
    let own = env(&[("SPL_LLM_BASE_URL", URL), ("LLM_MODEL", "m")]);
    check(&own, "openai-compatible", "m", &compatible);
    let named = yaml(
        "agent: {llm: {providers: {local: {kind: openai-compatible, baseURL: 'http://localhost:1/v1', \
         models: [m, n]}}}}",
    );
    check(
        &named,
        "local",
        "m",
        &["local openai-compatible - http://localhost:1/v1"],
    );
}

/// Asserts S3.34.
#[test]
fn a_named_provider_is_the_default_and_aliases_are_folded() {
    let openai = ("OPENAI_API_KEY", "o");
    for (name, default, model) in [
        ("chatgpt", "openai", "gpt-4o"),
        ("OpenAI", "openai", "gpt-4o"),
        ("claude", "anthropic", CLAUDE),
        ("Google", "gemini", "gemini-2.0-flash-exp"),
        ("scripted", "scripted", "scripted"),
    ] {
        let found = providers(&env(&[("LLM_PROVIDER", name), openai]));
        assert_eq!((found.0.as_str(), found.1.as_str()), (default, model));
        assert!(
            found.2.contains(&"openai openai o -".to_owned()),
            "{found:?}"
        );
    }
    let named = "agent: {llm: {provider: Local, providers: {local: {kind: openai}}}}";
    check_refused(
        &yaml(named),
        &["`Local` is neither", "did you mean `local`?"],
    );
    check_refused(
        &env(&[("LLM_PROVIDER", "elsewhere")]),
        &[
            "agent.llm.provider",
            "LLM_PROVIDER",
            "`elsewhere` is neither",
            "`anthropic`",
        ],
    );
    check_refused(&env(&[("LLM_PROVIDER", "a b")]), &["`a b` is no name"]);
}

/// Asserts S3.34.
#[test]
fn a_vendor_key_goes_only_to_its_vendor_or_the_address_beside_it() {
    let vendor = ("OPENAI_API_KEY", "vendor");
    let compatible = ("LLM_PROVIDER", "openai-compatible");
    let model = ("LLM_MODEL", "m");
    let own = env(&[vendor, ("SPL_LLM_API_KEY", "own")]);
    check(&own, "openai", "gpt-4o", &["openai openai own -"]);
    let elsewhere = env(&[vendor, compatible, model, ("SPL_LLM_BASE_URL", URL)]);
    let entries = [
        "openai openai vendor -",
        "openai-compatible openai-compatible - http://localhost:1/v1",
    ];
    check(&elsewhere, "openai-compatible", "m", &entries);
    let beside = env(&[vendor, compatible, model, ("OPENAI_BASE_URL", URL)]);
    let entries = ["openai-compatible openai-compatible vendor http://localhost:1/v1"];
    check(&beside, "openai-compatible", "m", &entries);
    let proxy = env(&[vendor, ("OPENAI_BASE_URL", URL)]);
    check(
        &proxy,
        "openai",
        "gpt-4o",
        &["openai openai vendor http://localhost:1/v1"],
    );
}

#[test]
fn the_environment_beats_the_file_and_our_names_beat_the_vendors() {
    let mut sources = env(&[("OPENAI_API_KEY", "vendor")]);
    sources.file = yaml("agent: {llm: {api_key: dummy-api-key}}").file;
    check(&sources, "openai", "gpt-4o", &["openai openai vendor -"]);
    let mut sources = env(&[("ANTHROPIC_API_KEY", "vendor"), ("LLM_MODEL", "m")]);
    let file =
        "agent: {llm: {provider: openai, providers: {claude: {api_key: filed, models: [x]}}}}";
    sources.file = yaml(file).file;
    check(
        &sources,
        "openai",
        "m",
        &["anthropic anthropic vendor -", "openai openai - -"],
    );
    sources.env = env(&[
        ("SPL_LLM_PROVIDER", "anthropic"),
        ("SPL_LLM_API_KEY", "own"),
    ])
    .env;
    check(&sources, "anthropic", "x", &["anthropic anthropic own -"]);
}

/// S3.40, and S3.34: a variable for each key.
#[test]
fn gemini_mistral_and_cohere_are_known_by_name() {
    let mistral = "mistral openai-compatible k https://api.mistral.ai/v1";
    let cohere = "cohere openai-compatible k https://api.cohere.ai/compatibility/v1";
    for (name, key, model, entry) in [
        (
            "gemini",
            "GEMINI_API_KEY",
            "gemini-2.0-flash-exp",
            "gemini gemini k -",
        ),
        (
            "google",
            "GEMINI_API_KEY",
            "gemini-2.0-flash-exp",
            "gemini gemini k -",
        ),
        (
            "mistral",
            "MISTRAL_API_KEY",
            "mistral-large-latest",
            mistral,
        ),
        ("cohere", "COHERE_API_KEY", "command-a-03-2025", cohere),
    ] {
        let canonical = if name == "google" { "gemini" } else { name };
        let named = env(&[("LLM_PROVIDER", name), (key, "k")]);
        check(&named, canonical, model, &[entry]);
        // A key alone chooses its vendor.
        check(&env(&[(key, "k")]), canonical, model, &[entry]);
        let own = env(&[
            ("LLM_PROVIDER", name),
            ("SPL_LLM_API_KEY", "k"),
            ("LLM_MODEL", "m"),
        ]);
        check(&own, canonical, "m", &[entry]);
    }
    let filed = yaml("agent: {llm: {providers: {mistral: {apiKey: k}, openai: {apiKey: o}}}}");
    check(&filed, "openai", "gpt-4o", &[mistral, "openai openai o -"]);
    // Another server with the same provider name gets neither address nor key.
    let mut own = yaml(
        "agent: {llm: {provider: mistral, model: m, providers: {mistral: {baseURL: 'http://localhost:1/v1'}}}}",
    );
    own.env = env(&[("MISTRAL_API_KEY", "k")]).env;
    check(
        &own,
        "mistral",
        "m",
        &["mistral openai-compatible - http://localhost:1/v1"],
    );
    let notices = loaded(&env(&[("LLM_PROVIDER", "cohere")])).notices;
    assert!(notices[0].contains("COHERE_API_KEY"), "{notices:?}");
}

/// Asserts S2.15, S2.18.
#[test]
fn only_anthropic_is_told_a_limit_that_nobody_set() {
    let limit =
        |pairs: &[(&str, &str)], kind| loaded(&env(pairs)).settings.llm.max_tokens_for(kind);
    assert_eq!(limit(&[], ProviderKind::Anthropic), Some(8192));
    assert_eq!(limit(&[], ProviderKind::Gemini), None);
    let zero = [("SPL_LLM_MAX_TOKENS", "0")];
    assert_eq!(limit(&zero, ProviderKind::Anthropic), Some(8192));
    assert_eq!(limit(&zero, ProviderKind::OpenAi), None);
    let set = [("MAX_OUTPUT_TOKENS", "9")];
    assert_eq!(limit(&set, ProviderKind::Anthropic), Some(9));
    assert_eq!(limit(&set, ProviderKind::OpenAi), Some(9));
}

#[test]
fn an_entry_that_could_never_work_is_refused() {
    let entry = |text: &str| yaml(&format!("agent: {{llm: {{providers: {text}}}}}"));
    check_refused(
        &entry("{mine: {}}"),
        &["agent.llm.providers.mine", "`kind` is missing"],
    );
    check_refused(&entry("{'a b': {kind: openai}}"), &["cannot be used"]);
    check_refused(&entry("{claude: {}, anthropic: {}}"), &["two spellings"]);
    check_refused(
        &entry("{mine: {kind: cohere}}"),
        &["providers.mine.kind", "`cohere`"],
    );
    check_refused(
        &entry("{mine: {kind: openai, apikeys: x}}"),
        &["did you mean `api_keys`?"],
    );
    check_refused(&entry("{mine: 1}"), &["a section is expected"]);
    check_refused(
        &entry("{openai: {api: soap}}"),
        &["`soap`", "`responses`", "`chat-completions`"],
    );
    check_refused(
        &entry("{mine: {kind: openai-compatible}, openai: {api_key: k}}"),
        &["agent.llm.providers.mine.base_url", "needs it"],
    );
    let compatible = ("LLM_PROVIDER", "openai-compatible");
    let no_url = env(&[compatible, ("LLM_MODEL", "m")]);
    check_refused(&no_url, &["agent.llm.base_url", "needs it"]);
    let no_model = env(&[compatible, ("OPENAI_BASE_URL", URL)]);
    check_refused(&no_model, &["agent.llm.model", "needs it"]);
}

#[test]
fn an_operator_is_told_of_dummies() {
    let notices = |pairs: &[(&str, &str)]| loaded(&env(pairs)).notices;
    assert_eq!(notices(&[]), Vec::<String>::new());
    assert!(notices(&[("LLM_API_KEY", "dummy-api-key")])[0].contains("dummy"));
    let second = notices(&[("OPENAI_API_KEY", "k"), ("GEMINI_API_KEY", "dummy-api-key")]);
    assert!(
        second[0].contains("`agent.llm.providers.gemini.api_key`"),
        "{second:?}"
    );
}

#[test]
fn windows_are_said_for_a_provider_and_for_single_models() {
    let file = yaml(
        "agent:\n  llm:\n    provider: ollama\n    model: qwen3:8b\n    context_window: 8192\n    providers:\n      ollama:\n        kind: openai-compatible\n        baseURL: http://localhost:1/v1\n        contextWindows: [qwen3:8b=40960, a=b=2048]\n      other:\n        kind: openai-compatible\n        baseURL: http://localhost:2/v1\n",
    );
    let llm = loaded(&file).settings.llm;
    let entry = llm.default_entry().unwrap();
    assert_eq!(entry.context_window, Some(8_192));
    let said: Vec<(&str, u64)> = entry
        .context_windows
        .iter()
        .map(|(model, tokens)| (model.as_str(), *tokens))
        .collect();
    assert_eq!(said, [("a=b", 2_048), ("qwen3:8b", 40_960)]);
    let other = &llm.providers["other"];
    assert_eq!(
        (other.context_window, other.context_windows.len()),
        (None, 0)
    );
}

#[test]
fn how_long_a_cache_keeps_what_it_is_given_is_said_for_the_default_and_for_others() {
    let file = yaml(
        "agent: {llm: {provider: anthropic, apiKey: k, cacheTtl: 1h, \
         providers: {other: {kind: anthropic, apiKey: k, baseUrl: 'http://h', cacheTtl: 1h}, \
         third: {kind: anthropic, apiKey: k, baseUrl: 'http://h'}}}}",
    );
    let llm = loaded(&file).settings.llm;
    for (name, expected) in [
        ("anthropic", CacheTtl::Hour),
        ("other", CacheTtl::Hour),
        ("third", CacheTtl::FiveMinutes),
    ] {
        assert_eq!(llm.providers[name].cache_ttl, expected, "{name}");
    }
    check_refused(&yaml("agent: {llm: {cacheTtl: 2h}}"), &["2h"]);
}

/// S3.11.
#[test]
fn longest_answers_and_prices_are_said_for_single_models() {
    let entry = |fields: &str| {
        yaml(&format!(
            "agent: {{llm: {{providers: {{gemini: {{api_key: k, {fields}}}}}}}}}"
        ))
    };
    let file =
        entry("maxOutputs: ['a=9', 'b:8b=8192'], prices: ['a=1/2', 'b=x=0.1/0.4/0/0.2/0.3']");
    let gemini = loaded(&file).settings.llm.providers["gemini"].clone();
    let said: Vec<(&str, u64)> = gemini
        .max_outputs
        .iter()
        .map(|(model, tokens)| (model.as_str(), *tokens))
        .collect();
    assert_eq!(said, [("a", 9), ("b:8b", 8_192)]);
    let plain = ModelPrice {
        input: 1.0,
        output: 2.0,
        cached: None,
        cache_write: None,
        cache_write_long: None,
    };
    assert_eq!(gemini.prices["a"], plain);
    let whole = ModelPrice {
        input: 0.1,
        output: 0.4,
        cached: Some(0.0),
        cache_write: Some(0.2),
        cache_write_long: Some(0.3),
    };
    assert_eq!(gemini.prices["b=x"], whole);
    for wrong in [
        "a",
        "=1/2",
        "a=1",
        "a=1/x",
        "a=-1/2",
        "a=1/2/3/4/5/6",
        "a=1/1e7",
        "a=NaN/1",
    ] {
        let told = format!("`{wrong}` is no price of a model");
        check_refused(&entry(&format!("prices: ['{wrong}']")), &[&told]);
    }
    for wrong in ["a", "a=0", "a=many"] {
        let told = format!("`{wrong}` is no longest answer of a model");
        check_refused(&entry(&format!("maxOutputs: ['{wrong}']")), &[&told]);
    }
}

#[test]
fn a_window_that_says_nothing_is_refused() {
    for wrong in ["qwen3:8b", "=4096", "a=", "a=many", "a=1023", "a=-1"] {
        let file = format!(
            "agent:\n  llm:\n    providers:\n      gemini:\n        api_key: k\n        contextWindows: [\"{wrong}\"]\n"
        );
        let problems = crate::load(&yaml(&file)).err().unwrap().to_string();
        assert!(
            problems.contains(&format!("`{wrong}` is no window of a model")),
            "{problems}"
        );
    }
}
