//! Redacts text that looks like a secret in log fields: a safety net for the rule that no secret is logged.

use std::borrow::Cow;

use serde_json::Value;

/// The text that replaces a secret.
const REDACTED: &str = "[redacted]";

/// Prefixes of API keys and tokens of common vendors; our own comes first.
const PREFIXES: &[&str] = &[
    "spl_",
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AIza",
    "AKIA",
    "hf_",
    "gsk_",
    "whsec_",
    "eyJ",
];

/// The shortest key in bytes; shorter texts are ordinary words (`sk-learn`).
const SHORTEST_KEY: usize = 16;

/// Endings of names whose values are secrets.
const SECRET_NAMES: &[&str] = &[
    "_key",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "cookie",
    "credentials",
];

/// The most characters of a call's arguments in a log entry.
const MAX_ARGS: usize = 200;

/// The expectation for the next word, by the words before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The next word is ordinary.
    Plain,
    /// The next word is a secret.
    Secret,
    /// The next word may be the colon between a quoted name and its secret.
    Colon,
}

/// Redacts keys, bearer tokens, `name=value` secrets, passwords in URLs, and query strings.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut redacted = String::with_capacity(text.len());
    let mut next = Next::Plain;
    for piece in text.split_inclusive(ends_word) {
        let word = piece.trim_end_matches(ends_word);
        let end = piece.get(word.len()..).unwrap_or_default();
        if word.is_empty() {
            next = if ends_line(end) { Next::Plain } else { next };
        } else {
            let is_secret = next == Next::Secret && !is_scheme(word);
            redacted.push_str(&if is_secret {
                Cow::Borrowed(REDACTED)
            } else {
                word_without_secret(word)
            });
            next = if is_secret {
                Next::Plain
            } else {
                after(next, word, end)
            };
        }
        redacted.push_str(end);
    }
    if redacted == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(redacted)
    }
}

/// The expectation for the word after `word`, which is not a secret itself.
fn after(next: Next, word: &str, end: &str) -> Next {
    let is_colon = word == ":" || word == "=";
    let name = word.trim_end_matches([':', '=']);
    // "basic" on its own is an ordinary word.
    let follows = word.eq_ignore_ascii_case("bearer") || next == Next::Secret;
    if (is_scheme(word) && follows) || (next == Next::Colon && is_colon) {
        Next::Secret
    } else if !is_secret_name(name) || ends_line(end) {
        Next::Plain
    } else if name.len() < word.len() {
        Next::Secret
    } else if end == "\"" || end == "'" {
        Next::Colon
    } else {
        Next::Plain
    }
}

/// Returns true for the scheme before the credentials in an `Authorization` header.
fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// The arguments of a call on one short line, with the values of secret names redacted.
pub fn redact_args(args: &Value) -> String {
    let text = without_secrets(args).to_string();
    let short: String = text.chars().take(MAX_ARGS).collect();
    if short.len() < text.len() {
        format!("{short}…")
    } else {
        short
    }
}

/// A JSON document on one line of at most `most` characters, with the values of secret names redacted,
/// including those in JSON inside of texts. Anything but JSON is redacted as text.
pub fn redact_json(text: &str, most: usize) -> String {
    let clean = match serde_json::from_str::<Value>(text) {
        Ok(value) => without_secrets(&value).to_string(),
        Err(_) => redact(text).into_owned(),
    };
    match clean.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", clean.get(..cut).unwrap_or_default()),
        None => clean,
    }
}

/// Parses JSON inside of a text: some providers send the arguments of a call this way.
fn inner_json(text: &str) -> Option<Value> {
    let is_object = text.trim_start().starts_with('{');
    is_object.then(|| serde_json::from_str(text).ok())?
}

fn without_secrets(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(match inner_json(text) {
            Some(inner) => without_secrets(&inner).to_string(),
            None => redact(text).into_owned(),
        }),
        Value::Array(items) => items.iter().map(without_secrets).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let value = if is_secret_name(name) && !value.is_null() {
                    Value::String(REDACTED.to_owned())
                } else {
                    without_secrets(value)
                };
                (name.clone(), value)
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn ends_word(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(letter, '"' | '\'' | '`' | ',' | ';' | '<' | '>' | '(' | ')')
        || matches!(letter, '{' | '}' | '[' | ']')
}

fn ends_line(end: &str) -> bool {
    end.contains(['\n', ',', ';', '}'])
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    name == "key" || SECRET_NAMES.iter().any(|ending| name.ends_with(ending))
}

/// Redacts the secret in one word: a key, `name=value`, or a URL.
fn word_without_secret(word: &str) -> Cow<'_, str> {
    if word.len() >= SHORTEST_KEY && PREFIXES.iter().any(|prefix| word.starts_with(prefix)) {
        return Cow::Borrowed(REDACTED);
    }
    if let Some((before, after)) = word.split_once("://") {
        return Cow::Owned(address_without_secret(before, after));
    }
    match word.split_once(['=', ':']) {
        Some((name, value)) if is_secret_name(name) && !value.is_empty() => {
            let sign = word.get(name.len()..=name.len()).unwrap_or("=");
            Cow::Owned(format!("{name}{sign}{REDACTED}"))
        }
        Some((name, value)) if PREFIXES.iter().any(|prefix| value.starts_with(prefix)) => {
            let sign = word.get(name.len()..=name.len()).unwrap_or("=");
            Cow::Owned(format!("{name}{sign}{}", word_without_secret(value)))
        }
        _ => Cow::Borrowed(word),
    }
}

/// Redacts `user:password@` and the query of a URL.
fn address_without_secret(scheme: &str, rest: &str) -> String {
    let (rest, query) = match rest.split_once('?') {
        Some((rest, _)) => (rest, format!("?{REDACTED}")),
        None => (rest, String::new()),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{REDACTED}@{host}{path}{query}"),
        None => format!("{scheme}://{authority}{path}{query}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{redact, redact_args, redact_json};

    #[test]
    fn what_looks_like_a_secret_is_replaced_and_the_rest_stays() {
        for (text, expected) in [
            ("", ""),
            (r#"no "token" here"#, r#"no "token" here"#),
            (r#"{"token":"hush"}"#, r#"{"token":"[redacted]"}"#),
            ("the monkey: banana", "the monkey: banana"),
            ("Execute tool `read_file`", "Execute tool `read_file`"),
            ("a basic example", "a basic example"),
            ("install sk-learn", "install sk-learn"),
            ("key sk-abcdefghijklmnop.", "key [redacted]"),
            (
                "Authorization: Bearer abc.def",
                "Authorization: Bearer [redacted]",
            ),
            ("got bearer abc.def, then", "got bearer [redacted], then"),
            ("api_key=hush&x", "api_key=[redacted]"),
            ("password: hush", "password: [redacted]"),
            (
                r#"{"apiKey": "hush", "a": 1}"#,
                r#"{"apiKey": "[redacted]", "a": 1}"#,
            ),
            ("https://u:p@h/x?key=1", "https://[redacted]@h/x?[redacted]"),
            ("at http://h:80/x", "at http://h:80/x"),
            ("x=sk-abcdefghijklmnop", "x=[redacted]"),
            ("key:\nnext line", "key:\nnext line"),
            ("zwei Wörter — ende", "zwei Wörter — ende"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    /// Asserts S1.1.
    #[test]
    fn documents_are_cleaned_at_every_depth() {
        let inner = json!({"api_token": "hush", "path": "a.txt"}).to_string();
        let text =
            json!({"calls": [{"arguments": inner}], "key": "k", "max_tokens": 9}).to_string();
        let clean = redact_json(&text, 1_000);
        assert!(
            !clean.contains("hush") && clean.contains("a.txt"),
            "{clean}"
        );
        assert!(clean.contains(r#""key":"[redacted]""#), "{clean}");
        assert!(clean.contains(r#""max_tokens":9"#), "{clean}");
        assert_eq!(
            redact_json("no json, token: hush", 100),
            "no json, token: [redacted]"
        );
        assert_eq!(redact_json("äöü", 2), "äö…");
    }

    #[test]
    fn arguments_are_short_and_without_secrets() {
        let args = json!({"path": "a.txt", "api_token": "hush", "nested": {"password": 1}, "none_key": null});
        assert_eq!(
            redact_args(&args),
            r#"{"api_token":"[redacted]","nested":{"password":"[redacted]"},"none_key":null,"path":"a.txt"}"#
        );
        let long = redact_args(&json!({"content": "ä".repeat(500)}));
        assert_eq!(long.chars().count(), 201);
        assert!(long.ends_with('…'));
    }
}
