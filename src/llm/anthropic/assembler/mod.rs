//! Turns the events of a Messages stream into ours. Pure; unknown events and blocks are skipped.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::domain::Native;
use crate::llm::anthropic::fault;
use crate::llm::anthropic::wire::{BlockForm, Delta, Event, MessageForm, Usage};
use crate::llm::request::interleave::Position;
use crate::llm::request::names::Names;
use crate::llm::stream::envelope::Envelope;
use crate::llm::stream::surrogates::mend;
use crate::llm::stream::{Assemble, MAX_ANSWER_BYTES, MAX_CALLS};
use crate::llm::transport::endpoint::KeyOwner;
use crate::llm::{Error, Finish, ModelEvent};

/// A thinking block as it is kept with its message: the vendor wants it back at its place.
#[derive(Debug, Serialize)]
pub(in crate::llm::anthropic) struct NativeBlock {
    place: Position,
    block: Value,
}

impl NativeBlock {
    /// Where the place stands in the kept form.
    pub(in crate::llm::anthropic) const PLACE: &'static str = "place";
    /// Where the block itself stands in it.
    pub(in crate::llm::anthropic) const BLOCK: &'static str = "block";
}

/// The state of one answer.
#[derive(Debug)]
pub(in crate::llm::anthropic) struct Assembler {
    owner: KeyOwner,
    names: Names,
    family: String,
    /// The blocks by the vendor's number of them.
    blocks: Vec<(u64, Open)>,
    native: Vec<NativeBlock>,
    usage: Usage,
    finish: Option<Finish>,
    /// Bytes of text so far.
    text: usize,
    calls: usize,
    bytes: usize,
    /// Of the last event that was a piece of the answer.
    envelope: Envelope,
}

/// A block that has begun.
#[derive(Debug)]
enum Open {
    Call(Call),
    /// The number of a native block that grows.
    Thinking(usize),
    /// Text, or something that we do not know.
    Other,
}

#[derive(Debug)]
struct Call {
    index: usize,
    /// Arguments that came with the beginning; they count if no others follow.
    whole: Option<String>,
}

impl Assembler {
    pub(in crate::llm::anthropic) fn new(owner: KeyOwner, names: Names, family: String) -> Self {
        Self {
            owner,
            names,
            family,
            blocks: Vec::new(),
            native: Vec::new(),
            usage: Usage::default(),
            finish: None,
            text: 0,
            calls: 0,
            bytes: 0,
            envelope: Envelope::default(),
        }
    }

    /// The next payload is read whole.
    #[cfg(test)]
    pub(in crate::llm::anthropic) fn forget_envelope(&mut self) {
        self.envelope = Envelope::default();
    }
}

impl Assemble for Assembler {
    fn push(&mut self, payload: &str, out: &mut VecDeque<ModelEvent>) -> Result<bool, Error> {
        let payload = payload.trim();
        if payload == "[DONE]" {
            return Ok(true);
        }
        self.bytes = self.bytes.saturating_add(payload.len());
        if self.bytes > MAX_ANSWER_BYTES {
            let problem = format!("an answer of more than {MAX_ANSWER_BYTES} bytes");
            return Err(self.owner.bad(problem));
        }
        if let Some(text) = self.envelope.open(payload) {
            self.say(&text.0, out);
            return Ok(false);
        }
        // A lone half of a surrogate pair is found only where the text is read.
        let mended = payload.contains("\\u").then(|| mend(payload)).flatten();
        let payload = mended.as_deref().unwrap_or(payload);
        let event = serde_json::from_str(payload);
        let event: Event<'_> = event.map_err(|error| self.owner.unreadable(&error))?;
        self.event(&event, payload, out)
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, out: &mut VecDeque<ModelEvent>) {
        for (_, block) in std::mem::take(&mut self.blocks) {
            close(block, out);
        }
        out.extend(self.native().map(ModelEvent::Native));
        out.extend(self.usage.tokens().map(ModelEvent::Usage));
        let finish = match self.finish {
            Some(Finish::Stop | Finish::Calls) | None if self.calls > 0 => Finish::Calls,
            Some(Finish::Calls) => Finish::Stop,
            Some(finish) => finish,
            None => Finish::Other,
        };
        out.push_back(ModelEvent::Finished(finish));
    }

    fn short(&self) -> Error {
        self.owner.short()
    }
}

impl Assembler {
    fn event(
        &mut self,
        event: &Event<'_>,
        payload: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<bool, Error> {
        match event.kind.0.as_ref() {
            "content_block_delta" => {
                let delta = self.read::<Delta<'_>>(event.delta)?;
                self.delta(index(event), &delta, out);
                if let ("text_delta", Cow::Borrowed(text)) = (&*delta.kind.0, &delta.text.0) {
                    self.envelope.note(payload, text);
                }
            }
            "content_block_start" => {
                if let Some(raw) = event.content_block {
                    self.begin(index(event), raw, out)?;
                }
            }
            "content_block_stop" => self.stop(index(event), out),
            "message_start" => {
                let raw = event.message.map(RawValue::get);
                if let Some(raw) = raw {
                    return self.message(raw, out).map(|()| false);
                }
            }
            "message_delta" => {
                let delta = self.read::<Delta<'_>>(event.delta)?;
                self.ended_for(&delta.stop_reason.0);
                if let Some(usage) = event.usage {
                    self.usage.take(usage);
                }
            }
            "message_stop" => return Ok(true),
            "error" => return Err(self.failed(event, payload)),
            "message" => {
                self.message(payload, out)?;
                self.finish = self.finish.or(Some(Finish::Other));
                return Ok(true);
            }
            "" if event.error.is_some() => return Err(self.failed(event, payload)),
            // Pings, and whatever the vendor thinks of next.
            _ => {}
        }
        Ok(false)
    }

    fn failed(&self, event: &Event<'_>, payload: &str) -> Error {
        let error = event.error.map_or(payload, RawValue::get);
        fault::in_stream(self.owner.origin(), error)
    }

    /// The head of a message, or a whole one.
    fn message(&mut self, json: &str, out: &mut VecDeque<ModelEvent>) -> Result<(), Error> {
        let message: MessageForm<'_> =
            serde_json::from_str(json).map_err(|error| self.owner.unreadable(&error))?;
        for (index, raw) in (0..).zip(&message.content) {
            self.begin(index, raw, out)?;
            self.stop(index, out);
        }
        self.ended_for(&message.stop_reason.0);
        if let Some(usage) = message.usage {
            self.usage.take(usage);
        }
        Ok(())
    }

    fn begin(
        &mut self,
        index: u64,
        raw: &RawValue,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), Error> {
        let block: BlockForm<'_> = self.read(Some(raw))?;
        let open = match block.kind.0.as_ref() {
            "text" => {
                self.say(&block.text.0, out);
                Open::Other
            }
            "tool_use" => Open::Call(self.call(&block, out)?),
            "thinking" => {
                think(&block.thinking.0, out);
                let (thinking, signature) = (&block.thinking.0, &block.signature.0);
                let block =
                    json!({"type": "thinking", "thinking": thinking, "signature": signature});
                Open::Thinking(self.keep(block))
            }
            "redacted_thinking" => {
                let block = serde_json::from_str(raw.get());
                self.keep(block.unwrap_or_default());
                Open::Other
            }
            _ => Open::Other,
        };
        self.blocks.retain(|(known, _)| *known != index);
        self.blocks.push((index, open));
        Ok(())
    }

    fn call(
        &mut self,
        block: &BlockForm<'_>,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<Call, Error> {
        if self.calls >= MAX_CALLS {
            return Err(self.owner.bad(format!("more than {MAX_CALLS} tool calls")));
        }
        let index = self.calls;
        self.calls += 1;
        out.push_back(ModelEvent::CallStarted {
            index,
            provider_id: block.id.0.clone().into_owned(),
            name: self.names.original(&block.name.0).to_owned(),
        });
        let whole = block.input.map(|input| input.get().to_owned());
        Ok(Call {
            index,
            // By the book it is empty, and the arguments follow in pieces.
            whole: whole.filter(|input| !matches!(input.as_str(), "{}" | "null" | "\"\"")),
        })
    }

    fn delta(&mut self, index: u64, delta: &Delta<'_>, out: &mut VecDeque<ModelEvent>) {
        let block = self.blocks.iter_mut().find(|(known, _)| *known == index);
        match (delta.kind.0.as_ref(), block.map(|(_, block)| block)) {
            ("text_delta", _) => self.say(&delta.text.0, out),
            ("input_json_delta", Some(Open::Call(call))) if !delta.partial_json.0.is_empty() => {
                call.whole = None;
                out.push_back(ModelEvent::CallArguments {
                    index: call.index,
                    json: delta.partial_json.0.clone().into_owned(),
                });
            }
            ("thinking_delta", Some(Open::Thinking(at))) => {
                let at = *at;
                self.grow(at, "thinking", &delta.thinking.0);
                think(&delta.thinking.0, out);
            }
            ("signature_delta", Some(Open::Thinking(at))) => {
                let at = *at;
                self.grow(at, "signature", &delta.signature.0);
            }
            // Citations, pieces of blocks that we do not know, and what has no block.
            _ => {}
        }
    }

    fn stop(&mut self, index: u64, out: &mut VecDeque<ModelEvent>) {
        let at = self.blocks.iter().position(|(known, _)| *known == index);
        if let Some(at) = at {
            close(self.blocks.swap_remove(at).1, out);
        }
    }

    fn ended_for(&mut self, reason: &str) {
        self.finish = match reason {
            "" => return,
            "end_turn" | "stop_sequence" => Some(Finish::Stop),
            "tool_use" => Some(Finish::Calls),
            "max_tokens" | "model_context_window_exceeded" => Some(Finish::Length),
            "refusal" => Some(Finish::Filtered),
            _ => Some(Finish::Other),
        };
    }

    fn say(&mut self, text: &str, out: &mut VecDeque<ModelEvent>) {
        if !text.is_empty() {
            self.text = self.text.saturating_add(text.len());
            out.push_back(ModelEvent::Text(text.to_owned()));
        }
    }

    /// Keeps a block at the present place and gives its number.
    fn keep(&mut self, block: Value) -> usize {
        let place = Position {
            text: self.text,
            length: 0,
            calls: self.calls,
        };
        self.native.push(NativeBlock { place, block });
        self.native.len() - 1
    }

    fn grow(&mut self, at: usize, field: &str, piece: &str) {
        let block = self.native.get_mut(at);
        let text = block.and_then(|native| native.block.get_mut(field));
        if let Some(Value::String(text)) = text {
            text.push_str(piece);
        }
    }

    /// The blocks that the vendor wants back. Without its signature a thought would be refused.
    fn native(&mut self) -> Option<Native> {
        let kept = std::mem::take(&mut self.native);
        let kept = kept.into_iter().filter(|native| {
            let signature = native.block.get("signature");
            signature.is_none_or(|signature| signature != "")
        });
        let blocks: Vec<Value> = kept
            .filter_map(|native| serde_json::to_value(native).ok())
            .collect();
        (!blocks.is_empty()).then(|| Native {
            family: self.family.clone(),
            blocks: Value::Array(blocks),
        })
    }

    /// Reads a part of an event whose kind is known.
    fn read<'a, T: Deserialize<'a>>(&self, raw: Option<&'a RawValue>) -> Result<T, Error> {
        let json = raw.map_or("{}", RawValue::get);
        serde_json::from_str(json).map_err(|error| self.owner.unreadable(&error))
    }
}

fn index(event: &Event<'_>) -> u64 {
    let index = event.index.map(RawValue::get);
    index
        .and_then(|index| index.parse().ok())
        .unwrap_or_default()
}

fn think(piece: &str, out: &mut VecDeque<ModelEvent>) {
    if !piece.is_empty() {
        out.push_back(ModelEvent::Reasoning(piece.to_owned()));
    }
}

/// What is said when a block ends.
fn close(block: Open, out: &mut VecDeque<ModelEvent>) {
    if let Open::Call(Call {
        index,
        whole: Some(json),
    }) = block
    {
        out.push_back(ModelEvent::CallArguments { index, json });
    }
}

#[cfg(test)]
mod tests;
