//! Turns the chunks of a `streamGenerateContent` stream into [`ModelEvent`]s. Pure; unknown parts are
//! skipped.

mod pieces;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use self::pieces::Pieces;
use crate::gemini::fault;
use crate::gemini::wire::{self, CallForm, Candidate, Chunk, PartForm};
use crate::request::interleave::Position;
use crate::request::names::Names;
use crate::stream::{Assemble, MAX_ANSWER_BYTES, MAX_CALLS};
use crate::transport::endpoint::KeyOwner;
use crate::transport::quote;
use crate::{Error, Finish, ModelEvent};
use sepal_core::domain::{Native, TokenUsage, mend_surrogates};

/// Data that the vendor wants back with a call, or with the text at a position.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::gemini) struct NativeParts {
    /// The index of the call that the data belongs to; `None` = it belongs to a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::gemini) call: Option<usize>,
    /// The vendor's id of that call; most models give none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::gemini) id: Option<String>,
    /// The position of the text.
    #[serde(default)]
    pub(in crate::gemini) place: Position,
    /// The text of a thought, which is not part of the answer's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::gemini) thought: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::gemini) thought_signature: Option<String>,
}

/// The state of one answer.
#[derive(Debug)]
pub(in crate::gemini) struct Assembler {
    owner: KeyOwner,
    names: Names,
    family: String,
    kept: Vec<NativeParts>,
    usage: Option<TokenUsage>,
    finish: Option<Finish>,
    /// The reason that the vendor's filter gives.
    stop_detail: Option<String>,
    /// Bytes of text so far.
    text: usize,
    calls: usize,
    /// The call whose arguments are still arriving.
    open: Option<Open>,
    bytes: usize,
}

/// A call whose arguments arrive in pieces.
#[derive(Debug)]
struct Open {
    index: usize,
    pieces: Pieces,
}

impl Open {
    fn close(self, is_whole: bool, out: &mut VecDeque<ModelEvent>) {
        out.push_back(ModelEvent::CallArguments {
            index: self.index,
            json: self.pieces.into_json(is_whole),
        });
    }
}

impl Assembler {
    pub(in crate::gemini) fn new(owner: KeyOwner, names: Names, family: String) -> Self {
        Self {
            owner,
            names,
            family,
            kept: Vec::new(),
            usage: None,
            finish: None,
            stop_detail: None,
            text: 0,
            calls: 0,
            open: None,
            bytes: 0,
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
        let mended = payload
            .contains("\\u")
            .then(|| mend_surrogates(payload))
            .flatten();
        let payload = mended.as_deref().unwrap_or(payload);
        // A server that does not support `alt=sse` answers with one list of all chunks.
        if payload.starts_with('[') {
            let chunks: Vec<&RawValue> =
                serde_json::from_str(payload).map_err(|error| self.owner.unreadable(&error))?;
            for chunk in chunks {
                self.chunk(chunk.get(), out)?;
            }
        } else {
            self.chunk(payload, out)?;
        }
        Ok(false)
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, out: &mut VecDeque<ModelEvent>) {
        if let Some(cut) = self.open.take() {
            cut.close(false, out);
        }
        out.extend(self.native().map(ModelEvent::Native));
        out.extend(self.usage.map(ModelEvent::Usage));
        out.extend(self.stop_detail.take().map(ModelEvent::StopDetail));
        let finish = match self.finish {
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
    fn chunk(&mut self, json: &str, out: &mut VecDeque<ModelEvent>) -> Result<(), Error> {
        let chunk: Chunk<'_> =
            serde_json::from_str(json).map_err(|error| self.owner.unreadable(&error))?;
        if let Some(error) = chunk.error {
            return Err(fault::in_stream(self.owner.origin(), error.get()));
        }
        if let Some(usage) = chunk.usage_metadata.and_then(wire::usage) {
            // The input tokens are known from the first chunk on, even if the answer is stopped.
            if self.usage.is_none() && self.finish.is_none() {
                out.push_back(ModelEvent::Usage(usage));
            }
            self.usage = Some(usage);
        }
        let feedback = chunk.prompt_feedback;
        if let Some(feedback) = feedback.filter(|feedback| !feedback.block_reason.0.is_empty()) {
            let words = [&feedback.block_reason.0, &feedback.block_reason_message.0];
            self.filtered(words.map(AsRef::as_ref));
        }
        for candidate in chunk.candidates {
            if candidate.index.unwrap_or_default() == 0 {
                self.candidate(candidate, out)?;
            }
        }
        Ok(())
    }

    fn candidate(
        &mut self,
        candidate: Candidate<'_>,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), Error> {
        for part in candidate.content.into_iter().flat_map(|c| c.parts) {
            self.part(part, out)?;
        }
        match candidate.finish_reason.0.as_ref() {
            "" | "FINISH_REASON_UNSPECIFIED" => {}
            "STOP" => self.finish = Some(Finish::Stop),
            "MAX_TOKENS" => self.finish = Some(Finish::Length),
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "ESCALATION"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => {
                let words = [&candidate.finish_reason.0, &candidate.finish_message.0];
                self.filtered(words.map(AsRef::as_ref));
            }
            // The model wrote a call that its own vendor cannot parse; a retry helps.
            "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => {
                let origin = self.owner.origin();
                return Err(fault::in_stream(
                    origin,
                    "\"the model broke off in a call\"",
                ));
            }
            _ => self.finish = Some(Finish::Other),
        }
        Ok(())
    }

    /// Records that the filter stopped the answer, with its reason and message.
    fn filtered(&mut self, words: [&str; 2]) {
        self.finish = Some(Finish::Filtered);
        let words = words.into_iter().filter(|words| !words.is_empty());
        let words = words.collect::<Vec<_>>().join(": ");
        self.stop_detail = Some(quote(&words, self.owner.origin().key));
    }

    fn part(&mut self, part: PartForm<'_>, out: &mut VecDeque<ModelEvent>) -> Result<(), Error> {
        let signature = part.thought_signature.0;
        let signature = (!signature.is_empty()).then(|| signature.into_owned());
        if let Some(call) = part.function_call {
            return self.call(&call, signature, out);
        }
        let text = part.text.0.into_owned();
        if let Some(signature) = signature {
            self.kept.push(NativeParts {
                place: Position {
                    text: self.text,
                    length: if part.thought { 0 } else { text.len() },
                    calls: self.calls,
                },
                thought: part.thought.then(|| text.clone()),
                thought_signature: Some(signature),
                ..NativeParts::default()
            });
        }
        if text.is_empty() {
            return Ok(());
        }
        if part.thought {
            out.push_back(ModelEvent::Reasoning(text));
        } else {
            self.text = self.text.saturating_add(text.len());
            out.push_back(ModelEvent::Text(text));
        }
        Ok(())
    }

    /// Handles a part of a call. Most calls arrive complete and without an id. A streamed call starts with
    /// its name, continues without one, and ends with a part that announces no other, usually an empty one.
    fn call(
        &mut self,
        call: &CallForm<'_>,
        signature: Option<String>,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), Error> {
        let is_more = call.name.0.trim().is_empty() || self.is_open_as(call);
        let mut open = match self.open.take() {
            Some(open) if is_more => open,
            // A further end marker of a call that has already ended.
            None if call.is_empty() => return Ok(()),
            before => {
                if let Some(before) = before {
                    before.close(true, out);
                }
                self.begin(call, out)?
            }
        };
        self.keep_of_call(open.index, call.id.0.as_ref(), signature);
        if let Some(args) = call.args {
            match serde_json::from_str(args.get()) {
                Ok(Value::Object(args)) => open.pieces.merge(args),
                Ok(Value::Null) => {}
                // The arguments are invalid; the model reads the error.
                _ => {
                    let (index, json) = (open.index, args.get().to_owned());
                    out.push_back(ModelEvent::CallArguments { index, json });
                    return Ok(());
                }
            }
        }
        for piece in &call.partial_args {
            let taken = open.pieces.take(piece);
            taken.map_err(|misfit| self.owner.bad(misfit.to_string()))?;
        }
        if call.will_continue {
            self.open = Some(open);
        } else {
            open.close(true, out);
        }
        Ok(())
    }

    /// Returns true if the part belongs to the open call and repeats its name and id.
    fn is_open_as(&self, call: &CallForm<'_>) -> bool {
        let id = call.id.0.as_ref();
        let open = self.open.as_ref().map(|open| open.index);
        let mut kept = self.kept.iter();
        !id.is_empty()
            && open.is_some()
            && kept.any(|kept| kept.call == open && kept.id.as_deref() == Some(id))
    }

    fn begin(
        &mut self,
        call: &CallForm<'_>,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<Open, Error> {
        if self.calls >= MAX_CALLS {
            return Err(self.owner.bad(format!("more than {MAX_CALLS} tool calls")));
        }
        let index = self.calls;
        self.calls += 1;
        out.push_back(ModelEvent::CallStarted {
            index,
            provider_id: call.id.0.clone().into_owned(),
            name: self.names.original(&call.name.0).to_owned(),
        });
        Ok(Open {
            index,
            pieces: Pieces::default(),
        })
    }

    /// Keeps the id and signature of a call, from the first part that has them.
    fn keep_of_call(&mut self, index: usize, id: &str, signature: Option<String>) {
        let id = (!id.is_empty()).then(|| id.to_owned());
        if id.is_none() && signature.is_none() {
            return;
        }
        let known = self.kept.iter_mut().find(|kept| kept.call == Some(index));
        if let Some(known) = known {
            known.id = known.id.take().or(id);
            known.thought_signature = known.thought_signature.take().or(signature);
            return;
        }
        self.kept.push(NativeParts {
            call: Some(index),
            id,
            thought_signature: signature,
            ..NativeParts::default()
        });
    }

    /// The native blocks of the answer.
    fn native(&mut self) -> Option<Native> {
        let kept = std::mem::take(&mut self.kept);
        let blocks: Vec<Value> = kept
            .into_iter()
            .filter_map(|kept| serde_json::to_value(kept).ok())
            .collect();
        (!blocks.is_empty()).then(|| Native {
            family: self.family.clone(),
            blocks: Value::Array(blocks),
            compacts: false,
        })
    }
}

#[cfg(test)]
mod tests;
