//! Turns the events of a Messages stream into [`ModelEvent`]s. Pure; unknown events and blocks are skipped.

mod ending;
mod kept;
mod open;
mod passes;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::kept::Kept;
pub(in crate::anthropic) use self::kept::{NativeBlock, Said};
pub(in crate::anthropic) use self::open::COMPACTION;
use self::open::{Call, Open, is_of_server, think};
use crate::anthropic::fault;
use crate::anthropic::searched;
use crate::anthropic::usage::Usage;
use crate::anthropic::wire::{BlockForm, Delta, Event, MessageForm};
use crate::request::names::Names;
use crate::stream::envelope::Envelope;
use crate::stream::{Assemble, MAX_ANSWER_BYTES, MAX_CALLS};
use crate::transport::endpoint::KeyOwner;
use crate::{Error, Finish, ModelEvent, tool_search};
use sepal_core::domain::{Native, TokenUsage, mend_surrogates};

/// The slot for a paused answer that has to be continued; shared with the reader of the stream.
pub(in crate::anthropic) type Pause = Arc<Mutex<Option<Said>>>;

/// The most continuations of a paused answer.
pub(in crate::anthropic) const MAX_PAUSES: u32 = 8;

/// The state of one answer.
#[derive(Debug)]
pub(in crate::anthropic) struct Assembler {
    owner: KeyOwner,
    names: Names,
    family: String,
    /// The open blocks, by the vendor's index.
    blocks: Vec<(u64, Open)>,
    kept: Kept,
    usage: Usage,
    /// Tokens that the earlier requests of this answer used: each pause starts a new request.
    spent: TokenUsage,
    /// Tokens that compaction used in the earlier requests, and the input size before and after the last
    /// compaction.
    compacting: Option<TokenUsage>,
    sizes: (Option<u64>, Option<u64>),
    finish: Option<Finish>,
    /// The vendor's explanation of a refusal.
    stop_detail: Option<String>,
    calls: usize,
    bytes: usize,
    /// The envelope of the last text delta.
    envelope: Envelope,
    /// The slot in which a pause is reported; `None` if the answer cannot be continued.
    pause: Option<Pause>,
    pauses: u32,
}

impl Assembler {
    pub(in crate::anthropic) fn new(owner: KeyOwner, names: Names, family: String) -> Self {
        Self {
            owner,
            names,
            family,
            blocks: Vec::new(),
            kept: Kept::default(),
            usage: Usage::default(),
            spent: TokenUsage::default(),
            compacting: None,
            sizes: (None, None),
            finish: None,
            stop_detail: None,
            calls: 0,
            bytes: 0,
            envelope: Envelope::default(),
            pause: None,
            pauses: 0,
        }
    }

    /// Sets the slot in which a pause is reported; the answer goes on with the next payload.
    pub(in crate::anthropic) fn pausing(mut self, pause: Pause) -> Self {
        self.pause = Some(pause);
        self
    }

    /// Discards the envelope, so the next payload is parsed in full.
    #[cfg(test)]
    pub(in crate::anthropic) fn forget_envelope(&mut self) {
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
        // A lone half of a surrogate pair is detected only where text is parsed.
        let mended = payload
            .contains("\\u")
            .then(|| mend_surrogates(payload))
            .flatten();
        let payload = mended.as_deref().unwrap_or(payload);
        let event = serde_json::from_str(payload);
        let event: Event<'_> = event.map_err(|error| self.owner.unreadable(&error))?;
        self.event(&event, payload, out)
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, out: &mut VecDeque<ModelEvent>) {
        self.close_all(out);
        out.extend(self.compacted().map(ModelEvent::Compacted));
        let native = self.kept.blocks().map(|blocks| Native {
            family: self.family.clone(),
            blocks,
            compacts: self.kept.summary().is_some(),
        });
        out.extend(native.map(ModelEvent::Native));
        out.extend(self.used().map(ModelEvent::Usage));
        out.extend(self.stop_detail.take().map(ModelEvent::StopDetail));
        let finish = match self.finish {
            Some(Finish::Stop | Finish::Calls | Finish::Paused) | None if self.calls > 0 => {
                Finish::Calls
            }
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
                self.compact(event);
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
                    self.message(raw, out)?;
                    // The input tokens are known from here on, even if the answer is stopped.
                    out.extend(self.used().map(ModelEvent::Usage));
                }
            }
            "message_delta" => {
                let delta = self.read::<Delta<'_>>(event.delta)?;
                self.ended_for(&delta.stop_reason.0, delta.stop_details);
                if let Some(usage) = event.usage {
                    self.usage.take(usage);
                }
            }
            "message_stop" => return Ok(!self.goes_on(out)),
            "error" => return Err(self.failed(event, payload)),
            "message" => {
                self.message(payload, out)?;
                self.finish = self.finish.or(Some(Finish::Other));
                return Ok(!self.goes_on(out));
            }
            "" if event.error.is_some() => return Err(self.failed(event, payload)),
            // Pings and unknown events.
            _ => {}
        }
        Ok(false)
    }

    fn failed(&self, event: &Event<'_>, payload: &str) -> Error {
        let error = event.error.map_or(payload, RawValue::get);
        fault::in_stream(self.owner.origin(), error)
    }

    /// Reads the head of a message, or a complete message.
    fn message(&mut self, json: &str, out: &mut VecDeque<ModelEvent>) -> Result<(), Error> {
        let message: MessageForm<'_> =
            serde_json::from_str(json).map_err(|error| self.owner.unreadable(&error))?;
        for (index, raw) in (0..).zip(&message.content) {
            self.begin(index, raw, out)?;
            self.stop(index, out);
        }
        self.ended_for(&message.stop_reason.0, message.stop_details);
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
                Open::Thinking(self.kept.keep(block, self.calls))
            }
            "redacted_thinking" => {
                let block = serde_json::from_str(raw.get());
                self.kept.keep(block.unwrap_or_default(), self.calls);
                Open::Other
            }
            COMPACTION => {
                let block = serde_json::from_str(raw.get());
                Open::Compaction(self.kept.keep(block.unwrap_or_default(), self.calls))
            }
            kind if is_of_server(kind) => {
                let block: Value = serde_json::from_str(raw.get()).unwrap_or_default();
                self.tell_search(&block, out);
                let at = self.kept.keep(block, self.calls);
                Open::ServerCall(at, String::new())
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
            // Normally the input is empty here, and the arguments follow in pieces.
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
                self.kept.grow(at, "thinking", &delta.thinking.0);
                think(&delta.thinking.0, out);
            }
            ("signature_delta", Some(Open::Thinking(at))) => {
                let at = *at;
                self.kept.grow(at, "signature", &delta.signature.0);
            }
            ("input_json_delta", Some(Open::ServerCall(_, json))) => {
                json.push_str(&delta.partial_json.0);
            }
            // Citations, deltas of unknown blocks, and deltas without a block.
            _ => {}
        }
    }

    fn stop(&mut self, index: u64, out: &mut VecDeque<ModelEvent>) {
        let at = self.blocks.iter().position(|(known, _)| *known == index);
        if let Some(at) = at {
            let (_, block) = self.blocks.swap_remove(at);
            self.close(block, out);
        }
    }

    fn ended_for(&mut self, reason: &str, details: Option<&RawValue>) {
        self.finish = ending::finish_of(reason).or(self.finish);
        let details = ending::details(details, self.owner.origin());
        self.stop_detail = details.or(self.stop_detail.take());
    }

    fn close_all(&mut self, out: &mut VecDeque<ModelEvent>) {
        for (_, block) in std::mem::take(&mut self.blocks) {
            self.close(block, out);
        }
    }

    /// Closes a block, and emits the arguments that came with its start.
    fn close(&mut self, block: Open, out: &mut VecDeque<ModelEvent>) {
        match block {
            Open::Call(Call {
                index,
                whole: Some(json),
            }) => out.push_back(ModelEvent::CallArguments { index, json }),
            Open::ServerCall(at, json) => self.kept.set_input(at, &json),
            Open::Call(_) | Open::Thinking(_) | Open::Compaction(_) | Open::Other => {}
        }
    }

    /// Reports a tool search as reasoning, once its result is known.
    fn tell_search(&self, result: &Value, out: &mut VecDeque<ModelEvent>) {
        let call = result.get("tool_use_id").and_then(Value::as_str);
        let call = call.and_then(|id| self.kept.server_call(id));
        let Some(call) = call.filter(|call| searched::is_search(call)) else {
            return;
        };
        let query = call.pointer("/input/query").and_then(Value::as_str);
        let found = searched::found(result).map(|name| self.names.original(name).to_owned());
        let found: Vec<String> = found.collect();
        let told = tool_search::told(query.unwrap_or_default(), &found);
        out.push_back(ModelEvent::Reasoning(format!("\n\n{told}\n\n")));
    }

    fn say(&mut self, text: &str, out: &mut VecDeque<ModelEvent>) {
        if !text.is_empty() {
            self.kept.say(text);
            out.push_back(ModelEvent::Text(text.to_owned()));
        }
    }

    /// Parses a part of an event whose kind is known.
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

#[cfg(test)]
mod tests;
