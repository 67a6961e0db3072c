//! Makes names of files portable to every system, Windows included.

use sha2::{Digest as _, Sha256};

/// Reserved names of devices on Windows, with any extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// Names of devices that are reserved with one digit behind them.
const NUMBERED: [&str; 2] = ["COM", "LPT"];
/// The digits that count there.
const DIGITS: &str = "0123456789¹²³";

/// Returns the name of a file or folder unchanged if every system takes it; else a changed name with four
/// digits of its hash, so that different names hardly ever become the same.
pub(super) fn portable(name: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(name) else {
        // A name that is not UTF-8 has no form that all systems share; the archive keeps its bytes.
        return name.to_vec();
    };
    let is_bad = |c: char| c.is_control() || "<>:\"/\\|?*".contains(c);
    let ends_badly = text.ends_with(['.', ' ']) || text.starts_with(' ');
    if !text.contains(is_bad) && !ends_badly && !is_device(text) {
        return name.to_vec();
    }
    let hash = hex::encode(Sha256::digest(name));
    let mark = hash.get(..4).unwrap_or_default();
    let plain = text.replace(is_bad, "_");
    let plain = plain.trim_matches([' ', '.']);
    let (stem, extension) = match plain.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        Some(_) | None => (plain, String::new()),
    };
    // Windows reads a device's name before the first dot, so the stem must not have one.
    let stem = stem.replace('.', "_");
    format!("{}~{mark}{extension}", stem.trim_end()).into_bytes()
}

fn is_device(text: &str) -> bool {
    let stem = text.split('.').next().unwrap_or_default();
    let stem = stem.trim_end().to_uppercase();
    let has_number = || {
        let mut kinds = NUMBERED.iter();
        kinds.any(|kind| {
            let digit = stem
                .strip_prefix(kind)
                .map(|rest| rest.chars().collect::<Vec<_>>());
            matches!(digit.as_deref(), Some([digit]) if DIGITS.contains(*digit))
        })
    };
    DEVICES.contains(&stem.as_str()) || has_number()
}

#[cfg(test)]
mod tests {
    use super::{is_device, portable};

    #[test]
    fn names_that_windows_does_not_take_are_changed_and_others_stay() {
        for name in [
            "a.txt", ".env", "CONSOLE", "com", "COM10", "a b", "ä", "nul_", "x~1",
        ] {
            assert_eq!(portable(name.as_bytes()), name.as_bytes(), "{name}");
        }
        for name in [
            "CON",
            "con.txt",
            "Aux.tar.gz",
            "nul ",
            "NUL .txt",
            "COM1",
            "lpt9.log",
            "COM\u{b9}",
            "CONIN$",
            "a:b",
            "a.txt:stream",
            "a\\b",
            "what?",
            "end.",
            "end ",
            "...",
            " x",
            "a\tb",
            "<a>",
            "a|b",
            "\"",
            "*",
        ] {
            let changed = String::from_utf8(portable(name.as_bytes())).unwrap();
            assert_ne!(changed, name);
            // The changed name is portable itself.
            assert_eq!(portable(changed.as_bytes()), changed.as_bytes(), "{name}");
            assert!(!is_device(&changed), "{changed}");
        }
        assert_ne!(portable(b"a:b"), portable(b"a?b"));
        let changed = portable(b"a:b.txt");
        assert!(changed.starts_with(b"a_b~") && changed.ends_with(b".txt"));
        assert_eq!(portable(b"bad\xff"), b"bad\xff");
    }
}
