//! Entries whose files come from a bundle.

use super::check::Author;
use super::problem::EntryProblem;
use crate::domain::{McpServerConfig, McpTransport};

/// Answers that one entry keeps.
const MAX_VALUES: usize = 100;
/// Bytes of one answer.
const MAX_VALUE: usize = 8 * 1024;

/// A bundle is named by the hash of its file, and is its tenant's: no file of an operator has one.
pub(super) fn check(config: &McpServerConfig, author: Author, found: &mut Vec<EntryProblem>) {
    let Some(bundle) = &config.bundle else {
        return;
    };
    let mut say = |field: &str, text: &str| found.push(EntryProblem::new(field, text));
    if author == Author::Operator {
        say(
            "bundle",
            "a bundle is uploaded by an admin of a tenant and serves that tenant: add it in the page, \
             or with `POST /api/mcp-bundles`",
        );
    }
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

    use super::super::check::{Author, entry_problems};

    #[test]
    fn a_bundle_is_named_by_its_hash_and_is_its_tenants() {
        let check = |config: Value, author, expected: &[&str]| {
            let config = serde_json::from_value(config).unwrap();
            let found = entry_problems(&config, author);
            let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
            assert_eq!(fields, expected, "{found:?}");
        };
        let hash = "0f".repeat(32);
        let entry = |sha256: &str| json!({"command": "node", "bundle": {"sha256": sha256}});
        check(entry(&hash), Author::Person, &[]);
        check(entry(&hash), Author::Operator, &["bundle"]);
        for wrong in ["", "0F", &"0F".repeat(32), &"zz".repeat(32)] {
            check(entry(wrong), Author::Person, &["bundle.sha256"]);
        }
        let remote = json!({"url": "https://e.test/", "bundle": {"sha256": hash}});
        check(remote, Author::Person, &["bundle"]);
        let long = json!({"command": "node", "bundle": {
            "sha256": hash, "values": {"a": "x".repeat(9000)},
        }});
        check(long, Author::Person, &["bundle.values"]);
    }
}
