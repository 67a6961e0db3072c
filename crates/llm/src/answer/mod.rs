//! Folds a stream of model events into the complete answer. Pure.

use serde_json::Value;

use super::{CompactedInput, Finish, ModelEvent};
use sepal_core::domain::{Native, TokenUsage};

/// The model's answer of one iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub text: String,
    /// The model's visible reasoning.
    pub reasoning: String,
    /// The calls that the model asked for, in order.
    pub calls: Vec<AskedCall>,
    /// Number of calls that were discarded: every call of an answer that the provider filtered or refused,
    /// and calls without a tool name.
    pub dropped_calls: usize,
    /// The tokens that the request used, if the provider reported them.
    pub usage: Option<TokenUsage>,
    /// The reason why the answer ended; `None` if the stream broke off before it.
    pub finish: Option<Finish>,
    /// The vendor's own explanation of the stop reason, if it gave one.
    pub stop_detail: Option<String>,
    /// Native blocks, which only the same provider family understands.
    pub native: Option<Native>,
    /// The vendor's compaction of the request, if it compacted before it answered.
    pub compacted: Option<CompactedInput>,
}

/// A call as the model wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedCall {
    /// The provider's id of the call; may be empty.
    pub provider_id: String,
    pub name: String,
    /// The arguments, or the reason why they are invalid.
    pub args: Result<Value, InvalidArguments>,
}

/// The arguments are not a JSON object. The model reads this error as the result of the call (S3.25).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArguments {
    /// The text is not a JSON object, although it is complete.
    #[error("Invalid arguments format: {problem}")]
    Malformed {
        /// The arguments as the model wrote them.
        raw: String,
        /// The parse error.
        problem: String,
    },
    /// The answer ended before the arguments were complete.
    #[error(
        "Not run: the answer was cut off before the arguments of this call were complete, most \
         likely because it reached its longest length. Ask for it again with shorter arguments, for \
         example a long text in several parts."
    )]
    CutOff {
        /// The part of the arguments that arrived.
        raw: String,
    },
}

impl InvalidArguments {
    /// The arguments as the model wrote them.
    pub fn raw(&self) -> &str {
        match self {
            Self::Malformed { raw, .. } | Self::CutOff { raw } => raw,
        }
    }
}

/// Collects the events of one answer. A partial answer can be read at any time.
#[derive(Debug, Clone, Default)]
pub struct Collector {
    text: String,
    reasoning: String,
    calls: Vec<RawCall>,
    usage: Option<TokenUsage>,
    finish: Option<Finish>,
    stop_detail: Option<String>,
    native: Option<Native>,
    compacted: Option<CompactedInput>,
}

#[derive(Debug, Clone)]
struct RawCall {
    index: usize,
    provider_id: String,
    name: String,
    json: String,
}

impl Collector {
    /// Adds the next event.
    pub fn push(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Text(piece) => self.text.push_str(piece),
            ModelEvent::Reasoning(piece) => self.reasoning.push_str(piece),
            ModelEvent::TextWasReasoning => {
                self.reasoning.push_str(&std::mem::take(&mut self.text));
            }
            ModelEvent::CallStarted {
                index,
                provider_id,
                name,
            } => self.start_call(*index, provider_id, name),
            ModelEvent::CallArguments { index, json } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.index == *index) {
                    call.json.push_str(json);
                }
            }
            ModelEvent::Usage(usage) => self.usage = Some(*usage),
            ModelEvent::Native(native) => self.native = Some(native.clone()),
            ModelEvent::Compacted(it) => self.compacted = Some(it.clone()),
            ModelEvent::StopDetail(words) => self.stop_detail = Some(words.clone()),
            ModelEvent::LeftOut(_) => {}
            ModelEvent::Finished(finish) => self.finish = Some(*finish),
        }
    }

    /// The text that has arrived so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if a call has complete arguments. Such an answer must not be requested again.
    pub fn has_whole_call(&self) -> bool {
        let last = self.calls.len().saturating_sub(1);
        self.calls
            .iter()
            .enumerate()
            .any(|(at, call)| at < last || is_whole(&call.json))
    }

    /// Turns the events that have arrived into an answer.
    pub fn finish(self) -> Answer {
        let asked = self.calls.len();
        let ending = Ending::of(self.finish);
        let means_something = |call: &RawCall| {
            let is_stopped = matches!(self.finish, Some(Finish::Filtered | Finish::Refused));
            !is_stopped && !call.name.trim().is_empty()
        };
        // Native blocks are placed by call index, so they are kept only if no call before a kept one was
        // dropped.
        let keeps_places = self
            .calls
            .iter()
            .take_while(|call| means_something(call))
            .count();
        let calls = self.calls.into_iter().filter(means_something);
        let calls: Vec<AskedCall> = calls.map(|call| call.parse(ending)).collect();
        let dropped_calls = asked - calls.len();
        let has_places = dropped_calls == 0 || !calls.is_empty() && keeps_places == calls.len();
        Answer {
            text: self.text,
            reasoning: self.reasoning,
            usage: self.usage,
            finish: match self.finish {
                Some(Finish::Calls) if calls.is_empty() => Some(Finish::Stop),
                finish => finish,
            },
            stop_detail: self.stop_detail,
            compacted: self.compacted,
            native: self.native.filter(|_| has_places),
            calls,
            dropped_calls,
        }
    }

    fn start_call(&mut self, index: usize, provider_id: &str, name: &str) {
        if self.calls.iter().any(|call| call.index == index) {
            return;
        }
        self.calls.push(RawCall {
            index,
            provider_id: provider_id.to_owned(),
            name: name.to_owned(),
            json: String::new(),
        });
    }
}

/// Tells whether the model finished its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Whole,
    /// The answer was cut off, or its end is unknown.
    Short,
}

impl Ending {
    fn of(finish: Option<Finish>) -> Self {
        match finish {
            Some(Finish::Stop | Finish::Calls | Finish::Paused) => Self::Whole,
            Some(
                Finish::Length
                | Finish::Filtered
                | Finish::Refused
                | Finish::WindowFull
                | Finish::Other,
            )
            | None => Self::Short,
        }
    }
}

impl RawCall {
    fn parse(self, ending: Ending) -> AskedCall {
        AskedCall {
            provider_id: self.provider_id,
            name: self.name,
            args: parse_arguments(self.json, ending),
        }
    }
}

/// Parses arguments. `null` counts as an empty object, and so does an empty text if the answer is complete;
/// in an answer that was cut off, the missing arguments are unknown. A JSON string that contains an object
/// counts as that object (S3.24).
fn parse_arguments(raw: String, ending: Ending) -> Result<Value, InvalidArguments> {
    let is_empty = raw.trim().is_empty();
    if is_empty && ending == Ending::Whole {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str(&raw) {
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(object)) => Ok(Value::Object(object)),
            _ => Err(no_object(raw)),
        },
        Ok(Value::Object(object)) => Ok(Value::Object(object)),
        Ok(Value::Null) => Ok(Value::Object(serde_json::Map::new())),
        Ok(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => Err(no_object(raw)),
        Err(error) if ending == Ending::Short && (is_empty || error.is_eof()) => {
            Err(InvalidArguments::CutOff { raw })
        }
        Err(error) => Err(InvalidArguments::Malformed {
            raw,
            problem: error.to_string(),
        }),
    }
}

fn no_object(raw: String) -> InvalidArguments {
    InvalidArguments::Malformed {
        raw,
        problem: "expected a JSON object".to_owned(),
    }
}

fn is_whole(json: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok()
}

#[cfg(test)]
mod tests;
