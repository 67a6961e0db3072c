//! Remembers the bytes around the text of a payload, because servers repeat them with every token.

use super::text::Text;

/// The previous payload without its text. If the next payload has the same bytes around another JSON string,
/// it means the same with that string as its text, and need not be parsed.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    before: String,
    after: String,
}

impl Envelope {
    /// Notes the bytes around `text`, which must be a part of `payload` and a string without escapes.
    /// Otherwise the envelope is cleared.
    pub(crate) fn note(&mut self, payload: &str, text: &str) {
        self.before.clear();
        self.after.clear();
        if let Some((before, after)) = around(payload, text) {
            self.before.push_str(before);
            self.after.push_str(after);
        }
    }

    /// The text of a payload that otherwise equals the previous one.
    pub(crate) fn open<'a>(&self, payload: &'a str) -> Option<Text<'a>> {
        if self.before.is_empty() {
            return None;
        }
        let rest = payload.strip_prefix(self.before.as_str())?;
        let string = rest.strip_suffix(self.after.as_str())?;
        // It must be exactly one string: any other value means another kind of payload.
        if !string.starts_with('"') {
            return None;
        }
        serde_json::from_str(string).ok()
    }
}

/// The payload before and after the string, without its quotes.
fn around<'a>(payload: &'a str, text: &str) -> Option<(&'a str, &'a str)> {
    let at = (text.as_ptr() as usize).checked_sub(payload.as_ptr() as usize)?;
    let before = payload.get(..at)?.strip_suffix('"')?;
    let rest = payload.get(at..)?.strip_prefix(text)?;
    Some((before, rest.strip_prefix('"')?))
}

#[cfg(test)]
mod tests {
    use super::Envelope;

    /// The text that the envelope of `payload`, whose text is `text`, reads from `next`.
    fn opened(payload: &str, text: &str, next: &str) -> Option<String> {
        let at = payload.find(text).unwrap();
        let mut envelope = Envelope::default();
        envelope.note(payload, &payload[at..at + text.len()]);
        envelope.open(next).map(|text| text.0.into_owned())
    }

    #[test]
    fn only_another_string_in_the_same_place_is_read() {
        let payload = r#"{"a":[{"b":"one","c":null}]}"#;
        for (next, expected) in [
            (r#"{"a":[{"b":"two","c":null}]}"#, Some("two")),
            (r#"{"a":[{"b":"","c":null}]}"#, Some("")),
            (
                r#"{"a":[{"b":"\"\n\ud83d\ude00","c":null}]}"#,
                Some("\"\n😀"),
            ),
            // A value that is not a string, several strings, half a character, and a string without an end.
            (r#"{"a":[{"b":null,"c":null}]}"#, None),
            (r#"{"a":[{"b":["x"],"c":null}]}"#, None),
            (r#"{"a":[{"b":"x","d":"y","c":null}]}"#, None),
            (r#"{"a":[{"b":"x""y","c":null}]}"#, None),
            (r#"{"a":[{"b":"\ud83d","c":null}]}"#, None),
            (r#"{"a":[{"b":"x\","c":null}]}"#, None),
            (r#"{"a":[{"b":"two","c":1}]}"#, None),
            (r#"{"a":[{"b","c":null}]}"#, None),
        ] {
            assert_eq!(opened(payload, "one", next).as_deref(), expected, "{next}");
        }
    }

    #[test]
    fn a_text_from_elsewhere_is_not_noted() {
        let (payload, elsewhere) = (r#"{"b":"one"}"#, String::from("one"));
        let mut envelope = Envelope::default();
        envelope.note(payload, &payload[6..9]);
        assert!(envelope.open(payload).is_some());
        envelope.note(payload, &elsewhere);
        assert!(envelope.open(payload).is_none());
    }
}
