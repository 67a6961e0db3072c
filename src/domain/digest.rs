//! What a decision binds: a hash of the server, the definition, the arguments and the sandbox.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ToolRef;

/// SHA-256 in lowercase hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// Hashes canonical JSON (RFC 8785), so that key order and number spelling do not matter.
    pub fn of_json(value: &Value) -> Self {
        let text = serde_json_canonicalizer::to_string(value).unwrap_or_else(|_| value.to_string());
        Self(hex::encode(Sha256::digest(text.as_bytes())))
    }

    /// The digest of one call: what was shown is what is approved is what runs.
    pub fn of_call(tool: &ToolRef, definition: &Self, args: &Value, image: &str) -> Self {
        Self::of_json(&serde_json::json!({
            "server": tool.server,
            "tool": tool.tool,
            "definition": definition.as_str(),
            "args": args,
            "image": image,
        }))
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
}
