//! Turns the chunks of a stream into [`ModelEvent`]s. Pure; tolerates the deviations of real servers.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::openai::chat::calls::Calls;
use crate::openai::chat::details::Details;
use crate::openai::chat::wire::{self, Choice, Chunk, Delta};
use crate::openai::fault;
use crate::request::names::Names;
use crate::stream::envelope::Envelope;
use crate::stream::tagged::{Piece, Tagged};
use crate::stream::{Assemble, MAX_ANSWER_BYTES};
use crate::transport::endpoint::KeyOwner;
use crate::{Error, Finish, ModelEvent};
use sepal_core::domain::{Native, TokenUsage, mend_surrogates};

/// The facts about its request that an assembler needs.
#[derive(Debug)]
pub(in crate::openai) struct Context {
    pub(in crate::openai) owner: KeyOwner,
    pub(in crate::openai) names: Names,
    /// The family of the native blocks; `None` = they are not kept.
    pub(in crate::openai) family: Option<String>,
}

/// The model's visible reasoning, and the field in which it first arrived.
#[derive(Debug, Default)]
struct Thought {
    field: &'static str,
    text: String,
}

impl Thought {
    fn push(&mut self, field: &'static str, piece: &str) {
        if self.text.is_empty() {
            self.field = field;
        }
        self.text.push_str(piece);
    }
}

/// The state of one answer.
#[derive(Debug)]
pub(in crate::openai) struct Assembler {
    context: Context,
    calls: Calls,
    usage: Option<TokenUsage>,
    finish: Option<Finish>,
    thought: Thought,
    details: Details,
    tagged: Tagged,
    /// True if the model refused; the vendor reports that as an ordinary end.
    is_refused: bool,
    bytes: usize,
    /// The envelope of the last chunk that held only text.
    envelope: Envelope,
}

impl Assembler {
    pub(in crate::openai) fn new(context: Context) -> Self {
        Self {
            context,
            calls: Calls::default(),
            usage: None,
            finish: None,
            thought: Thought::default(),
            details: Details::default(),
            tagged: Tagged::default(),
            is_refused: false,
            bytes: 0,
            envelope: Envelope::default(),
        }
    }

    /// Discards the envelope, so the next payload is parsed in full.
    #[cfg(test)]
    pub(in crate::openai) fn forget_envelope(&mut self) {
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
            return Err(self
                .context
                .owner
                .bad(format!("an answer of more than {MAX_ANSWER_BYTES} bytes")));
        }
        if let Some(text) = self.envelope.open(payload) {
            self.say(&text.0, out);
            return Ok(false);
        }
        let mended;
        let chunk: Chunk<'_> = match serde_json::from_str(payload) {
            Ok(chunk) => chunk,
            Err(error) => {
                mended = mend_surrogates(payload)
                    .ok_or_else(|| self.context.owner.unreadable(&error))?;
                serde_json::from_str(&mended)
                    .map_err(|error| self.context.owner.unreadable(&error))?
            }
        };
        if let Some(error) = chunk.error {
            return Err(fault::in_stream(self.context.owner.origin(), error.get()));
        }
        if chunk.is_error() {
            return Err(fault::in_stream(self.context.owner.origin(), payload));
        }
        if let Some(text) = chunk.only_text() {
            self.envelope.note(payload, text);
        }
        let extension = chunk.x_groq.and_then(|extension| extension.usage);
        if let Some(raw) = chunk.usage.or(extension) {
            self.count(raw, out);
        }
        for choice in chunk.choices {
            if choice.index.unwrap_or_default() == 0 {
                self.choice(choice, out)?;
            }
        }
        Ok(false)
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, out: &mut VecDeque<ModelEvent>) {
        out.extend(self.tagged.end().map(event));
        self.calls.announce_all(&self.context.names, out);
        out.extend(self.native().map(ModelEvent::Native));
        out.extend(self.usage.map(ModelEvent::Usage));
        let finish = match self.finish {
            _ if self.is_refused => Finish::Refused,
            Some(Finish::Stop | Finish::Calls) | None if !self.calls.is_empty() => Finish::Calls,
            Some(Finish::Calls) => Finish::Stop,
            Some(finish) => finish,
            None => Finish::Other,
        };
        out.push_back(ModelEvent::Finished(finish));
    }

    fn short(&self) -> Error {
        self.context.owner.short()
    }
}

impl Assembler {
    /// Records a usage. Some servers send one with every chunk: the input tokens are known from the first on,
    /// even if the answer is stopped.
    fn count(&mut self, raw: &RawValue, out: &mut VecDeque<ModelEvent>) {
        let Some(usage) = wire::usage(raw) else {
            return;
        };
        let is_known = self.usage.is_some_and(|before| before.input_tokens > 0);
        if !is_known && usage.input_tokens > 0 && self.finish.is_none() {
            out.push_back(ModelEvent::Usage(usage));
        }
        self.usage = Some(usage);
    }

    fn choice(&mut self, choice: Choice<'_>, out: &mut VecDeque<ModelEvent>) -> Result<(), Error> {
        if let Some(raw) = choice.usage {
            self.count(raw, out);
        }
        if let Some(delta) = choice.delta.or(choice.message) {
            self.delta(delta, out)?;
        }
        match choice.finish_reason.0.as_ref() {
            "" => {}
            "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "complete" => {
                self.finish = Some(Finish::Stop);
            }
            "tool_calls" | "tool_call" | "tool" | "tool_use" | "function_call" => {
                self.finish = Some(Finish::Calls);
            }
            "length" | "max_tokens" | "model_length" => self.finish = Some(Finish::Length),
            "content_filter" => self.finish = Some(Finish::Filtered),
            "error" => {
                return Err(fault::in_stream(
                    self.context.owner.origin(),
                    "\"the model broke off\"",
                ));
            }
            _ => self.finish = Some(Finish::Other),
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut VecDeque<ModelEvent>) -> Result<(), Error> {
        let told = delta.reasoning_details.map(|raw| self.details.push(raw));
        let (field, thought) = if delta.reasoning_content.0.is_empty() {
            ("reasoning", delta.reasoning.0)
        } else {
            ("reasoning_content", delta.reasoning_content.0)
        };
        let thought = if thought.is_empty() {
            // Thoughts among the parts of an answer are shown, but not kept: the server does not want them
            // back.
            Cow::Owned(told.unwrap_or(delta.content.thought))
        } else {
            if self.context.family.is_some() {
                self.thought.push(field, &thought);
            }
            thought
        };
        if !thought.is_empty() {
            out.push_back(ModelEvent::Reasoning(thought.into_owned()));
        }
        self.is_refused |= !delta.refusal.0.is_empty();
        for text in [delta.content.text.0, delta.refusal.0] {
            self.say(&text, out);
        }
        if !delta.tool_calls.is_empty() {
            out.extend(self.tagged.end().map(event));
        }
        for call in &delta.tool_calls {
            let taken = self.calls.push(call, &self.context.names, out);
            taken.map_err(|problem| self.context.owner.bad(problem.to_string()))?;
        }
        Ok(())
    }

    /// Emits a piece of the text. Thoughts between tags are shown, but not kept: as text they would be sent back
    /// with the next request.
    fn say(&mut self, text: &str, out: &mut VecDeque<ModelEvent>) {
        if !text.is_empty() {
            out.extend(self.tagged.push(text).into_iter().map(event));
        }
    }

    /// The native blocks that the same server wants back with these calls.
    fn native(&mut self) -> Option<Native> {
        let family = self.context.family.clone()?;
        if self.calls.is_empty() {
            return None;
        }
        let mut blocks = serde_json::Map::new();
        // If there are details, the plain reasoning adds nothing.
        if let Some(details) = self.details.take() {
            blocks.insert("reasoning_details".to_owned(), details);
        } else if !self.thought.text.is_empty() {
            let Thought { field, text } = std::mem::take(&mut self.thought);
            blocks.insert(field.to_owned(), Value::String(text));
        }
        if let Some(extra) = self.calls.take_extra() {
            blocks.insert("extra_content".to_owned(), extra);
        }
        (!blocks.is_empty()).then_some(Native {
            family,
            blocks: Value::Object(blocks),
            compacts: false,
        })
    }
}

fn event(piece: Piece) -> ModelEvent {
    match piece {
        Piece::Text(text) => ModelEvent::Text(text),
        Piece::Thought(thought) => ModelEvent::Reasoning(thought),
        Piece::TextWasThought => ModelEvent::TextWasReasoning,
    }
}

#[cfg(test)]
mod tests;
