//! Checks `compaction` of providers: only some vendors can compact, and not below their smallest threshold.

use url::Url;

use super::{Fields, Members, path};
use crate::Problem;
use crate::table::PROVIDERS;

/// The compaction settings of the default provider.
pub(super) const BY: &str = "agent.llm.compaction";
pub(super) const THRESHOLD: &str = "agent.llm.compaction_threshold";
/// The host of OpenAI, whose default API is Responses.
const OPENAI_HOST: &str = "api.openai.com";
/// The smallest threshold in input tokens that Anthropic accepts.
const ANTHROPIC_LEAST: u64 = 50_000;

/// Refuses settings that the vendor does not support.
pub(super) fn check(entries: &Members, default: Option<&str>, problems: &mut Vec<Problem>) {
    for (name, fields) in entries {
        let at = |key: &str, field: &str| match default {
            Some(default) if default == name => key.to_owned(),
            Some(_) | None => path(&PROVIDERS, name, field),
        };
        let kind = text(fields, "kind").unwrap_or_default();
        if let Some(given) = fields.get("compaction")
            && given.value == "vendor"
            && !can_compact(kind, fields)
        {
            problems.push(Problem {
                path: at(BY, "compaction"),
                source: Some(given.source.clone()),
                what: format!("`{name}` cannot compact by itself as it is spoken to"),
                accepted:
                    "`sepal`, or `vendor` of the kind `anthropic` and of OpenAI in Responses \
                           (`api`: `responses`)"
                        .to_owned(),
            });
        }
        if let Some(given) = fields.get("compaction_threshold")
            && kind == "anthropic"
            && given.value.as_u64().is_some_and(|it| it < ANTHROPIC_LEAST)
        {
            problems.push(Problem {
                path: at(THRESHOLD, "compaction_threshold"),
                source: Some(given.source.clone()),
                what: format!("{} tokens are below what Anthropic takes", given.value),
                accepted: format!("{ANTHROPIC_LEAST} tokens or more"),
            });
        }
    }
}

fn text<'a>(fields: &'a Fields, field: &str) -> Option<&'a str> {
    fields.get(field)?.value.as_str()
}

fn can_compact(kind: &str, fields: &Fields) -> bool {
    let is_own = || match text(fields, "base_url") {
        None => kind == "openai",
        Some(url) => Url::parse(url).is_ok_and(|url| url.host_str() == Some(OPENAI_HOST)),
    };
    match kind {
        "anthropic" => true,
        "openai" | "openai-compatible" => match text(fields, "api") {
            Some("responses") => true,
            Some("auto") | None => is_own(),
            Some(_) => false,
        },
        _ => false,
    }
}
