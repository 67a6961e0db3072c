//! Messages of servers, read from their bytes.
//!
//! The library reads a message by trying every kind of message, and in an answer every kind of result,
//! one after the other; that alone was a tenth of what a call cost. Here the plain answer to a call is
//! read at once, and everything else as the library reads it.

use rmcp::RoleClient;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonRpcMessage, JsonRpcVersion2_0, MetaObject, RequestId,
    ResultType, ServerResult,
};
use rmcp::service::RxJsonRpcMessage;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// A byte order mark, which a reader of JSON may pass over.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// What a tool says of how it wants to be run. The library does not know it, and would drop it.
const EXECUTION: &str = "execution";

/// The message of a line or body; `None` if it is none that we know.
pub(in crate::mcp) fn read(line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
    let line = line.strip_prefix(MARK).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return None;
    }
    if let Ok(PlainAnswer { id, result, .. }) = serde_json::from_slice(line) {
        let result = ServerResult::CallToolResult(result.into());
        return Some(JsonRpcMessage::response(result, id));
    }
    match whole(line) {
        Ok(message) => Some(message),
        Err(error) => {
            // Many programs print other things, too.
            tracing::debug!(%error, "A line of a server is no message");
            None
        }
    }
}

/// The message as the library reads it.
fn whole(line: &[u8]) -> serde_json::Result<RxJsonRpcMessage<RoleClient>> {
    match std::str::from_utf8(line) {
        Ok(text) if text.contains(EXECUTION) => {
            serde_json::from_str(&with_execution(text.to_owned()))
        }
        Ok(_) | Err(_) => serde_json::from_slice(line),
    }
}

/// A message in which every listed tool has what it says of its execution among its `_meta`, where the
/// library keeps it; any other message as it is.
pub(in crate::mcp) fn with_execution(message: String) -> String {
    if !message.contains(EXECUTION) {
        return message;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&message) else {
        return message;
    };
    let tools = value.pointer_mut("/result/tools");
    let Some(tools) = tools.and_then(Value::as_array_mut) else {
        return message;
    };
    for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
        // Only we say it in this way.
        let said = tool.remove(EXECUTION);
        let meta = tool.entry("_meta").or_insert(Value::Null);
        if meta.is_null() {
            *meta = json!({});
        }
        if let Some(meta) = meta.as_object_mut() {
            meta.remove(EXECUTION);
            meta.extend(said.map(|said| (EXECUTION.to_owned(), said)));
        }
    }
    value.to_string()
}

/// Whether a tool works only as a task.
pub(in crate::mcp) fn needs_tasks(tool: &rmcp::model::Tool) -> bool {
    let said = tool.meta.as_ref().and_then(|meta| meta.get(EXECUTION));
    said.is_some_and(|said| said["taskSupport"] == "required")
}

/// The answer to a call and nothing beside it, which no other kind of message looks like.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainAnswer {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    result: PlainResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PlainResult {
    result_type: Option<Complete>,
    content: Vec<ContentBlock>,
    #[serde(default, deserialize_with = "present")]
    structured_content: Option<Value>,
    is_error: Option<bool>,
    #[serde(rename = "_meta")]
    meta: Option<MetaObject>,
}

/// A result that is no step on the way to one.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Complete {
    Complete,
}

/// What is there, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl From<PlainResult> for CallToolResult {
    fn from(plain: PlainResult) -> Self {
        let mut result = Self::default();
        result.result_type = plain
            .result_type
            .map(|Complete::Complete| ResultType::COMPLETE);
        result.content = plain.content;
        result.structured_content = plain.structured_content;
        result.is_error = plain.is_error;
        result.meta = plain.meta;
        result
    }
}

#[cfg(test)]
mod tests {
    use rmcp::RoleClient;
    use rmcp::model::ServerResult;
    use rmcp::service::RxJsonRpcMessage;
    use serde_json::{Value, json};

    use super::{PlainAnswer, needs_tasks, read};

    fn is_plain(line: &str) -> bool {
        serde_json::from_str::<PlainAnswer>(line).is_ok()
    }

    #[test]
    fn an_answer_to_a_call_is_read_at_once_as_the_library_reads_it() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a\nb"}]}}"#,
            r#"{"result":{"content":[],"isError":true,"structuredContent":null},"id":"x","jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"_meta":{"a":1}}}"#,
            r#"{"jsonrpc":"2.0","id":7.0,"result":{"content":[{"type":"resource_link","uri":"a:b","name":"n"}]}}"#,
        ] {
            assert!(is_plain(line), "{line}");
            let theirs: RxJsonRpcMessage<RoleClient> = serde_json::from_str(line).unwrap();
            let ours = read(line.as_bytes()).unwrap();
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            let (_, result) = ours
                .into_response()
                .map(|(result, id)| (id, result))
                .unwrap();
            assert!(matches!(result, ServerResult::CallToolResult(_)), "{line}");
        }
    }

    #[test]
    fn everything_else_is_left_to_the_library() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"input_required"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        ] {
            assert!(!is_plain(line), "{line}");
            let theirs: RxJsonRpcMessage<RoleClient> = serde_json::from_str(line).unwrap();
            let ours = read(line.as_bytes()).unwrap();
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        }
        for line in [
            "",
            "\r",
            "ready.",
            "{}",
            r#"{"jsonrpc":"2.0","id":1}"#,
            "\u{feff}",
        ] {
            assert!(read(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn what_tools_say_of_their_execution_is_kept() {
        let tool = |execution: Value, meta: Value| json!({ "name": "t", "inputSchema": {}, "execution": execution, "_meta": meta });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [
            tool(json!({ "taskSupport": "required" }), Value::Null),
            tool(json!({ "taskSupport": "required" }), json!({ "a": 1 })),
            tool(json!({ "taskSupport": "optional" }), Value::Null),
            { "name": "t", "inputSchema": {}, "_meta": { "execution": { "taskSupport": "required" } } },
        ] } });
        let read = read(message.to_string().as_bytes()).unwrap();
        let Some((ServerResult::ListToolsResult(listed), _)) = read.into_response() else {
            panic!("no list");
        };
        let needs: Vec<bool> = listed.tools.iter().map(needs_tasks).collect();
        assert_eq!(needs, [true, true, false, false]);
        assert_eq!(listed.tools[1].meta.as_ref().unwrap()["a"], 1);
    }
}
