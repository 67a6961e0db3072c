//! Compares the versions of Node and Python that a bundle requires with those of the sandboxes.

use semver::{Comparator, Op, Version, VersionReq};

/// Returns the program that runs a kind of bundle; `None` if it needs none.
pub(super) fn program(kind: &str) -> Option<&'static str> {
    match kind {
        "node" => Some("node"),
        "python" => Some("python3"),
        _ => None,
    }
}

/// Returns true if a version such as `v20.19.2` or `Python 3.11.2` is within the wanted range. Text that
/// cannot be parsed excludes nothing.
pub(super) fn fits(wanted: &str, has: &str) -> bool {
    let Some(has) = version(has) else { return true };
    let alternatives: Option<Vec<VersionReq>> = wanted.split("||").map(range).collect();
    alternatives.is_none_or(|ranges| ranges.iter().any(|range| range.matches(&has)))
}

/// Parses the first version number of a text.
fn version(text: &str) -> Option<Version> {
    let from = text.find(|c: char| c.is_ascii_digit())?;
    let text = text.get(from..)?;
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let mut parts = text.get(..end.unwrap_or(text.len()))?.split('.');
    let mut next = || parts.next().map_or(Some(0), |part| part.parse().ok());
    Some(Version::new(next()?, next()?, next()?))
}

/// Parses a range as npm and pip write it: comparators that all apply, separated by spaces or commas.
fn range(text: &str) -> Option<VersionReq> {
    let spaced = text.replace(',', " ");
    let mut words: Vec<String> = Vec::new();
    for word in spaced.split_whitespace() {
        match words.last_mut() {
            // `>= 3.8`
            Some(last) if last.chars().all(|c| "<>=~^!".contains(c)) => last.push_str(word),
            Some(_) | None => words.push(word.to_owned()),
        }
    }
    let comparators: Option<Vec<Comparator>> = words.iter().map(|word| comparator(word)).collect();
    let comparators = comparators?
        .into_iter()
        .filter(|it| it.op != Op::Wildcard || it.major != 0);
    Some(VersionReq {
        comparators: comparators.collect(),
    })
}

fn comparator(word: &str) -> Option<Comparator> {
    if matches!(word, "*" | "x" | "latest") {
        // It excludes nothing, so `range` drops it.
        return Some(Comparator {
            op: Op::Wildcard,
            major: 0,
            minor: None,
            patch: None,
            pre: semver::Prerelease::EMPTY,
        });
    }
    let word = match word.split_at(word.len().min(2)) {
        ("==", rest) => format!("={rest}"),
        // The operators mean about the same: the last named part may grow.
        ("~=", rest) => format!("~{rest}"),
        (_, _) => word.replace('v', ""),
    };
    Comparator::parse(&word).ok()
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn ranges_of_npm_and_of_pip_are_understood() {
        for (wanted, has, expected) in [
            (">=16.0.0", "v20.19.2", true),
            (">=22", "v20.19.2", false),
            (">= 18 < 21", "v20.19.2", true),
            (">=18 <20", "v20.19.2", false),
            ("^18 || ^20", "v20.19.2", true),
            ("18.x", "v20.19.2", false),
            ("20.x", "v20.19.2", true),
            ("*", "v20.19.2", true),
            (">=3.8,<4.0", "Python 3.11.2", true),
            (">=3.12,<4.0", "Python 3.11.2", false),
            (">=3.10", "Python 3.13.0rc1", true),
            ("~=3.11", "Python 3.11.2", true),
            ("==3.11.*", "Python 3.11.2", true),
            // Not parsed, so nothing is excluded.
            ("!=3.9", "Python 3.11.2", true),
            ("recent", "v20.19.2", true),
            (">=99", "unknown", true),
        ] {
            assert_eq!(fits(wanted, has), expected, "{wanted} {has}");
        }
    }
}
