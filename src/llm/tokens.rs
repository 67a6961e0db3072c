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
    let calls = answer.calls.iter().map(|call| {
        let args = match &call.args {
            Ok(args) => of_json(args),
            Err(invalid) => of_text(invalid.raw()),
        };
        of_text(&call.name) + args + CALL_OVERHEAD
    });
    let reasoning_tokens = of_text(&answer.reasoning);
    TokenUsage {
        input_tokens: of_request(request),
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
    use serde_json::json;

    use super::{estimate, of_text};
    use crate::domain::{CallId, Entry, ModelCall};

    #[test]
    fn four_characters_are_a_token() {
        for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("äöüß", 1)] {
            assert_eq!(of_text(text), tokens, "{text}");
        }
    }

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
}
