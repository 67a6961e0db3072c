//! Keeps the native blocks of an answer, with their positions, to send them back to the vendor. Pure.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::CompactedInput;
use crate::openai::responses::searched;
use crate::request::interleave::Position;
use crate::request::names::Names;
use crate::tool_search;
use sepal_core::domain::Native;

/// A native block as it is stored with its message.
#[derive(Debug, Serialize)]
pub(in crate::openai) struct NativeBlock {
    place: Position,
    block: Value,
}

impl NativeBlock {
    /// The field that holds the position.
    pub(in crate::openai) const PLACE: &'static str = "place";
    /// The field that holds the block itself.
    pub(in crate::openai) const BLOCK: &'static str = "block";
}

/// The kind of an item that summarizes everything before it.
pub(in crate::openai) const COMPACTION: &str = "compaction";

/// The blocks that are stored so far.
#[derive(Debug, Default)]
pub(super) struct KeptRange {
    blocks: Vec<NativeBlock>,
    /// True if one of the blocks is a compaction.
    compacts: bool,
    /// The query of the last search, until its result arrives.
    query: String,
}

impl CachedDocument {
    /// Stores a thought unchanged, but without null fields, which the vendor refuses. A thought without
    /// content or encrypted content is skipped, because it means nothing to the vendor.
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

    /// Stores a tool search or its result, without the fields that the vendor does not accept back. Returns
    /// the message for people once the result is known.
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

    /// Stores a compaction unchanged; only the vendor can read it.
    pub(super) fn compaction(&mut self, place: Position, raw: &RawValue) {
        let Ok(block @ Value::Object(_)) = serde_json::from_str(raw.get()) else {
            return;
        };
        let content = block.get("encrypted_content").and_then(Value::as_str);
        self.compacts |= content.is_some_and(|content| !content.is_empty());
        self.blocks.push(NativeBlock { place, block });
    }

    /// The compaction as reported to people, who cannot read its content.
    pub(super) fn compacted(&self) -> Option<CompactedInput> {
        self.compacts.then(CompactedInput::default)
    }

    /// Stores the phase of a message: commentary or final answer.
    pub(super) fn phase(&mut self, place: Position, phase: &str) {
        let block = json!({"type": "message", "phase": phase});
        self.blocks.push(NativeBlock { place, block });
    }

    /// Takes all blocks, marked with the provider family.
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
