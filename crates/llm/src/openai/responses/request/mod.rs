//! Lowers a [`Request`] to a Responses body. Pure.

pub(super) mod search;

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::search::Namespaces;
use crate::Request;
use crate::contents::{Part as Said, only_text};
use crate::openai::omitted::{Omitted, Part};
use crate::openai::responses::assembler::{COMPACTION, NativeBlock};
use crate::openai::responses::searched;
use crate::openai::responses::wire::{
    Body, Content, ContentPart, ContextEdit, Item, OwnItem, Reasoning, Role, ToolForm,
};
use crate::openai::tools::{Offered, Strictness, Written, write};
use crate::request::interleave::{self, Position, interleave};
use crate::request::names;
use crate::request::pairing::{PairedCall, Step, object_of, pair, wire_ids};
use sepal_core::domain::{CallId, Digest, Entry, Native, Tool};

/// The smallest output limit that the vendor accepts.
const LEAST_OUTPUT: u32 = 16;
/// Hex digits of the prompt cache key.
const CACHE_KEY_DIGITS: usize = 32;

/// The wire ids of the calls in one request, by our own ids.
type Ids<'a> = HashMap<&'a CallId, &'a str>;

/// Builds the request body; `tools` is the output of [`tools`] for the request.
pub(super) fn body<'a>(
    request: &'a Request,
    tools: Option<&'a RawValue>,
    (family, omitted): (&str, &Omitted),
) -> Body<'a> {
    let has = |part: Part| !omitted.has(part);
    let system = request.system.as_deref();
    let max_tokens = request.longest_answer();
    Body {
        model: &request.model,
        instructions: system.filter(|text| !text.is_empty()),
        tool_choice: tools.filter(|_| has(Part::ToolChoice)).map(|_| "auto"),
        tools,
        input: input(request, family, omitted),
        reasoning: reasoning(request, omitted),
        temperature: request.temperature.filter(|_| has(Part::Temperature)),
        max_output_tokens: max_tokens.map(|limit| limit.max(LEAST_OUTPUT)),
        include: has(Part::Encrypted).then_some(["reasoning.encrypted_content"]),
        prompt_cache_key: has(Part::CacheKey).then(|| cache_key(request)),
        context_management: request
            .compacting_unless(omitted.has(Part::Compaction))
            .map(|it| [ContextEdit::compaction(it.threshold)]),
        store: false,
        stream: true,
    }
}

/// The tools of a request as JSON; `None` if there are none.
pub(super) fn tools(tools: &[Tool], strictness: Strictness) -> serde_json::Result<Written> {
    write(tools, strictness, form)
}

fn form(tool: Offered<'_>) -> ToolForm<'_> {
    ToolForm {
        kind: "function",
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
        strict: tool.is_strict,
        defer_loading: false,
    }
}

fn reasoning(request: &Request, omitted: &Omitted) -> Option<Reasoning> {
    let effort = request.effort.and_then(|effort| omitted.word(effort));
    let summary = (!omitted.has(Part::Summary)).then_some("auto");
    (effort.is_some() || summary.is_some()).then_some(Reasoning { effort, summary })
}

/// The prompt cache key. Requests with the same beginning share it: they belong to one session, or to
/// sessions that can share cache entries.
fn cache_key(request: &Request) -> String {
    let first = request.entries.iter().find_map(|entry| match entry {
        Entry::User { text, .. } => Some(text.as_str()),
        Entry::Note { .. } | Entry::Assistant { .. } | Entry::ToolResult { .. } => None,
    });
    let digest = Digest::of_json(&json!([request.system.as_deref(), first]));
    digest.as_str().chars().take(CACHE_KEY_DIGITS).collect()
}

fn input<'a>(request: &'a Request, family: &str, omitted: &Omitted) -> Vec<Item<'a>> {
    let steps = pair(request.entries.iter());
    let ids = wire_ids(&steps, |_| true);
    let namespaces = Namespaces::of(request, omitted);
    let mut input = Vec::with_capacity(steps.len());
    for step in steps {
        match step {
            Step::User(said) => {
                let content = content(request.contents.parts(said));
                input.extend(message(Role::User, content, None));
            }
            Step::Assistant {
                text,
                native,
                calls,
            } => {
                let native = native.filter(|native| native.family == family);
                let takes_thoughts = !omitted.has(Part::Thoughts);
                let blocks = native.into_iter().flat_map(blocks);
                let blocks = blocks.filter(|(_, block)| takes_thoughts || !is_thought(block));
                let blocks = blocks.filter(|(_, block)| request.resumes() || !is_compaction(block));
                let blocks = namespaces.without_stale(blocks.collect());
                let parts = interleave(text, calls.len(), blocks.into_iter());
                input.extend(assistant(parts, &calls, &ids, &namespaces));
                input.extend(calls.iter().map(|paired| {
                    let (text, pictures) = request.contents.result(paired);
                    let mut parts = vec![Said::Text(text)];
                    parts.extend(pictures);
                    Item::Own(OwnItem::FunctionCallOutput {
                        call_id: wire_id(&ids, paired),
                        output: content(parts),
                    })
                }));
            }
        }
    }
    input
}

/// Parts in the vendor's form; a single text stays plain.
fn content(parts: Vec<Said<'_>>) -> Content<'_> {
    match only_text(parts) {
        Ok(text) => Content::Text(text),
        Err(parts) => Content::Parts(parts.into_iter().map(part).collect()),
    }
}

fn part(part: Said<'_>) -> ContentPart<'_> {
    match part {
        Said::Text(text) => ContentPart::Text { text },
        Said::Image(encoded) => ContentPart::Image {
            image_url: encoded.url(),
        },
        Said::Document(encoded, filename) => ContentPart::File {
            filename,
            file_data: encoded.url(),
        },
    }
}

/// A message; `None` if it is blank, because the vendor refuses blank messages.
fn message<'a>(role: Role, content: Content<'a>, phase: Option<&'a str>) -> Option<Item<'a>> {
    let is_blank = match &content {
        Content::Text(text) => text.trim().is_empty(),
        Content::Parts(parts) => parts.is_empty(),
    };
    (!is_blank).then_some(Item::Own(OwnItem::Message {
        role,
        content,
        phase,
    }))
}

/// The native blocks of an answer with their positions. Blocks of Chat Completions have another form and are
/// skipped.
fn blocks(native: &Native) -> impl Iterator<Item = (Position, &Value)> {
    let native = native.blocks.as_array();
    native.into_iter().flatten().filter_map(|native| {
        let block = native.get(NativeBlock::BLOCK)?;
        let place = native.get(NativeBlock::PLACE)?;
        let place = serde_json::from_value::<Position>(place.clone()).ok()?;
        Some((place, block))
    })
}

fn is_thought(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some("reasoning")
}

/// Returns true for a compaction block.
fn is_compaction(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some(COMPACTION)
}

/// The items of an answer, in their original order. A thought must be followed by its text or call; a thought
/// at the end has lost them and is dropped.
fn assistant<'a>(
    parts: Vec<interleave::Part<'a, &'a Value>>,
    calls: &[PairedCall<'a>],
    ids: &Ids<'a>,
    namespaces: &Namespaces,
) -> Vec<Item<'a>> {
    let items = parts.into_iter().filter_map(|part| match part {
        interleave::Part::Text(text) => {
            message(Role::Assistant, Content::Text(Cow::Borrowed(text)), None)
        }
        interleave::Part::Block(block, _)
            if is_thought(block) || is_compaction(block) || searched::is_search(block) =>
        {
            Some(Item::Native(block))
        }
        interleave::Part::Block(block, own) => {
            let phase = block.get("phase").and_then(Value::as_str);
            message(Role::Assistant, Content::Text(Cow::Borrowed(own)), phase)
        }
        interleave::Part::Call(at) => calls.get(at).map(|paired| {
            let name = names::fit(&paired.call.name);
            Item::Own(OwnItem::FunctionCall {
                call_id: wire_id(ids, paired),
                namespace: namespaces.get(&name).map(str::to_owned),
                name,
                // Serialization fails only for maps with keys that are not strings; JSON has none.
                arguments: serde_json::to_string(&object_of(&paired.call.args)).unwrap_or_default(),
            })
        }),
    });
    let mut items: Vec<Item<'a>> = items.collect();
    while matches!(items.last(), Some(Item::Native(last)) if is_thought(last)) {
        items.pop();
    }
    items
}

fn wire_id<'a>(ids: &Ids<'a>, paired: &PairedCall<'a>) -> &'a str {
    let own = paired.call.id.as_str();
    ids.get(&paired.call.id).copied().unwrap_or(own)
}

#[cfg(test)]
mod tests;
