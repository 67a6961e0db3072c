//! Handles `git`, which runs commands by its settings, by options and by some subcommands.

use super::super::{Hidden, Word};
use super::Look;
use super::tables::may_be;

/// Subcommands that run commands, or set what others run.
const RUNNING: &[&str] = &[
    "bisect",
    "config",
    "credential",
    "daemon",
    "difftool",
    "filter-branch",
    "for-each-repo",
    "help",
    "instaweb",
    "mergetool",
    "p4",
    "remote-ext",
    "send-email",
    "submodule",
    "svn",
    "web--browse",
];

/// Options of subcommands that run commands.
const OPTIONS: &[&str] = &[
    "--config",
    "--exec",
    "--exec-path",
    "--ext-diff",
    "--extcmd",
    "--gpg-sign",
    "--open-files-in-pager",
    "--receive-pack",
    "--server-option",
    "--template",
    "--textconv",
    "--tool",
    "--upload-pack",
];

/// Returns the commands that a `git` command runs, and the command itself without options before its
/// subcommand.
pub(super) fn look(words: &[Word]) -> Look {
    let mut at = 1;
    let mut hidden = None;
    while let Some(Word::Literal(word)) = words.get(at)
        && word.starts_with('-')
    {
        at += 1;
        match word.as_str() {
            "--no-pager"
            | "-P"
            | "--version"
            | "--help"
            | "--no-optional-locks"
            | "--literal-pathspecs" => {}
            "-C" => at += 1,
            "-c" => {
                hidden = Some(Hidden::Option);
                at += 1;
            }
            _ => hidden = Some(Hidden::Option),
        }
    }
    let rest = words.get(at..).unwrap_or_default();
    let subcommand = rest.first().map(|word| word.literal().unwrap_or_default());
    let runs = match subcommand {
        None => false,
        Some("") => true,
        Some(name) => RUNNING.contains(&name) || runs_by_option(name, rest),
    };
    let shadow = || {
        let program = words.first().cloned();
        program.into_iter().chain(rest.iter().cloned()).collect()
    };
    Look {
        shadows: if at > 1 && !rest.is_empty() {
            vec![shadow()]
        } else {
            Vec::new()
        },
        hidden: hidden.or(runs.then_some(Hidden::Option)),
        ..Look::default()
    }
}

fn runs_by_option(subcommand: &str, rest: &[Word]) -> bool {
    let letters: &[&str] = match subcommand {
        "clone" => &["-u", "-c"],
        "fetch-pack" | "ls-remote" => &["-u"],
        "grep" => &["-O"],
        "rebase" => &["-x", "-i"],
        _ => &[],
    };
    rest.iter().filter_map(Word::literal).any(|word| {
        // `--text` is an option of its own, not an abbreviation of `--textconv`.
        let word = if word == "--text" { "" } else { word };
        word.starts_with("ext::")
            || OPTIONS
                .iter()
                .chain(letters)
                .any(|option| may_be(word, option))
    })
}
