//! Scans messages beyond the size limit for the request that they answer and for their length, so that the
//! waiting request gets an error at once.

use std::fmt;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::RxJsonRpcMessage;
use serde_json::json;

/// Most bytes of one message that is read.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// Most bytes of a message that are counted; the size of a longer one is reported as more than this.
pub(crate) const MAX_COUNTED_BYTES: u64 = 64 * 1024 * 1024;

/// The error code that we put in place of an answer that is too large. JSON-RPC reserves no such code.
const TOO_LARGE: ErrorCode = ErrorCode(413);
/// A byte order mark, which a JSON parser may ignore.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// Longer than any relevant member name, and than any id that we create.
const MAX_TOKEN_BYTES: usize = 256;

/// The size of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The counted bytes.
    pub bytes: u64,
    /// True if the message has more bytes than were counted.
    pub is_more: bool,
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.is_more { "more than " } else { "" };
        write!(formatter, "{more}{} bytes", self.bytes)
    }
}

/// Builds the error that replaces an answer that is too large.
pub(crate) fn answer(id: RequestId, size: Size) -> RxJsonRpcMessage<RoleClient> {
    let data = json!({ "bytes": size.bytes, "isMore": size.is_more });
    let error = ErrorData::new(TOO_LARGE, "the answer is too large", Some(data));
    JsonRpcMessage::error(error, Some(id))
}

/// Returns the size in such an error; `None` for an error that the server itself wrote.
pub(crate) fn size(data: &ErrorData) -> Option<Size> {
    let said = data.data.as_ref().filter(|_| data.code == TOO_LARGE)?;
    Some(Size {
        bytes: said.get("bytes")?.as_u64()?,
        is_more: said.get("isMore")?.as_bool()?,
    })
}

/// Scans the outermost members of a message without storing the rest.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    bytes: u64,
    depth: usize,
    text: Text,
    /// The name or the simple value of the current member.
    token: Vec<u8>,
    member: Member,
    id: Option<RequestId>,
    kind: Kind,
}

/// The position in or outside of a JSON string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    Escaped,
}

/// The kind of the message, as far as it was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unknown,
    Answer,
    /// A request, a notification, or an unknown message: this kind is final.
    Other,
}

/// The current member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Member {
    #[default]
    Other,
    Id,
}

impl Envelope {
    /// Scans the next piece.
    pub(crate) fn read(&mut self, piece: &[u8]) {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        for byte in piece {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.text != Text::Outside {
            self.keep(byte);
            self.text = match (self.text, byte) {
                (Text::Inside, b'\\') => Text::Escaped,
                (Text::Inside, b'"') => Text::Outside,
                (Text::Outside | Text::Inside | Text::Escaped, _) => Text::Inside,
            };
            return;
        }
        match byte {
            b'{' | b'[' => {
                if self.depth == 0 && byte == b'[' {
                    self.kind = Kind::Other;
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_member();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.begin_member(),
            b',' if self.depth == 1 => self.end_member(),
            b'"' => {
                self.text = Text::Inside;
                self.keep(byte);
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
        // Many programs print other things, too.
        if self.depth == 0 && !self.token.is_empty() {
            self.kind = Kind::Other;
        }
    }

    fn keep(&mut self, byte: u8) {
        let is_mark = self.depth == 0 && MARK.contains(&byte);
        if self.depth <= 1 && !is_mark && self.token.len() < MAX_TOKEN_BYTES {
            self.token.push(byte);
        }
    }

    fn begin_member(&mut self) {
        let name: Option<String> = serde_json::from_slice(&self.token).ok();
        self.token.clear();
        self.member = Member::Other;
        match name.as_deref() {
            Some("id") => self.member = Member::Id,
            Some("result" | "error") if self.kind == Kind::Unknown => self.kind = Kind::Answer,
            Some("method") => self.kind = Kind::Other,
            Some(_) | None => {}
        }
    }

    fn end_member(&mut self) {
        if self.member == Member::Id {
            self.id = serde_json::from_slice(&self.token).ok();
        }
        self.member = Member::Other;
        self.token.clear();
    }

    /// Returns the size of what was read.
    pub(crate) fn size(&self) -> Size {
        Size {
            bytes: self.bytes,
            is_more: false,
        }
    }

    /// Returns the id of the request that the message answers, as far as it was read.
    pub(crate) fn answers(&self) -> Option<&RequestId> {
        self.id.as_ref().filter(|_| self.kind == Kind::Answer)
    }

    /// Returns the error that replaces the message, once [`MAX_COUNTED_BYTES`] are exceeded.
    pub(crate) fn given_up(&self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let size = Size {
            bytes: MAX_COUNTED_BYTES,
            is_more: true,
        };
        let id = self.answers().filter(|_| self.bytes > MAX_COUNTED_BYTES)?;
        Some(answer(id.clone(), size))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::RequestId;
    use serde_json::{Value, json};

    use super::{Envelope, Size, answer, size};

    fn answered(message: &str) -> Option<String> {
        let mut envelope = Envelope::default();
        for byte in message.as_bytes() {
            envelope.read(&[*byte]);
        }
        assert_eq!(envelope.size().bytes, message.len() as u64);
        envelope.answers().map(ToString::to_string)
    }

    #[test]
    fn an_answer_names_its_request_wherever_the_id_stands() {
        let check = |message: &str, expected: Option<&str>| {
            assert_eq!(answered(message).as_deref(), expected, "{message}");
        };
        check(
            r#"{"jsonrpc":"2.0","id":7,"result":{"id":8,"x":["}"]}}"#,
            Some("7"),
        );
        check(
            "\u{feff} {\"result\": [{\"id\": 1}], \"id\" : \"a\\\"b\" }\r",
            Some("a\"b"),
        );
        check(
            r#"{"\u0069d":7,"error":{"code":1,"message":"\\\"id\":9"}}"#,
            Some("7"),
        );
        check(
            r#"{"id":7,"result":{"content":[{"text":"as far as it c"#,
            Some("7"),
        );
        check(r#"{"id":7,"method":"ping","result":1}"#, None);
        check(r#"{"result":{"id":7}}"#, None);
        check(r#"{"id":null,"result":1}"#, None);
        check(r#"[{"id":7,"result":1}]"#, None);
        check(r#"DEBUG {"id":7,"result":1}"#, None);
    }

    proptest! {
        #[test]
        fn it_reads_what_a_reader_of_json_reads(
            id in any::<i64>(), text in ".{0,40}", name in ".{0,8}", pretty in any::<bool>()
        ) {
            prop_assume!(!["id", "method"].contains(&name.as_str()));
            let message = json!({
                "jsonrpc": "2.0", "id": id, "result": { "id": text, "method": [text] }, name: text,
            });
            let message = if pretty { format!("{message:#}") } else { message.to_string() };
            prop_assert_eq!(answered(&message), Some(id.to_string()));
        }
    }

    #[test]
    fn both_sizes_reach_whoever_asked() {
        let long = Size {
            bytes: 5_000_000,
            is_more: false,
        };
        let message = answer(RequestId::Number(3), long);
        let wire: Value = serde_json::to_value(&message).unwrap();
        assert_eq!(wire["id"], 3);
        let said: rmcp::model::ErrorData = serde_json::from_value(wire["error"].clone()).unwrap();
        assert_eq!(size(&said), Some(long));
        assert_eq!(long.to_string(), "5000000 bytes");
        assert!(size(&rmcp::model::ErrorData::internal_error("413", None)).is_none());
    }
}
