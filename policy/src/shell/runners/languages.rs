//! Handles shells, interpreters of other languages, and the small languages of `awk` and `sed`.

use super::super::{Hidden, Word};
use super::Look;

const SHELLS: &[&str] = &["ash", "bash", "dash", "rbash", "sh"];

const INTERPRETERS: &[&str] = &[
    "deno",
    "elixir",
    "erl",
    "ghci",
    "groovy",
    "iex",
    "irb",
    "jshell",
    "julia",
    "lua",
    "luajit",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "pypy",
    "pypy3",
    "python",
    "Rscript",
    "ruby",
    "scala",
    "ts-node",
    "tsx",
];

const AWKS: &[&str] = &["awk", "gawk", "mawk", "nawk"];

pub(super) fn is_language(name: &str) -> bool {
    SHELLS.contains(&name)
        || is_interpreter(name)
        || AWKS.contains(&name)
        || matches!(name, "eval" | "sed")
}

/// Returns true if [`look`] checks all options of the program.
pub(super) fn is_checked(name: &str) -> bool {
    is_language(name) && name != "sed"
}

/// Returns true for an interpreter; `python3.12` is `python`.
fn is_interpreter(name: &str) -> bool {
    let plain = name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&plain)
}

/// Returns what an interpreter runs; `None` for other programs.
pub(super) fn look(name: &str, words: &[Word]) -> Option<Look> {
    let rest = words.get(1..).unwrap_or_default();
    if SHELLS.contains(&name) {
        return Some(shell(words));
    }
    if name == "eval" {
        return Some(eval(rest));
    }
    if AWKS.contains(&name) {
        return Some(awk(rest));
    }
    if name == "sed" {
        return Some(sed(rest));
    }
    is_interpreter(name).then(|| interpreter(name, words))
}

/// Handles `sh -c TEXT`, `sh FILE`, and a shell that reads its input.
fn shell(words: &[Word]) -> Look {
    let mut wants_text = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        let Some(text) = word.literal() else {
            return Look::hidden(Hidden::Expansion);
        };
        match text.strip_prefix('-') {
            Some("-") => {}
            // Of these letters, only `c` and `s` change where the commands come from.
            Some(letters)
                if !wants_text
                    && !letters.is_empty()
                    && letters.bytes().all(|byte| b"ceulsx".contains(&byte)) =>
            {
                if letters.contains('s') {
                    return Look::hidden(Hidden::Input);
                }
                wants_text = letters.contains('c');
            }
            Some(_) => return Look::hidden(Hidden::Option),
            None if wants_text => {
                return Look {
                    texts: vec![text.to_owned()],
                    ..Look::default()
                };
            }
            None => return Look::script(words, at),
        }
    }
    Look::hidden(Hidden::Input)
}

fn eval(rest: &[Word]) -> Look {
    let words: Option<Vec<&str>> = rest.iter().map(Word::literal).collect();
    match words {
        Some(words) => Look {
            texts: vec![words.join(" ")],
            ..Look::default()
        },
        None => Look::hidden(Hidden::Expansion),
    }
}

fn interpreter(name: &str, words: &[Word]) -> Look {
    match words.get(1).map(Word::literal) {
        None => Look::hidden(Hidden::Input),
        Some(Some("-m")) if name.starts_with("python") && words.len() > 2 => Look {
            script_at: Some(2),
            ..Look::default()
        },
        Some(Some("--version" | "-V" | "-v" | "--help" | "-h")) if words.len() == 2 => {
            Look::default()
        }
        Some(Some(file)) if !file.starts_with('-') => Look::script(words, 1),
        Some(_) => Look::hidden(Hidden::Code),
    }
}

/// Handles `awk`, whose programs run commands by `system`, by pipes, and by names that are built at run time.
fn awk(rest: &[Word]) -> Look {
    let runs = |word: &str| word.contains(['|', '@']) || word.contains("system");
    let mut has_program = false;
    let mut is_value = false;
    let mut writes = false;
    for word in rest {
        let is_plain = match word {
            Word::Open { is_tame } => *is_tame && has_program,
            Word::Literal(text) if is_value => !runs(text),
            Word::Literal(text) if text.starts_with('-') => {
                matches!(text.as_str(), "-v" | "-F") || text.starts_with("-F")
            }
            Word::Literal(text) => {
                // `print > "file"`; a comparison is asked needlessly.
                writes |= !has_program && text.contains('>');
                has_program = true;
                !runs(text)
            }
        };
        if !is_plain {
            return Look::hidden(Hidden::Code);
        }
        is_value = !is_value && matches!(word.literal(), Some("-v" | "-F"));
    }
    Look {
        writes,
        ..Look::default()
    }
}

/// Handles `sed`, whose scripts run commands by `e`. Only substitutions and lines by number surely do not.
fn sed(rest: &[Word]) -> Look {
    let mut options = rest.iter().map(Word::literal).peekable();
    while let Some(Some(option)) = options.peek().copied() {
        let is_plain = matches!(
            option,
            "-n" | "-E" | "-r" | "-i" | "-s" | "-u" | "-z" | "-e"
        );
        if option.starts_with('-') && !is_plain {
            return Look::hidden(Hidden::Option);
        }
        if !option.starts_with('-') {
            break;
        }
        options.next();
    }
    let script = options.next().flatten();
    let files_are_plain = options.all(|file| file.is_none_or(|file| !file.starts_with('-')));
    match script {
        Some(script) if files_are_plain && is_plain_script(script) => Look::default(),
        _ => Look::hidden(Hidden::Code),
    }
}

/// Returns true for scripts such as `s/a/b/g`, `10,20p`, `$d`.
fn is_plain_script(script: &str) -> bool {
    if script.contains('\n') {
        return false;
    }
    if let Some(substitution) = script.strip_prefix('s') {
        let Some(border) = substitution
            .chars()
            .next()
            .filter(|sign| "/|#,:".contains(*sign))
        else {
            return false;
        };
        // A backslash or a bracket may hide a delimiter, so a script with one is not surely understood.
        let mut pieces = substitution.split(border).skip(1);
        let flags = pieces.nth(2);
        return !substitution.contains('[')
            && !substitution.contains(&format!("\\{border}"))
            && pieces.next().is_none()
            && flags.is_some_and(|flags| flags.chars().all(|flag| "gpI0123456789".contains(flag)));
    }
    let address = script.trim_end_matches(['p', 'd']);
    script.len() == address.len() + 1
        && address
            .chars()
            .all(|sign| sign.is_ascii_digit() || matches!(sign, ',' | '$'))
}

#[cfg(test)]
mod tests {
    use super::is_plain_script;

    #[test]
    fn only_surely_harmless_scripts_of_sed_are_plain() {
        for script in ["s/a/b/", "s/a/b/g", "s|a|b|2p", "1,20p", "$d", "5p"] {
            assert!(is_plain_script(script), "{script}");
        }
        for script in [
            "s/a/b/e",
            "e",
            "1e rm x",
            "s/a/b/w f",
            "w f",
            "s/a\\/b/c/e",
            "s/[/]/b/e",
            "s/a/b/;e",
            "p;e",
            "s/a/b/\ne rm",
            "sxaxbx",
            "/x/p",
            "",
        ] {
            assert!(!is_plain_script(script), "{script}");
        }
    }
}
