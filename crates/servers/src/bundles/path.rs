//! Checks the names of the files of a bundle.

use sepal_core::domain::visible_line;

/// The longest path, in bytes.
const MAX_PATH: usize = 1_024;
/// The longest part of a path, in bytes: the limit of file systems.
const MAX_PART: usize = 255;
/// The most parts of a path.
const MAX_DEPTH: usize = 64;
/// The most characters of a name that a message repeats.
const MAX_SHOWN: usize = 160;

/// Makes a name safe to show in messages: visible characters only, and short.
pub(super) fn shown(name: &str) -> String {
    let short: String = name.chars().take(MAX_SHOWN).collect();
    let rest = if short.len() < name.len() { "…" } else { "" };
    format!("{}{rest}", visible_line(&short))
}

/// Returns the path of an entry below the bundle's folder, or the problem of its name.
pub(super) fn checked(name: &[u8]) -> Result<String, &'static str> {
    let Ok(name) = std::str::from_utf8(name) else {
        return Err("its name is not UTF-8: pack the bundle with UTF-8 names");
    };
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    if name.starts_with('/') || name.contains('\\') || has_drive {
        return Err(
            "its path is absolute, or has a backslash: pack the folder with relative paths and `/` \
             between their parts",
        );
    }
    let path = name.strip_prefix("./").unwrap_or(name);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path != visible_line(path) {
        return Err("its name has signs that cannot be seen: rename the file");
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.contains(&"..") {
        return Err("its path leads out of the bundle: take `..` out of it");
    }
    if parts.iter().any(|part| part.is_empty() || *part == ".") {
        return Err("a part of its path is empty or `.`: pack the folder again");
    }
    let is_long = parts.iter().any(|part| part.len() > MAX_PART);
    if is_long || path.len() > MAX_PATH || parts.len() > MAX_DEPTH {
        return Err("its path is too long, or nested too deep: shorten the names");
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{checked, shown};

    #[test]
    fn paths_stay_below_the_folder_of_the_bundle() {
        for (name, expected) in [
            ("manifest.json", "manifest.json"),
            ("./server/index.js", "server/index.js"),
            ("node_modules/@a/b/", "node_modules/@a/b"),
            ("é.md", "é.md"),
            ("a:b", "a:b"),
        ] {
            let is_drive = name == "a:b";
            assert_eq!(checked(name.as_bytes()).is_err(), is_drive, "{name}");
            if !is_drive {
                assert_eq!(checked(name.as_bytes()).unwrap(), expected);
            }
        }
        let long = "a/".repeat(200);
        for (name, word) in [
            (&b"../a"[..], "leads out"),
            (b"a/../../b", "leads out"),
            (b"/etc/passwd", "absolute"),
            (b"C:/x", "absolute"),
            (b"a\\b", "backslash"),
            (b"a//b", "empty"),
            (b"a/./b", "empty"),
            (b"", "empty"),
            (b"a\xff", "UTF-8"),
            (b"a\0b", "cannot be seen"),
            ("a\u{202e}b".as_bytes(), "cannot be seen"),
            (long.as_bytes(), "too long"),
        ] {
            let wrong = checked(name).unwrap_err();
            assert!(wrong.contains(word), "{wrong}");
        }
        assert!(!shown("a\u{202e}b").contains('\u{202e}'));
    }
}
