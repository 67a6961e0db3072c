//! Splits texts into words and parses search queries, the same way for every database.

use std::ops::Range;

/// Maximum length of a query, in characters.
pub const MAX_QUERY_CHARS: usize = 256;
/// Number of words of one text that are searched, about 50 KB of prose; later words of a long output are
/// ignored.
pub const MAX_TEXT_WORDS: usize = 8_192;
/// Maximum number of words in a query.
const MAX_QUERY_WORDS: usize = 32;
/// Length that longer words are cut to, in texts and in queries.
const MAX_WORD_CHARS: usize = 64;
/// Minimum length of a prefix that is searched.
const MIN_PREFIX_CHARS: usize = 2;

/// A word of a text in lowercase, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// Byte range in the text.
    pub place: Range<usize>,
}

/// Splits a text into words: runs of letters and digits. In scripts without spaces each character is a
/// word, so that a part of a sentence is found as a phrase.
pub fn words(text: &str) -> impl Iterator<Item = Word> {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = rest.find(|(_, char)| char.is_alphanumeric())?;
        let mut end = start + first.len_utf8();
        let mut word: String = first.to_lowercase().collect();
        let mut chars = 1;
        if !stands_alone(first) {
            while let Some((at, char)) = rest.next_if(|(_, char)| is_inside(*char)) {
                end = at + char.len_utf8();
                chars += 1;
                if chars <= MAX_WORD_CHARS {
                    word.extend(char.to_lowercase());
                }
            }
        }
        Some(Word {
            text: word,
            place: start..end,
        })
    })
}

fn is_inside(char: char) -> bool {
    char.is_alphanumeric() && !stands_alone(char)
}

/// Returns true for characters of scripts without spaces: Thai to Burmese, Khmer, kana, and Han.
fn stands_alone(char: char) -> bool {
    matches!(u32::from(char),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x323AF)
}

/// Successive words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// At least one.
    pub words: Vec<String>,
    /// True if the last word may be a prefix of a longer word.
    pub is_prefix: bool,
}

/// A parsed query; a text matches if it contains every phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    phrases: Vec<Phrase>,
}

impl SearchQuery {
    /// Parses a typed query: words, of which the last may be a prefix. Text in quotes, and words joined
    /// without spaces, form a phrase. `None` if the query has no word, or too many words or characters.
    pub fn parse(text: &str) -> Option<Self> {
        if text.chars().count() > MAX_QUERY_CHARS {
            return None;
        }
        let mut phrases = Vec::new();
        let mut parts = text.split('"').enumerate().peekable();
        while let Some((number, part)) = parts.next() {
            if number % 2 == 1 {
                phrases.extend(phrase(part, false));
                continue;
            }
            let is_last = parts.peek().is_none();
            let mut chunks = part.split_whitespace().peekable();
            while let Some(chunk) = chunks.next() {
                phrases.extend(phrase(chunk, is_last && chunks.peek().is_none()));
            }
        }
        let count: usize = phrases.iter().map(|phrase| phrase.words.len()).sum();
        (1..=MAX_QUERY_WORDS)
            .contains(&count)
            .then_some(Self { phrases })
    }

    /// The phrases, all of which have to match.
    pub fn phrases(&self) -> &[Phrase] {
        &self.phrases
    }

    /// Byte ranges of all matches in a text, in order and without overlaps.
    pub fn places(&self, text: &str) -> Vec<Range<usize>> {
        let words: Vec<Word> = words(text).take(MAX_TEXT_WORDS).collect();
        let mut places: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
            let lengths = self.phrases.iter().map(|phrase| phrase.length_at(rest));
            let length = lengths.max().unwrap_or(0);
            if let (Some(first), Some(last)) = (rest.first(), rest.get(length.wrapping_sub(1))) {
                places.push(first.place.start..last.place.end);
            }
            at += length.max(1);
        }
        places
    }
}

impl Phrase {
    /// Number of words of the match at the beginning of `text`; 0 if the phrase does not match there.
    fn length_at(&self, text: &[Word]) -> usize {
        let Some(text) = text.get(..self.words.len()) else {
            return 0;
        };
        let last = self.words.len() - 1;
        let pairs = self.words.iter().zip(text).enumerate();
        let stands = |(at, (wanted, word)): (usize, (&String, &Word))| {
            word.text == *wanted
                || (self.is_prefix && at == last && word.text.starts_with(wanted.as_str()))
        };
        if pairs.into_iter().all(stands) {
            self.words.len()
        } else {
            0
        }
    }
}

fn phrase(text: &str, may_go_on: bool) -> Option<Phrase> {
    let found: Vec<String> = words(text).map(|word| word.text).collect();
    let last = found.last()?;
    let is_prefix = may_go_on && last.chars().count() >= MIN_PREFIX_CHARS;
    Some(Phrase {
        words: found,
        is_prefix,
    })
}

#[cfg(test)]
mod tests {
    use super::{SearchQuery, words};

    fn check_words(text: &str, expected: &str) {
        let found: Vec<String> = words(text).map(|word| word.text).collect();
        assert_eq!(found.join(" "), expected, "{text}");
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        check_words("Read `src/Main_2.rs`!", "read src main 2 rs");
        check_words("Größe ÀÉ, straße", "größe àé straße");
        check_words("  …—\n", "");
        check_words("搜索abc引擎", "搜 索 abc 引 擎");
        check_words(&"x".repeat(80), &"x".repeat(64));
    }

    /// Expected phrases are in brackets, with a star after a prefix.
    fn check_query(text: &str, expected: Option<&str>) {
        let shown = SearchQuery::parse(text).map(|query| {
            let phrases = query.phrases.iter().map(|phrase| {
                let star = if phrase.is_prefix { "*" } else { "" };
                format!("[{}{star}]", phrase.words.join(" "))
            });
            phrases.collect::<String>()
        });
        assert_eq!(shown.as_deref(), expected, "{text}");
    }

    #[test]
    fn a_query_is_words_of_which_the_last_may_go_on() {
        check_query("read file", Some("[read][file*]"));
        check_query("src/main.rs", Some("[src main rs*]"));
        check_query("\"Read File\" x", Some("[read file][x]"));
        check_query("a \"b c", Some("[a][b c]"));
        check_query("\"whole\"", Some("[whole]"));
        check_query("搜索", Some("[搜 索]"));
        check_query(" -- ", None);
        check_query("", None);
        check_query(&"x".repeat(257), None);
        check_query(&"a ".repeat(33), None);
    }

    #[test]
    fn places_are_whole_words_or_their_beginnings() {
        let places = |query: &str, text: &str| -> Vec<String> {
            let query = SearchQuery::parse(query).unwrap();
            let places = query.places(text).into_iter();
            places.map(|place| text[place].to_owned()).collect()
        };
        assert_eq!(places("err", "An Error, no terror"), ["Error"]);
        assert_eq!(
            places("main.rs x", "src/main.rs has x and y"),
            ["main.rs", "x"]
        );
        assert_eq!(places("\"a b\"", "b a b a"), ["a b"]);
        assert_eq!(places("no", "yes"), [""; 0]);
    }
}
