//! Providers that speak Chat Completions at an address of their own, known by name (S3.40). Google's Gemini
//! has a kind of its own.

use serde_json::json;

use super::Fields;
use crate::Source;
use crate::value::Resolved;

/// What all of them speak.
pub(super) const COMPATIBLE: &str = "openai-compatible";

/// One of them.
pub(super) struct Preset {
    /// Its name as a provider.
    pub(super) name: &'static str,
    /// Where its API is.
    base_url: &'static str,
    /// The model of sessions that name none.
    model: &'static str,
    /// The variable of its key, which the table of settings has too.
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

/// The preset of that name.
pub(super) fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl Preset {
    /// Says of an entry what its name says, as far as it does not say so itself. One of another kind is
    /// somebody's own, whatever it is called.
    pub(super) fn fill(&self, fields: &mut Fields) {
        let said = |value| Resolved {
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
