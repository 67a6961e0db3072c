//! Keeps the native blocks of an answer, with their positions, to send them back to the vendor.

use serde::Serialize;
use serde_json::Value;

use super::open::COMPACTION;
use crate::request::interleave::Position;

/// A native block as it is stored with its message. The vendor wants it back at the same position.
#[derive(Debug, Serialize)]
pub(in crate::anthropic) struct NativeBlock {
    place: Position,
    block: Value,
}

impl NativeBlock {
    /// The field that holds the position.
    pub(in crate::anthropic) const PLACE: &'static str = "place";
    /// The field that holds the block itself.
    pub(in crate::anthropic) const BLOCK: &'static str = "block";
}

/// The partial answer before a pause, which is sent back unchanged.
#[derive(Debug)]
pub(in crate::anthropic) struct Said {
    pub(in crate::anthropic) text: String,
    /// Native blocks in their stored form.
    pub(in crate::anthropic) blocks: Value,
}

/// The text and native blocks of the running answer.
#[derive(Debug, Default)]
pub(super) struct KeptRange {
    text: String,
    blocks: Vec<NativeBlock>,
}

impl CachedDocument {
    pub(super) fn say(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Stores a block at the position after the current text and the given number of calls; returns its
    /// index.
    pub(super) fn keep(&mut self, block: Value, calls: usize) -> usize {
        let place = Position {
            text: self.text.len(),
            length: 0,
            calls,
        };
        self.blocks.push(NativeBlock { place, block });
        self.blocks.len() - 1
    }

    /// Appends to a text field of a block.
    pub(super) fn grow(&mut self, at: usize, field: &str, piece: &str) {
        if let Some(Value::String(text)) = self.field(at, field) {
            text.push_str(piece);
        }
    }

    /// Appends to a text field of a block, and creates the field if it is missing or not a string.
    pub(super) fn extend(&mut self, at: usize, field: &str, piece: &str) {
        let Some(native) = self.blocks.get_mut(at) else {
            return;
        };
        let Some(block) = native.block.as_object_mut() else {
            return;
        };
        match block.get_mut(field) {
            Some(Value::String(text)) => text.push_str(piece),
            Some(_) | None => drop(block.insert(field.to_owned(), piece.into())),
        }
    }

    /// The summary in the newest compaction block. Empty compaction blocks are skipped: the vendor treats one
    /// as a compaction that failed.
    pub(super) fn summary(&self) -> Option<&str> {
        let mut blocks = self.blocks.iter().rev().map(|native| &native.block);
        blocks.find_map(|block| {
            let is_compaction = block.get("type")? == COMPACTION;
            let content = block.get("content")?.as_str()?;
            (is_compaction && !content.is_empty()).then_some(content)
        })
    }

    /// Finds a call of a vendor-run tool by its id.
    pub(super) fn server_call(&self, id: &str) -> Option<&Value> {
        let mut blocks = self.blocks.iter().map(|native| &native.block);
        blocks.find(|block| block.get("id").and_then(Value::as_str) == Some(id))
    }

    /// Sets the input of a vendor-run call, once all its pieces have arrived.
    pub(super) fn set_input(&mut self, at: usize, json: &str) {
        let input = serde_json::from_str::<Value>(json).ok();
        if let (Some(slot), Some(input)) = (self.field(at, "input"), input) {
            *slot = input;
        }
    }

    /// The blocks to send back with a complete answer, in their stored form. Omits calls of vendor-run tools
    /// that have no result, because the vendor refuses them.
    pub(super) fn blocks(&self) -> Option<Value> {
        let mut blocks = self.signed();
        let results = self.blocks.iter();
        let answered = results.filter_map(|native| native.block.get("tool_use_id"));
        let answered: Vec<&Value> = answered.collect();
        blocks.retain(|native| {
            let block = native.get(NativeBlock::BLOCK);
            let kind = block.and_then(|block| block.get("type")?.as_str());
            let is_call = matches!(kind, Some("server_tool_use" | "mcp_tool_use"));
            let id = block.and_then(|block| block.get("id"));
            !is_call || id.is_some_and(|id| answered.contains(&id))
        });
        (!blocks.is_empty()).then_some(Value::Array(blocks))
    }

    /// The partial answer so far.
    pub(super) fn said(&self) -> Said {
        Said {
            text: self.text.clone(),
            blocks: Value::Array(self.signed()),
        }
    }

    /// The stored blocks without unsigned thoughts and empty compactions, which the vendor refuses.
    fn signed(&self) -> Vec<Value> {
        let kept = self.blocks.iter().filter(|native| {
            let signature = native.block.get("signature");
            let has =
                |field: &str, text: &str| native.block.get(field).is_some_and(|it| it == text);
            let is_blank = has("type", COMPACTION) && has("content", "");
            !is_blank && signature.is_none_or(|signature| signature != "")
        });
        kept.filter_map(|native| serde_json::to_value(native).ok())
            .collect()
    }

    fn field(&mut self, at: usize, field: &str) -> Option<&mut Value> {
        self.blocks.get_mut(at)?.block.get_mut(field)
    }
}
