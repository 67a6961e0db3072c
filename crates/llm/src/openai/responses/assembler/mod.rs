//! Turns the events of a Responses stream into [`ModelEvent`]s. Pure; unknown events and items are skipped.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::items::{Items, Kind, Stage};
use self::kept::Kept;
use crate::openai::fault;
use crate::openai::responses::wire::{self, Event, ItemForm, ResponseForm};
use crate::request::interleave::Position;
use crate::request::names::Names;
use crate::stream::{Assemble, MAX_ANSWER_BYTES, MAX_CALLS};
use crate::transport::endpoint::KeyOwner;
use crate::{Error, Finish, ModelEvent};
use sepal_core::domain::{TokenUsage, mend_surrogates};

mod items;
mod kept;

pub(in crate::openai) use kept::{COMPACTION, NativeBlock};

/// Separates two messages, and two parts of a thought.
const GAP: &str = "\n\n";

/// The state of one answer.
#[derive(Debug)]
pub(in crate::openai) struct Assembler {
    owner: KeyOwner,
    names: Names,
    family: String,
    items: Items,
    kept: Kept,
    usage: Option<TokenUsage>,
    finish: Option<Finish>,
    /// True if the model refused; the vendor reports that as an ordinary end.
    is_refused: bool,
    /// Bytes of text so far.
    text: usize,
    calls: usize,
    bytes: usize,
    /// True if a part of a thought was shown, so that the next part needs a gap.
    has_thought: bool,
}

impl Assembler {
    pub(in crate::openai) fn new(owner: KeyOwner, names: Names, family: String) -> Self {
        Self {
            owner,
            names,
            family,
            items: Items::default(),
            kept: Kept::default(),
            usage: None,
            finish: None,
            is_refused: false,
            text: 0,
            calls: 0,
            bytes: 0,
            has_thought: false,
        }
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
        // A lone half of a surrogate pair is detected only where text is parsed.
        let mended = payload
            .contains("\\u")
            .then(|| mend_surrogates(payload))
            .flatten();
        let payload = mended.as_deref().unwrap_or(payload);
        let event: Event<'_> = self.read(payload)?;
        self.event(&event, payload, out)
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, out: &mut VecDeque<ModelEvent>) {
        out.extend(self.items.unsaid());
        out.extend(self.kept.compacted().map(ModelEvent::Compacted));
        let native = self.kept.take(&self.family);
        out.extend(native.map(ModelEvent::Native));
        out.extend(self.usage.map(ModelEvent::Usage));
        let finish = match self.finish {
            _ if self.is_refused => Finish::Refused,
            Some(Finish::Stop) | None if self.calls > 0 => Finish::Calls,
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
            "response.output_text.delta" => self.say(event, &event.delta.0, out),
            "response.output_text.done" => {
                if self.items.is_empty() && self.text == 0 {
                    self.say(event, &event.text.0, out);
                } else if let Some(rest) = self.items.lacking(event, &event.text.0) {
                    self.say(event, &rest, out);
                }
            }
            "response.refusal.delta" => {
                self.is_refused |= !event.delta.0.is_empty();
                self.say(event, &event.delta.0, out);
            }
            "response.function_call_arguments.delta" => {
                out.extend(self.items.more_arguments(event, &event.delta.0));
            }
            "response.function_call_arguments.done" => {
                let whole = wire::arguments(event.arguments);
                out.extend(self.items.whole_arguments(event, &whole));
            }
            "response.reasoning_summary_part.added" => self.part_of_thought(out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.items.note_thought(event);
                self.think(&event.delta.0, out);
            }
            "response.output_item.added" => self.item(event, Stage::Begun, out)?,
            "response.output_item.done" => self.item(event, Stage::Whole, out)?,
            "response.completed" | "response.done" => {
                self.response(event.response, Finish::Stop, out)?;
                return Ok(true);
            }
            "response.incomplete" | "response.cancelled" => {
                self.response(event.response, Finish::Other, out)?;
                return Ok(true);
            }
            "response.failed" | "error" => return Err(self.failed(event, payload)),
            "" if event.object.0 == "response" => {
                let raw: &RawValue = self.read(payload)?;
                self.response(Some(raw), Finish::Other, out)?;
                return Ok(true);
            }
            "" if event.error.is_some() => return Err(self.failed(event, payload)),
            // Heads, ends of parts, and unknown events.
            _ => {}
        }
        Ok(false)
    }

    fn failed(&self, event: &Event<'_>, payload: &str) -> Error {
        let of_response = event
            .response
            .and_then(|raw| serde_json::from_str::<ResponseForm<'_>>(raw.get()).ok())
            .and_then(|response| response.error);
        let said = event.error.or(of_response).map_or(payload, RawValue::get);
        fault::in_stream(self.owner.origin(), said)
    }

    /// Reads the end of an answer, or a complete answer.
    fn response(
        &mut self,
        raw: Option<&RawValue>,
        by_event: Finish,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), Error> {
        let response: ResponseForm<'_> = self.read(raw.map_or("{}", RawValue::get))?;
        if let Some(error) = response.error {
            return Err(fault::in_stream(self.owner.origin(), error.get()));
        }
        // A server that does not stream sends everything here, and some send here what the pieces lacked. An
        // item that was streamed may have had another index or id, so only kinds that lacked are begun.
        let is_bare = self.items.is_empty() && self.text == 0;
        let (lacks_text, lacks_calls) = (self.text == 0, self.calls == 0);
        for (index, raw) in (0..).zip(&response.output) {
            let form: ItemForm<'_> = self.read(raw.get())?;
            let is_new = match form.kind.0.as_ref() {
                "message" => lacks_text,
                "function_call" => lacks_calls,
                _ => is_bare,
            };
            if is_new || self.items.find(Some(index), &form).is_some() {
                self.take(Some(index), raw, Stage::Whole, out)?;
            }
        }
        if let Some(raw) = response.usage {
            self.usage = wire::usage(raw).or(self.usage);
        }
        let reason = response.incomplete_details.as_ref();
        let reason = reason.map(|incomplete| incomplete.reason.0.as_ref());
        self.finish = Some(match (response.status.0.as_ref(), reason) {
            ("completed", _) => Finish::Stop,
            (_, Some("max_output_tokens" | "max_tokens")) => Finish::Length,
            (_, Some("content_filter")) => Finish::Filtered,
            ("incomplete" | "cancelled" | "failed", _) => Finish::Other,
            _ => by_event,
        });
        Ok(())
    }

    fn item(
        &mut self,
        event: &Event<'_>,
        stage: Stage,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), Error> {
        match event.item {
            Some(raw) => self.take(items::index(event), raw, stage, out),
            None => Ok(()),
        }
    }

    fn take(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        stage: Stage,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), Error> {
        let form: ItemForm<'_> = self.read(raw.get())?;
        let at = if let Some(at) = self.items.find(index, &form) {
            at
        } else {
            let kind = self.begin(&form, out)?;
            self.items.push(index, &form, kind)
        };
        if stage == Stage::Whole {
            self.close(at, &form, raw, out);
        }
        Ok(())
    }

    fn begin(
        &mut self,
        form: &ItemForm<'_>,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<Kind, Error> {
        Ok(match form.kind.0.as_ref() {
            "message" => Kind::Message {
                place: self.place(),
                has_text: false,
                said: String::new(),
                part: 0,
                phase: form.phase.0.clone().into_owned(),
            },
            "reasoning" => Kind::Thought {
                place: self.place(),
                is_told: false,
            },
            "function_call" => {
                if self.calls >= MAX_CALLS {
                    return Err(self.owner.bad(format!("more than {MAX_CALLS} tool calls")));
                }
                let call = self.calls;
                self.calls += 1;
                let id = if form.call_id.0.is_empty() {
                    &form.id
                } else {
                    &form.call_id
                };
                out.push_back(ModelEvent::CallStarted {
                    index: call,
                    provider_id: id.0.clone().into_owned(),
                    name: self.names.original(&form.name.0).to_owned(),
                });
                Kind::Call {
                    call,
                    has_arguments: false,
                    whole: wire::arguments(form.arguments),
                }
            }
            "tool_search_call" | "tool_search_output" => Kind::Search(self.place()),
            COMPACTION => Kind::Compaction(self.place()),
            _ => Kind::Other,
        })
    }

    /// Closes an item; the event holds all of it.
    fn close(
        &mut self,
        at: usize,
        form: &ItemForm<'_>,
        raw: &RawValue,
        out: &mut VecDeque<ModelEvent>,
    ) {
        let Some(kind) = self.items.close(at) else {
            return;
        };
        match kind {
            Kind::Message {
                mut place,
                has_text,
                said,
                phase,
                part: _,
            } => {
                if has_text {
                    let parts = wire::texts(form.content);
                    let whole = parts
                        .iter()
                        .flat_map(|part| [&part.text.0, &part.refusal.0]);
                    let whole: String = whole.map(|text| &**text).collect();
                    if let Some(rest) = whole
                        .strip_prefix(said.as_str())
                        .filter(|it| !it.is_empty())
                    {
                        self.tell(rest, out);
                    }
                } else {
                    place = self.whole_message(form, out);
                }
                let said = form.phase.0.as_ref();
                let phase = if said.is_empty() { &phase } else { said };
                if !phase.is_empty() {
                    place.length = self.text.saturating_sub(place.text);
                    self.kept.phase(place, phase);
                }
            }
            Kind::Thought { place, is_told } => {
                if !is_told {
                    for part in wire::texts(form.summary) {
                        self.part_of_thought(out);
                        self.think(&part.text.0, out);
                    }
                }
                self.kept.thought(place, raw);
            }
            Kind::Call {
                call,
                has_arguments,
                whole,
            } => {
                let last = wire::arguments(form.arguments);
                let json = if last.is_empty() { whole } else { last };
                if !has_arguments && !json.is_empty() {
                    out.push_back(ModelEvent::CallArguments { index: call, json });
                }
            }
            Kind::Search(place) => {
                if let Some(told) = self.kept.search(place, raw, &self.names) {
                    self.part_of_thought(out);
                    self.think(&told, out);
                }
            }
            Kind::Compaction(place) => self.kept.compaction(place, raw),
            Kind::Other => {}
        }
    }

    /// Emits a message that was not streamed; returns the position of its text.
    fn whole_message(&mut self, form: &ItemForm<'_>, out: &mut VecDeque<ModelEvent>) -> Position {
        let mut place = None;
        for part in wire::texts(form.content) {
            self.is_refused |= !part.refusal.0.is_empty();
            for text in [&part.text.0, &part.refusal.0] {
                if !text.is_empty() {
                    place = place.or_else(|| Some(self.stand_apart(out)));
                    self.tell(text, out);
                }
            }
        }
        place.unwrap_or_else(|| self.place())
    }

    /// Emits a piece of a message.
    fn say(&mut self, event: &Event<'_>, piece: &str, out: &mut VecDeque<ModelEvent>) {
        if piece.is_empty() {
            return;
        }
        if self.items.begins_text(event) {
            let place = self.stand_apart(out);
            self.items.place_text(event, place);
        }
        self.items.note_text(event, piece);
        self.tell(piece, out);
    }

    /// Emits a gap after the previous message, and returns the position behind it.
    fn stand_apart(&mut self, out: &mut VecDeque<ModelEvent>) -> Position {
        if self.text > 0 {
            self.tell(GAP, out);
        }
        self.place()
    }

    fn tell(&mut self, text: &str, out: &mut VecDeque<ModelEvent>) {
        self.text = self.text.saturating_add(text.len());
        out.push_back(ModelEvent::Text(text.to_owned()));
    }

    fn part_of_thought(&mut self, out: &mut VecDeque<ModelEvent>) {
        if self.has_thought {
            out.push_back(ModelEvent::Reasoning(GAP.to_owned()));
            self.has_thought = false;
        }
    }

    fn think(&mut self, piece: &str, out: &mut VecDeque<ModelEvent>) {
        if !piece.is_empty() {
            self.has_thought = true;
            out.push_back(ModelEvent::Reasoning(piece.to_owned()));
        }
    }

    fn place(&self) -> Position {
        Position {
            text: self.text,
            length: 0,
            calls: self.calls,
        }
    }

    fn read<'a, T: Deserialize<'a>>(&self, json: &'a str) -> Result<T, Error> {
        serde_json::from_str(json).map_err(|error| self.owner.unreadable(&error))
    }
}

#[cfg(test)]
mod tests;
