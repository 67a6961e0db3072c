//! What values mean, and what follows from several of them.

use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::{check_refused, env, loaded, yaml};
use crate::config::{LogOutput, ProviderKind, Sources};

#[test]
fn the_provider_is_the_first_with_a_key_else_the_script() {
    use ProviderKind::{OpenAi, OpenAiCompatible, Scripted};
    for (pairs, expected, model) in [
        (&[][..], Scripted, "scripted"),
        (&[("OPENAI_API_KEY", "k")], OpenAi, "gpt-4o"),
        (&[("SPL_LLM_API_KEY", "k")], OpenAi, "gpt-4o"),
        (&[("LLM_PROVIDER", "chatgpt")], OpenAi, "gpt-4o"),
        (
            &[("LLM_PROVIDER", "OpenAI"), ("SPL_LLM_MODEL", "gpt-5")],
            OpenAi,
            "gpt-5",
        ),
        (
            &[("LLM_PROVIDER", "scripted"), ("OPENAI_API_KEY", "k")],
            Scripted,
            "scripted",
        ),
        (
            &[
                ("OPENAI_BASE_URL", "http://localhost:1/v1"),
                ("LLM_MODEL", "m"),
            ],
            OpenAiCompatible,
            "m",
        ),
        (&[("ANTHROPIC_API_KEY", "k")], Scripted, "scripted"),
    ] {
        let llm = loaded(&env(pairs)).settings.llm;
        assert_eq!(
            (llm.provider, llm.model.as_str()),
            (expected, model),
            "{pairs:?}"
        );
    }
    check_refused(
        &env(&[("LLM_PROVIDER", "openai-compatible"), ("LLM_MODEL", "m")]),
        &["agent.llm.base_url", "needs it"],
    );
}

#[test]
fn a_vendor_key_goes_only_to_its_vendor_or_the_address_beside_it() {
    let key = |pairs: &[(&str, &str)]| {
        let llm = loaded(&env(pairs)).settings.llm;
        llm.api_key.map(|key| key.expose_secret().to_owned())
    };
    let vendor = ("OPENAI_API_KEY", "vendor");
    let compatible = ("LLM_PROVIDER", "openai-compatible");
    let model = ("LLM_MODEL", "m");
    let url = "http://localhost:1/v1";
    assert_eq!(key(&[vendor]).as_deref(), Some("vendor"));
    assert_eq!(
        key(&[vendor, ("SPL_LLM_API_KEY", "own")]).as_deref(),
        Some("own")
    );
    assert_eq!(
        key(&[vendor, compatible, model, ("SPL_LLM_BASE_URL", url)]),
        None
    );
    let beside = [vendor, compatible, model, ("OPENAI_BASE_URL", url)];
    assert_eq!(key(&beside).as_deref(), Some("vendor"));
    let mut sources = env(&[vendor]);
    sources.file = yaml("agent: {llm: {api_key: dummy-api-key}}").file;
    let llm = loaded(&sources).settings.llm;
    assert_eq!(llm.api_key.unwrap().expose_secret(), "vendor");
}

#[test]
fn an_operator_is_told_of_dummies_and_of_keys_that_nothing_uses() {
    let notices = |pairs: &[(&str, &str)]| loaded(&env(pairs)).notices;
    assert_eq!(notices(&[]), Vec::<String>::new());
    assert!(notices(&[("LLM_API_KEY", "dummy-api-key")])[0].contains("dummy"));
    assert!(notices(&[("GEMINI_API_KEY", "k")])[0].contains("`gemini` is not in this version yet"));
}

#[test]
fn zero_means_no_limit_or_not_sent() {
    let settings = loaded(&env(&[
        ("MAX_OUTPUT_TOKENS", "0"),
        ("MAX_HISTORY_TOKENS", "0"),
        ("SPL_LIMIT_SOCKETS", "0"),
        ("SPL_LLM_TEMPERATURE", "0"),
    ]))
    .settings;
    assert_eq!(settings.llm.max_tokens, None);
    assert_eq!(settings.chat.max_tokens, None);
    assert_eq!(settings.runtime.limits.sockets, None);
    assert_eq!(settings.llm.temperature, Some(0.0));
}

#[test]
fn lists_are_written_as_lists_or_with_commas() {
    let expected = ["https://a.example", "http://b:8080"];
    let commas = env(&[("SPL_ALLOWED_ORIGINS", "https://A.example/, http://b:8080,")]);
    let list = yaml("runtime: {http: {allowedOrigins: ['https://a.example', 'http://b:8080']}}");
    for sources in [commas, list] {
        assert_eq!(
            loaded(&sources).settings.runtime.http.allowed_origins,
            expected
        );
    }
    let access = loaded(&env(&[("SPL_TRUSTED_PROXIES", "10.1.2.3/8, ::1")]))
        .settings
        .runtime
        .http;
    let proxies: Vec<String> = access
        .trusted_proxies
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(proxies, ["10.0.0.0/8", "::1/128"]);
}

#[test]
fn a_container_listens_to_everybody_unless_nobody_signs_in() {
    let host = |pairs: &[(&str, &str)]| {
        let in_container = true;
        let sources = Sources {
            in_container,
            ..env(pairs)
        };
        loaded(&sources).settings.runtime.transports.http.host
    };
    assert_eq!(host(&[]), "0.0.0.0");
    assert_eq!(host(&[("HOST", "10.0.0.1")]), "10.0.0.1");
    assert_eq!(host(&[("SPL_AUTH", "none")]), "localhost");
}

#[test]
fn the_database_lies_in_the_data_folder_unless_told_otherwise() {
    let url = |pairs: &[(&str, &str)]| loaded(&env(pairs)).settings.store.database_url;
    assert_eq!(url(&[]), "sqlite://data/sepal.db");
    assert_eq!(
        url(&[("SPL_DATA_DIR", "/var/lib/sepal/")]),
        "sqlite:///var/lib/sepal/sepal.db"
    );
    assert_eq!(
        url(&[("DATABASE_URL", "sqlite::memory:")]),
        "sqlite::memory:"
    );
}

#[test]
fn units_become_durations() {
    let settings = loaded(&env(&[
        ("LLM_RETRY_INITIAL_BACKOFF", "0.5"),
        ("SPL_SANDBOX_COMMAND_TIMEOUT", "7"),
        ("SPL_SANDBOX_IDLE_MINUTES", "2"),
        ("SPL_LLM_SCRIPTED_PACE_MS", "0"),
        ("SPL_LOG_OUTPUT", "./simple.log"),
    ]))
    .settings;
    assert_eq!(
        settings.llm.retry.initial_backoff,
        Duration::from_millis(500)
    );
    assert_eq!(settings.sandbox.command_timeout, Duration::from_secs(7));
    assert_eq!(settings.sandbox.idle, Duration::from_mins(2));
    assert_eq!(settings.llm.scripted_pace, Duration::ZERO);
    assert_eq!(
        settings.runtime.log.output,
        LogOutput::File("./simple.log".into())
    );
}
