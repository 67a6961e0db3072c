//! Keeps secrets out of the configurations that people read.

use std::collections::BTreeMap;

use crate::domain::{McpOAuth, McpServerConfig};
use crate::mcp::MASK;
use crate::mcp::config::references;

/// An entry as its admins see it: names of variables and headers, references, no values.
pub(crate) fn masked(config: &McpServerConfig) -> McpServerConfig {
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
        oauth: config.oauth.clone().map(|oauth| McpOAuth {
            client_secret: oauth.client_secret.as_deref().map(hidden),
            ..oauth
        }),
        ..config.clone()
    }
}

/// Text that is nothing but references and a word such as `Bearer` tells nothing.
pub(crate) fn hidden(value: &str) -> String {
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
pub(crate) fn unmasked(new: &mut McpServerConfig, old: &McpServerConfig) {
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
    let kept = old
        .oauth
        .as_ref()
        .and_then(|oauth| oauth.client_secret.clone());
    if let (Some(oauth), Some(kept)) = (&mut new.oauth, kept)
        && oauth.client_secret.as_deref() == Some(MASK)
    {
        oauth.client_secret = Some(kept);
    }
    if new.url.is_some() && new.url == old.url.as_deref().map(hidden_url) {
        new.url.clone_from(&old.url);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{masked, unmasked};
    use crate::domain::McpServerConfig;

    #[test]
    fn values_are_masked_references_are_not_and_a_mask_keeps_the_value() {
        let config: McpServerConfig = serde_json::from_value(json!({
            "url": "https://e.test/mcp?key=k",
            "headers": {"Authorization": "Bearer ${secret:T}", "X-Key": "plain ${secret:T}"},
            "env": {"A": "swordfish", "B": ""},
            "oauth": {"clientId": "us", "clientSecret": "plain"},
        }))
        .unwrap();
        let mut shown = masked(&config);
        assert_eq!(shown.headers["Authorization"], "Bearer ${secret:T}");
        assert_eq!(shown.headers["X-Key"], "••••");
        assert_eq!(shown.env["A"], "••••");
        assert_eq!(shown.env["B"], "");
        let oauth = shown.oauth.clone().unwrap();
        assert_eq!(oauth.client_secret.as_deref(), Some("••••"));
        assert_eq!(shown.url.as_deref(), Some("https://e.test/mcp?••••"));
        shown.env.insert("A".into(), "••••".into());
        unmasked(&mut shown, &config);
        assert_eq!(shown, config);
    }
}
