//! Finds the commands that programs and builtins run, as far as their words tell.
//!
//! An unknown program that runs its arguments is treated like any other program; the lists cannot be
//! complete. Files that a command runs are not read.

mod finders;
mod git;
mod languages;
mod tables;
mod wrappers;

use super::{Hidden, Word};

/// The commands and files that a command uses beside its own program.
#[derive(Debug, Default)]
pub(super) struct WorkspaceScan {
    /// Commands, as words.
    pub(super) commands: Vec<Vec<Word>>,
    /// Other readings of the command itself, for deny and ask rules.
    pub(super) shadows: Vec<Vec<Word>>,
    /// Command lines of a shell.
    pub(super) texts: Vec<String>,
    pub(super) hidden: Option<Hidden>,
    pub(super) script_at: Option<usize>,
    /// True if it opens a file for writing.
    pub(super) writes: bool,
}

impl WorkspaceScan {
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

    /// Describes a command that runs the file named by word `at`.
    fn script(words: &[Word], at: usize) -> Self {
        Self {
            shadows: words.get(at..).map(<[Word]>::to_vec).into_iter().collect(),
            script_at: Some(at),
            ..Self::default()
        }
    }
}

/// Returns the program's name without its folder.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

pub(super) use finders::end_of_exec;

/// Returns true if [`look`] checks every option of the program, so that an unknown option counts as hiding
/// what runs.
pub(super) fn checks_its_options(name: &str) -> bool {
    wrappers::is_wrapper(name) || languages::is_checked(name) || name == "xargs"
}

/// Returns true if a prefix that begins with this program could allow everything.
fn may_run_others(words: &[&str]) -> bool {
    let Some(name) = words.first().map(|name| base_name(name)) else {
        return true;
    };
    tables::is_listed(name)
        || wrappers::is_wrapper(name)
        || languages::is_language(name)
        || finders::is_finder(name)
}

/// Returns what `words` run beside the program itself.
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

/// Handles `trap TEXT SIGNAL`: the text runs later. Deny rules look into it.
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
