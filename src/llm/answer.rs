//! Folds a stream of events into the whole answer. Pure.

use serde_json::Value;

use super::{Finish, ModelEvent};
use crate::domain::{Native, TokenUsage};

/// What a model said in one iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// What it thought aloud.
    pub reasoning: String,
    /// The calls that it asked for, in order.
    pub calls: Vec<AskedCall>,
    /// What the request used, if the provider said it.
    pub usage: Option<TokenUsage>,
    /// Why it stopped; none = the stream ended before it did.
    pub finish: Option<Finish>,
    /// Blocks for the same provider family.
    pub native: Option<Native>,
}

/// A call as a model asked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedCall {
    /// The provider's id; may be empty.
    pub provider_id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, or why they cannot be read.
    pub args: Result<Value, InvalidArguments>,
}

/// Arguments that are no JSON object. The text is what the model reads as the call's result (S3.25).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid arguments format: {problem}")]
pub struct InvalidArguments {
    /// What the model wrote.
    pub raw: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Collects events; at any time it can say what came so far.
#[derive(Debug, Clone, Default)]
pub struct Collector {
    text: String,
    reasoning: String,
    calls: Vec<RawCall>,
    usage: Option<TokenUsage>,
    finish: Option<Finish>,
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
        Answer {
            text: self.text,
            reasoning: self.reasoning,
            calls: self.calls.into_iter().map(RawCall::parse).collect(),
            usage: self.usage,
            finish: self.finish,
            native: self.native,
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

impl RawCall {
    fn parse(self) -> AskedCall {
        AskedCall {
            provider_id: self.provider_id,
            name: self.name,
            args: parse_arguments(self.json),
        }
    }
}

/// Reads arguments. Nothing and `null` mean none; an object in a string counts as the object (S3.24).
fn parse_arguments(raw: String) -> Result<Value, InvalidArguments> {
    if raw.trim().is_empty() {
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
        Err(error) => Err(InvalidArguments {
            raw,
            problem: error.to_string(),
        }),
    }
}

fn no_object(raw: String) -> InvalidArguments {
    InvalidArguments {
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
    use crate::domain::TokenUsage;
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

    #[test]
    fn arguments_are_an_object_or_say_why_not() {
        fn check(raw: &str, expected: Result<Value, &str>) {
            let answer = fold(&[call(0, "t"), args(0, raw)]);
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
