//! Replaces our own key in what a provider says.

/// The text that replaces our key in a provider's message.
const MASK: &str = "[key]";
/// The fewest letters of a key that is replaced.
const FEWEST_LETTERS: usize = 3;
/// The letters from which on a key is replaced inside of words too.
const LONG_KEY: usize = 6;

/// A text without our key. Local servers are given any word as their key: one of one or two letters is no secret, and
/// a short one is replaced only where it stands alone.
pub(super) fn without_key(text: &str, key: &str) -> String {
    let letters = key.chars().count();
    if letters < FEWEST_LETTERS {
        return text.to_owned();
    }
    if letters >= LONG_KEY {
        return text.replace(key, MASK);
    }
    let is_inner = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let mut shown = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, key) in text.match_indices(key) {
        let end = at + key.len();
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(end..).and_then(|after| after.chars().next());
        if !is_inner(before) && !is_inner(after) {
            shown.push_str(text.get(copied..at).unwrap_or_default());
            shown.push_str(MASK);
            copied = end;
        }
    }
    shown.push_str(text.get(copied..).unwrap_or_default());
    shown
}
