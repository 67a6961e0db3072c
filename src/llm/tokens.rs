//! Token estimates where no tokenizer is at hand: 4 characters are one token (S0.10), each kind of
//! entry with its own overhead (S0.7-S0.9). Pure.

use std::io;

use serde::Serialize;

use super::{Answer, Request};
use crate::domain::{Entry, ModelCall, TokenUsage, Tool};

/// Characters of one token.
const CHARACTERS_PER_TOKEN: u64 = 4;
/// What a message costs beside its text: role and separators.
const MESSAGE_OVERHEAD: u64 = 4;
/// What a call costs beside name and arguments: id and structure.
const CALL_OVERHEAD: u64 = 8;
/// What a result costs beside its text: the id of its call.
const RESULT_OVERHEAD: u64 = 8;
/// What a tool definition costs beside its texts.
const TOOL_OVERHEAD: u64 = 8;

/// The tokens of one entry.
pub fn estimate(entry: &Entry) -> u64 {
    match entry {
        Entry::User { text, .. } | Entry::Note { text } => of_text(text) + MESSAGE_OVERHEAD,
        Entry::Assistant {
            text,
            calls,
            native,
        } => {
            let calls: u64 = calls.iter().map(of_call).sum();
            let native = native.as_ref().map_or(0, |native| of_json(&native.blocks));
            of_text(text) + calls + native + MESSAGE_OVERHEAD
        }
        Entry::ToolResult { text, .. } => of_text(text) + RESULT_OVERHEAD + MESSAGE_OVERHEAD,
    }
}

/// The tokens of a text.
pub fn of_text(text: &str) -> u64 {
    tokens(text.chars().count() as u64)
}

/// The tokens of a tool's definition.
pub fn of_tool(tool: &Tool) -> u64 {
    of_text(&tool.name) + of_text(&tool.description) + of_json(&tool.input_schema) + TOOL_OVERHEAD
}

/// The tokens of a whole request: system prompt, tools and entries.
pub fn of_request(request: &Request) -> u64 {
    let system = request.system.as_deref();
    system.map_or(0, |text| of_text(text) + MESSAGE_OVERHEAD)
        + request.tools.iter().map(of_tool).sum::<u64>()
        + request.entries.iter().map(estimate).sum::<u64>()
}

/// What a request used, where the provider did not say it (S1.3).
pub fn estimated_usage(request: &Request, answer: &Answer) -> TokenUsage {
    estimated_of(of_request(request), answer)
}

/// The same where the tokens of the request have been counted.
pub fn estimated_of(input_tokens: u64, answer: &Answer) -> TokenUsage {
    let calls = answer.calls.iter().map(|call| {
        let args = match &call.args {
            Ok(args) => of_json(args),
            Err(invalid) => of_text(invalid.raw()),
        };
        of_text(&call.name) + args + CALL_OVERHEAD
    });
    let reasoning_tokens = of_text(&answer.reasoning);
    TokenUsage {
        input_tokens,
        cached_tokens: 0,
        cache_write_tokens: 0,
        output_tokens: of_text(&answer.text) + reasoning_tokens + calls.sum::<u64>(),
        reasoning_tokens,
        is_estimated: true,
    }
}

fn of_call(call: &ModelCall) -> u64 {
    of_text(&call.name) + of_json(&call.args) + CALL_OVERHEAD
}

/// Counts what the JSON form would be, without making it.
fn of_json(value: &impl Serialize) -> u64 {
    let mut count = CharacterCount(0);
    // Counting cannot fail, and a value that cannot be written costs nothing.
    let _ = serde_json::to_writer(&mut count, value);
    tokens(count.0)
}

fn tokens(characters: u64) -> u64 {
    characters.div_ceil(CHARACTERS_PER_TOKEN)
}

struct CharacterCount(u64);

impl io::Write for CharacterCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Every byte of UTF-8 but the continuing ones begins a character.
        self.0 += bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{estimate, estimated_usage, of_text};
    use crate::domain::{CallId, Entry, ModelCall, Native, TokenUsage, Tool, ToolAnnotations};
    use crate::llm::{Answer, AskedCall, InvalidArguments, Request};

    /// S0.10, S1.6, S2.62.
    #[test]
    fn four_characters_are_a_token() {
        for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("äöüß", 1)] {
            assert_eq!(of_text(text), tokens, "{text}");
        }
    }

    /// S0.6, S0.7, S0.8, S1.6, S1.17: texts, calls and results, each with what its form costs.
    #[test]
    fn every_kind_has_its_own_overhead() {
        fn check(entry: &Entry, tokens: u64) {
            assert_eq!(estimate(entry), tokens, "{entry:?}");
        }
        let text = || "12345678".to_owned();
        check(
            &Entry::User {
                seq: 1,
                text: text(),
            },
            2 + 4,
        );
        check(&Entry::Note { text: text() }, 2 + 4);
        let call = ModelCall {
            id: CallId::new(1, 0),
            provider_id: "x".repeat(100),
            name: "tool".to_owned(),
            args: json!({"a": "ä"}),
        };
        let said = |calls| Entry::Assistant {
            text: text(),
            calls,
            native: None,
        };
        check(&said(vec![]), 2 + 4);
        check(&said(vec![call]), 2 + 4 + (1 + 3 + 8));
        let result = Entry::ToolResult {
            call_id: CallId::new(1, 0),
            provider_id: String::new(),
            name: "tool".to_owned(),
            text: text(),
            is_error: false,
        };
        check(&result, 2 + 8 + 4);
    }

    /// S0.9, S1.6: what only a vendor understands, and arguments that are no object.
    #[test]
    fn content_of_an_unknown_kind_counts_as_its_json() {
        let said = |args, blocks| Entry::Assistant {
            text: String::new(),
            calls: vec![ModelCall {
                id: CallId::new(1, 0),
                provider_id: String::new(),
                name: "tool".to_owned(),
                args,
            }],
            native: Some(Native {
                family: "never-heard-of".to_owned(),
                blocks,
            }),
        };
        let call = |args: u64| 1 + args + 8;
        // 37 characters, four of which are two bytes.
        let unknown = json!([{"type": "never_seen", "data": "äöüß"}]);
        assert_eq!(estimate(&said(json!({}), unknown)), 4 + call(1) + 10);
        assert_eq!(estimate(&said(json!("{oops"), json!([]))), 4 + call(2) + 1);
        assert_eq!(estimate(&said(json!(null), json!(null))), 4 + call(1) + 1);
    }

    /// S1.3, S1.17: what is sent is counted whole, and so is what came, whatever it is.
    #[test]
    fn an_estimate_of_usage_counts_the_request_and_the_answer() {
        let tool = Tool {
            name: "tool".to_owned(),
            title: None,
            description: "12345678".to_owned(),
            input_schema: json!({}),
            annotations: ToolAnnotations::default(),
            needs_tasks: false,
        };
        let mut request = Request {
            model: "m".to_owned(),
            system: Some("Be kind.".into()),
            entries: [Entry::User {
                seq: 1,
                text: "12345678".to_owned(),
            }]
            .into(),
            tools: Arc::from([tool]),
            temperature: None,
            effort: None,
            max_tokens: None,
            max_output: None,
        };
        let asked = |args| AskedCall {
            provider_id: String::new(),
            name: "tool".to_owned(),
            args,
        };
        let answer = Answer {
            text: "abcd".to_owned(),
            reasoning: "abcdefgh".to_owned(),
            calls: vec![
                asked(Ok(json!({"a": "ä"}))),
                asked(Err(InvalidArguments::Malformed {
                    raw: "{oops".to_owned(),
                    problem: String::new(),
                })),
            ],
            ..Answer::default()
        };
        let usage = TokenUsage {
            input_tokens: (2 + 4) + (1 + 2 + 1 + 8) + (2 + 4),
            output_tokens: 1 + 2 + (1 + 3 + 8) + (1 + 2 + 8),
            reasoning_tokens: 2,
            is_estimated: true,
            ..TokenUsage::default()
        };
        assert_eq!(estimated_usage(&request, &answer), usage);
        request.system = None;
        request.tools = Arc::from([]);
        request.entries = [].into();
        let nothing = estimated_usage(&request, &Answer::default());
        assert_eq!((nothing.total(), nothing.is_estimated), (0, true));
    }
}
