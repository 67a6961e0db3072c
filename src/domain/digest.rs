//! What a decision binds: a hash of the server, the definition, the arguments and the sandbox.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ToolRef;

/// SHA-256 in lowercase hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

/// What the digest of a call is made of.
#[derive(Serialize)]
struct CallForm<'a> {
    args: &'a Value,
    definition: &'a str,
    image: &'a str,
    server: &'a str,
    tool: &'a str,
}

impl Digest {
    /// Hashes canonical JSON (RFC 8785), so that key order and number spelling do not matter.
    pub fn of_json(value: &Value) -> Self {
        Self::of_canonical(value)
    }

    fn of_canonical(form: &impl Serialize) -> Self {
        let text = serde_json_canonicalizer::to_vec(form);
        // Only numbers that no JSON can hold fail; nobody can write one.
        let text = text
            .or_else(|_| serde_json::to_vec(form))
            .unwrap_or_default();
        Self(hex::encode(Sha256::digest(&text)))
    }

    /// The digest of one call: what was shown is what is approved is what runs.
    pub fn of_call(tool: &ToolRef, definition: &Self, args: &Value, image: &str) -> Self {
        let form = CallForm {
            args,
            definition: definition.as_str(),
            image,
            server: &tool.server,
            tool: &tool.tool,
        };
        Self::of_canonical(&form)
    }

    /// Takes what a client sent back, to be compared only.
    pub fn from_wire(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The hex text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Digest;
    use crate::domain::ToolRef;

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
