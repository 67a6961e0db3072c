//! Handles programs that run the rest of their words: `env`, `timeout`, `nice`, `sudo`.

use super::super::{Hidden, Word};
use super::Look;

/// A program that runs the rest of its words, with all its options. Any other option counts as hiding what
/// runs.
struct Wrapper {
    name: &'static str,
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options with a value, in the next word or in their own.
    valued: &'static [&'static str],
    /// The number of words before the command.
    operands: usize,
}

const fn wrapper(
    name: &'static str,
    flags: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper {
        name,
        flags,
        valued,
        operands,
    }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("builtin", &[], &[], 0),
    wrapper("busybox", &[], &[], 0),
    wrapper("command", &["-p"], &[], 0),
    wrapper("chrt", &["-b", "-f", "-i", "-o", "-r"], &[], 1),
    wrapper("doas", &["-n"], &["-u"], 0),
    wrapper(
        "env",
        &["-i", "-", "--ignore-environment"],
        &["-u", "--unset"],
        0,
    ),
    wrapper("exec", &["-c", "-l"], &["-a"], 0),
    wrapper("flock", &["-n", "-x", "-s", "-u", "-e"], &["-w", "-E"], 1),
    wrapper("ionice", &["-t"], &["-c", "-n"], 0),
    wrapper("nice", &[], &["-n", "--adjustment"], 0),
    wrapper("nohup", &[], &[], 0),
    wrapper("setsid", &["-c", "-f", "-w", "--fork", "--wait"], &[], 0),
    wrapper(
        "stdbuf",
        &[],
        &["-i", "-o", "-e", "--input", "--output", "--error"],
        0,
    ),
    wrapper(
        "sudo",
        &["-n", "-E", "-H", "-k", "-b", "-S"],
        &["-u", "-g", "-p", "-C"],
        0,
    ),
    wrapper("taskset", &["-c"], &[], 1),
    wrapper("time", &["-p", "-v"], &[], 0),
    wrapper(
        "timeout",
        &["-v", "--verbose", "--foreground", "--preserve-status"],
        &["-s", "--signal", "-k", "--kill-after"],
        1,
    ),
    wrapper("toybox", &[], &[], 0),
];

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
}

/// Returns what a wrapper runs; `None` for other programs.
pub(super) fn look(name: &str, words: &[Word]) -> Option<Look> {
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    let rest = words.get(1..).unwrap_or_default();
    if name == "command" && matches!(rest.first().and_then(Word::literal), Some("-v" | "-V")) {
        return Some(WorkspaceScan::default());
    }
    Some(wrapper.inner(rest))
}

impl Wrapper {
    fn inner(&self, rest: &[Word]) -> Look {
        let Some(mut rest) = self.behind_options(rest) else {
            return Look::hidden(Hidden::Option);
        };
        let mut hidden = None;
        for _ in 0..self.operands {
            let Some((operand, behind)) = rest.split_first() else {
                return Look::default();
            };
            if operand.is_wild() {
                hidden = Some(Hidden::Expansion);
            }
            rest = behind;
        }
        // `PAGER='rm x' git log`: values may be commands, and any program may read them.
        if matches!(self.name, "env" | "sudo" | "doas") {
            while let Some((Word::Literal(word), behind)) = rest.split_first()
                && word.contains('=')
            {
                hidden = Some(Hidden::Assignment);
                rest = behind;
            }
        }
        let first = rest.first().and_then(Word::literal).unwrap_or_default();
        // `time ! rm`, and options after the operands, as in `flock FILE -c TEXT`.
        if first.starts_with('-')
            || is_grammar(first)
            || (self.name == "time" && first.contains('='))
        {
            hidden = Some(Hidden::Option);
        }
        Look {
            hidden,
            // `flock` creates the file that it locks.
            writes: self.name == "flock",
            ..Look::command(rest)
        }
    }

    /// Returns the words after the options; `None` if an option is unknown.
    fn behind_options<'a>(&self, mut rest: &'a [Word]) -> Option<&'a [Word]> {
        while let Some(Word::Literal(word)) = rest.first() {
            if word == "--" {
                return rest.get(1..);
            }
            if !word.starts_with('-') {
                break;
            }
            let behind = if self.is_flag(word) || self.has_own_value(word) {
                1
            } else if self.valued.contains(&word.as_str()) {
                2
            } else {
                return None;
            };
            rest = rest.get(behind..)?;
        }
        Some(rest)
    }

    fn is_flag(&self, word: &str) -> bool {
        let letters = word.strip_prefix('-').unwrap_or_default();
        let is_letter = |letter: char| self.flags.contains(&format!("-{letter}").as_str());
        let is_level = self.name == "nice" && letters.bytes().all(|byte| byte.is_ascii_digit());
        self.flags.contains(&word)
            || (!letters.is_empty() && (letters.chars().all(is_letter) || is_level))
    }

    /// Returns true if the option has its value in the same word.
    fn has_own_value(&self, word: &str) -> bool {
        let is_brought = |option: &&str| match word.strip_prefix(option) {
            Some(value) if option.starts_with("--") => value.starts_with('='),
            Some(value) => !value.is_empty(),
            None => false,
        };
        self.valued.iter().any(is_brought)
    }
}

/// Returns true if the shell reads the word after `time` as grammar.
fn is_grammar(word: &str) -> bool {
    matches!(
        word,
        "!" | "{"
            | "if"
            | "while"
            | "until"
            | "for"
            | "case"
            | "select"
            | "function"
            | "coproc"
            | "[["
            | "time"
    )
}
