//! Checks and normalizes tags: they are few, short and in lower case.

use std::collections::BTreeSet;

use crate::domain::Code;
use crate::gateway::error::ApiError;
use crate::store::records::MAX_TAGS;

/// The most characters of a tag.
const MAX_CHARS: usize = 32;

/// Reads all tags of a session; an error if one is invalid or there are too many.
pub(in crate::gateway::http::sessions) fn read_all(
    texts: &[String],
) -> Result<BTreeSet<String>, ApiError> {
    let tags = texts.iter().map(|text| read("tags", text));
    let tags = tags.collect::<Result<BTreeSet<_>, _>>()?;
    if tags.len() > MAX_TAGS {
        let text = "a session has 8 tags at most";
        return Err(ApiError::of_field(Code::InvalidArguments, "tags", text));
    }
    Ok(tags)
}

/// Reads one tag: in lower case, with one space for any white space. It is an error if the tag is empty, too
/// long, or has control characters.
pub(in crate::gateway::http::sessions) fn read(
    field: &str,
    text: &str,
) -> Result<String, ApiError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let tag = words.join(" ").to_lowercase();
    let is_fit = (1..=MAX_CHARS).contains(&tag.chars().count()) && !tag.contains(char::is_control);
    let wrong = "a tag has 1 to 32 characters";
    let refuse = || ApiError::of_field(Code::InvalidArguments, field, wrong);
    is_fit.then_some(tag).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::{read, read_all};

    #[test]
    fn a_tag_is_short_and_in_small_letters() {
        for (text, expected) in [
            (" To  Do ", Some("to do")),
            ("Größe", Some("größe")),
            ("100%_\\", Some("100%_\\")),
            ("", None),
            (" \n", None),
            ("a\u{7}b", None),
            (&"x".repeat(33), None),
        ] {
            assert_eq!(read("tag", text).ok().as_deref(), expected, "{text}");
        }
        let many = |count: usize| (0..count).map(|tag| tag.to_string()).collect::<Vec<_>>();
        assert!(read_all(&many(8)).is_ok() && read_all(&many(9)).is_err());
    }
}
