//! Checks names of skills and paths of their files.

use super::problem::Problem;
use sepal_core::domain::visible_line;

/// The longest name of a skill, in characters.
pub(super) const MAX_NAME: usize = 64;
/// The longest path of a file, in bytes.
const MAX_PATH_BYTES: usize = 512;
/// The longest part of a path, in bytes, within the limits of file systems.
const MAX_PART_BYTES: usize = 200;
/// The most folders above a file, not counting the skill's own.
const MAX_DEPTH: usize = 8;
/// The most characters of a name that a problem repeats.
const MAX_SHOWN: usize = 120;

/// Returns true for a valid skill name: 1 to 64 lowercase letters, digits and single hyphens between them.
pub fn is_skill_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(is_letter)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Returns a name for problems: shortened, with invisible characters written out.
pub(super) fn shown(name: &str) -> String {
    let short: String = name.chars().take(MAX_SHOWN).collect();
    let rest = if short.len() < name.len() { "…" } else { "" };
    format!("{}{rest}", visible_line(&short))
}

/// Returns the path of a file below the skill's folder, or what is wrong with it.
pub(super) fn checked(path: &[u8]) -> Result<String, Problem> {
    let Ok(path) = std::str::from_utf8(path) else {
        let lossy = String::from_utf8_lossy(path);
        let remedy = "Rename the file, and pack the archive with UTF-8 names.";
        return Err(Problem::new(shown(&lossy), "the name is not UTF-8", remedy));
    };
    let wrong = |message: String, remedy: &str| Err(Problem::new(shown(path), message, remedy));
    if path.starts_with('/') || path.contains('\\') {
        let remedy = "Pack the folder with relative paths and `/` between their parts.";
        return wrong(
            "the path is absolute, or has a backslash".to_owned(),
            remedy,
        );
    }
    let path = path.strip_prefix("./").unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.len() > MAX_PATH_BYTES {
        let message = format!("the path has more than {MAX_PATH_BYTES} bytes");
        return wrong(message, "Shorten the names.");
    }
    if path != visible_line(path) {
        let remedy = "Rename the file with plain letters.";
        return wrong("the name has signs that cannot be seen".to_owned(), remedy);
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.contains(&"..") {
        let message = "the path leads out of the skill's folder".to_owned();
        return wrong(message, "Take `..` out of the path.");
    }
    let is_odd = |part: &&str| part.is_empty() || *part == ".";
    if parts.iter().any(is_odd) {
        let message = "a part of the path is empty or `.`".to_owned();
        return wrong(message, "Pack the folder again.");
    }
    if parts.iter().any(|part| part.len() > MAX_PART_BYTES) {
        let message = format!("a part of the path has more than {MAX_PART_BYTES} bytes");
        return wrong(message, "Shorten the name.");
    }
    // The archive's own folder may come first.
    if parts.len() > MAX_DEPTH + 2 {
        let message = format!("the file lies in more than {MAX_DEPTH} folders");
        return wrong(message, "Move it nearer to `SKILL.md`.");
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{checked, is_skill_name};

    #[test]
    fn names_are_those_of_the_convention() {
        for name in ["a", "pdf-processing", "7z", &"a".repeat(64)] {
            assert!(is_skill_name(name), "{name}");
        }
        let long = "a".repeat(65);
        for name in [
            "", "PDF", "-a", "a-", "a--b", "a_b", "a b", "ä", "a/b", "..", &long,
        ] {
            assert!(!is_skill_name(name), "{name}");
        }
    }

    #[test]
    fn paths_stay_below_the_folder_and_are_said_in_visible_signs() {
        for (path, expected) in [
            ("SKILL.md", "SKILL.md"),
            ("./scripts/a.py", "scripts/a.py"),
            ("scripts/", "scripts"),
            ("références/é.md", "références/é.md"),
        ] {
            assert_eq!(checked(path.as_bytes()).unwrap(), expected);
        }
        for (path, problem) in [
            (&b"../a"[..], "leads out"),
            (b"a/../../b", "leads out"),
            (b"/etc/passwd", "absolute"),
            (b"a\\b", "backslash"),
            (b"a//b", "empty"),
            (b"a/./b", "empty"),
            (b"", "empty"),
            (b"a\xff", "not UTF-8"),
            ("a\u{202e}gpj.sh".as_bytes(), "cannot be seen"),
            (b"a\0b", "cannot be seen"),
            (b"a/b/c/d/e/f/g/h/i/j/k", "folders"),
        ] {
            let wrong = checked(path).unwrap_err();
            assert!(wrong.message.contains(problem), "{wrong}");
            assert!(!wrong.at.contains('\u{202e}') && !wrong.at.contains('\0'));
        }
        assert!(checked("a".repeat(300).as_bytes()).is_err());
        assert!(checked("a/".repeat(300).as_bytes()).is_err());
    }
}
