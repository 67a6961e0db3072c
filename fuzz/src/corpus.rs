//! The inputs in the repository, and the words that are worth putting into others.

use std::fs;

/// Words that parsers of ours look for or stumble over, in libFuzzer's own form.
const DICTIONARY: &str = include_str!("../dictionary");

/// Every input of a fuzzer with its file's name, sorted.
pub(crate) fn inputs(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = crate::folder(name);
    let entries = fs::read_dir(&folder);
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .unwrap_or_else(|error| panic!("`{}` has to hold inputs: {error}", folder.display()))
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "`{}` is empty", folder.display());
    inputs
}

/// The words of the dictionary.
pub(crate) fn words() -> Vec<Vec<u8>> {
    let lines = DICTIONARY.lines().filter(|line| line.starts_with('"'));
    lines.map(|line| word(line.trim_matches('"'))).collect()
}

/// Reads `\xNN`, `\\` and `\"`.
fn word(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let escaped = rest
            .strip_prefix(b"x")
            .and_then(|hex| hex.split_at_checked(2));
        if let Some((hex, after)) = escaped {
            let hex = std::str::from_utf8(hex).unwrap();
            bytes.push(u8::from_str_radix(hex, 16).unwrap());
            rest = after;
        } else if let Some((&byte, after)) = rest.split_first() {
            bytes.push(byte);
            rest = after;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{word, words};

    #[test]
    fn words_are_read_as_libfuzzer_reads_them() {
        assert_eq!(word(r#"a\x00\\\"b"#), b"a\0\\\"b");
        let words = words();
        assert!(words.len() > 50 && words.iter().all(|word| !word.is_empty()));
    }
}
