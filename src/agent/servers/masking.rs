//! Keeps secrets out of what people read: configurations, logs, error texts.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::McpServerConfig;
use crate::mcp::config::references;

/// What stands for a value that nobody gets to see.
pub(super) const MASK: &str = "••••";

/// Takes known secrets out of texts.
#[derive(Clone, Default)]
pub(super) struct Cleaner(Vec<String>);

impl Cleaner {
    /// Longer ones go first, so that none is left in part.
    pub(super) fn new(secrets: BTreeSet<String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    pub(super) fn clean(&self, text: &str) -> String {
        let mut cleaned = text.to_owned();
        for secret in &self.0 {
            if cleaned.contains(secret.as_str()) {
                cleaned = cleaned.replace(secret.as_str(), MASK);
            }
        }
        cleaned
    }
}

/// An entry as its admins see it: names of variables and headers, references, no values.
pub(super) fn masked(config: &McpServerConfig) -> McpServerConfig {
    let hide = |map: &BTreeMap<String, String>| {
        map.iter()
            .map(|(name, value)| (name.clone(), hidden(value)))
            .collect()
    };
    McpServerConfig {
        env: hide(&config.env),
        container_env: hide(&config.container_env),
        headers: hide(&config.headers),
        url: config.url.as_deref().map(hidden_url),
        ..config.clone()
    }
}

/// Text that is nothing but references and a word such as `Bearer` tells nothing.
pub(super) fn hidden(value: &str) -> String {
    let is_reference = value
        .split_whitespace()
        .any(|word| word.starts_with("${") && word.ends_with('}') && !references(word).is_empty());
    let is_harmless = value.split_whitespace().all(|word| {
        word == "Bearer" || word == "Basic" || (word.starts_with("${") && word.ends_with('}'))
    });
    if value.is_empty() || (is_reference && is_harmless) {
        value.to_owned()
    } else {
        MASK.to_owned()
    }
}

/// An address may carry a key in its query.
fn hidden_url(url: &str) -> String {
    match url.split_once('?') {
        Some((before, _)) => format!("{before}?{MASK}"),
        None => url.to_owned(),
    }
}

/// Puts back what a client only saw masked.
pub(super) fn unmasked(new: &mut McpServerConfig, old: &McpServerConfig) {
    let keep = |new: &mut BTreeMap<String, String>, old: &BTreeMap<String, String>| {
        for (name, value) in new.iter_mut().filter(|(_, value)| *value == MASK) {
            if let Some(kept) = old.get(name) {
                value.clone_from(kept);
            }
        }
    };
    keep(&mut new.env, &old.env);
    keep(&mut new.container_env, &old.container_env);
    keep(&mut new.headers, &old.headers);
    if new.url.is_some() && new.url == old.url.as_deref().map(hidden_url) {
        new.url.clone_from(&old.url);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Cleaner, masked, unmasked};
    use crate::domain::McpServerConfig;

    #[test]
    fn values_are_masked_references_are_not_and_a_mask_keeps_the_value() {
        let config: McpServerConfig = serde_json::from_value(json!({
            "url": "https://e.test/mcp?key=k",
            "headers": {"Authorization": "Bearer ${secret:T}", "X-Key": "plain ${secret:T}"},
            "env": {"A": "swordfish", "B": ""},
        }))
        .unwrap();
        let mut shown = masked(&config);
        assert_eq!(shown.headers["Authorization"], "Bearer ${secret:T}");
        assert_eq!(shown.headers["X-Key"], "••••");
        assert_eq!(shown.env["A"], "••••");
        assert_eq!(shown.env["B"], "");
        assert_eq!(shown.url.as_deref(), Some("https://e.test/mcp?••••"));
        shown.env.insert("A".into(), "••••".into());
        unmasked(&mut shown, &config);
        assert_eq!(shown, config);
    }

    #[test]
    fn no_part_of_a_secret_is_left_in_a_text() {
        let secrets = ["token", "token-and-more"].map(str::to_owned);
        let cleaner = Cleaner::new(secrets.into_iter().collect());
        assert_eq!(cleaner.clean("a token-and-more b token"), "a •••• b ••••");
    }
}
