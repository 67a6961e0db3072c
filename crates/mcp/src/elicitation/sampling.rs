//! Validates the completion that a server requests (`sampling/createMessage`).

#![expect(
    deprecated,
    reason = "SEP-2577 ends sampling in a later revision; today's servers use it"
)]

use super::refused;
use crate::mask::Cleaner;
use rmcp::ErrorData;
use rmcp::model::{CreateMessageRequestParams, Role, SamplingMessageContentBlock};

/// The most bytes of all texts of a request.
const MAX_BYTES: usize = 128 * 1024;
/// The most messages of a request.
const MAX_MESSAGES: usize = 64;
/// The most stop sequences.
const MAX_STOPS: usize = 8;
/// The most model names that are considered.
const MAX_HINTS: usize = 8;
/// The most tokens of an answer; a server that asks for more gets this limit.
const MAX_TOKENS: u32 = 8_192;

/// A completion that a server requests.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingRequest {
    /// The server's system prompt.
    pub system: Option<String>,
    /// The messages, the newest last; the flag is true for the assistant's.
    pub messages: Vec<(bool, String)>,
    /// The most tokens of the answer.
    pub max_tokens: u32,
    pub temperature: Option<f64>,
    /// The stop sequences: the answer ends before the first of them.
    pub stop: Vec<String>,
    /// Names of models, or parts of names, best first.
    pub hints: Vec<String>,
}

impl SamplingRequest {
    /// Validates a server's request; the error tells the server what is wrong. `includeContext` is ignored:
    /// the client does not announce that servers can get a session's context.
    pub(super) fn read(asked: CreateMessageRequestParams) -> Result<Self, ErrorData> {
        if asked.tools.is_some() || asked.tool_choice.is_some() {
            return Err(refused(
                "`tools` and `toolChoice` cannot be used: the client does not announce \
                 `sampling.tools`",
            ));
        }
        let count = asked.messages.len();
        if count == 0 || count > MAX_MESSAGES {
            return Err(refused(&format!(
                "`messages` has 1 to {MAX_MESSAGES} of them"
            )));
        }
        let mut messages = Vec::with_capacity(count);
        for message in asked.messages {
            let is_assistant = message.role == Role::Assistant;
            let texts: Result<Vec<String>, ErrorData> = message
                .content
                .into_vec()
                .into_iter()
                .map(text_of)
                .collect();
            messages.push((is_assistant, texts?.join("\n\n")));
        }
        let preferences = asked.model_preferences;
        let hints = preferences.and_then(|it| it.hints).unwrap_or_default();
        let hints = hints.into_iter().filter_map(|hint| hint.name);
        let hints = hints.filter(|name| !name.is_empty() && name.len() <= 256);
        let request = Self {
            system: asked.system_prompt.filter(|text| !text.is_empty()),
            messages,
            max_tokens: asked.max_tokens.min(MAX_TOKENS),
            temperature: asked.temperature.map(rounded),
            stop: asked.stop_sequences.unwrap_or_default(),
            hints: hints.take(MAX_HINTS).collect(),
        };
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<(), ErrorData> {
        if self.max_tokens == 0 {
            return Err(refused("`maxTokens` is at least 1"));
        }
        let is_warm = |it: &f64| (0.0..=2.0).contains(it);
        if !self.temperature.as_ref().is_none_or(is_warm) {
            return Err(refused("`temperature` is between 0 and 2"));
        }
        if self.stop.len() > MAX_STOPS || self.stop.iter().any(String::is_empty) {
            return Err(refused(&format!(
                "`stopSequences` has {MAX_STOPS} texts at most, and none of them is empty"
            )));
        }
        let said = self.messages.iter().map(|(_, text)| text.len());
        let bytes = said.chain(self.system.as_ref().map(String::len));
        let bytes: usize = bytes.chain(self.stop.iter().map(String::len)).sum();
        if bytes > MAX_BYTES {
            return Err(refused(&format!(
                "all texts of a request may have {MAX_BYTES} bytes together"
            )));
        }
        Ok(())
    }

    /// Masks the server's secrets.
    pub(super) fn clean(&mut self, cleaner: &Cleaner) {
        let said = self.messages.iter_mut().map(|(_, text)| text);
        let texts = said.chain(self.system.as_mut()).chain(&mut self.stop);
        for text in texts {
            *text = cleaner.clean(text);
        }
    }
}

/// Converts a temperature to its decimal text's value instead of the nearest single precision number.
fn rounded(temperature: f32) -> f64 {
    temperature
        .to_string()
        .parse()
        .unwrap_or(f64::from(temperature))
}

fn text_of(content: SamplingMessageContentBlock) -> Result<String, ErrorData> {
    match content {
        SamplingMessageContentBlock::Text(text) => Ok(text.text),
        SamplingMessageContentBlock::Image(_) | SamplingMessageContentBlock::Audio(_) => Err(
            refused("only messages of `type: \"text\"` can be passed to the model"),
        ),
        // Belongs to `tools`, or to a later revision.
        SamplingMessageContentBlock::ToolUse(_)
        | SamplingMessageContentBlock::ToolResult(_)
        | _ => Err(refused(
            "messages of tools cannot be passed on: the client does not announce `sampling.tools`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use rmcp::model::ErrorCode;
    use serde_json::Value;

    use super::*;

    fn read(value: Value) -> Result<SamplingRequest, ErrorData> {
        SamplingRequest::read(serde_json::from_value(value).unwrap())
    }

    fn said(text: &str) -> Value {
        json!([{ "role": "user", "content": { "type": "text", "text": text } }])
    }

    #[test]
    fn what_is_asked_is_read_and_bounded() {
        let asked = json!({
            "messages": said("Hi"), "maxTokens": 100_000, "systemPrompt": "Be brief.",
            "temperature": 0.1, "includeContext": "allServers", "stopSequences": ["END"],
            "modelPreferences": { "hints": [{ "name": "small" }, {}], "costPriority": 1.0 },
        });
        let expected = SamplingRequest {
            system: Some("Be brief.".into()),
            messages: vec![(false, "Hi".into())],
            max_tokens: MAX_TOKENS,
            temperature: Some(0.1),
            stop: vec!["END".into()],
            hints: vec!["small".into()],
        };
        assert_eq!(read(asked).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_the_reason() {
        let image = json!({ "type": "image", "data": "", "mimeType": "image/png" });
        for (asked, reason) in [
            (json!({ "messages": [], "maxTokens": 1 }), "1 to 64"),
            (
                json!({ "messages": said("x"), "maxTokens": 0 }),
                "at least 1",
            ),
            (
                json!({ "messages": said(&"x".repeat(MAX_BYTES + 1)), "maxTokens": 1 }),
                "131072 bytes",
            ),
            (
                json!({ "messages": said("x"), "maxTokens": 1, "temperature": 9 }),
                "between 0 and 2",
            ),
            (
                json!({ "messages": said("x"), "maxTokens": 1, "stopSequences": [""] }),
                "empty",
            ),
            (
                json!({ "messages": said("x"), "maxTokens": 1, "tools": [] }),
                "sampling.tools",
            ),
            (
                json!({ "messages": said("x"), "maxTokens": 1, "toolChoice": { "mode": "auto" } }),
                "sampling.tools",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": image }], "maxTokens": 1 }),
                "only messages",
            ),
        ] {
            let refusal = read(asked).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::INVALID_PARAMS);
            assert!(refusal.message.contains(reason), "{refusal:?}");
        }
    }
}
