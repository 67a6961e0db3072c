//! Keeps secrets out of the configurations that people read.

use std::collections::BTreeMap;

use crate::domain::McpServerConfig;
use crate::mcp::MASK;
use crate::mcp::config::references;

/// An entry as its admins see it: names of variables and headers, references, no values.
pub(crate) fn masked(config: &McpServerConfig) -> McpServerConfig {
    let mut shown = config.clone();
    for (field, text) in shown.private_texts() {
        *text = shown_text(&field, text);
    }
    shown
}

/// A private text of an entry as people read it.
pub(super) fn shown_text(field: &str, text: &str) -> String {
    if field == "url" {
        hidden_url(text)
    } else {
        hidden(text)
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

/// Whether a private text holds something that people do not get to see.
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

/// An address may carry a key in its query.
fn hidden_url(url: &str) -> String {
    match url.split_once('?') {
        Some((before, _)) => format!("{before}?{MASK}"),
        None => url.to_owned(),
    }
}

/// Puts back what a client only saw masked.
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
