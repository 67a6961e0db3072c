//! Handles the peculiarities of known servers, by their host or name. Pure.

use serde::Serialize;

use super::super::omitted::{Omitted, Part};
use crate::transport::endpoint::Endpoint;
use sepal_core::domain::Effort;

/// A server whose thinking parameters are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    OpenRouter,
    /// Alibaba's service for Qwen.
    Qwen,
    DeepSeek,
    /// Mistral's own service, or a provider named after it.
    Mistral,
    /// Cohere's compatibility API, or a provider named after it.
    Cohere,
    /// vLLM and `SGLang`, recognized by the provider's name.
    Vllm,
    /// OpenAI itself, and servers that follow it.
    Other,
}

/// The thinking parameters, in the forms of all servers.
#[derive(Debug, Default, Serialize)]
#[expect(clippy::struct_field_names, reason = "the servers' names")]
pub(super) struct Thinking {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Switch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<TemplateArguments>,
}

/// The form of `OpenRouter`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reasoning {
    Enabled(bool),
    Effort(&'static str),
    MaxTokens(u32),
}

/// The form of `DeepSeek`.
#[derive(Debug, Serialize)]
struct Switch {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Arguments of an open model's chat template.
#[derive(Debug, Serialize)]
struct TemplateArguments {
    enable_thinking: bool,
}

impl Host {
    /// Recognizes a server by its host, or by the provider's name.
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        let url = endpoint.url(str::to_owned);
        Self::named(url.host_str().unwrap_or_default(), &endpoint.id)
    }

    fn named(host: &str, provider: &str) -> Self {
        let is = |domain: &str| {
            let rest = host.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        // A second provider of the same preset is named like `vllm-2`.
        let is_called = |name: &str| {
            let rest = provider.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        if is("openrouter.ai") {
            Self::OpenRouter
        } else if is("aliyuncs.com") {
            Self::Qwen
        } else if is("deepseek.com") {
            Self::DeepSeek
        } else if is("mistral.ai") || is_called("mistral") {
            Self::Mistral
        } else if is("cohere.ai") || is("cohere.com") || is_called("cohere") {
            Self::Cohere
        } else if is_called("vllm") || is_called("sglang") {
            Self::Vllm
        } else {
            Self::Other
        }
    }

    /// The server's parameters for an effort.
    pub(super) fn thinking(self, effort: Option<Effort>, omitted: &Omitted) -> Thinking {
        let mut thinking = Thinking::default();
        let (Some(effort), Some(word)) = (effort, effort.and_then(|effort| omitted.word(effort)))
        else {
            return thinking;
        };
        let is_on = effort != Effort::Off;
        match self {
            Self::OpenRouter => {
                thinking.reasoning = Some(match effort {
                    Effort::Off => Reasoning::Enabled(false),
                    Effort::Budget(tokens) => Reasoning::MaxTokens(tokens),
                    Effort::Minimal | Effort::Low | Effort::Medium | Effort::High | Effort::Max => {
                        Reasoning::Effort(word)
                    }
                });
            }
            Self::Qwen => {
                thinking.enable_thinking = Some(is_on);
                if let Effort::Budget(tokens) = effort {
                    thinking.thinking_budget = Some(tokens);
                }
            }
            Self::DeepSeek => {
                let kind = if is_on { "enabled" } else { "disabled" };
                thinking.thinking = Some(Switch { kind });
            }
            Self::Vllm => {
                let enable_thinking = is_on;
                thinking.chat_template_kwargs = Some(TemplateArguments { enable_thinking });
                thinking.reasoning_effort = is_on.then_some(word);
            }
            // Mistral and Cohere (Compatibility API, read November 2026) know nothing between `none` and
            // `high`.
            Self::Mistral | Self::Cohere => {
                thinking.reasoning_effort = Some(if is_on { "high" } else { "none" });
            }
            Self::Other => thinking.reasoning_effort = Some(word),
        }
        thinking
    }

    /// Returns true if the server refuses a part of a request whose effect is its default anyway.
    pub(super) fn refuses(self, part: Part) -> bool {
        match self {
            // The server always sends usage and refuses the field (`extra_forbidden`, seen March 2025).
            Self::Mistral => part == Part::StreamOptions,
            // The server has no value for `auto`, which is its default (Compatibility API, read November
            // 2026).
            Self::Cohere => part == Part::ToolChoice,
            Self::OpenRouter | Self::Qwen | Self::DeepSeek | Self::Vllm | Self::Other => false,
        }
    }

    /// Returns true if call ids must have exactly nine letters and digits (Mistral, code 3280).
    pub(super) fn has_short_ids(self) -> bool {
        self == Self::Mistral
    }

    /// Returns true if no user message may directly follow a tool result (Mistral, code 3230), and the
    /// conversation must start with a user message and must not end with the model's text.
    pub(super) fn insists_on_order(self) -> bool {
        self == Self::Mistral
    }

    /// Returns true if the result of a call must not be empty.
    pub(super) fn insists_on_results(self) -> bool {
        self == Self::Cohere
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Host;
    use crate::Request;
    use crate::openai::omitted::Omitted;
    use sepal_core::domain::Effort;

    #[test]
    fn a_server_is_known_by_its_host_or_its_name_here() {
        for (host, provider, expected) in [
            ("openrouter.ai", "x", Host::OpenRouter),
            ("dashscope-intl.aliyuncs.com", "x", Host::Qwen),
            ("api.deepseek.com", "x", Host::DeepSeek),
            ("api.mistral.ai", "x", Host::Mistral),
            ("localhost", "mistral", Host::Mistral),
            ("api.cohere.ai", "x", Host::Cohere),
            ("localhost", "cohere-2", Host::Cohere),
            ("localhost", "vllm", Host::Vllm),
            ("localhost", "sglang-2", Host::Vllm),
            ("localhost", "vllmish", Host::Other),
            ("notopenrouter.ai", "x", Host::Other),
            ("api.openai.com", "openai", Host::Other),
        ] {
            assert_eq!(Host::named(host, provider), expected, "{host} {provider}");
        }
    }

    /// The parameters that each server gets for an effort.
    fn told() -> [(Host, Effort, Value); 16] {
        let told_as = |word: &str| json!({ "reasoning_effort": word });
        [
            (Host::Mistral, Effort::Low, told_as("high")),
            (Host::Mistral, Effort::Off, told_as("none")),
            (Host::Cohere, Effort::Budget(9), told_as("high")),
            (Host::Cohere, Effort::Off, told_as("none")),
            (Host::Other, Effort::Max, told_as("high")),
            (Host::Other, Effort::Off, told_as("none")),
            (Host::Other, Effort::Budget(2_000), told_as("low")),
            (
                Host::OpenRouter,
                Effort::High,
                json!({"reasoning": {"effort": "high"}}),
            ),
            (
                Host::OpenRouter,
                Effort::Off,
                json!({"reasoning": {"enabled": false}}),
            ),
            (
                Host::OpenRouter,
                Effort::Budget(9),
                json!({"reasoning": {"max_tokens": 9}}),
            ),
            (Host::Qwen, Effort::Off, json!({"enable_thinking": false})),
            (
                Host::Qwen,
                Effort::Budget(9),
                json!({"enable_thinking": true, "thinking_budget": 9}),
            ),
            (
                Host::DeepSeek,
                Effort::Low,
                json!({"thinking": {"type": "enabled"}}),
            ),
            (
                Host::DeepSeek,
                Effort::Off,
                json!({"thinking": {"type": "disabled"}}),
            ),
            (
                Host::Vllm,
                Effort::Off,
                json!({"chat_template_kwargs": {"enable_thinking": false}}),
            ),
            (
                Host::Vllm,
                Effort::Low,
                json!({"chat_template_kwargs": {"enable_thinking": true}, "reasoning_effort": "low"}),
            ),
        ]
    }

    #[test]
    fn an_effort_is_told_in_the_servers_own_words() {
        fn check(host: Host, effort: Effort, expected: &Value) {
            let omitted = Omitted::known(&Request::default(), false);
            let thinking = host.thinking(Some(effort), &omitted);
            let sent = serde_json::to_value(thinking).unwrap();
            assert_eq!(sent, *expected, "{host:?} {effort}");
        }
        for (host, effort, expected) in told() {
            check(host, effort, &expected);
        }
        let silent = Host::OpenRouter.thinking(None, &Omitted::default());
        assert_eq!(serde_json::to_value(silent).unwrap(), json!({}));
    }
}
