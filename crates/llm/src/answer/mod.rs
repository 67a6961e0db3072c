//! Folds a stream of events into the whole answer. Pure.

use serde_json::Value;

use super::{CompactedInput, Finish, ModelEvent};
use sepal_core::domain::{Native, TokenUsage};

/// What a model said in one iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub text: String,
    /// What it thought aloud.
    pub reasoning: String,
    /// The calls that it asked for, in order.
    pub calls: Vec<AskedCall>,
    /// How many more it asked for that mean nothing: all of an answer that the provider's filter
    /// stopped, and those without a tool's name.
    pub dropped_calls: usize,
    /// What the request used, if the provider said it.
    pub usage: Option<TokenUsage>,
    /// Why it stopped; none = the stream ended before it did.
    pub finish: Option<Finish>,
    /// The same in the vendor's words, where it gave some.
    pub stop_detail: Option<String>,
    /// Blocks for the same provider family.
    pub native: Option<Native>,
    /// What the vendor compacted of the request before it answered.
    pub compacted: Option<CompactedInput>,
}

/// A call as a model asked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedCall {
    /// The provider's id; may be empty.
    pub provider_id: String,
    pub name: String,
    /// The arguments, or why they cannot be read.
    pub args: Result<Value, InvalidArguments>,
}

/// Arguments that are no JSON object. The text is what the model reads as the call's result (S3.25).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArguments {
    /// The model wrote something else.
    #[error("Invalid arguments format: {problem}")]
    Malformed {
        /// What the model wrote.
        raw: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The answer ended before they were whole.
    #[error(
        "Not run: the answer was cut off before the arguments of this call were complete, most \
         likely because it reached its longest length. Ask for it again with shorter arguments, for \
         example a long text in several parts."
    )]
    CutOff {
        /// What came of them.
        raw: String,
    },
}

impl InvalidArguments {
    /// What the model wrote.
    pub fn raw(&self) -> &str {
        match self {
            Self::Malformed { raw, .. } | Self::CutOff { raw } => raw,
        }
    }
}

/// Collects events; at any time it can say what came so far.
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
    /// Takes the next event.
    pub fn push(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Text(piece) => self.text.push_str(piece),
            ModelEvent::Reasoning(piece) => self.reasoning.push_str(piece),
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

    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a call has all of its arguments: such an answer must not be asked for again.
    pub fn has_whole_call(&self) -> bool {
        let last = self.calls.len().saturating_sub(1);
        self.calls
            .iter()
            .enumerate()
            .any(|(at, call)| at < last || is_whole(&call.json))
    }

    /// The answer as far as it came.
    pub fn finish(self) -> Answer {
        let asked = self.calls.len();
        let ending = Ending::of(self.finish);
        let means_something = |call: &RawCall| {
            let is_stopped = matches!(self.finish, Some(Finish::Filtered | Finish::Refused));
            !is_stopped && !call.name.trim().is_empty()
        };
        // What belongs to a call is found by the call's place, so none before it may be dropped.
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

/// Whether the model came to the end of what it wanted to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Whole,
    /// It did not, or nobody knows.
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

/// Reads arguments. `null` means none, and so does nothing at all if the answer is whole: of one that
/// was cut off nobody knows what was to come. An object in a string counts as the object (S3.24).
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
