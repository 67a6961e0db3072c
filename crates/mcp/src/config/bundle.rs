//! Checks entries whose files come from a bundle.

use super::problem::EntryProblem;
use sepal_core::domain::{McpServerConfig, McpTransport};

/// The most configuration values that one entry stores.
const MAX_VALUES: usize = 100;
/// Most bytes of one value.
const MAX_VALUE: usize = 8 * 1024;

/// Returns the problem if an entry of an operator's file names a bundle.
pub(super) fn of_operator(config: &McpServerConfig) -> Option<EntryProblem> {
    let text = "a bundle is uploaded by an admin of a tenant and serves that tenant: add it in the page, \
                or with `POST /api/mcp-bundles`";
    let has_one = config.bundle.is_some();
    has_one.then(|| EntryProblem::new("bundle", text))
}

/// Checks that the bundle is named by its file's hash and started like a command.
pub(super) fn check(config: &McpServerConfig, found: &mut Vec<EntryProblem>) {
    let Some(bundle) = &config.bundle else {
        return;
    };
    let mut say = |field: &str, text: &str| found.push(EntryProblem::new(field, text));
    if config.transport() != McpTransport::Stdio {
        say("bundle", "a bundle is started with transport `stdio`");
    }
    let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    if bundle.sha256.len() != 64 || !bundle.sha256.bytes().all(is_digit) {
        say(
            "bundle.sha256",
            "has to be the SHA-256 of the bundle's file: 64 hexadecimal digits",
        );
    }
    let is_fit = |text: &String| text.len() <= MAX_VALUE && !text.contains('\0');
    let mut texts = bundle.values.keys().chain(bundle.values.values());
    if bundle.values.len() > MAX_VALUES || !texts.all(is_fit) {
        say(
            "bundle.values",
            "too many or too long, or holds a NUL character",
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{check, of_operator};

    #[test]
    fn a_bundle_is_named_by_its_hash_and_is_its_tenants() {
        let check = |config: Value, expected: &[&str]| {
            let config = serde_json::from_value(config).unwrap();
            let mut found = Vec::new();
            check(&config, &mut found);
            let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
            assert_eq!(fields, expected, "{found:?}");
            assert!(of_operator(&config).is_some());
        };
        let hash = "0f".repeat(32);
        let entry = |sha256: &str| json!({"command": "node", "bundle": {"sha256": sha256}});
        check(entry(&hash), &[]);
        for wrong in ["", "0F", &"0F".repeat(32), &"zz".repeat(32)] {
            check(entry(wrong), &["bundle.sha256"]);
        }
        let remote = json!({"url": "https://e.test/", "bundle": {"sha256": hash}});
        check(remote, &["bundle"]);
        let long = json!({"command": "node", "bundle": {
            "sha256": hash, "values": {"a": "x".repeat(9000)},
        }});
        check(long, &["bundle.values"]);
        let plain = serde_json::from_value(json!({"command": "node"})).unwrap();
        assert!(of_operator(&plain).is_none());
    }
}
