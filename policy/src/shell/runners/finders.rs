//! Handles `find -exec` and `xargs`: commands that get words from elsewhere.

use super::super::{Hidden, Word};
use super::Look;

pub(super) fn is_finder(name: &str) -> bool {
    matches!(name, "find" | "xargs")
}

/// Returns the commands that `find` executes. The paths that it finds begin with a folder from its arguments,
/// so `{}` alone begins no option.
pub(super) fn find(rest: &[Word]) -> Look {
    let mut look = Look::default();
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        at += 1;
        let Some(word) = word.literal() else {
            // A tame word may still be `(` or `!`.
            look.hidden = Some(Hidden::Expansion);
            continue;
        };
        if !matches!(word, "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let end = end_of_exec(rest, at);
        let command = rest.get(at..end.saturating_sub(1)).unwrap_or_default();
        let command: Vec<Word> = command
            .iter()
            .map(|word| replaced(word, "{}", true))
            .collect();
        at = end;
        look.commands
            .extend(Some(command).filter(|command| !command.is_empty()));
    }
    look
}

/// Returns the index after the end of a command that begins at `from`: `;` ends it, and `+` right after `{}`.
/// Without an end, all words belong to the command.
pub(in crate::shell) fn end_of_exec(words: &[Word], from: usize) -> usize {
    let rest = words.get(from..).unwrap_or_default();
    let is = |at: usize, text: &str| rest.get(at).and_then(Word::literal) == Some(text);
    let ends = |at: usize| is(at, ";") || (is(at, "+") && at > 0 && is(at - 1, "{}"));
    let end = (0..rest.len()).find(|at| ends(*at));
    from + end.map_or(rest.len() + 1, |at| at + 1)
}

/// Returns the word after `mark` was replaced by a text that is unknown now.
fn replaced(word: &Word, mark: &str, is_tame: bool) -> Word {
    match word {
        Word::Literal(text) if text.contains(mark) => Word::Open {
            is_tame: is_tame && text == mark,
        },
        Word::Literal(_) | Word::Open { .. } => word.clone(),
    }
}

/// Returns the command that `xargs` runs: its remaining words, with words of its input.
pub(super) fn xargs(rest: &[Word]) -> Look {
    let mut mark = None;
    let mut at = 0;
    while let Some(Word::Literal(word)) = rest.get(at) {
        let Some(option) = word.strip_prefix('-') else {
            break;
        };
        at += 1;
        let valued = |letters: &str| letters.starts_with(['n', 'P', 'L', 'd', 's', 'E', 'a']);
        match option {
            "-" => break,
            "-null" | "-no-run-if-empty" | "-verbose" | "-exit" => {}
            "I" => {
                mark = rest.get(at).map(|mark| mark.literal().unwrap_or_default());
                at += 1;
            }
            _ if option.starts_with('I') => mark = option.get(1..),
            // Combined letters without values, and a last one that may have a value.
            _ => match option.trim_start_matches(['0', 'r', 't', 'x']) {
                "" if !option.is_empty() => {}
                last if valued(last) => at += usize::from(last.len() == 1),
                _ => return Look::hidden(Hidden::Option),
            },
        }
    }
    let command = rest.get(at..).unwrap_or_default();
    if command.is_empty() {
        return Look::default();
    }
    match mark {
        Some("") => Look::hidden(Hidden::Option),
        Some(mark) => {
            let words: Vec<Word> = command
                .iter()
                .map(|word| replaced(word, mark, false))
                .collect();
            Look::command(&words)
        }
        None => {
            let mut words = command.to_vec();
            words.push(Word::Open { is_tame: false });
            Look::command(&words)
        }
    }
}
