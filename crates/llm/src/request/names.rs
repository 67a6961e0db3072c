//! Tool names that every vendor accepts: `[a-zA-Z_][a-zA-Z0-9_-]*`, at most 64 characters. Pure.

use std::borrow::Cow;
use std::collections::HashMap;

use sepal_core::domain::{Digest, Tool};

/// The longest name that all vendors accept.
const MAX_NAME: usize = 64;
/// Hex digits of the name's hash that distinguish a changed name from others.
const HASH_DIGITS: usize = 8;

/// A valid name for a tool. It depends only on the tool's name, so it stays the same from turn to turn.
pub(crate) fn fit(name: &str) -> Cow<'_, str> {
    if is_fit(name) {
        return Cow::Borrowed(name);
    }
    // Gemini requires a letter or an underscore at the start.
    let start = if name.starts_with(is_first) { "" } else { "_" };
    let kept: String = name
        .chars()
        .take(MAX_NAME - HASH_DIGITS - 1 - start.len())
        .map(|c| if is_allowed(c) { c } else { '_' })
        .collect();
    let hash = Digest::of_json(&serde_json::Value::from(name));
    let hash: String = hash.as_str().chars().take(HASH_DIGITS).collect();
    Cow::Owned(format!("{start}{kept}_{hash}"))
}

/// Maps the sent names back to the tools' own names.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    /// Records the tools whose names have to be changed.
    pub(crate) fn of(tools: &[Tool]) -> Self {
        Self::of_all(tools.iter())
    }

    /// Like [`Self::of`], from an iterator.
    pub(crate) fn of_all<'a>(tools: impl Iterator<Item = &'a Tool>) -> Self {
        let changed = tools.filter(|tool| !is_fit(&tool.name));
        Self(
            changed
                .map(|tool| (fit(&tool.name).into_owned(), tool.name.clone()))
                .collect(),
        )
    }

    /// The tool's own name; an unknown name is returned as it is.
    pub(crate) fn original<'a>(&'a self, sent: &'a str) -> &'a str {
        self.0.get(sent).map_or(sent, String::as_str)
    }
}

fn is_fit(name: &str) -> bool {
    name.starts_with(is_first) && name.len() <= MAX_NAME && name.chars().all(is_allowed)
}

fn is_first(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Names, fit, is_fit};
    use sepal_core::domain::{Tool, ToolAnnotations};

    fn tool(name: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            title: None,
            description: String::new(),
            input_schema: serde_json::Value::Null,
            output_schema: None,
            annotations: ToolAnnotations::default(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        }
    }

    #[test]
    fn a_name_that_fits_is_kept_and_others_get_a_hash() {
        assert_eq!(fit("write_file"), "write_file");
        assert_eq!(fit("a.b"), fit("a.b"));
        assert!(fit("a.b").starts_with("a_b_"));
        assert_ne!(fit("a.b"), fit("a/b"));
        let long = "x".repeat(100);
        assert_ne!(fit(&long), fit(&long[1..]));
        for name in ["2fa", "-x", ""] {
            assert!(fit(name).starts_with('_'), "{name}");
        }
        assert_ne!(fit("2fa"), fit("_2fa"));
    }

    #[test]
    fn the_way_back_leads_to_the_tool() {
        let names = Names::of(&["read", "files.read", "ö", "2fa"].map(tool));
        for name in ["read", "files.read", "ö", "2fa"] {
            assert_eq!(names.original(&fit(name)), name);
        }
        assert_eq!(names.original("never_heard"), "never_heard");
    }

    proptest! {
        #[test]
        fn every_name_becomes_fit(name in "\\PC{0,90}") {
            prop_assert!(is_fit(&fit(&name)));
        }
    }
}
