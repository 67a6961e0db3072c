//! Matches server and tool names against patterns.

use serde::{Deserialize, Serialize};

/// A pattern in which `*` matches any text, including the empty one; everything else matches itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// Returns the pattern that matches every name.
    pub fn any() -> Self {
        Self("*".to_owned())
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the only matching name, if the pattern has no star.
    pub fn as_exact(&self) -> Option<&str> {
        (!self.0.contains('*')).then_some(self.0.as_str())
    }

    /// Returns true if every name matches.
    pub fn is_any(&self) -> bool {
        !self.0.is_empty() && self.0.bytes().all(|byte| byte == b'*')
    }

    /// Returns true if the whole `text` matches the pattern, in linear passes.
    pub fn fits(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
            return false;
        };
        let mut parts: Vec<&str> = parts.collect();
        let Some(last) = parts.pop() else {
            return rest.is_empty();
        };
        for part in parts {
            let Some((_, after)) = rest.split_once(part) else {
                return false;
            };
            rest = after;
        }
        rest.ends_with(last)
    }
}

impl From<&str> for Glob {
    fn from(pattern: &str) -> Self {
        Self(pattern.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("a*b*c", "a-b-b-c", true),
            ("abc", "abcd", false),
            ("*_file", "read_file", true),
            ("a*a", "a", false),
            ("a**b", "ab", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(Glob::from(pattern).fits(text), fits, "{pattern} {text}");
        }
    }
}
