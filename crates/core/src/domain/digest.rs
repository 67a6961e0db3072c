//! Computes the digests that decisions are bound to: hashes of server, definition, arguments and sandbox
//! image.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ToolRef;

/// SHA-256 in lowercase hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

/// The content that the digest of a call covers.
#[derive(Serialize)]
struct CallForm<'a> {
    args: &'a Value,
    definition: &'a str,
    image: &'a str,
    server: &'a str,
    tool: &'a str,
}

impl Digest {
    /// Length of the hex text.
    pub const CHARS: usize = 64;

    /// Stands for the digest before the first of a chain.
    pub const ZERO: &'static str =
        "0000000000000000000000000000000000000000000000000000000000000000";

    /// Parses the exact form of a digest.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let is_hex = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
        let is_digest = text.len() == Self::CHARS && text.iter().all(is_hex);
        is_digest.then(|| Self(String::from_utf8_lossy(text).into_owned()))
    }

    /// Hashes canonical JSON (RFC 8785), so that key order and number spelling do not matter.
    pub fn of_json(value: &Value) -> Self {
        Self::of_canonical(value, is_plain(value))
    }

    /// Hashes the canonical JSON (RFC 8785) of a value that has not been made JSON yet.
    pub fn of_form(form: &impl Serialize) -> Self {
        // Making JSON first is cheaper, because nearly all of it is plain.
        match serde_json::to_value(form) {
            Ok(value) => Self::of_json(&value),
            Err(_) => Self::of_canonical(form, false),
        }
    }

    fn of_canonical(form: &impl Serialize, is_plain: bool) -> Self {
        Self::of_bytes(&canonical(form, is_plain))
    }

    /// Hashes bytes as they are.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::of_parts(&[bytes])
    }

    /// Hashes the bytes of the parts, one after the other.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part);
        }
        let mut hex = [0; Self::CHARS];
        // The buffer has two digits per byte, so encoding cannot fail.
        let _ = hex::encode_to_slice(hash.finalize(), &mut hex);
        Self(String::from_utf8_lossy(&hex).into_owned())
    }

    /// The digest of one call, which binds card, approval and run to each other.
    pub fn of_call(tool: &ToolRef, definition: &Self, args: &Value, image: &str) -> Self {
        let form = CallForm {
            args,
            definition: definition.as_str(),
            image,
            server: &tool.server,
            tool: &tool.tool,
        };
        Self::of_canonical(&form, is_plain(args))
    }

    /// The digest that equal calls share, whatever the tool's current definition.
    pub fn of_equal_calls(tool: &ToolRef, args: &Value) -> Self {
        Self::of_call(tool, &Self::from_wire(""), args, "")
    }

    /// Wraps a digest from a client, for comparison only.
    pub fn from_wire(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The hex text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Writes canonical JSON (RFC 8785).
pub fn canonical_json(value: &Value) -> String {
    // JSON is UTF-8.
    String::from_utf8(canonical(value, is_plain(value))).unwrap_or_default()
}

fn canonical(form: &impl Serialize, is_plain: bool) -> Vec<u8> {
    let text = if is_plain {
        serde_json::to_vec(form).ok()
    } else {
        serde_json_canonicalizer::to_vec(form).ok()
    };
    // Canonicalization only fails for numbers that JSON cannot represent.
    let text = text.or_else(|| serde_json::to_vec(form).ok());
    text.unwrap_or_default()
}

/// Returns true if `serde_json` already writes the value as canonical JSON, which is several times faster.
/// Its maps are in UTF-8 order, which equals the canonical UTF-16 order for ASCII keys, and only numbers
/// that a double cannot represent exactly are written differently.
fn is_plain(value: &Value) -> bool {
    const EXACT: u64 = 1 << 53;
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number
            .as_i64()
            .is_some_and(|number| number.unsigned_abs() <= EXACT),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(map) => map
            .iter()
            .all(|(key, value)| key.is_ascii() && is_plain(value)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{Digest, is_plain};
    use crate::domain::ToolRef;

    fn any_json() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[ -~]{0,6}", any::<String>()];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-3_i64..3).prop_map(|n| json!((1_i64 << 53) * n.signum() + n)),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, move |inner| {
            let map = prop::collection::hash_map(text.clone(), inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                map.prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_plain_is_canonical(value in any_json()) {
            let canonical = serde_json_canonicalizer::to_vec(&value);
            prop_assume!(canonical.is_ok());
            let canonical = canonical.unwrap();
            prop_assert_eq!(Digest::of_form(&value), Digest::of_bytes(&canonical));
            if is_plain(&value) {
                prop_assert_eq!(serde_json::to_vec(&value).unwrap(), canonical);
            }
        }
    }

    #[test]
    fn ordinary_arguments_are_plain_and_others_are_not() {
        for plain in [
            json!({"b": [1, -2, null], "a": "\n\u{20ac}"}),
            json!(9_007_199_254_740_992_u64),
        ] {
            assert!(is_plain(&plain), "{plain}");
        }
        for other in [
            json!(0.5),
            json!({"\u{e9}": 1}),
            json!(9_007_199_254_740_993_u64),
            json!(u64::MAX),
        ] {
            assert!(!is_plain(&other), "{other}");
        }
    }

    #[test]
    fn key_order_does_not_change_a_digest_but_every_field_does() {
        let tool = ToolRef {
            server: "files".into(),
            tool: "write_file".into(),
        };
        let definition = Digest::of_json(&json!({"type": "object"}));
        let of = |args, image| Digest::of_call(&tool, &definition, &args, image);
        assert_eq!(
            of(json!({"a": 1, "b": 2}), "i"),
            of(json!({"b": 2, "a": 1}), "i")
        );
        assert_ne!(of(json!({"a": 1}), "i"), of(json!({"a": 2}), "i"));
        assert_ne!(of(json!({"a": 1}), "i"), of(json!({"a": 1}), "j"));
    }

    #[test]
    fn the_digest_of_a_call_is_that_of_its_canonical_form() {
        let tool = ToolRef {
            server: "f\u{e9}".into(),
            tool: "t".into(),
        };
        let definition = Digest::from_wire("d");
        let args = json!({"b": [1.0, 2e3, null], "a": "\n\u{20ac}"});
        let form = json!({
            "server": tool.server, "tool": tool.tool, "definition": "d", "args": args, "image": "i",
        });
        let digest = Digest::of_call(&tool, &definition, &args, "i");
        assert_eq!(digest, Digest::of_json(&form));
        let text = "{\"args\":{\"a\":\"\\n\u{20ac}\",\"b\":[1,2000,null]},\"definition\":\"d\",\
            \"image\":\"i\",\"server\":\"f\u{e9}\",\"tool\":\"t\"}";
        let hash = <sha2::Sha256 as sha2::Digest>::digest(text.as_bytes());
        assert_eq!(digest.as_str(), hex::encode(hash));
    }
}
