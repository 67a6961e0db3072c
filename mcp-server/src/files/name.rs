//! File names that are not plain text, in bash's `$'...'` form: readable, and usable as they stand
//! in paths and in commands.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

/// `name` for the model: as it is, or quoted when it is not UTF-8 or holds control characters.
pub(crate) fn show(name: &OsStr) -> String {
    match name.to_str() {
        Some(text) if !text.chars().any(char::is_control) && !text.starts_with("$'") => {
            text.to_owned()
        }
        _ => quote(name.as_bytes()),
    }
}

fn quote(bytes: &[u8]) -> String {
    let mut quoted = String::from("$'");
    for byte in bytes {
        match byte {
            b'\\' | b'\'' => {
                quoted.push('\\');
                quoted.push(char::from(*byte));
            }
            b' '..=b'~' => quoted.push(char::from(*byte)),
            _ => {
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('\'');
    quoted
}

/// The other direction of [`show`]; anything that is not quoted is taken literally.
pub(crate) fn parse(path: &str) -> PathBuf {
    path.strip_prefix("$'")
        .and_then(|rest| rest.strip_suffix('\''))
        .and_then(unquote)
        .map_or_else(
            || PathBuf::from(path),
            |bytes| OsString::from_vec(bytes).into(),
        )
}

fn unquote(quoted: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'x' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(
                    u8::from_str_radix(digits, 16)
                        .ok()
                        .filter(|byte| *byte != 0)?,
                );
            }
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            escaped @ (b'\\' | b'\'') => bytes.push(escaped),
            _ => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &[u8], shown: &str) {
        let name = OsStr::from_bytes(name);
        assert_eq!(show(name), shown);
        assert_eq!(parse(shown), PathBuf::from(name));
    }

    #[test]
    fn every_name_comes_back_as_it_was() {
        check(b"plain.txt", "plain.txt");
        check("żółw 🐢".as_bytes(), "żółw 🐢");
        check(b"caf\xe9", r"$'caf\xe9'");
        check(b"two\nlines", r"$'two\x0alines'");
        check(b"$'x'", r"$'$\'x\''");
        check(b"back\\slash\xff", r"$'back\\slash\xff'");
    }

    #[test]
    fn what_is_not_quoted_right_is_literal() {
        assert_eq!(parse(r"$'\q'"), PathBuf::from(r"$'\q'"));
        assert_eq!(parse(r"$'\x00'"), PathBuf::from(r"$'\x00'"));
    }
}
