//! Repairs JSON with half of a UTF-16 surrogate pair, which programs write that cut text between two code
//! units. A lone half is invalid JSON, but must not lose the text around it.

/// Returns the JSON with every lone half replaced by U+FFFD; `None` if there is none.
pub fn mend_surrogates(json: &str) -> Option<String> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return None;
    }
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    let mut is_changed = false;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        mended.push_str(before);
        let taken = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                mended.push_str("\\ufffd");
                is_changed = true;
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            (Some(_), _) => 6,
            // A backslash and the escaped character, which may be another backslash.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        mended.push_str(escape.get(..taken).unwrap_or(escape));
        rest = escape.get(taken..).unwrap_or_default();
    }
    mended.push_str(rest);
    is_changed.then_some(mended)
}

/// The code unit of the `\uXXXX` at the start of the text.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::mend_surrogates;

    fn check(json: &str, expected: Option<&str>) {
        let mended = mend_surrogates(json);
        assert_eq!(mended.as_deref(), expected, "{json}");
        if let Some(mended) = mended {
            serde_json::from_str::<serde_json::Value>(&mended).unwrap();
        }
    }

    #[test]
    fn only_lone_halves_are_replaced() {
        check(r#""plain""#, None);
        check(r#""\ud83d\ude00""#, None);
        check(r#""\\ud83d""#, None);
        check(r#""\n\u0041""#, None);
        check(r#""\ud83d""#, Some(r#""\ufffd""#));
        check(r#""\ude00 x""#, Some(r#""\ufffd x""#));
        check(r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#));
        check(r#""\ud83d\n""#, Some(r#""\ufffd\n""#));
        check(r#""\\\ud83dä""#, Some(r#""\\\ufffdä""#));
    }
}
