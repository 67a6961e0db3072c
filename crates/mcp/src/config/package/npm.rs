//! Parses `npx`, `npm exec`, `pnpm dlx`, `yarn dlx` and `bunx`.

use super::{PackageCommand, Refusal, Word, Words, elsewhere, unknown_option};
use sepal_core::domain::{PackageRegistry, PackageSpec};

/// Options without effect here: the installer neither prompts nor writes to stdout.
const IGNORED: [&str; 8] = [
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "--silent",
    "--prefer-online",
    "--no-audit",
    "--bun",
];
/// Options that require a package that is already there: then nothing is installed.
const OFFLINE: [&str; 5] = [
    "--offline",
    "--no-install",
    "--no",
    "--prefer-offline",
    "--cached-only",
];

/// Parses the command line; `None` if it is not of this kind.
pub(super) fn read(program: &str, words: &[&str]) -> Option<Result<PackageCommand, Refusal>> {
    let (runner, words) = match (program, words) {
        ("npx" | "bunx" | "pnpx", words) => (program.to_owned(), words),
        ("npm", [word @ ("exec" | "x"), words @ ..])
        | ("pnpm" | "yarn", [word @ "dlx", words @ ..])
        | ("bun", [word @ "x", words @ ..]) => (format!("{program} {word}"), words),
        _ => return None,
    };
    let options = words.iter().take_while(|word| word.starts_with('-'));
    if options.clone().any(|word| OFFLINE.contains(word)) {
        return None;
    }
    Some(command(&runner, words))
}

fn command(runner: &str, words: &[&str]) -> Result<PackageCommand, Refusal> {
    let mut words = Words::new(words);
    let mut packages = Vec::new();
    let first = loop {
        match words.next() {
            Some(Word::Option("-p" | "--package", value)) => {
                packages.push(words.value("--package", value)?);
            }
            Some(Word::Option(option, None)) if IGNORED.contains(&option) => {}
            Some(Word::Option(option, _)) => return Err(unknown_option(runner, option)),
            Some(Word::End) => {}
            Some(Word::Plain(word)) => break Some(word),
            None => break None,
        }
    };
    let mut arguments = words.rest();
    // Only `npm exec` itself reads a `--` after the package.
    if runner.starts_with("npm ") && arguments.first().is_some_and(|word| word == "--") {
        arguments.remove(0);
    }
    let (package, program) = match (packages.is_empty(), first) {
        (true, Some(package)) => (package, None),
        (false, Some(program)) => (packages.remove(0), Some(program.to_owned())),
        (true, None) => return Err(format!("`{runner}` names no package")),
        (false, None) => return Err(format!("`{runner} -p` names no program of the package")),
    };
    let (name, version) = split(package)?;
    for package in &packages {
        split(package)?;
    }
    Ok(PackageCommand {
        spec: PackageSpec {
            registry: PackageRegistry::Npm,
            name,
            version,
            extras: Vec::new(),
            with: packages.into_iter().map(str::to_owned).collect(),
            program,
            allow_scripts: false,
        },
        arguments,
    })
}

/// Splits a package into name and version; `latest` counts as no version, because it is the default.
fn split(package: &str) -> Result<(String, Option<String>), Refusal> {
    let at = package.get(1..).and_then(|rest| rest.find('@'));
    let (name, version) = match at {
        Some(at) => package.split_at(at + 1),
        None => (package, ""),
    };
    let version = version.trim_start_matches('@');
    if !is_name(name) || !is_version(version) {
        return Err(elsewhere(package));
    }
    let version = Some(version).filter(|version| !matches!(*version, "" | "latest" | "*"));
    Ok((name.to_owned(), version.map(str::to_owned)))
}

fn is_name(name: &str) -> bool {
    let (scope, rest) = match name.strip_prefix('@') {
        Some(scoped) => match scoped.split_once('/') {
            Some((scope, rest)) => (Some(scope), rest),
            None => return false,
        },
        None => (None, name),
    };
    let fits = |part: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
        !part.is_empty() && !part.starts_with(['.', '-', '_']) && part.chars().all(is_letter)
    };
    name.len() <= 214 && scope.is_none_or(fits) && fits(rest)
}

/// Returns true for a version, a range of versions, or a tag.
fn is_version(version: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "._-+^~<>=*| ".contains(c);
    version.len() <= 128 && !version.starts_with('-') && version.chars().all(is_letter)
}
