//! `find -exec` and `xargs`: commands that get words from elsewhere.

use super::super::{Hidden, Word};
use super::Look;

pub(super) fn is_finder(name: &str) -> bool {
    matches!(name, "find" | "xargs")
}

/// What `find` runs for what it finds. Its paths begin with a folder that it is told, so `{}` alone
/// begins no option.
pub(super) fn find(rest: &[Word]) -> Look {
    let mut look = Look::default();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let Some(word) = word.literal() else {
            // A tame word may still be `(` or `!`.
            look.hidden = Some(Hidden::Expansion);
            continue;
        };
        if !matches!(word, "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let command: Vec<Word> = words
            .by_ref()
            .take_while(|word| !matches!(word.literal(), Some(";" | "+")))
            .map(|word| replaced(word, "{}", true))
            .collect();
        look.commands
            .extend(Some(command).filter(|command| !command.is_empty()));
    }
    look
}

/// The word after something is put in for `mark`.
fn replaced(word: &Word, mark: &str, is_tame: bool) -> Word {
    match word {
        Word::Literal(text) if text.contains(mark) => Word::Open {
            is_tame: is_tame && text == mark,
        },
        Word::Literal(_) | Word::Open { .. } => word.clone(),
    }
}

/// What `xargs` runs: the rest of its words, with words of its input.
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
            // Clusters: letters without values, and a last one that may have one.
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
