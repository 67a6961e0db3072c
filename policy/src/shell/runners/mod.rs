//! Programs and builtins that run other commands: which ones, as far as their words say it.
//!
//! A program that is unknown here and runs its arguments is a program like any other; the lists
//! cannot be complete. Files that a command runs are not read.

mod finders;
mod git;
mod languages;
mod tables;
mod wrappers;

use super::{Hidden, Word};

/// What a command runs beside itself.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Commands, as words.
    pub(super) commands: Vec<Vec<Word>>,
    /// Other readings of the command itself, for rules that refuse or ask.
    pub(super) shadows: Vec<Vec<Word>>,
    /// Command lines of a shell.
    pub(super) texts: Vec<String>,
    pub(super) hidden: Option<Hidden>,
    pub(super) script_at: Option<usize>,
    /// Whether it opens a file to write to it.
    pub(super) writes: bool,
}

impl Look {
    fn hidden(hidden: Hidden) -> Self {
        Self {
            hidden: Some(hidden),
            ..Self::default()
        }
    }

    fn command(words: &[Word]) -> Self {
        let runs_nothing = words.is_empty();
        Self {
            commands: if runs_nothing {
                Vec::new()
            } else {
                vec![words.to_vec()]
            },
            ..Self::default()
        }
    }

    /// The command runs the file that word `at` names.
    fn script(words: &[Word], at: usize) -> Self {
        Self {
            shadows: words.get(at..).map(<[Word]>::to_vec).into_iter().collect(),
            script_at: Some(at),
            ..Self::default()
        }
    }
}

/// The program's name without its folder.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

pub(super) use finders::end_of_exec;

/// Whether [`look`] checks every option of the program, so that one that it does not know hides what
/// runs.
pub(super) fn checks_its_options(name: &str) -> bool {
    wrappers::is_wrapper(name) || languages::is_checked(name) || name == "xargs"
}

/// Whether a prefix that begins with this program could give everything away.
fn may_run_others(words: &[&str]) -> bool {
    let Some(name) = words.first().map(|name| base_name(name)) else {
        return true;
    };
    tables::is_listed(name)
        || wrappers::is_wrapper(name)
        || languages::is_language(name)
        || finders::is_finder(name)
}

/// What `words` run beside the program itself.
pub(super) fn look(words: &[Word]) -> Look {
    let Some((first, rest)) = words.split_first() else {
        return Look::default();
    };
    let Some(program) = first.literal() else {
        return Look::hidden(Hidden::Expansion);
    };
    let name = base_name(program);
    if name == "trap" {
        return trap(rest);
    }
    if tables::changes_shell(name, rest) {
        return Look::hidden(Hidden::ChangesShell);
    }
    if tables::ALWAYS_HIDDEN.contains(&name) {
        return Look::hidden(Hidden::Code);
    }
    if rest.iter().any(Word::is_wild) && may_run_others(&[name]) {
        return Look {
            hidden: Some(Hidden::Expansion),
            ..runs(name, words, rest)
        };
    }
    runs(name, words, rest)
}

/// `trap TEXT SIGNAL`: the text runs later. Rules that refuse look into it.
fn trap(rest: &[Word]) -> Look {
    let text = rest.iter().map_while(Word::literal);
    let mut text = text.skip_while(|word| *word == "--");
    Look {
        texts: text.next().map(str::to_owned).into_iter().collect(),
        ..Look::hidden(Hidden::ChangesShell)
    }
}

fn runs(name: &str, words: &[Word], rest: &[Word]) -> Look {
    if tables::has_running_option(name, rest) {
        return Look::hidden(Hidden::Option);
    }
    if let Some(look) = tables::subcommand(name, rest) {
        return look;
    }
    if let Some(look) = wrappers::look(name, words) {
        return look;
    }
    if let Some(look) = languages::look(name, words) {
        return look;
    }
    match name {
        "find" => finders::find(rest),
        "xargs" => finders::xargs(rest),
        "git" => git::look(words),
        _ => Look::default(),
    }
}
