//! Parses the `WWW-Authenticate` header with which a server asks for authorisation.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use serde::{Deserialize, Serialize};

/// The longest parameter of a challenge, in bytes; longer ones are ignored.
const MAX_TEXT: usize = 2_048;

/// A challenge of the scheme `Bearer` (RFC 6750, RFC 9728).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// The address of the protected resource's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_metadata: Option<String>,
    /// The required scopes, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The error code: `invalid_token`, `insufficient_scope` or `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Challenge {
    /// Returns the first bearer challenge in the headers of an answer.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let mut texts = values.filter_map(|value| value.to_str().ok());
        texts.find_map(Self::parse)
    }

    /// Parses one header value, which may hold challenges of several schemes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut is_bearer = false;
        for part in parts(text) {
            let (scheme, rest) = scheme_of(part);
            if let Some(scheme) = scheme {
                if found.is_some() {
                    break;
                }
                is_bearer = scheme.eq_ignore_ascii_case("bearer");
                if is_bearer {
                    found = Some(Self::default());
                }
            }
            if let Some(challenge) = found.as_mut().filter(|_| is_bearer) {
                challenge.take(rest);
            }
        }
        found
    }

    fn take(&mut self, parameter: &str) {
        let Some((name, value)) = parameter.split_once('=') else {
            return;
        };
        let value = unquoted(value.trim());
        if value.is_empty() || value.len() > MAX_TEXT {
            return;
        }
        let place = match name.trim().to_ascii_lowercase().as_str() {
            "resource_metadata" => &mut self.resource_metadata,
            "scope" => &mut self.scope,
            "error" => &mut self.error,
            _ => return,
        };
        place.get_or_insert(value);
    }

    /// Returns true if the token is valid but lacks a scope.
    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// Splits the text at commas outside of quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(|letter| {
        if is_escaped {
            is_escaped = false;
            return false;
        }
        match letter {
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' => return !is_quoted,
            _ => {}
        }
        false
    })
    .map(str::trim)
    .collect()
}

/// Splits off the scheme at the beginning of a part, if there is one.
fn scheme_of(part: &str) -> (Option<&str>, &str) {
    let (word, rest) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
    // Spaces around `=` do not make the name a scheme.
    if word.contains('=') || rest.trim_start().starts_with('=') {
        return (None, part);
    }
    (Some(word), rest.trim())
}

fn unquoted(value: &str) -> String {
    let Some(inside) = value.strip_prefix('"') else {
        return value.to_owned();
    };
    let inside = inside.strip_suffix('"').unwrap_or(inside);
    let mut text = String::with_capacity(inside.len());
    let mut is_escaped = false;
    for letter in inside.chars() {
        if letter == '\\' && !is_escaped {
            is_escaped = true;
        } else {
            is_escaped = false;
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Challenge;

    #[test]
    fn challenges_are_read_among_those_of_other_schemes() {
        let check = |text: &str, expected: Option<(Option<&str>, Option<&str>, Option<&str>)>| {
            let found = Challenge::parse(text);
            let found = found.as_ref().map(|it| {
                (
                    it.resource_metadata.as_deref(),
                    it.scope.as_deref(),
                    it.error.as_deref(),
                )
            });
            assert_eq!(found, expected, "{text}");
        };
        check("Basic realm=\"a, Bearer b\"", None);
        check("", None);
        check("Bearer", Some((None, None, None)));
        check("bearer realm=x", Some((None, None, None)));
        check(
            "Basic realm=\"x\", Bearer error=\"insufficient_scope\", scope=\"a b\", DPoP scope=\"c\"",
            Some((None, Some("a b"), Some("insufficient_scope"))),
        );
        check(
            "Bearer resource_metadata = \"https://e.test/a,b?c=\\\"d\", scope=a",
            Some((Some("https://e.test/a,b?c=\"d"), Some("a"), None)),
        );
        // The first occurrence of a parameter counts.
        check("Bearer scope=a, scope=b", Some((None, Some("a"), None)));
    }
}
