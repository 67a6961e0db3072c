//! Lowers a [`Request`] to a Messages body. Pure.

mod search;
pub(in crate::anthropic) mod thinking;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use tracing::warn;

use self::search::Known;
use self::thinking::Plan;
use crate::anthropic::assembler::{COMPACTION, NativeBlock, Said};
use crate::anthropic::wire::{
    Block, Body, CacheControl, ContextManagement, Message, OutputConfig, OwnBlock, ResultContent,
    Role, Source, ToolChoice, ToolEntry, ToolForm,
};
use crate::contents as content;
use crate::request::interleave::{Part, Position, interleave};
use crate::request::names;
use crate::request::pairing::{PairedCall, Step, object_of, pair_between_people, wire_ids};
use crate::request::schema::{Dialect, lowered};
use crate::{Contents, Request};
use sepal_core::domain::{CallId, Tool};

/// The wire ids of the calls in one request, by our own ids.
type Ids<'a> = HashMap<&'a CallId, &'a str>;

/// The terms of a request body that the request itself does not hold.
#[derive(Debug, Clone, Copy)]
pub(in crate::anthropic) struct Terms<'a> {
    pub(in crate::anthropic) plan: &'a Plan,
    /// The provider family whose native blocks are sent.
    pub(in crate::anthropic) family: &'a str,
    /// The lifetime of cache entries; `None` = the vendor's default.
    pub(in crate::anthropic) cache_ttl: Option<&'static str>,
    /// True if the vendor searches the deferred tools.
    pub(in crate::anthropic) is_searching: bool,
    /// Input tokens from which on the vendor compacts; `None` = it does not.
    pub(in crate::anthropic) compact_from: Option<u64>,
}

/// Builds the request body. The vendor allows four cache marks: they go to the tools, the system prompt, the
/// newest user message, and the user message before it, where the cache entry of the previous request ends.
pub(in crate::anthropic) fn body<'a>(request: &'a Request, terms: Terms<'_>) -> Body<'a> {
    let here = CacheControl::here(terms.cache_ttl);
    let tools = tools(request, terms.is_searching, here);
    let system = request.system.as_deref().unwrap_or_default();
    let system = Some(system).filter(|text| !text.trim().is_empty());
    let system = system.map(|system| {
        Block::Own(OwnBlock::Text {
            text: Cow::Borrowed(system),
            cache_control: Some(here),
        })
    });
    let mut messages = messages(request, terms.family, &Known::of(&tools));
    let people = messages.iter_mut().rev();
    for message in people.filter(|message| message.role == Role::User).take(2) {
        mark(message, here);
    }
    let plan = terms.plan;
    let stays_still = plan.has_budget() && thinking::began_without_thoughts(&messages);
    Body {
        model: &request.model,
        max_tokens: plan.max_tokens,
        tool_choice: (!tools.is_empty()).then_some(ToolChoice { kind: "auto" }),
        tools,
        system: system.into_iter().collect(),
        messages,
        temperature: plan.temperature,
        thinking: plan.thinking.filter(|_| !stays_still),
        output_config: plan.effort.map(|effort| OutputConfig { effort }),
        context_management: terms.compact_from.map(ContextManagement::compact),
        stream: true,
    }
}

/// Appends the partial answer that the model gave before a pause.
pub(in crate::anthropic) fn push_said<'a>(body: &mut Body<'a>, said: &'a Said) {
    let blocks = parts(&said.text, 0, Some(&said.blocks));
    let blocks = blocks.filter_map(|part| match part {
        Part::Text(text) => Some(self::said(Cow::Borrowed(text))),
        Part::Block(block, _) => Some(Block::Native(block)),
        Part::Call(_) => None,
    });
    push(&mut body.messages, Role::Assistant, blocks.collect());
}

fn mark(message: &mut Message<'_>, here: CacheControl) {
    match message.content.last_mut() {
        Some(Block::Own(
            OwnBlock::Text { cache_control, .. }
            | OwnBlock::Image { cache_control, .. }
            | OwnBlock::Document { cache_control, .. }
            | OwnBlock::ToolResult { cache_control, .. },
        )) => *cache_control = Some(here),
        Some(Block::Own(OwnBlock::ToolUse { .. }) | Block::Native(_)) | None => {}
    }
}

fn tools(request: &Request, is_searching: bool, here: CacheControl) -> Vec<ToolEntry<'_>> {
    let deferral = request.deferral.as_ref().filter(|_| is_searching);
    if let Some(deferral) = deferral {
        return search::entries(&deferral.searchable, here);
    }
    let forms = tool_forms(request.tools.iter(), &mut HashSet::new());
    let mut entries = forms.into_iter().map(ToolEntry::Tool).collect();
    cache_mark(&mut entries, here);
    entries
}

/// Puts a cache mark on the last tool.
fn cache_mark(entries: &mut Vec<ToolEntry<'_>>, here: CacheControl) {
    match entries.last_mut() {
        Some(ToolEntry::Tool(form)) => form.cache_control = Some(here),
        Some(ToolEntry::Search(form)) => form.cache_control = Some(here),
        None => {}
    }
}

/// Builds the tools under valid names, and skips a second tool of the same name.
fn tool_forms<'a>(
    tools: impl Iterator<Item = &'a Tool>,
    taken: &mut HashSet<Cow<'a, str>>,
) -> Vec<ToolForm<'a>> {
    let mut forms = Vec::new();
    for tool in tools {
        let name = names::fit(&tool.name);
        if !taken.insert(name.clone()) {
            warn!(tool.name = %tool.name, "Leave out a second tool `{}`", tool.name);
            continue;
        }
        forms.push(ToolForm {
            name,
            description: &tool.description,
            input_schema: lowered(input_schema(&tool.input_schema), Dialect::Anthropic),
            defer_loading: false,
            cache_control: None,
        });
    }
    forms
}

/// Ensures that a schema has the type `object` (S3.31).
fn input_schema(schema: &Value) -> Cow<'_, Value> {
    match schema {
        Value::Object(object) if object.get("type") == Some(&json!("object")) => {
            Cow::Borrowed(schema)
        }
        Value::Object(object) => {
            let mut whole = object.clone();
            whole.insert("type".to_owned(), json!("object"));
            Cow::Owned(Value::Object(whole))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Cow::Owned(json!({"type": "object", "properties": {}}))
        }
    }
}

fn messages<'a>(request: &'a Request, family: &str, known: &Known) -> Vec<Message<'a>> {
    let steps = pair_between_people(request.entries.iter());
    let ids = wire_ids(&steps, is_id);
    let mut messages = Vec::with_capacity(steps.len());
    for step in steps {
        match step {
            Step::User(said) => {
                let parts = request.contents.parts(said).into_iter();
                push(&mut messages, Role::User, parts.map(block).collect());
            }
            Step::Assistant {
                text,
                native,
                calls,
            } => {
                let native = native.filter(|native| native.family == family);
                let results = calls
                    .iter()
                    .map(|paired| result(paired, &ids, &request.contents))
                    .collect();
                let native = native.map(|native| &native.blocks);
                let stale = known.stale(native);
                let parts = parts(text, calls.len(), native);
                let parts = parts.filter(|part| request.resumes() || !is_compaction(part));
                let content = assistant(parts, &stale, &calls, &ids);
                push(&mut messages, Role::Assistant, content);
                push(&mut messages, Role::User, results);
            }
        }
    }
    messages
}

/// Appends blocks; consecutive blocks of one role share a message.
fn push<'a>(messages: &mut Vec<Message<'a>>, role: Role, mut content: Vec<Block<'a>>) {
    if content.is_empty() {
        return;
    }
    match messages.last_mut() {
        Some(last) if last.role == role => last.content.append(&mut content),
        Some(_) | None => messages.push(Message { role, content }),
    }
}

fn said(text: Cow<'_, str>) -> Block<'_> {
    Block::Own(OwnBlock::Text {
        text,
        cache_control: None,
    })
}

fn block(part: content::Part<'_>) -> Block<'_> {
    Block::Own(match part {
        content::Part::Text(text) => return said(text),
        content::Part::Image(encoded) => OwnBlock::Image {
            source: Source::new(encoded),
            cache_control: None,
        },
        content::Part::Document(encoded, title) => OwnBlock::Document {
            source: Source::new(encoded),
            title,
            cache_control: None,
        },
    })
}

fn result<'a>(paired: &PairedCall<'a>, ids: &Ids<'a>, contents: &'a Contents) -> Block<'a> {
    let (text, pictures) = contents.result(paired);
    let text = Some(text).filter(|text| !text.trim().is_empty());
    let content = if pictures.is_empty() {
        text.map(ResultContent::Text)
    } else {
        let blocks = text.map(said).into_iter();
        let blocks = blocks.chain(pictures.into_iter().map(block)).collect();
        Some(ResultContent::Blocks(blocks))
    };
    Block::Own(OwnBlock::ToolResult {
        tool_use_id: wire_id(ids, paired),
        content,
        is_error: paired.is_error,
        cache_control: None,
    })
}

fn assistant<'a>(
    parts: impl Iterator<Item = Part<'a, &'a Value>>,
    stale: &HashSet<&str>,
    calls: &[PairedCall<'a>],
    ids: &Ids<'a>,
) -> Vec<Block<'a>> {
    let blocks = parts.filter_map(|part| match part {
        Part::Text(text) => Some(said(Cow::Borrowed(text))),
        Part::Block(block, _) if search::is_of(block, stale) => None,
        Part::Block(block, _) => Some(Block::Native(block)),
        Part::Call(at) => calls.get(at).map(|paired| {
            Block::Own(OwnBlock::ToolUse {
                id: wire_id(ids, paired),
                name: names::fit(&paired.call.name),
                input: object_of(&paired.call.args),
            })
        }),
    });
    blocks.collect()
}

/// Returns true for a compaction block.
fn is_compaction(part: &Part<'_, &Value>) -> bool {
    matches!(part, Part::Block(block, _) if block["type"] == COMPACTION)
}

/// The parts of an answer in their original order.
fn parts<'a>(
    text: &'a str,
    calls: usize,
    native: Option<&'a Value>,
) -> impl Iterator<Item = Part<'a, &'a Value>> {
    let native = native.and_then(Value::as_array);
    let native = native.into_iter().flatten().filter_map(|native| {
        let block = native.get(NativeBlock::BLOCK)?;
        let place = native.get(NativeBlock::PLACE)?;
        Some((
            serde_json::from_value::<Position>(place.clone()).ok()?,
            block,
        ))
    });
    interleave(text, calls, native).into_iter()
}

fn wire_id<'a>(ids: &Ids<'a>, paired: &PairedCall<'a>) -> &'a str {
    let own = paired.call.id.as_str();
    ids.get(&paired.call.id).copied().unwrap_or(own)
}

/// Returns true if the vendor accepts the text as a call id.
fn is_id(id: &str) -> bool {
    id.chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests;
