//! Providers with a Chat Completions API at an address of their own, known by name (S3.40). Google's Gemini
//! has a kind of its own.

use serde_json::json;

use super::Fields;
use crate::Source;
use crate::value::ResolvedValue;

/// The kind of all presets.
pub(super) const COMPATIBLE: &str = "openai-compatible";

/// One preset.
pub(super) struct Preset {
    /// The provider's name.
    pub(super) name: &'static str,
    /// The base URL of its API.
    base_url: &'static str,
    /// The default model of sessions.
    model: &'static str,
    /// The variable with its key, which is also in the table of settings.
    pub(super) key: &'static str,
}

pub(super) const PRESETS: &[Preset] = &[
    Preset {
        name: "mistral",
        base_url: "https://api.mistral.ai/v1",
        model: "mistral-large-latest",
        key: "MISTRAL_API_KEY",
    },
    Preset {
        name: "cohere",
        base_url: "https://api.cohere.ai/compatibility/v1",
        model: "command-a-03-2025",
        key: "COHERE_API_KEY",
    },
];

/// Finds a preset by name.
pub(super) fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl Preset {
    /// Fills missing fields of an entry from the preset. An entry of another kind is the operator's own,
    /// whatever its name.
    pub(super) fn fill(&self, fields: &mut Fields) {
        let said = |value| ResolvedValue {
            value,
            source: Source::Derived("as its name says"),
        };
        let compatible = json!(COMPATIBLE);
        let kind = fields
            .entry("kind")
            .or_insert_with(|| said(compatible.clone()));
        if kind.value == compatible {
            let address = || said(json!(self.base_url));
            fields.entry("base_url").or_insert_with(address);
            let models = || said(json!([self.model]));
            fields.entry("models").or_insert_with(models);
        }
    }
}
