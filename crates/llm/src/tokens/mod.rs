//! Counts tokens by model: exactly if the tokenizer is published, else as four characters per token (S0.10),
//! corrected by the provider's reports. Each kind of entry has its own overhead (S0.7-S0.9).

mod calibration;
mod counter;
mod exact;

use std::io;

use serde::Serialize;

pub use self::calibration::Calibration;
pub use self::counter::{BesideText, Counter, Method, of_attachment};
use super::{Answer, Request};
use sepal_core::domain::{Entry, TokenUsage, Tool};

/// Characters per token.
pub const CHARACTERS_PER_TOKEN: u64 = 4;
/// Tokens of a message beside its text: role and separators.
const MESSAGE_OVERHEAD: u64 = 4;
/// Tokens of a call beside name and arguments: id and structure.
const CALL_OVERHEAD: u64 = 8;
/// Tokens of a result beside its text: the id of its call.
const RESULT_OVERHEAD: u64 = 8;
/// Tokens of a tool definition beside its texts.
const TOOL_OVERHEAD: u64 = 8;

/// Estimates the tokens of one entry.
pub fn estimate(entry: &Entry) -> u64 {
    Counter::default().entry(entry)
}

/// Estimates the tokens of a text.
pub fn of_text(text: &str) -> u64 {
    of_characters(text)
}

/// Estimates the tokens of a tool's definition.
pub fn of_tool(tool: &Tool) -> u64 {
    Counter::default().tool(tool)
}

/// Estimates the tokens of a complete request: system prompt, tools and entries.
pub fn of_request(request: &Request) -> u64 {
    let system = request.system.as_deref();
    system.map_or(0, |text| of_text(text) + MESSAGE_OVERHEAD)
        + request.tools.iter().map(of_tool).sum::<u64>()
        + request.entries.iter().map(estimate).sum::<u64>()
}

/// Estimates the usage of a request, if the provider did not report it (S1.3).
pub fn estimated_usage(request: &Request, answer: &Answer) -> TokenUsage {
    estimated_of(of_request(request), answer)
}

/// Like [`estimated_usage`], with a known count of input tokens.
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
        cache_write_long_tokens: 0,
        output_tokens: of_text(&answer.text) + reasoning_tokens + calls.sum::<u64>(),
        reasoning_tokens,
        is_estimated: true,
    }
}

fn of_characters(text: &str) -> u64 {
    tokens(text.chars().count() as u64)
}

/// Counts the characters of the JSON form without building it.
fn of_json(value: &impl Serialize) -> u64 {
    let mut count = CharacterCount(0);
    // Writing to the counter cannot fail, and a value that cannot be serialized counts as nothing.
    let _ = serde_json::to_writer(&mut count, value);
    tokens(count.0)
}

fn tokens(characters: u64) -> u64 {
    characters.div_ceil(CHARACTERS_PER_TOKEN)
}

struct CharacterCount(u64);

impl io::Write for CharacterCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Every byte of UTF-8 starts a character, except continuation bytes.
        self.0 += bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
