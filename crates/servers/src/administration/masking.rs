//! Masks secrets in the configurations that people read.

use std::collections::BTreeMap;

use sepal_core::domain::McpServerConfig;
use sepal_mcp::MASK;
use sepal_mcp::config::references;

/// Returns an entry as its admins see it: names of variables and headers, and references, but no values.
pub(crate) fn masked(config: &McpServerConfig) -> McpServerConfig {
    let mut shown = config.clone();
    for (field, text) in shown.private_texts() {
        *text = shown_text(&field, text);
    }
    shown
}

/// Returns a private text of an entry in masked form.
pub(super) fn shown_text(field: &str, text: &str) -> String {
    if field == "url" {
        hidden_url(text)
    } else {
        hidden(text)
    }
}

/// Masks a text, unless it consists of references and at most the words `Bearer` and `Basic`.
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

/// Returns true if a private text contains something that is masked.
pub(super) fn is_secret(field: &str, text: &str) -> bool {
    if field != "url" {
        return hidden(text) == MASK;
    }
    let query = text.split_once('?').map_or("", |(_, query)| query);
    let mut values = query.split('&').map(|pair| {
        let value = pair.split_once('=');
        value.map_or(pair, |(_, value)| value)
    });
    values.any(|value| hidden(value) == MASK)
}

/// Masks the query of an address, which may contain a key.
fn hidden_url(url: &str) -> String {
    match url.split_once('?') {
        Some((before, _)) => format!("{before}?{MASK}"),
        None => url.to_owned(),
    }
}

/// Restores the values that a client saw only masked.
pub(crate) fn unmasked(new: &mut McpServerConfig, old: &McpServerConfig) {
    let mut old = old.clone();
    let kept: BTreeMap<String, String> = old
        .private_texts()
        .into_iter()
        .map(|(field, text)| (field, text.clone()))
        .collect();
    for (field, text) in new.private_texts() {
        if let Some(kept) = kept.get(&field)
            && (*text == MASK || *text == shown_text(&field, kept))
        {
            text.clone_from(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{masked, unmasked};
    use sepal_core::domain::McpServerConfig;

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
