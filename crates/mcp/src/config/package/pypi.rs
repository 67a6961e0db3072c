//! Parses `uvx`, `uv tool run` and `pipx run`.

use super::{PackageCommand, Refusal, Word, Words, elsewhere, unknown_option};
use sepal_core::domain::{PackageRegistry, PackageSpec};

/// Options without effect here.
const IGNORED: [&str; 10] = [
    "-q",
    "--quiet",
    "-n",
    "--no-cache",
    "-U",
    "--upgrade",
    "--refresh",
    "--isolated",
    "--no-progress",
    "--no-config",
];
/// Options that require a package that is already there: then nothing is installed.
const OFFLINE: [&str; 2] = ["--offline", "--no-index"];

/// Parses the command line; `None` if it is not of this kind.
pub(super) fn read(program: &str, words: &[&str]) -> Option<Result<PackageCommand, Refusal>> {
    let (runner, words) = match (program, words) {
        ("uvx", words) => ("uvx", words),
        ("uv", ["tool", "run", words @ ..]) => ("uv tool run", words),
        ("pipx", ["run", words @ ..]) => ("pipx run", words),
        _ => return None,
    };
    let options = words.iter().take_while(|word| word.starts_with('-'));
    if options.clone().any(|word| OFFLINE.contains(word)) {
        return None;
    }
    Some(command(runner, words))
}

fn command(runner: &str, words: &[&str]) -> Result<PackageCommand, Refusal> {
    let mut words = Words::new(words);
    let (mut from, mut with) = (None, Vec::new());
    let first = loop {
        match words.next() {
            Some(Word::Option(option @ ("--from" | "--spec"), value)) => {
                from = Some(words.value(option, value)?);
            }
            Some(Word::Option(option @ ("--with" | "-w"), value)) => {
                with.extend(named_packages(words.value(option, value)?));
            }
            Some(Word::Option(option, None)) if IGNORED.contains(&option) => {}
            Some(Word::Option(option @ ("--python" | "-p"), _)) => {
                return Err(format!(
                    "`{option}`: servers run with the Python of the sandboxes; leave it out"
                ));
            }
            Some(Word::Option(option, _)) => return Err(unknown_option(runner, option)),
            Some(Word::End) => {}
            Some(Word::Plain(word)) => break Some(word),
            None => break None,
        }
    };
    let (package, program) = match (from, first) {
        (None, Some(package)) => (package, None),
        (Some(package), Some(program)) => (package, Some(program.to_owned())),
        (None, None) => return Err(format!("`{runner}` names no package")),
        (Some(_), None) => return Err(format!("`{runner}` names no program of the package")),
    };
    let Requirement {
        name,
        extras,
        version,
    } = requirement(package)?;
    for package in &with {
        requirement(package)?;
    }
    Ok(PackageCommand {
        spec: PackageSpec {
            registry: PackageRegistry::Pypi,
            name,
            version,
            extras,
            with,
            program,
            allow_scripts: false,
        },
        arguments: words.rest(),
    })
}

/// Splits the value of one `--with` at commas, but not at the commas within a version range.
pub fn named_packages(words: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for part in words.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        match found.last_mut() {
            Some(last) if part.starts_with(['<', '>', '=', '!', '~']) => {
                last.push(',');
                last.push_str(part);
            }
            Some(_) | None => found.push(part.to_owned()),
        }
    }
    found
}

struct Requirement {
    name: String,
    extras: Vec<String>,
    version: Option<String>,
}

/// Parses `name[extra]==version`, or uv's `name@version`.
fn requirement(package: &str) -> Result<Requirement, Refusal> {
    let refused = || elsewhere(package);
    let end = package.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
    let (name, rest) = package.split_at(end.unwrap_or(package.len()));
    let (extras, rest) = match rest.strip_prefix('[') {
        Some(inner) => inner.split_once(']').ok_or_else(refused)?,
        None => ("", rest),
    };
    let extras: Vec<String> = extras
        .split(',')
        .map(str::trim)
        .filter(|extra| !extra.is_empty())
        .map(normal_name)
        .collect();
    let is_plain = |text: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !text.is_empty() && text.len() <= 128 && text.chars().all(is_letter)
    };
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_version = |text: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "._-+*!<>=~, ".contains(c);
        text.len() <= 128 && text.chars().all(is_letter)
    };
    let version = match rest.trim() {
        "" | "@latest" => None,
        exact if exact.starts_with('@') => {
            let exact = exact.trim_start_matches('@');
            if !exact.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(refused());
            }
            Some(format!("=={exact}"))
        }
        range if range.starts_with(['<', '>', '=', '!', '~']) => Some(range.to_owned()),
        _ => return Err(refused()),
    };
    let fits = begins_well
        && is_plain(name)
        && extras.iter().all(|extra| is_plain(extra))
        && version.as_deref().is_none_or(is_version);
    if !fits {
        return Err(refused());
    }
    Ok(Requirement {
        name: normal_name(name),
        extras,
        version,
    })
}

/// Returns the normalized name (PEP 503).
pub fn normal_name(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for c in name.chars() {
        if !matches!(c, '-' | '_' | '.') {
            normal.push(c.to_ascii_lowercase());
        } else if !normal.ends_with('-') {
            normal.push('-');
        }
    }
    normal
}
