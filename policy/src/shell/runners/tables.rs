//! Lists programs that run other programs, by name and by option.

use super::super::{Hidden, Word};
use super::Look;

/// Builtins after which words of the shell may have another meaning, or which evaluate their words.
const CHANGE_SHELL: &[&str] = &[
    ".",
    "alias",
    "bind",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "enable",
    "export",
    "fc",
    "getopts",
    "hash",
    "history",
    "jobs",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unalias",
    "unset",
    "wait",
];

/// Programs that run commands, code or programs in ways that are not analyzed.
pub(super) const ALWAYS_HIDDEN: &[&str] = &[
    "at",
    "batch",
    "bunx",
    "bwrap",
    "chroot",
    "crontab",
    "ed",
    "emacs",
    "entr",
    "ex",
    "expect",
    "fakeroot",
    "firejail",
    "fish",
    "gdb",
    "ksh",
    "lldb",
    "ltrace",
    "m4",
    "nc",
    "ncat",
    "nodemon",
    "nsenter",
    "nvim",
    "parallel",
    "perf",
    "pnpx",
    "proot",
    "pwsh",
    "runuser",
    "scp",
    "screen",
    "script",
    "sftp",
    "socat",
    "ssh",
    "strace",
    "su",
    "systemd-run",
    "tclsh",
    "tmux",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "vi",
    "view",
    "vim",
    "vimdiff",
    "watch",
    "xvfb-run",
    "zsh",
    "npx",
    "pipx",
    "rlwrap",
    "mysql",
    "psql",
    "sqlite3",
    "gnuplot",
    "bc",
    "dc",
    "csh",
    "tcsh",
];

/// Options with which these programs run something. Long ones may be abbreviated, and single letters may be
/// combined.
const RUNNING_OPTIONS: &[(&str, &[&str])] = &[
    ("bun", &["-e", "--eval", "-p", "--print", "-r", "--preload"]),
    ("cargo", &["--config"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("go", &["-exec", "-toolexec", "-vettool"]),
    ("make", &["-E", "--eval"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    (
        "tar",
        &[
            "-I",
            "-F",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
    ),
    ("zip", &["-TT", "--unzip-command"]),
    // These evaluate the text in brackets.
    ("test", &["-v", "-R"]),
    ("[", &["-v", "-R"]),
    ("printf", &["-v"]),
];

/// Subcommands with which these programs run something.
const RUNNING_SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("bun", &["exec", "x"]),
    ("corepack", &["npm", "pnpm", "yarn"]),
    ("deno", &["eval", "repl"]),
    ("docker", &["compose", "container", "exec", "run", "buildx"]),
    ("docker-compose", &["exec", "run"]),
    ("kubectl", &["debug", "exec", "run"]),
    ("npm", &["exec", "explore", "x"]),
    ("pnpm", &["dlx", "exec"]),
    ("podman", &["container", "exec", "run"]),
    ("poetry", &["run"]),
    ("uv", &["run", "tool", "x"]),
    ("yarn", &["dlx", "exec", "node"]),
];

/// Returns true if one of the lists of options and subcommands has the program.
pub(super) fn is_listed(name: &str) -> bool {
    CHANGE_SHELL.contains(&name)
        || ALWAYS_HIDDEN.contains(&name)
        || name == "git"
        || RUNNING_OPTIONS.iter().any(|(program, _)| *program == name)
        || RUNNING_SUBCOMMANDS
            .iter()
            .any(|(program, _)| *program == name)
}

/// Returns true if the builtin changes the meaning of later words.
pub(super) fn changes_shell(name: &str, rest: &[Word]) -> bool {
    let is_switch = |word: &Word| {
        word.literal().is_some_and(|word| {
            let is_letters = |letters: &str| letters.bytes().all(|byte| b"euxo".contains(&byte));
            matches!(word, "pipefail" | "errexit" | "nounset" | "xtrace")
                || word.strip_prefix('-').is_some_and(is_letters)
        })
    };
    match name {
        // `set -euo pipefail` only makes failures more visible.
        "set" => !rest.iter().all(is_switch),
        name => CHANGE_SHELL.contains(&name),
    }
}

/// Returns true if an option runs something.
pub(super) fn has_running_option(name: &str, rest: &[Word]) -> bool {
    let Some((_, options)) = RUNNING_OPTIONS.iter().find(|(program, _)| *program == name) else {
        return false;
    };
    let sets_variable = |word: &str| name == "make" && word.contains('=') && !word.starts_with('-');
    // The first word of `tar` may be options without a dash.
    let is_old_style = name == "tar"
        && rest
            .first()
            .and_then(Word::literal)
            .is_some_and(|word| !word.starts_with('-') && word.contains(['I', 'F']));
    is_old_style
        || rest
            .iter()
            .filter_map(Word::literal)
            .any(|word| sets_variable(word) || options.iter().any(|option| may_be(word, option)))
}

/// Returns true if `word` may be `option`: abbreviated, with a value, or among combined letters.
pub(super) fn may_be(word: &str, option: &str) -> bool {
    let word = word.split('=').next().unwrap_or(word);
    if option.starts_with("--") {
        return word.len() > 2 && word.starts_with("--") && option.starts_with(word);
    }
    let letter = option.trim_start_matches('-');
    match letter.chars().count() {
        1 => {
            let cluster = word.strip_prefix('-').filter(|word| !word.starts_with('-'));
            cluster.is_some_and(|cluster| cluster.contains(letter))
        }
        _ => word.trim_start_matches('-') == letter && word.starts_with('-'),
    }
}

/// Returns what a program runs by one of its subcommands.
pub(super) fn subcommand(name: &str, rest: &[Word]) -> Option<Look> {
    let (_, subcommands) = RUNNING_SUBCOMMANDS
        .iter()
        .find(|(program, _)| *program == name)?;
    // The subcommand may follow options of which it is unknown whether they take a value.
    let first = rest.first()?;
    let may_hide = match first.literal() {
        None => true,
        Some(word) if word.starts_with('-') => {
            let mut words = rest.iter();
            words.any(|word| {
                word.literal()
                    .is_none_or(|word| subcommands.contains(&word))
            })
        }
        Some(word) => subcommands.contains(&word),
    };
    may_hide.then(|| Look::hidden(Hidden::Code))
}
