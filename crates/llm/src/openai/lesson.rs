//! Finds the part of a request that an error response names: in a field of its own, or in the message, which
//! is only searched for the part's name. Pure.

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::omitted::{Lesson, Omitted, Part};
use crate::Request;
use crate::transport::Refused;

/// The lesson of an error response about one of the parts that the request had; `None` if the error is about
/// something else.
pub(super) fn of(
    refused: &Refused,
    request: &Request,
    parts: &[Part],
    omitted: &Omitted,
) -> Option<Lesson> {
    let is_about_the_request = matches!(
        refused.status,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
    );
    if !is_about_the_request {
        return None;
    }
    let said = Said::read(&refused.body);
    let sent = parts
        .iter()
        .filter(|part| is_asked(request, **part) && !omitted.has(**part));
    let blamed = sent.copied().find(|part| said.blames(*part))?;
    let word = request.effort.and_then(|effort| omitted.word(effort));
    let word = word.filter(|word| blamed == Part::Effort && said.quotes(word));
    Some(match word {
        Some(word) => Lesson::Effort(word),
        None if blamed == Part::Thoughts && said.is_of_the_history() => Lesson::StaleThoughts,
        None => Lesson::Part(blamed),
    })
}

/// Returns true if the request can have the part.
fn is_asked(request: &Request, part: Part) -> bool {
    match part {
        Part::Temperature => request.temperature.is_some(),
        Part::Effort => request.effort.is_some(),
        Part::ToolChoice | Part::Strict => !request.tools.is_empty(),
        Part::ToolSearch => request.deferral.is_some(),
        Part::Compaction => request.compacting.is_some_and(|it| !it.resumes),
        Part::MaxTokens => request.longest_answer().is_some(),
        Part::StreamOptions | Part::Summary | Part::Encrypted | Part::Thoughts | Part::CacheKey => {
            true
        }
    }
}

/// The names by which servers call a part.
fn names(part: Part) -> &'static [&'static str] {
    match part {
        Part::StreamOptions => &["stream_options", "include_usage"],
        Part::Temperature => &["temperature"],
        Part::Effort => &[
            "reasoning_effort",
            "reasoning.effort",
            "enable_thinking",
            "thinking_budget",
            "chat_template_kwargs",
        ],
        Part::Summary => &["reasoning.summary"],
        Part::Encrypted => &["include", "reasoning.encrypted_content"],
        Part::Thoughts => &[
            "invalid_encrypted_content",
            "encrypted_content",
            "reasoning_content",
            "reasoning_details",
            "extra_content",
        ],
        Part::CacheKey => &["prompt_cache_key"],
        Part::ToolChoice => &["tool_choice"],
        Part::Strict => &["strict", "invalid_function_parameters"],
        Part::ToolSearch => &["tool_search", "defer_loading"],
        Part::Compaction => &["context_management", "compact_threshold"],
        Part::MaxTokens => &["max_tokens"],
    }
}

/// The contents of an error response.
#[derive(Debug, Default)]
struct Said {
    /// The field that the error is about.
    param: Option<String>,
    code: Option<String>,
    text: String,
}

#[derive(Deserialize)]
struct Form {
    error: Option<Value>,
    param: Option<Value>,
    code: Option<Value>,
}

impl Said {
    fn read(body: &str) -> Self {
        let form: Option<Form> = serde_json::from_str(body).ok();
        let inner = |form: Form| match form.error {
            Some(inner @ Value::Object(_)) => serde_json::from_value(inner).ok(),
            Some(_) | None => Some(form),
        };
        let form = form.and_then(inner);
        let text = |value: Option<Value>| value?.as_str().map(str::to_owned);
        let (param, code) = form.map_or((None, None), |form| (text(form.param), text(form.code)));
        Self {
            param,
            code,
            text: body.to_owned(),
        }
    }

    fn blames(&self, part: Part) -> bool {
        let mut names = names(part).iter();
        let Some(param) = &self.param else {
            // A name that is also an ordinary word proves nothing in a message.
            return names
                .any(|name| !matches!(*name, "include" | "strict") && has_word(&self.text, name));
        };
        let code = self.code.as_deref().unwrap_or_default();
        let is_named = names.any(|name| is_path_of(param, name) || code == *name);
        is_named
            || match part {
                // Some errors name only the enclosing field.
                Part::Effort => param == "reasoning" || param == "thinking",
                Part::Thoughts => {
                    self.is_of_the_history() && self.text.to_lowercase().contains("reasoning")
                }
                Part::ToolSearch => {
                    let is_named = |name: &&str| has_word(&self.text, name);
                    let is_of_tools = param.starts_with("tools");
                    is_of_tools && self::names(part).iter().any(is_named)
                        || param.ends_with(".namespace")
                }
                Part::StreamOptions
                | Part::Temperature
                | Part::Summary
                | Part::Encrypted
                | Part::CacheKey
                | Part::ToolChoice
                | Part::Strict
                | Part::Compaction
                | Part::MaxTokens => false,
            }
    }

    /// Returns true if the error is about something that the vendor itself returned earlier.
    fn is_of_the_history(&self) -> bool {
        let param = self.param.as_deref().unwrap_or_default();
        let code = self.code.as_deref().unwrap_or_default();
        param.starts_with("input") || code == "invalid_encrypted_content"
    }

    fn quotes(&self, word: &str) -> bool {
        ['\'', '`', '"']
            .iter()
            .any(|quote| self.text.contains(&format!("{quote}{word}{quote}")))
    }
}

/// Returns true if a path leads to the field or into it.
fn is_path_of(path: &str, name: &str) -> bool {
    let rest = path.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns true if a text contains the name as a whole word.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        let after = text
            .get(at + word.len()..)
            .and_then(|tail| tail.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use reqwest::StatusCode;
    use serde_json::Value;

    use super::of;
    use crate::Request;
    use crate::openai::omitted::{Lesson, Omitted, Part};
    use crate::tool_search::{Deferral, Searchable, ToolSearch};
    use crate::transport::Refused;
    use sepal_core::domain::{Effort, Tool, ToolAnnotations};

    const PARTS: &[Part] = &[
        Part::StreamOptions,
        Part::Summary,
        Part::Encrypted,
        Part::Effort,
        Part::Temperature,
        Part::Thoughts,
        Part::CacheKey,
        Part::ToolChoice,
        Part::Strict,
        Part::ToolSearch,
        Part::MaxTokens,
    ];

    fn request() -> Request {
        Request {
            model: "m".to_owned(),
            temperature: Some(0.2),
            effort: Some(Effort::Max),
            max_tokens: Some(9),
            deferral: Some(Deferral {
                searchable: Arc::new(Searchable {
                    told: Arc::from([]),
                    servers: vec![],
                }),
                by: ToolSearch::Auto,
            }),
            tools: Arc::from([Tool {
                name: "t".to_owned(),
                title: None,
                description: String::new(),
                input_schema: Value::Null,
                output_schema: None,
                annotations: ToolAnnotations::default(),
                needs_tasks: false,
                view: None,
                runs_as_task: false,
            }]),
            ..Request::default()
        }
    }

    fn lesson(status: u16, body: &str, request: &Request) -> Option<Lesson> {
        let refused = Refused {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: None,
            body: body.to_owned(),
        };
        of(&refused, request, PARTS, &Omitted::default())
    }

    fn check(body: &str, expected: Option<Lesson>) {
        for status in [400, 422] {
            assert_eq!(lesson(status, body, &request()), expected, "{body}");
        }
        assert_eq!(lesson(500, body, &request()), None, "{body}");
    }

    #[test]
    fn the_vendor_names_the_part_in_a_field() {
        let part = |part| Some(Lesson::Part(part));
        check(
            r#"{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","type":"invalid_request_error","param":"temperature","code":"unsupported_parameter"}}"#,
            part(Part::Temperature),
        );
        check(
            r#"{"error":{"message":"Unsupported value: 'max' is not supported with the 'm' model. Supported values are: 'low', 'medium', and 'high'.","param":"reasoning.effort","code":"unsupported_value"}}"#,
            Some(Lesson::Effort("max")),
        );
        check(
            r#"{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","param":"reasoning.effort","code":"unsupported_parameter"}}"#,
            part(Part::Effort),
        );
        check(
            r#"{"error":{"message":"Your organization must be verified to generate reasoning summaries.","param":"reasoning.summary","code":"unsupported_value"}}"#,
            part(Part::Summary),
        );
        check(
            r#"{"error":{"message":"Encrypted content is not supported with this model.","param":"include","code":null}}"#,
            part(Part::Encrypted),
        );
        check(
            r#"{"error":{"message":"Invalid schema for function 't'","param":"tools[0].parameters","code":"invalid_function_parameters"}}"#,
            part(Part::Strict),
        );
        check(
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}"#,
            part(Part::MaxTokens),
        );
        for search in [
            r#"{"error":{"message":"Tool 'tool_search' is not supported with gpt-5.1.","param":"tools","code":null}}"#,
            r#"{"error":{"message":"Unknown parameter: 'tools[2].defer_loading'.","param":"tools[2].defer_loading","code":"unknown_parameter"}}"#,
            r#"{"error":{"message":"Missing namespace for function_call 't'.","param":"input[3].namespace","code":null}}"#,
        ] {
            check(search, part(Part::ToolSearch));
        }
        for stale in [
            r#"{"error":{"message":"The encrypted content for item rs_1 could not be verified.","param":null,"code":"invalid_encrypted_content"}}"#,
            r#"{"error":{"message":"Item 'rs_1' of type 'reasoning' was provided without its required following item.","param":"input","code":null}}"#,
            r#"{"error":{"message":"Reasoning input items can only be provided to a reasoning or computer use model.","param":"input"}}"#,
        ] {
            check(stale, Some(Lesson::StaleThoughts));
        }
    }

    #[test]
    fn others_name_it_in_words() {
        let part = |part| Some(Lesson::Part(part));
        check(
            r#"{"error":{"message":"Unrecognized request argument: stream_options"}}"#,
            part(Part::StreamOptions),
        );
        check("unknown tool type: tool_search", part(Part::ToolSearch));
        check(
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","reasoning_effort"],"msg":"Extra inputs are not permitted","input":"max"}]}"#,
            Some(Lesson::Effort("max")),
        );
        check("reasoning_effort is not known", part(Part::Effort));
        check(
            r#"{"detail":[{"loc":["body","messages",1,"assistant","reasoning_details"],"msg":"Extra inputs are not permitted"}]}"#,
            part(Part::Thoughts),
        );
        check("unknown field: prompt_cache_key", part(Part::CacheKey));
    }

    #[test]
    fn what_is_about_something_else_or_was_not_sent_teaches_nothing() {
        check(r#"{"error":{"message":"bad","param":"messages"}}"#, None);
        check(
            r#"{"error":{"message":"bad","param":"tools[0].name"}}"#,
            None,
        );
        check("my_temperature_sensor is no tool", None);
        check("", None);
        let named = r#"{"error":{"message":"temperature","param":"temperature"}}"#;
        let plain = Request {
            temperature: None,
            ..request()
        };
        assert_eq!(lesson(400, named, &plain), None);
        let about_input =
            r#"{"error":{"message":"No tool output found for call","param":"input"}}"#;
        assert_eq!(lesson(400, about_input, &request()), None);
    }
}
