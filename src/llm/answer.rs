//! Folds a stream of events into the whole answer. Pure.

use serde_json::Value;

use super::{Finish, ModelEvent};
use crate::domain::{Native, TokenUsage};

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
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{Answer, Collector};
    use crate::domain::{Native, TokenUsage};
    use crate::llm::{Finish, ModelEvent};

    fn fold(events: &[ModelEvent]) -> Answer {
        let mut collector = Collector::default();
        for event in events {
            collector.push(event);
        }
        collector.finish()
    }

    fn args(index: usize, json: &str) -> ModelEvent {
        ModelEvent::CallArguments {
            index,
            json: json.to_owned(),
        }
    }

    fn call(index: usize, name: &str) -> ModelEvent {
        ModelEvent::CallStarted {
            index,
            provider_id: format!("id{index}"),
            name: name.to_owned(),
        }
    }

    /// Asserts S3.24, S3.25.
    #[test]
    fn arguments_are_an_object_or_say_why_not() {
        fn check(raw: &str, expected: Result<Value, &str>) {
            let end = ModelEvent::Finished(Finish::Calls);
            let answer = fold(&[call(0, "t"), args(0, raw), end]);
            let got = answer.calls[0].args.clone().map_err(|e| e.to_string());
            match expected {
                Ok(value) => assert_eq!(got, Ok(value), "{raw}"),
                Err(start) => assert!(got.unwrap_err().starts_with(start), "{raw}"),
            }
        }
        check("", Ok(json!({})));
        check(" \n", Ok(json!({})));
        check("null", Ok(json!({})));
        check(r#"{"a":[1]}"#, Ok(json!({"a": [1]})));
        check(r#""{\"a\":1}""#, Ok(json!({"a": 1})));
        check(
            "[]",
            Err("Invalid arguments format: expected a JSON object"),
        );
        check("7", Err("Invalid arguments format: expected"));
        check(r#""text""#, Err("Invalid arguments format: expected"));
        check(r#"{"a":"#, Err("Invalid arguments format: EOF"));
        check(&"[".repeat(5_000), Err("Invalid arguments format: "));
    }

    /// S3.25: what becomes of one call of an answer that ended so: its arguments, why not, or nothing.
    #[test]
    fn a_call_is_only_what_the_end_left_whole() {
        fn check(finish: Finish, (name, raw): (&str, &str), expected: &str) {
            let answer = fold(&[call(0, name), args(0, raw), ModelEvent::Finished(finish)]);
            let shown = match answer.calls.first().map(|call| &call.args) {
                Some(Ok(args)) => args.to_string(),
                Some(Err(invalid)) => invalid.to_string(),
                None => format!("dropped {}", answer.dropped_calls),
            };
            assert!(
                shown.starts_with(expected),
                "{finish:?} {name} {raw}: {shown}"
            );
        }
        let cut = "Not run: the answer was cut off";
        for whole in [Finish::Stop, Finish::Calls] {
            check(whole, ("t", ""), "{}");
            check(whole, ("t", r#"{"a":1}"#), r#"{"a":1}"#);
            check(whole, ("t", r#"{"a":"#), "Invalid arguments format: EOF");
        }
        for short in [Finish::Length, Finish::Other] {
            check(short, ("t", ""), cut);
            check(short, ("t", " "), cut);
            check(short, ("t", r#"{"a":"#), cut);
            check(short, ("t", r#"{"a":1}"#), r#"{"a":1}"#);
            check(short, ("t", "{}"), "{}");
            check(short, ("t", "[]"), "Invalid arguments format: expected");
        }
        for raw in ["", r#"{"a":1}"#, r#"{"a":"#] {
            check(Finish::Filtered, ("t", raw), "dropped 1");
            for finish in [Finish::Stop, Finish::Calls, Finish::Length, Finish::Other] {
                check(finish, ("", raw), "dropped 1");
                check(finish, (" ", raw), "dropped 1");
            }
        }
        // Nothing is left to wait for, and nothing that names a call that is not there.
        let native = Native {
            family: "f".into(),
            blocks: json!([]),
        };
        let answer = fold(&[
            call(0, ""),
            ModelEvent::Native(native),
            ModelEvent::Finished(Finish::Calls),
        ]);
        assert_eq!((answer.finish, answer.native), (Some(Finish::Stop), None));
    }

    #[test]
    fn a_call_counts_as_whole_only_when_its_arguments_are() {
        let mut collector = Collector::default();
        assert!(!collector.has_whole_call());
        for (event, whole) in [
            (call(0, "t"), false),
            (args(0, r#"{"a""#), false),
            (args(0, ":1}"), true),
        ] {
            collector.push(&event);
            assert_eq!(collector.has_whole_call(), whole, "{event:?}");
        }
        let mut second = Collector::default();
        second.push(&call(0, "t"));
        second.push(&call(1, "t"));
        assert!(second.has_whole_call(), "the next call ends the one before");
    }

    fn any_event() -> impl Strategy<Value = ModelEvent> {
        prop_oneof![
            ".{0,6}".prop_map(ModelEvent::Text),
            ".{0,6}".prop_map(ModelEvent::Reasoning),
            (0..4_usize).prop_map(|index| call(index, "t")),
            (0..4_usize, ".{0,6}").prop_map(|(index, json)| args(index, &json)),
            any::<u64>().prop_map(|n| ModelEvent::Usage(TokenUsage {
                input_tokens: n,
                ..TokenUsage::default()
            })),
            Just(ModelEvent::Finished(Finish::Stop)),
        ]
    }

    proptest! {
        #[test]
        fn any_events_fold_without_loss_of_text(events in prop::collection::vec(any_event(), 0..40)) {
            let answer = fold(&events);
            let text: String = events
                .iter()
                .filter_map(|event| if let ModelEvent::Text(text) = event { Some(text.as_str()) } else { None })
                .collect();
            prop_assert_eq!(answer.text, text);
            prop_assert!(answer.calls.len() <= 4);
        }

        #[test]
        fn how_arguments_are_split_does_not_matter(
            map in prop::collection::btree_map("[a-z]{1,4}", "\\PC{0,8}", 0..4),
            at in any::<prop::sample::Index>(),
        ) {
            let text = serde_json::to_string(&map).unwrap();
            let cut = (0..=text.len()).filter(|&i| text.is_char_boundary(i)).collect::<Vec<_>>();
            let (head, tail) = text.split_at(cut[at.index(cut.len())]);
            let whole = fold(&[call(0, "t"), args(0, &text)]);
            let split = fold(&[call(0, "t"), args(0, head), args(0, tail)]);
            prop_assert_eq!(&whole, &split);
            prop_assert_eq!(whole.calls[0].args.clone(), Ok(json!(map)));
        }
    }
}
