//! Finds the vendor whose models and prices apply to a provider, by its kind and address.

use url::Url;

use crate::ProviderKind;

/// Hosts or host suffixes, and the vendor behind each.
const HOSTS: &[(&str, &str)] = &[
    ("api.openai.com", "openai"),
    ("api.anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("aiplatform.googleapis.com", "vertex"),
    ("openai.azure.com", "azure"),
    ("services.ai.azure.com", "azure"),
    ("cognitiveservices.azure.com", "azure"),
    ("amazonaws.com", "bedrock"),
    ("api.aws", "bedrock"),
    ("api.mistral.ai", "mistral"),
    ("codestral.mistral.ai", "mistral"),
    ("api.cohere.ai", "cohere"),
    ("api.cohere.com", "cohere"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "xai"),
    ("api.groq.com", "groq"),
    ("api.together.xyz", "together"),
    ("api.together.ai", "together"),
    ("api.fireworks.ai", "fireworks"),
    ("api.deepinfra.com", "deepinfra"),
    ("api.perplexity.ai", "perplexity"),
    ("api.moonshot.ai", "moonshot"),
    ("api.z.ai", "zai"),
    ("dashscope-intl.aliyuncs.com", "dashscope"),
    ("api.cerebras.ai", "cerebras"),
    ("api.sambanova.ai", "sambanova"),
    ("api.studio.nebius.com", "nebius"),
    ("api.tokenfactory.nebius.com", "nebius"),
    ("api.minimax.io", "minimax"),
    ("openrouter.ai", "openrouter"),
];

/// The vendor whose catalogue entries apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vendor {
    /// The vendor's name; `None` = unknown.
    name: Option<&'static str>,
    /// True if the address belongs to one region, which may cost more.
    is_regional: bool,
}

impl Vendor {
    /// The vendor at this address; the kind's own vendor if the host is unknown or there is no address.
    pub fn of(kind: ProviderKind, base_url: Option<&str>) -> Self {
        let url = base_url.and_then(|url| Url::parse(url).ok());
        let known = url.as_ref().and_then(Url::host_str).and_then(at);
        known.unwrap_or(Self {
            name: match kind {
                ProviderKind::OpenAi => Some("openai"),
                ProviderKind::Anthropic => Some("anthropic"),
                ProviderKind::Gemini => Some("gemini"),
                ProviderKind::Scripted => Some("scripted"),
                ProviderKind::OpenAiCompatible => None,
            },
            is_regional: false,
        })
    }

    /// The vendor's name in the catalogue.
    pub fn name(self) -> Option<&'static str> {
        self.name
    }

    /// Returns true if the address belongs to one region.
    pub(super) fn is_regional(self) -> bool {
        self.is_regional
    }
}

fn at(host: &str) -> Option<Vendor> {
    let host = host.to_ascii_lowercase();
    HOSTS.iter().find_map(|&(known, name)| {
        let before = host.strip_suffix(known)?;
        let is_own = before.is_empty() || before.ends_with('.') || before.ends_with('-');
        is_own.then_some(Vendor {
            name: Some(name),
            // The addresses of these two never tell which model is deployed in which region.
            is_regional: !before.is_empty() || matches!(name, "azure" | "bedrock"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::Vendor;
    use crate::ProviderKind::{self, Anthropic, Gemini, OpenAi, OpenAiCompatible, Scripted};

    #[test]
    fn the_address_says_whose_prices_hold_and_else_the_kind() {
        fn check(kind: ProviderKind, url: Option<&str>, name: Option<&str>, is_regional: bool) {
            let found = Vendor::of(kind, url);
            assert_eq!(
                (found.name(), found.is_regional()),
                (name, is_regional),
                "{url:?}"
            );
        }
        check(OpenAi, None, Some("openai"), false);
        check(Scripted, None, Some("scripted"), false);
        check(OpenAiCompatible, None, None, false);
        for (url, name, is_regional) in [
            ("https://api.openai.com/v1", "openai", false),
            ("https://eu.api.openai.com/v1", "openai", true),
            ("https://API.Groq.com/openai/v1", "groq", false),
            ("https://api.mistral.ai/v1", "mistral", false),
            ("https://mine.openai.azure.com/openai/v1", "azure", true),
            (
                "https://us-east5-aiplatform.googleapis.com/v1",
                "vertex",
                true,
            ),
            ("https://aiplatform.googleapis.com/v1", "vertex", false),
            (
                "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1",
                "bedrock",
                true,
            ),
        ] {
            check(OpenAiCompatible, Some(url), Some(name), is_regional);
        }
        for url in [
            "https://notapi.x.ai/v1",
            "https://api.x.ai.example/v1",
            "http://127.0.0.1:9/v1",
        ] {
            check(OpenAiCompatible, Some(url), None, false);
            check(Anthropic, Some(url), Some("anthropic"), false);
            check(Gemini, Some(url), Some("gemini"), false);
        }
    }
}
