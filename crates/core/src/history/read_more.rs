//! Implements the tool with which a model reads the rest of a shortened result. It only shows what the
//! model was already given, so it needs no approval. It is offered, after all other tools, as soon as a
//! result was shortened.

use serde_json::{Value, json};

use crate::domain::{CallId, READ_MORE, Tool, ToolAnnotations};

/// The default length of a part, in bytes.
const USUAL_BYTES: usize = 8_000;
/// The maximum length of a part, in bytes.
const MAX_BYTES: usize = 16_000;

/// The part of a result that a model requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartOfResult {
    /// The call with the result.
    pub call: CallId,
    offset: usize,
    length: usize,
}

impl PartOfResult {
    /// Parses the arguments of a call, or returns the error text for the model.
    pub fn asked(args: &Value) -> Result<Self, String> {
        let wrong = |what: &str| format!("the arguments of `{READ_MORE}` are not valid: {what}");
        let call = args.get("call").and_then(Value::as_str);
        let call = call.filter(|call| !call.is_empty());
        let call = call.ok_or_else(|| {
            wrong("`call` is the id that the shortened result names, as `call_…`")
        })?;
        let number = |name: &str, usual: usize| match args.get(name) {
            None | Some(Value::Null) => Ok(usual),
            Some(value) => {
                let number = value
                    .as_u64()
                    .and_then(|number| usize::try_from(number).ok());
                number.ok_or_else(|| wrong(&format!("`{name}` is a number of bytes, 0 or more")))
            }
        };
        Ok(Self {
            call: CallId::from_wire(call),
            offset: number("offset", 0)?,
            length: number("length", USUAL_BYTES)?.clamp(1, MAX_BYTES),
        })
    }

    /// The part of a whole result with the offset of the next part, or the error text for the model.
    pub fn of(&self, whole: &str) -> Result<String, String> {
        let bytes = whole.len();
        if self.offset >= bytes {
            return Err(format!(
                "the result of `{}` has {bytes} bytes: there is nothing from byte {} on",
                self.call, self.offset
            ));
        }
        let begin = whole.floor_char_boundary(self.offset);
        let end = whole.floor_char_boundary(begin.saturating_add(self.length));
        // A character may be longer than the requested part.
        let end = if end > begin {
            end
        } else {
            whole.ceil_char_boundary(begin + 1)
        };
        let part = whole.get(begin..end).unwrap_or_default();
        let next = if end < bytes {
            format!("the next part begins at offset {end}")
        } else {
            "this is its end".to_owned()
        };
        Ok(format!(
            "{part}\n[bytes {begin} to {end} of {bytes}; {next}]"
        ))
    }
}

/// The error text for a call without a result.
pub fn no_result(call: &CallId) -> String {
    format!("there is no result of `{call}` in this conversation")
}

/// The constant definition of the tool.
pub fn definition() -> Tool {
    Tool {
        name: READ_MORE.to_owned(),
        title: Some("Read more of a result".to_owned()),
        description: "Reads a part of a tool result of this conversation that is shown to you in a \
                      short form. The short form says the id of its call and at which byte the rest \
                      begins."
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "call": {"type": "string", "description": "The id of the call, as the short form says it."},
                "offset": {"type": "integer", "minimum": 0, "description": "The first byte; 0 without it."},
                "length": {
                    "type": "integer",
                    "minimum": 1,
                    "description": format!("Bytes, at most {MAX_BYTES}; {USUAL_BYTES} without it."),
                },
            },
            "required": ["call"],
        }),
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_BYTES, PartOfResult};

    fn part(args: &serde_json::Value, whole: &str) -> Result<String, String> {
        PartOfResult::asked(args)?.of(whole)
    }

    #[test]
    fn parts_are_whole_characters_and_say_where_the_next_one_begins() {
        let whole = "aäöü";
        for (offset, length, expected) in [
            (
                0,
                1,
                "a\n[bytes 0 to 1 of 7; the next part begins at offset 1]",
            ),
            (
                1,
                1,
                "ä\n[bytes 1 to 3 of 7; the next part begins at offset 3]",
            ),
            (
                2,
                3,
                "ä\n[bytes 1 to 3 of 7; the next part begins at offset 3]",
            ),
            (3, 99, "öü\n[bytes 3 to 7 of 7; this is its end]"),
        ] {
            let args = json!({ "call": "call_1_0", "offset": offset, "length": length });
            assert_eq!(part(&args, whole).unwrap(), expected);
        }
        let long = "x".repeat(3 * MAX_BYTES);
        let all = part(&json!({ "call": "c", "length": 1_000_000 }), &long).unwrap();
        assert!(all.contains("bytes 0 to 16000 of 48000"), "too long");
    }

    #[test]
    fn parts_joined_are_the_whole_result() {
        let whole = "zwölf Boxkämpfer ".repeat(400);
        let (mut read, mut offset) = (String::new(), 0);
        while offset < whole.len() {
            let args = json!({ "call": "c", "offset": offset, "length": 999 });
            let text = part(&args, &whole).unwrap();
            let (part, _) = text.rsplit_once("\n[").unwrap();
            read.push_str(part);
            offset += part.len();
        }
        assert_eq!(read, whole);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (args, wrong) in [
            (json!({}), "`call` is the id"),
            (json!({ "call": 7 }), "`call` is the id"),
            (json!({ "call": "c", "offset": -1 }), "`offset` is a number"),
            (
                json!({ "call": "c", "length": "all" }),
                "`length` is a number",
            ),
            (
                json!({ "call": "c", "offset": 4 }),
                "nothing from byte 4 on",
            ),
        ] {
            let error = part(&args, "four").unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
