//! What of an answer the vendor wants back, each part at its place. Pure.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::domain::Native;
use crate::llm::request::interleave::Position;

/// A part of an answer as it is kept with its message.
#[derive(Debug, Serialize)]
pub(in crate::llm::openai) struct NativeBlock {
    place: Position,
    block: Value,
}

impl NativeBlock {
    /// Where the place stands in the kept form.
    pub(in crate::llm::openai) const PLACE: &'static str = "place";
    /// Where the block itself stands in it.
    pub(in crate::llm::openai) const BLOCK: &'static str = "block";
}

/// The parts that are kept so far.
#[derive(Debug, Default)]
pub(super) struct Kept(Vec<NativeBlock>);

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
            self.0.push(NativeBlock { place, block });
        }
    }

    /// Keeps what a message was: a word on the way, or the answer.
    pub(super) fn phase(&mut self, place: Position, phase: &str) {
        let block = json!({"type": "message", "phase": phase});
        self.0.push(NativeBlock { place, block });
    }

    /// All of it, for providers of that family.
    pub(super) fn take(&mut self, family: &str) -> Option<Native> {
        let kept = std::mem::take(&mut self.0).into_iter();
        let blocks: Vec<Value> = kept
            .filter_map(|native| serde_json::to_value(native).ok())
            .collect();
        (!blocks.is_empty()).then(|| Native {
            family: family.to_owned(),
            blocks: Value::Array(blocks),
        })
    }
}
