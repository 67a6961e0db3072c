//! Turns the chunks of a stream into events. Pure; forgiving about everything that real servers do.

use std::collections::VecDeque;

use serde_json::Value;

use super::calls::Calls;
use super::fault;
use super::wire::{self, Choice, Chunk, Delta};
use crate::domain::{Native, TokenUsage};
use crate::llm::endpoint::Owner;
use crate::llm::envelope::Envelope;
use crate::llm::names::Names;
use crate::llm::streaming::{Assemble, MAX_ANSWER_BYTES};
use crate::llm::surrogates::mend;
use crate::llm::{Error, Finish, ModelEvent};

/// What an assembler needs to know of its request.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) owner: Owner,
    pub(super) names: Names,
    /// The family that native blocks are marked with; none = they are not kept.
    pub(super) family: Option<String>,
}

/// The state of one answer.
#[derive(Debug)]
pub(super) struct Assembler {
    context: Context,
    calls: Calls,
    usage: Option<TokenUsage>,
    finish: Option<Finish>,
    reasoning: String,
    bytes: usize,
    /// Of the last chunk that said nothing but a piece of the answer.
    envelope: Envelope,
}

impl Assembler {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context,
            calls: Calls::default(),
            usage: None,
            finish: None,
            reasoning: String::new(),
            bytes: 0,
            envelope: Envelope::default(),
        }
    }

    /// The next payload is read whole.
    #[cfg(test)]
    pub(super) fn forget_envelope(&mut self) {
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
            if !text.0.is_empty() {
                out.push_back(ModelEvent::Text(text.0.into_owned()));
            }
            return Ok(false);
        }
        let mended;
        let chunk: Chunk<'_> = match serde_json::from_str(payload) {
            Ok(chunk) => chunk,
            Err(error) => {
                mended = mend(payload).ok_or_else(|| self.context.owner.unreadable(&error))?;
                serde_json::from_str(&mended)
                    .map_err(|error| self.context.owner.unreadable(&error))?
            }
        };
        if let Some(error) = chunk.error {
            return Err(fault::in_stream(self.context.owner.origin(), error.get()));
        }
        if chunk.object.0 == "error" {
            return Err(fault::in_stream(self.context.owner.origin(), payload));
        }
        if let Some(text) = chunk.only_text() {
            self.envelope.note(payload, text);
        }
        let extension = chunk.x_groq.and_then(|extension| extension.usage);
        if let Some(raw) = chunk.usage.or(extension) {
            self.usage = wire::usage(raw).or(self.usage);
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
        self.calls.announce_all(&self.context.names, out);
        out.extend(self.native().map(ModelEvent::Native));
        out.extend(self.usage.map(ModelEvent::Usage));
        let finish = match self.finish {
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
    fn choice(&mut self, choice: Choice<'_>, out: &mut VecDeque<ModelEvent>) -> Result<(), Error> {
        if let Some(raw) = choice.usage {
            self.usage = wire::usage(raw).or(self.usage);
        }
        if let Some(delta) = choice.delta.or(choice.message) {
            self.delta(delta, out)?;
        }
        match choice.finish_reason.0.as_ref() {
            "" => {}
            "stop" | "eos" | "end_turn" => self.finish = Some(Finish::Stop),
            "tool_calls" | "function_call" => self.finish = Some(Finish::Calls),
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
        let thought = if delta.reasoning_content.0.is_empty() {
            delta.reasoning.0
        } else {
            if self.context.family.is_some() {
                self.reasoning.push_str(&delta.reasoning_content.0);
            }
            delta.reasoning_content.0
        };
        if !thought.is_empty() {
            out.push_back(ModelEvent::Reasoning(thought.into_owned()));
        }
        for text in [delta.content.0, delta.refusal.0] {
            if !text.is_empty() {
                out.push_back(ModelEvent::Text(text.into_owned()));
            }
        }
        for call in &delta.tool_calls {
            let taken = self.calls.push(call, &self.context.names, out);
            taken.map_err(|problem| self.context.owner.bad(problem.to_string()))?;
        }
        Ok(())
    }

    /// What the same server wants back with these calls.
    fn native(&mut self) -> Option<Native> {
        let family = self.context.family.clone()?;
        if self.calls.is_empty() {
            return None;
        }
        let mut blocks = serde_json::Map::new();
        if !self.reasoning.is_empty() {
            let reasoning = std::mem::take(&mut self.reasoning);
            blocks.insert("reasoning_content".to_owned(), Value::String(reasoning));
        }
        if let Some(extra) = self.calls.take_extra() {
            blocks.insert("extra_content".to_owned(), extra);
        }
        (!blocks.is_empty()).then_some(Native {
            family,
            blocks: Value::Object(blocks),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use serde_json::json;

    use super::{Assembler, Context};
    use crate::domain::{Tool, ToolAnnotations};
    use crate::llm::endpoint::Owner;
    use crate::llm::names::{Names, fit};
    use crate::llm::streaming::{Assemble as _, MAX_CALLS};
    use crate::llm::{Error, ModelEvent};

    fn assembler() -> Assembler {
        Assembler::new(Context {
            owner: Owner {
                provider: "p".to_owned(),
                key: None,
            },
            names: Names::default(),
            family: Some("f".to_owned()),
        })
    }

    fn run(payloads: &[&str]) -> Result<Vec<ModelEvent>, Error> {
        let mut assembler = assembler();
        let mut out = VecDeque::new();
        for payload in payloads {
            if assembler.push(payload, &mut out)? {
                break;
            }
        }
        assembler.end(&mut out);
        Ok(out.into())
    }

    /// Events as one line: `text`, `(thought)`, `0:id/name`, `0+json`, `#in/out`, `native`, `.why`.
    fn check(payloads: &[&str], expected: &str) {
        let shown = run(payloads)
            .unwrap()
            .iter()
            .map(|event| match event {
                ModelEvent::Text(text) => text.clone(),
                ModelEvent::Reasoning(text) => format!("({text})"),
                ModelEvent::CallStarted {
                    index,
                    provider_id,
                    name,
                } => format!("{index}:{provider_id}/{name}"),
                ModelEvent::CallArguments { index, json } => format!("{index}+{json}"),
                ModelEvent::Usage(usage) => {
                    format!("#{}/{}", usage.input_tokens, usage.output_tokens)
                }
                ModelEvent::Native(native) => native.blocks.to_string(),
                ModelEvent::Finished(finish) => format!(".{}", finish.as_str()),
            })
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(shown, expected, "{payloads:?}");
    }

    fn calls(json: &str) -> String {
        format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{json}]}}}}]}}"#)
    }

    #[test]
    fn text_thoughts_and_reasons_are_read_as_servers_spell_them() {
        check(
            &[
                r#"{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
                r#"{"choices":[{"index":0,"delta":{"content":"hä"},"logprobs":null}]}"#,
                r#"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#,
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
                "[DONE]",
                "never read",
            ],
            "hä #5/2 .stop",
        );
        check(
            &[
                r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
                r#"{"choices":[{"delta":{"reasoning":"mh","content":null}}]}"#,
                r#"{"choices":[{"delta":{"refusal":"no"},"finish_reason":"length"}]}"#,
            ],
            "(hm) (mh) no .length",
        );
        check(&[r#"{"choices":null}"#, r#"{"x":1}"#], ".other");
        check(
            &[r#"{"choices":[{"finish_reason":"content_filter"}]}"#],
            ".content_filter",
        );
        check(
            &[r#"{"choices":[{"delta":null,"finish_reason":"tool_calls"}]}"#],
            ".stop",
        );
        check(
            &[r#"{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}"#],
            "a .other",
        );
    }

    #[test]
    fn usage_is_found_in_odd_places_and_the_last_counts() {
        check(
            &[
                r#"{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":1,"completion_tokens":2}}}"#,
            ],
            "#1/2 .other",
        );
        check(
            &[
                r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
                r#"{"choices":[{"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":4}}]}"#,
                r#"{"choices":[],"usage":{"odd":true}}"#,
            ],
            "#3/4 .stop",
        );
    }

    #[test]
    fn a_whole_answer_is_read_like_a_stream() {
        check(
            &[
                r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[
                {"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]},
                "finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
            ],
            "hi 0:a/t 0+{} #1/2 .tool_calls",
        );
    }

    #[test]
    fn what_the_server_wants_back_is_kept_with_calls_only() {
        let thought = r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#;
        let call = calls(
            r#"{"index":0,"id":"a","extra_content":{"s":"x"},"function":{"name":"t","arguments":"{}"}}"#,
        );
        check(&[thought], "(hm) .other");
        check(
            &[thought, &call],
            r#"(hm) 0:a/t 0+{} {"extra_content":[{"s":"x"}],"reasoning_content":"hm"} .tool_calls"#,
        );
    }

    #[test]
    fn an_alias_leads_back_to_the_tool() {
        let tool = Tool {
            name: "files.read".to_owned(),
            title: None,
            description: String::new(),
            input_schema: json!(null),
            annotations: ToolAnnotations::default(),
        };
        let mut assembler = Assembler::new(Context {
            names: Names::of(&[tool]),
            ..assembler().context
        });
        let mut out = VecDeque::new();
        let call = json!({"id": "a", "function": {"name": fit("files.read"), "arguments": "{}"}});
        assembler.push(&calls(&call.to_string()), &mut out).unwrap();
        assert!(matches!(&out[0], ModelEvent::CallStarted { name, .. } if name == "files.read"));
    }

    #[test]
    fn errors_in_the_stream_and_broken_chunks_are_told_apart() {
        fn check(payload: &str, is_right: fn(&Error) -> bool) {
            let error = run(&[r#"{"choices":[{"delta":{"content":"a"}}]}"#, payload]).unwrap_err();
            assert!(is_right(&error), "{payload}: {error:?}");
        }
        check(r#"{"error":{"message":"x","type":"server_error"}}"#, |e| {
            matches!(e, Error::Unavailable { .. })
        });
        check(r#"{"error":"x"}"#, |e| {
            matches!(e, Error::Unavailable { .. })
        });
        check(r#"{"object":"error","message":"x","code":429}"#, |e| {
            matches!(e, Error::RateLimited { .. })
        });
        check(r#"{"choices":[{"finish_reason":"error"}]}"#, |e| {
            matches!(e, Error::Unavailable { .. })
        });
        check(r#"{"choices":[{"delta":{"con"#, |e| {
            matches!(e, Error::Cut { .. })
        });
        check("nonsense", |e| matches!(e, Error::BadAnswer { .. }));
        check(r#"{"choices":7}"#, |e| matches!(e, Error::BadAnswer { .. }));
        let deep = format!(r#"{{"x":{}"#, "[".repeat(100_000));
        assert!(run(&[&deep]).is_err());
        let many: Vec<String> = (0..=MAX_CALLS)
            .map(|i| calls(&format!(r#"{{"index":{i}}}"#)))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(matches!(run(&many), Err(Error::BadAnswer { .. })));
    }
}
