//! Fallback models, and further keys of a provider.

use super::{check_refused, env, loaded, yaml};

#[test]
fn further_keys_and_what_answers_instead_are_said_for_each_provider() {
    let mut sources = yaml(
        "agent: {llm: {provider: openai, providers: {b: {kind: openai-compatible, base_url: 'http://b/v1', fallback: 'openai/gpt-4o, c/x/y'}}}}",
    );
    sources.env = env(&[
        ("OPENAI_API_KEY", "one"),
        ("SPL_LLM_API_KEYS", "two, three"),
        ("SPL_LLM_FALLBACK", "b/m"),
    ])
    .env;
    let llm = loaded(&sources).settings.llm;
    let openai = &llm.providers["openai"];
    let keys = openai
        .api_keys
        .iter()
        .map(secrecy::ExposeSecret::expose_secret);
    assert_eq!(keys.collect::<Vec<_>>(), ["two", "three"]);
    let named = |name: &str| {
        let entries = llm.providers[name].fallback.iter();
        let entries = entries.map(|entry| format!("{} {}", entry.provider, entry.model));
        entries.collect::<Vec<_>>()
    };
    assert_eq!(named("openai"), ["b m"]);
    assert_eq!(named("b"), ["openai gpt-4o", "c x/y"]);
    check_refused(
        &env(&[("SPL_LLM_FALLBACK", "b")]),
        &["agent.llm.fallback", "`b` names no provider"],
    );
}
