//! Lowers a [`Request`] to a Chat Completions body. Pure.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::host::Host;
use super::wire::{
    Body, CallForm, CalledForm, Content, ContentPart, FileForm, FunctionForm, ImageUrl, Message,
    StreamOptions, ToolForm,
};
use crate::Request;
use crate::contents::{Part, only_text};
use crate::openai::omitted::{self, Omitted};
use crate::openai::tools::{Strictness, Written, write};
use crate::request::names;
use crate::request::pairing::{PairedCall, Step, object_of, pair, pair_between_people, wire_ids};
use sepal_core::domain::{CallId, Digest, Native, Tool};

/// Precedes the pictures that tools returned.
const OF_TOOLS: &str = "[System note] The pictures that the tools returned:";

/// Separates results from a user message, if the server requires an assistant message between them.
const AFTER_TOOLS: &str = "[System note] The tools have returned.";
/// Replaces an empty result, if the server requires a text.
const NO_RESULT: &str = "(no output)";
/// Length of an id in letters and digits, if the server requires short ids.
const SHORT_ID: usize = 9;

/// The differences between servers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect<'a> {
    /// True for the vendor's own address, which expects `max_completion_tokens`.
    pub(super) is_vendor: bool,
    pub(super) host: Host,
    /// The provider family whose native blocks may be sent back.
    pub(super) family: &'a str,
    /// The parts that the server or the model refuses.
    pub(super) omitted: &'a Omitted,
}

/// Builds the request body; `tools` is the output of [`tools`] for the request.
pub(super) fn body<'a>(
    request: &'a Request,
    tools: Option<&'a RawValue>,
    dialect: Dialect<'_>,
) -> Body<'a> {
    let Dialect { omitted, host, .. } = dialect;
    let takes = |part| !omitted.has(part) && !host.refuses(part);
    let max_tokens = request.longest_answer();
    let has_new_name = dialect.is_vendor || omitted.has(omitted::Part::MaxTokens);
    Body {
        model: &request.model,
        tool_choice: tools
            .filter(|_| takes(omitted::Part::ToolChoice))
            .map(|_| "auto"),
        tools,
        messages: messages(request, dialect),
        temperature: request
            .temperature
            .filter(|_| !omitted.has(omitted::Part::Temperature)),
        max_tokens: max_tokens.filter(|_| !has_new_name),
        max_completion_tokens: max_tokens.filter(|_| has_new_name),
        stream: true,
        stream_options: takes(omitted::Part::StreamOptions).then_some(StreamOptions {
            include_usage: true,
        }),
        thinking: host.thinking(request.effort, omitted),
    }
}

/// The tools of a request as JSON; `None` if there are none.
pub(super) fn tools(tools: &[Tool], strictness: Strictness) -> serde_json::Result<Written> {
    write(tools, strictness, |tool| ToolForm {
        kind: "function",
        function: FunctionForm {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
            strict: tool.is_strict,
        },
    })
}

fn messages<'a>(request: &'a Request, dialect: Dialect<'_>) -> Vec<Message<'a>> {
    let host = dialect.host;
    let entries = request.entries.iter();
    let steps = if host.insists_on_order() {
        pair_between_people(entries)
    } else {
        pair(entries)
    };
    let ids = Ids {
        of: wire_ids(&steps, |_| true),
        are_short: host.has_short_ids(),
    };
    let mut messages = Vec::with_capacity(steps.len() + 1);
    if let Some(system) = request.system.as_deref().filter(|text| !text.is_empty()) {
        messages.push(Message::System { content: system });
    }
    for step in steps {
        match step {
            Step::User(said) => {
                let content = content(request.contents.parts(said));
                push_user(&mut messages, content, host);
            }
            Step::Assistant {
                text,
                native,
                calls,
            } => {
                let takes_thoughts = !dialect.omitted.has(omitted::Part::Thoughts);
                let native =
                    native.filter(|native| takes_thoughts && native.family == dialect.family);
                messages.push(assistant(text, native, &calls, &ids));
                // Tool messages hold texts only; pictures follow the last of them.
                let mut pictures = Vec::new();
                for paired in &calls {
                    let (content, mut own) = request.contents.result(paired);
                    let is_missing = host.insists_on_results() && content.trim().is_empty();
                    messages.push(Message::Tool {
                        tool_call_id: ids.wire_id(paired),
                        content: if is_missing {
                            NO_RESULT.into()
                        } else {
                            content
                        },
                    });
                    pictures.append(&mut own);
                }
                if !pictures.is_empty() {
                    pictures.insert(0, Part::Text(Cow::Borrowed(OF_TOOLS)));
                    push_user(&mut messages, content(pictures), host);
                }
            }
        }
    }
    messages
}

/// Appends a user message. If it may not directly follow a tool result, an assistant message goes between
/// them.
fn push_user<'a>(messages: &mut Vec<Message<'a>>, content: Content<'a>, host: Host) {
    if host.insists_on_order() && matches!(messages.last(), Some(Message::Tool { .. })) {
        messages.push(Message::Assistant {
            content: Some(AFTER_TOOLS),
            reasoning_content: None,
            reasoning: None,
            reasoning_details: None,
            tool_calls: Vec::new(),
        });
    }
    messages.push(Message::User { content });
}

fn content(parts: Vec<Part<'_>>) -> Content<'_> {
    match only_text(parts) {
        Ok(text) => Content::Text(text),
        Err(parts) => Content::Parts(parts.into_iter().map(part).collect()),
    }
}

fn part(part: Part<'_>) -> ContentPart<'_> {
    match part {
        Part::Text(text) => ContentPart::Text { text },
        Part::Image(encoded) => ContentPart::ImageUrl {
            image_url: ImageUrl { url: encoded.url() },
        },
        Part::Document(encoded, filename) => ContentPart::File {
            file: FileForm {
                filename,
                file_data: encoded.url(),
            },
        },
    }
}

fn assistant<'a>(
    text: &'a str,
    native: Option<&'a Native>,
    calls: &[PairedCall<'a>],
    ids: &Ids<'a>,
) -> Message<'a> {
    let block = |name: &str| native.and_then(|native| native.blocks.get(name));
    let extra = block("extra_content").and_then(Value::as_array);
    let tool_calls = calls.iter().enumerate().map(|(at, paired)| CallForm {
        id: ids.wire_id(paired),
        kind: "function",
        function: CalledForm {
            name: names::fit(&paired.call.name),
            // Serialization fails only for maps with keys that are not strings; JSON has none.
            arguments: serde_json::to_string(&object_of(&paired.call.args)).unwrap_or_default(),
        },
        extra_content: extra
            .and_then(|extra| extra.get(at))
            .filter(|value| !value.is_null()),
    });
    Message::Assistant {
        content: (!text.is_empty()).then_some(text),
        reasoning_content: block("reasoning_content").and_then(Value::as_str),
        reasoning: block("reasoning").and_then(Value::as_str),
        reasoning_details: block("reasoning_details"),
        tool_calls: tool_calls.collect(),
    }
}

/// The wire ids of the calls in one request, by our own ids.
struct Ids<'a> {
    of: HashMap<&'a CallId, &'a str>,
    are_short: bool,
}

impl<'a> Ids<'a> {
    /// The wire id of a call, which is the same for its result and in every turn.
    fn wire_id(&self, paired: &PairedCall<'a>) -> Cow<'a, str> {
        let own = paired.call.id.as_str();
        let id = self.of.get(&paired.call.id).copied().unwrap_or(own);
        let is_short = id.len() == SHORT_ID && id.chars().all(|c| c.is_ascii_alphanumeric());
        if !self.are_short || is_short {
            return Cow::Borrowed(id);
        }
        let digest = Digest::of_json(&Value::from(id));
        Cow::Owned(digest.as_str().chars().take(SHORT_ID).collect())
    }
}

#[cfg(test)]
mod tests;
