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
use crate::domain::{CallId, Native, Tool};
use crate::llm::Request;
use crate::llm::contents::{Part, only_text};
use crate::llm::openai::omitted::{self, Omitted};
use crate::llm::openai::tools::{Strictness, Written, write};
use crate::llm::request::names;
use crate::llm::request::pairing::{PairedCall, Step, object_of, pair, wire_ids};

/// Stands before the pictures that tools returned.
const OF_TOOLS: &str = "[System note] The pictures that the tools returned:";

/// What differs from server to server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect<'a> {
    /// The vendor's own address, which wants `max_completion_tokens`.
    pub(super) is_vendor: bool,
    pub(super) host: Host,
    /// Whose native blocks may be sent back.
    pub(super) family: &'a str,
    /// What the server or the model takes none of.
    pub(super) omitted: &'a Omitted,
}

/// The body of a request; `tools` is what [`tools`] makes of its own.
pub(super) fn body<'a>(
    request: &'a Request,
    tools: Option<&'a RawValue>,
    dialect: Dialect<'_>,
) -> Body<'a> {
    let Dialect { omitted, host, .. } = dialect;
    let max_tokens = request.max_tokens.filter(|&limit| limit > 0);
    let has_new_name = dialect.is_vendor || omitted.has(omitted::Part::MaxTokens);
    Body {
        model: &request.model,
        tool_choice: tools
            .filter(|_| !omitted.has(omitted::Part::ToolChoice))
            .map(|_| "auto"),
        tools,
        messages: messages(request, dialect),
        temperature: request
            .temperature
            .filter(|_| !omitted.has(omitted::Part::Temperature)),
        max_tokens: max_tokens.filter(|_| !has_new_name),
        max_completion_tokens: max_tokens.filter(|_| has_new_name),
        stream: true,
        stream_options: (!omitted.has(omitted::Part::StreamOptions)).then_some(StreamOptions {
            include_usage: true,
        }),
        thinking: host.thinking(request.effort, omitted),
    }
}

/// The tools of a request as text; `None` if there are none.
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
    let steps = pair(request.entries.iter());
    let ids = wire_ids(&steps, |_| true);
    let mut messages = Vec::with_capacity(steps.len() + 1);
    if let Some(system) = request.system.as_deref().filter(|text| !text.is_empty()) {
        messages.push(Message::System { content: system });
    }
    for step in steps {
        match step {
            Step::User(said) => messages.push(Message::User {
                content: content(request.contents.parts(said)),
            }),
            Step::Assistant {
                text,
                native,
                calls,
            } => {
                let takes_thoughts = !dialect.omitted.has(omitted::Part::Thoughts);
                let native =
                    native.filter(|native| takes_thoughts && native.family == dialect.family);
                messages.push(assistant(text, native, &calls, &ids));
                // The messages of tools hold texts only; pictures follow the last of them.
                let mut pictures = Vec::new();
                for paired in &calls {
                    let (content, mut own) = request.contents.result(paired);
                    let tool_call_id = wire_id(&ids, paired);
                    messages.push(Message::Tool {
                        tool_call_id,
                        content,
                    });
                    pictures.append(&mut own);
                }
                if !pictures.is_empty() {
                    pictures.insert(0, Part::Text(Cow::Borrowed(OF_TOOLS)));
                    let content = content(pictures);
                    messages.push(Message::User { content });
                }
            }
        }
    }
    messages
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
    ids: &HashMap<&CallId, &'a str>,
) -> Message<'a> {
    let block = |name: &str| native.and_then(|native| native.blocks.get(name));
    let extra = block("extra_content").and_then(Value::as_array);
    let tool_calls = calls.iter().enumerate().map(|(at, paired)| CallForm {
        id: wire_id(ids, paired),
        kind: "function",
        function: CalledForm {
            name: names::fit(&paired.call.name),
            // Only maps with keys that are no strings fail; JSON has none.
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

fn wire_id<'a>(ids: &HashMap<&CallId, &'a str>, paired: &PairedCall<'a>) -> &'a str {
    let own = paired.call.id.as_str();
    ids.get(&paired.call.id).copied().unwrap_or(own)
}

#[cfg(test)]
mod tests;
