//! Matches command prefixes against parsed commands: strictly for allow, broadly for deny.

use crate::because::Gap;
use crate::conditions::{CommandPrefix, Fit};
use crate::shell::{Harm, Hidden, Part, Word, base_name, harm};

/// Returns the reason that a prefix does not surely cover the whole part; `None` if it does.
pub(super) fn gap(prefix: &CommandPrefix, part: &Part) -> Option<Gap> {
    let begins = part.words.len() >= prefix.words.len()
        && shared(prefix, part) == prefix.words.len()
        && !prefix.words.is_empty();
    let rest = part.words.get(prefix.words.len()..).unwrap_or_default();
    if !begins || (!prefix.more && !rest.is_empty()) {
        return Some(Gap::OtherWords);
    }
    if part.redirects {
        return Some(Gap::Redirection);
    }
    if part.script_at.is_some_and(|at| at >= prefix.words.len()) {
        return Some(Gap::UnnamedScript);
    }
    match part.hidden {
        Some(Hidden::Assignment) => Some(Gap::Assignment),
        Some(Hidden::ChangesShell) => Some(Gap::ChangesShell),
        Some(Hidden::Expansion) => Some(Gap::OpenWord),
        Some(Hidden::Code | Hidden::Input | Hidden::Option) => Some(Gap::RunsUnknown),
        None if prefix.any_words => None,
        None => further(prefix, part),
    }
}

/// Returns the reason that the words after the prefix, or the folder that it names, are not surely harmless.
fn further(prefix: &CommandPrefix, part: &Part) -> Option<Gap> {
    let named = prefix.words.len();
    let names_folder = named > 1 && part.words.len() == named;
    if part.leads && prefix.more && !names_folder {
        return Some(Gap::Folder);
    }
    harm(part, named).map(|harm| match harm {
        Harm::Writes(option) => Gap::Writes { option },
        Harm::Runs(option) => Gap::Runs { option },
        Harm::Unknown(word) => Gap::UnknownWord { word },
        Harm::Operand(word) => Gap::MoreThanReads { word },
        Harm::Without(option) => Gap::Without { option },
        Harm::Open => Gap::OpenWord,
    })
}

/// Returns the number of leading words that the part and the prefix share.
pub(super) fn shared(prefix: &CommandPrefix, part: &Part) -> usize {
    let pairs = prefix.words.iter().zip(&part.words);
    pairs
        .take_while(|(wanted, word)| word.literal() == Some(wanted))
        .count()
}

/// Returns how surely a prefix matches something in the part.
pub(super) fn touch(prefix: &CommandPrefix, part: &Part) -> Fit {
    // The commands that a command runs are unknown.
    let least = if part.hidden.is_some() {
        Fit::Unsure
    } else {
        Fit::No
    };
    let (Some((program, wanted)), Some((first, words))) =
        (prefix.words.split_first(), part.words.split_first())
    else {
        return least;
    };
    match first.literal() {
        None => Fit::Unsure,
        Some(first) => is_program(program, first)
            .min(touch_rest(wanted, words, prefix.more))
            .max(least),
    }
}

/// Compares programs: `rm` also means `/bin/rm`; a path may mean the same file as another path or a name.
fn is_program(wanted: &str, program: &str) -> Fit {
    if wanted == program || (!wanted.contains('/') && wanted == base_name(program)) {
        Fit::Yes
    } else if base_name(wanted) == base_name(program) {
        Fit::Unsure
    } else {
        Fit::No
    }
}

/// Returns how surely the words after the program match.
fn touch_rest(wanted: &[String], words: &[Word], more: bool) -> Fit {
    let is_same = words.len() >= wanted.len()
        && wanted
            .iter()
            .zip(words)
            .all(|(wanted, word)| word.literal() == Some(wanted));
    let is_open = words.iter().any(|word| word.literal().is_none());
    if is_same {
        return match words.get(wanted.len()..) {
            Some(rest) if !more && rest.iter().any(Word::is_wild) => Fit::Unsure,
            Some([_, ..]) if !more => Fit::No,
            _ => Fit::Yes,
        };
    }
    if begins_otherwise(wanted, words) {
        return Fit::No;
    }
    if is_open {
        return Fit::Unsure;
    }
    // Options may stand between the words, and may be written in other ways: `-rf`, `-f -r`, `--force`.
    let is_option = |word: &str| word.starts_with('-');
    let has_options = words.iter().filter_map(Word::literal).any(is_option);
    let mut words = words.iter().filter_map(Word::literal);
    let mut named = wanted.iter().filter(|wanted| !is_option(wanted));
    if has_options && named.all(|wanted| words.any(|word| word == wanted)) {
        Fit::Unsure
    } else {
        Fit::No
    }
}

/// Returns true if another word stands in the place of a wanted one, and no option before it could take it as
/// its value: `git log push` does not match `git push`.
fn begins_otherwise(wanted: &[String], words: &[Word]) -> bool {
    let is_option = |word: &str| word.starts_with('-');
    for (wanted, word) in wanted.iter().zip(words) {
        match word.literal() {
            Some(word) if word == wanted => {}
            Some(word) => return !is_option(word) && !is_option(wanted),
            None => return false,
        }
    }
    false
}
