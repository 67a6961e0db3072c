//! Deserializes texts and lists that may be missing, `null`, or of another type, without an error.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeOwned, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A text that borrows if possible. A list counts as the texts of its parts, an integer as its digits, and
/// any other value as an empty text.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Text::default())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Text::default())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut whole = String::new();
        while let Some(part) = parts.next_element::<Part<'de>>()? {
            whole.push_str(&part.text.0);
        }
        Ok(Text(Cow::Owned(whole)))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
}

/// Deserializes a value; `null` counts as the default.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Deserializes a count: a number, a fraction, or a text with one of them. Anything else is none, and so is a
/// negative number.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    const MOST: f64 = 1e15;
    let said: Option<f64> = match Value::deserialize(deserializer)? {
        Value::Number(number) if number.is_u64() => return Ok(number.as_u64()),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let said = said.filter(|count| (0.0..MOST).contains(count));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the bounds are checked, and a fraction of a token is none"
    )]
    Ok(said.map(|count| count as u64))
}

/// Deserializes a value that may have another type, which counts as absent.
pub(crate) fn or_none<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let said = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(said).ok())
}

#[cfg(test)]
mod tests {
    use super::Text;

    /// Asserts S0.2.
    #[test]
    fn a_text_may_be_anything_and_is_never_fatal() {
        for (json, expected) in [
            (r#""a\nb""#, "a\nb"),
            ("null", ""),
            ("true", ""),
            ("{\"a\":1}", ""),
            (
                r#"[{"type":"text","text":"a"},{"type":"x"},{"text":"b"}]"#,
                "ab",
            ),
        ] {
            let text: Text<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(text.0, expected, "{json}");
        }
    }
}
