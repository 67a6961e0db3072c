//! What of an answer the vendor wants back, each part at its place. Pure.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::CompactedInput;
use crate::openai::responses::searched;
use crate::request::interleave::Position;
use crate::request::names::Names;
use crate::tool_search;
use sepal_core::domain::Native;

/// A part of an answer as it is kept with its message.
#[derive(Debug, Serialize)]
pub(in crate::openai) struct NativeBlock {
    place: Position,
    block: Value,
}

impl NativeBlock {
    /// Where the place stands in the kept form.
    pub(in crate::openai) const PLACE: &'static str = "place";
    /// Where the block itself stands in it.
    pub(in crate::openai) const BLOCK: &'static str = "block";
}

/// The kind of an item that stands for all that was said before it.
pub(in crate::openai) const COMPACTION: &str = "compaction";

/// The parts that are kept so far.
#[derive(Debug, Default)]
pub(super) struct Kept {
    blocks: Vec<NativeBlock>,
    /// Whether one of them stands for what was said before.
    compacts: bool,
    /// What a search looks for that has not said what it loaded.
    query: String,
}

impl Kept {
    /// Keeps a thought as it came. One without its encrypted form means nothing to the vendor, and
    /// fields that say nothing would be refused.
    pub(super) fn thought(&mut self, place: Position, raw: &RawValue) {
        let Ok(Value::Object(mut block)) = serde_json::from_str(raw.get()) else {
            return;
        };
        block.retain(|_, value| !value.is_null());
        let says = |name: &str| {
            let value = block.get(name);
            value.is_some_and(|value| *value != "" && *value != json!([]))
        };
        if says("encrypted_content") || says("content") {
            let block = Value::Object(block);
            self.blocks.push(NativeBlock { place, block });
        }
    }

    /// Keeps a search for tools, or what it loaded, as it came but for what the vendor does not take
    /// back; gives what people are told when it says what it loaded.
    pub(super) fn search(
        &mut self,
        place: Position,
        raw: &RawValue,
        names: &Names,
    ) -> Option<String> {
        const TAKEN: [&str; 7] = [
            "type",
            "id",
            "call_id",
            "execution",
            "status",
            "arguments",
            "tools",
        ];
        let Ok(Value::Object(mut block)) = serde_json::from_str(raw.get()) else {
            return None;
        };
        block.retain(|name, value| TAKEN.contains(&&**name) && !value.is_null());
        let block = Value::Object(block);
        let told = if block.get("arguments").is_some() {
            self.query = searched::query(&block);
            None
        } else {
            let loaded = searched::loaded(&block).into_iter();
            let loaded = loaded.map(|(_, name)| names.original(name).to_owned());
            let loaded: Vec<String> = loaded.collect();
            Some(tool_search::told(&std::mem::take(&mut self.query), &loaded))
        };
        self.blocks.push(NativeBlock { place, block });
        told
    }

    /// Keeps what stands for all that was said before, as it came: nobody but the vendor reads it.
    pub(super) fn compaction(&mut self, place: Position, raw: &RawValue) {
        let Ok(block @ Value::Object(_)) = serde_json::from_str(raw.get()) else {
            return;
        };
        let content = block.get("encrypted_content").and_then(Value::as_str);
        self.compacts |= content.is_some_and(|content| !content.is_empty());
        self.blocks.push(NativeBlock { place, block });
    }

    /// What people are told of it.
    pub(super) fn compacted(&self) -> Option<CompactedInput> {
        self.compacts.then(CompactedInput::default)
    }

    /// Keeps what a message was: a word on the way, or the answer.
    pub(super) fn phase(&mut self, place: Position, phase: &str) {
        let block = json!({"type": "message", "phase": phase});
        self.blocks.push(NativeBlock { place, block });
    }

    /// All of it, for providers of that family.
    pub(super) fn take(&mut self, family: &str) -> Option<Native> {
        let kept = std::mem::take(&mut self.blocks).into_iter();
        let blocks: Vec<Value> = kept
            .filter_map(|native| serde_json::to_value(native).ok())
            .collect();
        (!blocks.is_empty()).then(|| Native {
            family: family.to_owned(),
            blocks: Value::Array(blocks),
            compacts: self.compacts,
        })
    }
}
