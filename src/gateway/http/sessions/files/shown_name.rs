//! Handles names in the sandbox's form: plain text as it is, anything else in bash's `$'...'` form.

/// Returns the path of a folder's entry, in the same form; an empty folder is the workspace.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        return name.to_owned();
    }
    if quoted(folder).is_none() && quoted(name).is_none() {
        return format!("{folder}/{name}");
    }
    format!("$'{}/{}'", inner(folder), inner(name))
}

/// Returns the bytes of a name or path in that form.
pub(super) fn bytes(shown: &str) -> Vec<u8> {
    let literal = || shown.as_bytes().to_vec();
    quoted(shown).map_or_else(literal, |inner| unquote(inner).unwrap_or_else(literal))
}

fn quoted(shown: &str) -> Option<&str> {
    shown.strip_prefix("$'")?.strip_suffix('\'')
}

fn inner(shown: &str) -> String {
    quoted(shown).map_or_else(
        || shown.replace('\\', r"\\").replace('\'', r"\'"),
        ToOwned::to_owned,
    )
}

fn unquote(inner: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'x' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            escaped @ (b'\\' | b'\'') => bytes.push(escaped),
            _ => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{bytes, join};

    #[test]
    fn a_joined_path_names_the_same_bytes() {
        for (folder, name, expected) in [
            ("", "a", &b"a"[..]),
            ("a", "b c", b"a/b c"),
            ("a's", r"$'caf\xe9'", b"a's/caf\xe9"),
            (r"$'two\x0alines'", "x\\y", b"two\nlines/x\\y"),
            (r"$'\xff'", r"$'\x01'", b"\xff/\x01"),
        ] {
            assert_eq!(bytes(&join(folder, name)), expected, "{folder} {name}");
        }
    }
}
