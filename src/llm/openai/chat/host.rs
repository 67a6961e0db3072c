//! What is particular about known servers, by where they are. Pure.

use serde::Serialize;

use super::super::omitted::Omitted;
use crate::domain::Effort;
use crate::llm::transport::endpoint::Endpoint;

/// A server whose own words for how much a model may think are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    OpenRouter,
    /// Alibaba's service for Qwen.
    Qwen,
    DeepSeek,
    /// vLLM and `SGLang`, known by the name that they were given here.
    Vllm,
    /// The vendor, and whoever follows it.
    Other,
}

/// How much a model may think, in the words of a server.
#[derive(Debug, Default, Serialize)]
#[expect(clippy::struct_field_names, reason = "the servers' own names")]
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

/// `OpenRouter`'s form.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reasoning {
    Enabled(bool),
    Effort(&'static str),
    MaxTokens(u32),
}

/// `DeepSeek`'s form.
#[derive(Debug, Serialize)]
struct Switch {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// What the template of an open model is told.
#[derive(Debug, Serialize)]
struct TemplateArguments {
    enable_thinking: bool,
}

impl Host {
    /// Knows a server by its host's name, vLLM by the provider's.
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        let url = endpoint.url(str::to_owned);
        Self::named(url.host_str().unwrap_or_default(), &endpoint.id)
    }

    fn named(host: &str, provider: &str) -> Self {
        let is = |domain: &str| {
            let rest = host.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        // A second provider of a preset is called `vllm-2`.
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
        } else if is_called("vllm") || is_called("sglang") {
            Self::Vllm
        } else {
            Self::Other
        }
    }

    /// How it is told of an effort.
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
            Self::Other => thinking.reasoning_effort = Some(word),
        }
        thinking
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Host;
    use crate::domain::Effort;
    use crate::llm::Request;
    use crate::llm::openai::omitted::Omitted;

    #[test]
    fn a_server_is_known_by_its_host_or_its_name_here() {
        for (host, provider, expected) in [
            ("openrouter.ai", "x", Host::OpenRouter),
            ("dashscope-intl.aliyuncs.com", "x", Host::Qwen),
            ("api.deepseek.com", "x", Host::DeepSeek),
            ("localhost", "vllm", Host::Vllm),
            ("localhost", "sglang-2", Host::Vllm),
            ("localhost", "vllmish", Host::Other),
            ("notopenrouter.ai", "x", Host::Other),
            ("api.openai.com", "openai", Host::Other),
        ] {
            assert_eq!(Host::named(host, provider), expected, "{host} {provider}");
        }
    }

    #[test]
    fn an_effort_is_told_in_the_servers_own_words() {
        fn check(host: Host, effort: Effort, expected: &Value) {
            let omitted = Omitted::known(&Request::default(), false);
            let thinking = host.thinking(Some(effort), &omitted);
            let sent = serde_json::to_value(thinking).unwrap();
            assert_eq!(sent, *expected, "{host:?} {effort}");
        }
        for (effort, word) in [
            (Effort::Max, "high"),
            (Effort::Off, "none"),
            (Effort::Budget(2_000), "low"),
        ] {
            check(Host::Other, effort, &json!({ "reasoning_effort": word }));
        }
        for (effort, reasoning) in [
            (Effort::High, json!({"effort": "high"})),
            (Effort::Off, json!({"enabled": false})),
            (Effort::Budget(9), json!({"max_tokens": 9})),
        ] {
            check(Host::OpenRouter, effort, &json!({ "reasoning": reasoning }));
        }
        check(Host::Qwen, Effort::Off, &json!({"enable_thinking": false}));
        let budget = json!({"enable_thinking": true, "thinking_budget": 9});
        check(Host::Qwen, Effort::Budget(9), &budget);
        for (effort, kind) in [(Effort::Low, "enabled"), (Effort::Off, "disabled")] {
            check(Host::DeepSeek, effort, &json!({"thinking": {"type": kind}}));
        }
        let off = json!({"chat_template_kwargs": {"enable_thinking": false}});
        check(Host::Vllm, Effort::Off, &off);
        let low =
            json!({"chat_template_kwargs": {"enable_thinking": true}, "reasoning_effort": "low"});
        check(Host::Vllm, Effort::Low, &low);
        let silent = Host::OpenRouter.thinking(None, &Omitted::default());
        assert_eq!(serde_json::to_value(silent).unwrap(), json!({}));
    }
}
