//! Decides which texts of a server's configuration are secrets, to be masked in everything that the server
//! says.
//!
//! The value of a secret reference always is a secret. Any other value is one too, unless it is plainly a
//! setting: a path in `ROOT`, a word in `LOG_LEVEL`. Settings appear in honest results, which would be
//! useless if every path in them were masked.

use std::collections::{BTreeMap, BTreeSet};

use url::Url;

/// Parts of variable names whose values are always secrets.
const SECRET_NAMES: [&str; 9] = [
    "KEY", "TOKEN", "SECRET", "PASS", "PWD", "CRED", "AUTH", "COOKIE", "SESSION",
];

/// Headers that never hold credentials.
const PLAIN_HEADERS: [&str; 5] = [
    "accept",
    "accept-language",
    "content-type",
    "mcp-protocol-version",
    "user-agent",
];

/// The longest plain word, in bytes; a longer one may be a key.
const LONGEST_WORD: usize = 15;

/// Returns the secrets among the texts of an entry.
pub(super) fn secrets(
    environment: &BTreeMap<String, String>,
    headers: &BTreeMap<String, String>,
    url: Option<&str>,
) -> BTreeSet<String> {
    let mut secrets: BTreeSet<String> = environment
        .iter()
        .filter_map(|(name, value)| variable(name, value))
        .collect();
    for (name, value) in headers {
        if PLAIN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            continue;
        }
        secrets.insert(value.clone());
        // The key of `Bearer …` is a secret without its scheme too.
        secrets.extend(value.split_once(' ').map(|(_, key)| key.trim().to_owned()));
    }
    if let Some(Ok(url)) = url.map(Url::parse) {
        secrets.extend(url.password().map(ToOwned::to_owned));
        let query = url.query_pairs();
        secrets.extend(query.filter_map(|(name, value)| variable(&name, &value)));
    }
    secrets
}

/// Returns the value of a variable if it may be a secret.
pub(super) fn variable(name: &str, value: &str) -> Option<String> {
    let name = name.to_ascii_uppercase();
    let is_named = SECRET_NAMES.iter().any(|part| name.contains(part));
    (is_named || !is_plain(value)).then(|| value.to_owned())
}

/// Returns true for a path, an address without credentials, or a short word.
fn is_plain(value: &str) -> bool {
    let is_path = value.starts_with(['/', '.', '~']);
    let holds = |more: &str| {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c) || more.contains(c);
        value.chars().all(is_fit)
    };
    let is_address = Url::parse(value).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            // A longer path of an address may be a key (web hooks).
            && url.path().len() <= LONGEST_WORD
    });
    (is_path && holds("/~:")) || is_address || (value.len() <= LONGEST_WORD && holds(":,"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{secrets, variable};

    #[test]
    fn what_says_how_to_work_is_no_secret() {
        let check = |name: &str, value: &str, expected: bool| {
            assert_eq!(variable(name, value).is_some(), expected, "{name}={value}");
        };
        check("ROOT", "/workspace/a-project", false);
        check("LANG", "en_US.UTF-8", false);
        check("REGION", "europe-west1", false);
        check("BASE_URL", "https://tracker.test/api", false);
        check("API_KEY", "short-one", true);
        check("password", "/like/a/path", true);
        check("MARK", "swordfish swordfish", true);
        check("ID", "a1b2c3d4e5f6a7b8", true);
        check("DATABASE", "postgres://ana:hush@db/house", true);
        check("HOOK", "https://hooks.test/T0000/B0000/XXXXXXXX", true);
        check("BASE_URL", "https://ana:hush@tracker.test/", true);
    }

    #[test]
    fn headers_are_secrets_with_and_without_their_scheme_and_so_are_keys_in_addresses() {
        let headers = [
            ("Authorization", "Bearer swordfish"),
            ("X-Tenant", "acme"),
            ("Accept", "application/json"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let url = "https://:hush-hush@e.test/mcp?key=in-the-query&page=first";
        let expected = [
            "Bearer swordfish",
            "acme",
            "hush-hush",
            "in-the-query",
            "swordfish",
        ];
        let found = secrets(&BTreeMap::new(), &headers.into(), Some(url));
        assert_eq!(found, expected.map(str::to_owned).into());
    }
}
