//! What follows from several settings together: defaults that depend on others, and contradictions.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::table::{Kind, Word, find};
use super::value::{Resolved, Values, checked, variable};
use super::{Problem, Source, Sources};

/// The key of the examples; it is accepted, and the provider will refuse it (C13).
const DUMMY_KEY: &str = "dummy-api-key";

const PROVIDER: &str = "agent.llm.provider";
const API_KEY: &str = "agent.llm.api_key";
const BASE_URL: &str = "agent.llm.base_url";
const MODEL: &str = "agent.llm.model";
const HOST: &str = "runtime.transports.http.host";
const AUTH_MODE: &str = "auth.mode";

/// Fills in what depends on other settings, and returns what an operator should know.
pub(super) fn fill(
    values: &mut Values,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) -> Vec<String> {
    let mut notices = Vec::new();
    fill_provider(values, sources, problems, &mut notices);
    let in_open_container = sources.in_container && text(values, AUTH_MODE) != Some("none");
    let (host, why) = if in_open_container {
        ("0.0.0.0", Source::Derived("default in a container"))
    } else {
        ("localhost", Source::Default)
    };
    fill_one(values, HOST, host, why);
    let version = env!("CARGO_PKG_VERSION");
    fill_one(values, "agent.version", version, Source::Default);
    if let Some(folder) = text(values, "store.data_dir") {
        let url = format!("sqlite://{}/sepal.db", folder.trim_end_matches('/'));
        let why = Source::Derived("default below store.data_dir");
        fill_one(values, "store.database_url", &url, why);
    }
    notices
}

/// Chooses the provider, and gives it its vendor's variables and its default model.
fn fill_provider(
    values: &mut Values,
    sources: &Sources,
    problems: &mut Vec<Problem>,
    notices: &mut Vec<String>,
) {
    let (provider, why) = choose_provider(values, sources);
    fill_one(values, PROVIDER, provider, Source::Derived(why));
    // An invalid choice is a problem already; nothing more follows from it.
    let Some(provider) = text(values, PROVIDER).map(str::to_owned) else {
        return;
    };
    if provider == "openai" || provider == "openai-compatible" {
        let from_vendor = fill_vendor(values, BASE_URL, sources, problems);
        // The vendor's key goes to the vendor, or to the address that stands beside it.
        if provider == "openai" || from_vendor {
            fill_vendor(values, API_KEY, sources, problems);
        }
    }
    match provider.as_str() {
        "openai" => fill_one(values, MODEL, "gpt-4o", Source::Default),
        "scripted" => fill_one(values, MODEL, "scripted", Source::Default),
        _ => {}
    }
    if text(values, API_KEY) == Some(DUMMY_KEY) && provider != "scripted" {
        notices.push(format!(
            "`{API_KEY}` is the dummy of the examples, which `{provider}` will refuse; set SPL_LLM_API_KEY"
        ));
    }
    if provider == "scripted" {
        for (vendor, name) in find(API_KEY).map_or(&[][..], |definition| definition.vendor) {
            if is_later_provider(vendor) && variable([*name].into_iter(), sources).is_some() {
                notices.push(format!(
                    "{name} is set, but the provider `{vendor}` is not in this version yet; the scripted model answers"
                ));
            }
        }
    }
}

/// The provider when nobody named one, and why.
fn choose_provider(values: &Values, sources: &Sources) -> (&'static str, &'static str) {
    let has = |name: &'static str| variable([name].into_iter(), sources).is_some();
    if text(values, API_KEY).is_some() || has("OPENAI_API_KEY") {
        ("openai", "chosen because there is a key")
    } else if text(values, BASE_URL).is_some() || has("OPENAI_BASE_URL") {
        ("openai-compatible", "chosen because there is a base URL")
    } else {
        ("scripted", "chosen because no provider has a key")
    }
}

fn is_later_provider(provider: &str) -> bool {
    let is_it = |word: &Word| matches!(word, Word::Later(name) if *name == provider);
    let kind = find(PROVIDER).map(|definition| definition.kind);
    matches!(kind, Some(Kind::OneOf(words)) if words.iter().any(is_it))
}

/// Lets `OpenAI`'s own variable stand above the file and below our names; says whether it counted.
fn fill_vendor(
    values: &mut Values,
    key: &'static str,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) -> bool {
    let is_named = values
        .get(key)
        .is_some_and(|given| matches!(given.source, Source::Flag(_) | Source::Env(_)));
    let Some(definition) = find(key).filter(|_| !is_named) else {
        return false;
    };
    let names = definition.vendor.iter();
    let names = names.filter(|(vendor, _)| *vendor == "openai");
    let Some((raw, source)) = variable(names.map(|(_, name)| *name), sources) else {
        return false;
    };
    match checked(definition, &raw, &source, problems) {
        Some(resolved) => values.insert(key, resolved),
        None => values.remove(key),
    };
    true
}

/// Sets a key that nobody set.
fn fill_one(values: &mut Values, key: &'static str, value: &str, source: Source) {
    if let Some(resolved) = values.get_mut(key)
        && resolved.value.is_null()
    {
        *resolved = Resolved {
            value: json!(value),
            source,
        };
    }
}

fn text<'a>(values: &'a Values, key: &str) -> Option<&'a str> {
    values.get(key)?.value.as_str()
}

fn number(values: &Values, key: &str) -> Option<f64> {
    values.get(key)?.value.as_f64()
}

/// Whether only this machine can reach a listener or page at that host.
pub(super) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Refuses values that are right alone and wrong together. A key with a problem has no value here.
pub(super) fn cross_check(values: &Values, problems: &mut Vec<Problem>) {
    let mut refuse = |key: &str, what: &str, accepted: &str| {
        let source = values.get(key).map(|resolved| resolved.source.clone());
        problems.push(Problem {
            path: key.to_owned(),
            source: source.filter(|source| *source != Source::Default),
            what: what.to_owned(),
            accepted: accepted.to_owned(),
        });
    };
    if text(values, AUTH_MODE) == Some("none") {
        check_open_door(values, &mut refuse);
    }
    let enabled = "runtime.transports.http.enabled";
    if values
        .get(enabled)
        .is_some_and(|on| on.value == json!(false))
    {
        let what = "nothing would run: the agent on stdio is not in this version yet";
        refuse(enabled, what, "`true`");
    }
    if text(values, PROVIDER) == Some("openai-compatible") {
        let is_missing = |key| values.get(key).is_some_and(|it| it.value.is_null());
        let what = "`openai-compatible` needs it";
        if is_missing(BASE_URL) {
            refuse(
                BASE_URL,
                what,
                "the server's address, for example `http://localhost:11434/v1`",
            );
        }
        if is_missing(MODEL) {
            refuse(MODEL, what, "the server's name of a model");
        }
    }
    let (initial, max) = (
        "agent.llm.retry.initial_backoff",
        "agent.llm.retry.max_backoff",
    );
    if number(values, initial) > number(values, max) && number(values, max).is_some() {
        refuse(
            max,
            "the longest wait is shorter than the first",
            "at least `initial_backoff`",
        );
    }
}

/// `auth.mode: none` opens the door to everybody who can reach it, so nobody else may.
fn check_open_door(values: &Values, refuse: &mut impl FnMut(&str, &str, &str)) {
    let what = "everybody could use the gateway, because `auth.mode` is `none`";
    if text(values, HOST).is_some_and(|host| !is_loopback(host)) {
        refuse(
            HOST,
            what,
            "`localhost` or another loopback address, or `auth.mode: password`",
        );
    }
    let public =
        text(values, "runtime.http.public_url").and_then(|url| url.parse::<url::Url>().ok());
    let host = public.as_ref().and_then(|url| url.host_str());
    if host.is_some_and(|host| !is_loopback(host)) {
        refuse(
            "runtime.http.public_url",
            what,
            "none, or `auth.mode: password`",
        );
    }
    let proxies = values.get("runtime.http.trusted_proxies");
    if proxies.is_some_and(|list| list.value != Value::Array(Vec::new())) {
        refuse(
            "runtime.http.trusted_proxies",
            what,
            "none, or `auth.mode: password`",
        );
    }
}
