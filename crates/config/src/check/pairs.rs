//! Parses lists of `name=value` in the form of OpenTelemetry's environment variables: separated by commas,
//! with percent-encoded values.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

/// Parses HTTP headers. An error gives only the position, because the text may hold a key.
pub(crate) fn headers(text: &str) -> Result<Value, String> {
    let is_visible = |byte: u8| byte == b' ' || byte == b'\t' || byte.is_ascii_graphic();
    let pairs = pairs(text, |name, value| {
        let is_name = name.bytes().all(is_token);
        is_name && value.bytes().all(is_visible)
    });
    pairs.map_err(|at| format!("the header number {at} cannot be read"))
}

/// Parses attributes of the gateway.
pub(crate) fn attributes(text: &str) -> Result<Value, String> {
    pairs(text, |_, _| true).map_err(|at| format!("the attribute number {at} cannot be read"))
}

/// Returns true if a byte is allowed in a header name.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The pairs by name; the error is the position of the first invalid pair, counted from 1.
fn pairs(text: &str, fits: impl Fn(&str, &str) -> bool) -> Result<Value, usize> {
    let mut found = Map::new();
    let pieces = text.split(',').map(str::trim).enumerate();
    for (at, piece) in pieces.filter(|(_, piece)| !piece.is_empty()) {
        let pair = piece.split_once('=').and_then(|(name, value)| {
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            Some((name.trim(), value))
        });
        match pair {
            Some((name, value)) if !name.is_empty() && fits(name, &value) => {
                found.insert(name.to_owned(), json!(value));
            }
            Some(_) | None => return Err(at + 1),
        }
    }
    Ok(Value::Object(found))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{attributes, headers};

    #[test]
    fn pairs_are_read_and_a_wrong_one_is_named_by_its_place() {
        assert_eq!(
            headers("Authorization=Basic%20YTpi+/==, x-team = a ,"),
            Ok(json!({ "Authorization": "Basic YTpi+/==", "x-team": "a" }))
        );
        for wrong in [
            "a=1,hush",
            "a=1,=hush",
            "a=1,a b=hush",
            "a=1,b=hush%0A",
            "a=1,b=%ff",
        ] {
            let problem = headers(wrong).unwrap_err();
            assert_eq!(problem, "the header number 2 cannot be read", "{wrong}");
        }
        assert_eq!(
            attributes("deployment.environment.name=a%2Cb,k="),
            Ok(json!({ "deployment.environment.name": "a,b", "k": "" }))
        );
        assert!(attributes("alone").is_err());
    }
}
