//! Cuts the part around a match out of a text, in pieces that are marked as match or context.

use std::ops::Range;

use crate::domain::SearchQuery;

/// The characters of a snippet.
const CHARS: usize = 180;
/// The number of them before the match.
const BEFORE: usize = 50;

/// A piece of a snippet: plain text, never markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnippetPiece {
    pub text: String,
    /// True if the piece matches the query.
    pub is_match: bool,
}

/// Makes the snippet, from the beginning of the text if nothing matches.
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

/// Returns the text with each run of white space replaced by one space.
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

    /// Matches are in brackets.
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
