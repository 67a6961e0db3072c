//! Deserializes members as authorisation servers write them: numbers as texts, lists as texts, flags as `null`.
//! A member that cannot be read counts as absent.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::wire::lenient::{simple_text, truth};

/// Reads a text; an empty one is absent.
pub(super) fn text<'de, D: Deserializer<'de>>(said: D) -> Result<Option<String>, D::Error> {
    Ok(text_of(&Value::deserialize(said)?))
}

/// Reads a list of texts, or a text with several words.
pub(super) fn texts<'de, D: Deserializer<'de>>(said: D) -> Result<Option<Vec<String>>, D::Error> {
    Ok(match Value::deserialize(said)? {
        Value::Array(texts) => Some(texts.iter().filter_map(text_of).collect()),
        Value::String(text) => Some(words(&text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    })
}

/// Reads a list of texts that may be absent.
pub(super) fn list<'de, D: Deserializer<'de>>(said: D) -> Result<Vec<String>, D::Error> {
    texts(said).map(Option::unwrap_or_default)
}

/// Reads a flag; anything but a clear yes is a no.
pub(super) fn flag<'de, D: Deserializer<'de>>(said: D) -> Result<bool, D::Error> {
    Ok(truth(Some(&Value::deserialize(said)?)) == Some(true))
}

/// Reads a number of seconds; zero and less mean that none is known.
pub(super) fn seconds<'de, D: Deserializer<'de>>(said: D) -> Result<Option<f64>, D::Error> {
    let number: Option<f64> = match Value::deserialize(said)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    Ok(number.filter(|number| number.is_finite() && *number > 0.0))
}

fn text_of(said: &Value) -> Option<String> {
    simple_text(Some(said)).filter(|text| !text.trim().is_empty())
}

/// Splits scopes, which some servers separate with commas.
fn words(text: &str) -> Vec<String> {
    let words = text.split([' ', ',', '\n', '\t']);
    let words = words.filter(|word| !word.is_empty());
    words.map(ToOwned::to_owned).collect()
}
