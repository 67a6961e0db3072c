//! The part of a text around what was found, in pieces that say whether they were looked for.

use std::ops::Range;

use crate::domain::SearchQuery;

/// Characters of a snippet.
const CHARS: usize = 180;
/// How many of them stand before what was found.
const BEFORE: usize = 50;

/// A piece of a snippet: plain text, never markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnippetPiece {
    pub text: String,
    /// Whether it was looked for.
    pub is_match: bool,
}

/// The snippet; from the beginning of the text where nothing stands in it.
pub(super) fn snippet(text: &str, query: &SearchQuery) -> Vec<SnippetPiece> {
    let places = query.places(text);
    let found = places.first().map_or(0, |place| place.start);
    let before = text.get(..found).unwrap_or_default();
    let start = before
        .char_indices()
        .rev()
        .take(BEFORE)
        .last()
        .map_or(found, |(at, _)| at);
    let rest = text.get(start..).unwrap_or_default();
    let end = rest.char_indices().nth(CHARS);
    let end = end.map_or(text.len(), |(at, _)| start + at);
    let mut pieces = Vec::new();
    let mut push = |range: Range<usize>, is_match: bool| {
        let text = text.get(range).unwrap_or_default();
        if !text.is_empty() {
            pieces.push(SnippetPiece {
                text: one_line(text),
                is_match,
            });
        }
    };
    let mut at = start;
    for place in places {
        if place.end > end {
            break;
        }
        push(at..place.start, false);
        at = place.end;
        push(place, true);
    }
    push(at..end, false);
    if start > 0
        && let Some(first) = pieces.first_mut()
    {
        first.text.insert(0, '…');
    }
    if end < text.len()
        && let Some(last) = pieces.last_mut()
    {
        last.text.push('…');
    }
    pieces
}

/// The text with one space for each run of white space.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.chars() {
        if !char.is_whitespace() {
            line.push(char);
        } else if !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{SnippetPiece, snippet};
    use crate::domain::SearchQuery;

    /// What was looked for in brackets.
    fn check(text: &str, query: &str, expected: &str) {
        let query = SearchQuery::parse(query).unwrap();
        let pieces = snippet(text, &query).into_iter();
        let shown = pieces.map(
            |SnippetPiece { text, is_match }| {
                if is_match { format!("[{text}]") } else { text }
            },
        );
        assert_eq!(shown.collect::<String>(), expected, "{text}");
    }

    #[test]
    fn what_was_found_stands_in_what_is_around_it() {
        check("Read the file", "file", "Read the [file]");
        check("a\n b <b>file</b> file", "file", "a b <b>[file]</b> [file]");
        check("nothing", "file", "nothing");
        let long = format!("{}file {}", "x ".repeat(100), "y ".repeat(100));
        let expected = format!("…{}[file]{}…", "x ".repeat(25), " y".repeat(63));
        check(&long, "file", &expected);
    }
}
