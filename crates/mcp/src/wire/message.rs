//! Parses messages of servers.
//!
//! rmcp parses a message by trying every kind of message, and in an answer every kind of result, one after
//! the other; that alone took a tenth of the time of a call. This module parses the plain answer to a call
//! directly. Everything else is brought into the form of the specification first ([`lenient`]), and then left
//! to rmcp.

use rmcp::RoleClient;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonRpcMessage, JsonRpcVersion2_0, MetaObject, RequestId,
    ResultType, ServerCapabilities, ServerResult,
};
use rmcp::service::RxJsonRpcMessage;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::lenient;
use super::oversized::Envelope;
use super::pending::Pending;

/// A byte order mark, which a JSON parser may ignore.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// The member in which a tool says how it wants to be run. rmcp does not know it, and would drop it.
const EXECUTION: &str = "execution";
/// The member in which a server of 2025-11-25 declares its tasks. rmcp knows only those of 2026-07-28.
const TASKS: &str = "tasks";
/// The member that carries a task through rmcp, which would otherwise parse it in the form of 2026-07-28 and
/// drop the rest.
pub(crate) const TASK: &str = "sepal/task";

/// Parses the message of a line or body; `None` if it is not a known message. `pending` holds the requests
/// without an answer, and `posted` is the one whose HTTP response this is.
pub(crate) fn read(
    line: &[u8],
    pending: &Pending,
    posted: Option<&RequestId>,
) -> Option<RxJsonRpcMessage<RoleClient>> {
    let line = line.strip_prefix(MARK).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return None;
    }
    if let Ok(PlainAnswer { id, result, .. }) = serde_json::from_slice(line)
        && pending.take_tool_call(&id).is_some()
    {
        let result = ServerResult::CallToolResult(result.into());
        return Some(JsonRpcMessage::response(result, id));
    }
    let value = match lenient::parse(line) {
        Ok(value) => value,
        Err(error) => return broken(line, &error, pending, posted),
    };
    if is_request(&value)
        && let Ok(request) = serde_json::from_slice(line)
    {
        return Some(request);
    }
    let message = lenient::message(value, pending, posted)?;
    let id = message.get("id").cloned();
    let is_answer = message.get("method").is_none();
    match serde_json::from_value(kept_whole(message)) {
        Ok(message) => Some(message),
        Err(error) => {
            tracing::debug!(%error, "A message of a server is of no known kind");
            let id = serde_json::from_value::<RequestId>(id?).ok();
            let id = id.filter(|_| is_answer)?;
            Some(JsonRpcMessage::error(lenient::unreadable(&error), Some(id)))
        }
    }
}

/// Rewrites a message that rmcp itself will parse.
pub(crate) fn rewritten(text: String, pending: &Pending, posted: Option<&RequestId>) -> String {
    let is_plain = serde_json::from_str::<PlainAnswer>(&text)
        .is_ok_and(|plain| pending.take_tool_call(&plain.id).is_some());
    if is_plain || text.trim().is_empty() {
        return text;
    }
    let value = match lenient::parse(text.as_bytes()) {
        Ok(value) => value,
        Err(error) => {
            let told = broken(text.as_bytes(), &error, pending, posted);
            let told = told.and_then(|told| serde_json::to_string(&told).ok());
            return told.unwrap_or(text);
        }
    };
    if is_request(&value) {
        return text;
    }
    match lenient::message(value, pending, posted) {
        Some(message) => kept_whole(message).to_string(),
        None => text,
    }
}

/// Returns true for a request or notification in the form of the specification. It is read from its text, because
/// a [`Value`] forgets the order of members, in which a person is shown the fields of a form.
fn is_request(message: &Value) -> bool {
    let versioned = message.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    versioned && message.get("method").is_some_and(Value::is_string)
}

/// Returns the error that replaces an answer that is no JSON; `None` for a line that is no answer, because
/// many programs print other things, too.
fn broken(
    line: &[u8],
    error: &serde_json::Error,
    pending: &Pending,
    posted: Option<&RequestId>,
) -> Option<RxJsonRpcMessage<RoleClient>> {
    tracing::debug!(%error, "A line of a server is no message");
    let mut scanned = Envelope::default();
    scanned.read(line);
    let id = scanned
        .answers()
        .or(posted.filter(|_| line.starts_with(b"{")))?;
    let request = pending.take_own(id)?;
    Some(JsonRpcMessage::error(
        lenient::unreadable(error),
        Some(request.id),
    ))
}

/// Moves what rmcp would drop to where it keeps it: `execution` of every listed tool into its `_meta`, `tasks`
/// of a server into its experimental capabilities, and a task into a member of its own.
fn kept_whole(mut message: Value) -> Value {
    let Some(result) = message.get_mut("result") else {
        return message;
    };
    if lenient::is_task(result) {
        *result = json!({ TASK: result.take() });
    } else if let Some(declared) = result.get_mut("capabilities") {
        keep_beside(declared, TASKS, "experimental");
    } else if let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) {
        for tool in tools {
            keep_beside(tool, EXECUTION, "_meta");
        }
    }
    message
}

/// Moves a member into an object beside it, replacing a member of that name there: only we write that form.
fn keep_beside(of: &mut Value, member: &str, into: &str) {
    let Some(of) = of.as_object_mut() else { return };
    let said = of.remove(member);
    let into = of.entry(into).or_insert(Value::Null);
    if into.is_null() {
        *into = json!({});
    }
    if let Some(into) = into.as_object_mut() {
        into.remove(member);
        // rmcp accepts only objects as capabilities.
        let said = said.filter(Value::is_object);
        into.extend(said.map(|said| (member.to_owned(), said)));
    }
}

/// Returns what a server of 2025-11-25 declares about its tasks.
pub(crate) fn declared_tasks(
    declared: &ServerCapabilities,
) -> Option<&serde_json::Map<String, Value>> {
    declared.experimental.as_ref()?.get(TASKS)
}

/// Returns true if a tool works only as a task.
pub(crate) fn needs_tasks(tool: &rmcp::model::Tool) -> bool {
    task_support(tool) == Some("required")
}

/// Returns true if a tool can run as a task.
pub(crate) fn takes_tasks(tool: &rmcp::model::Tool) -> bool {
    matches!(task_support(tool), Some("required" | "optional"))
}

fn task_support(tool: &rmcp::model::Tool) -> Option<&str> {
    let said = tool.meta.as_ref()?.get(EXECUTION)?;
    said.get("taskSupport")?.as_str()
}

/// The answer to a call without further members; no other kind of message has this form.
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

/// The result type of a final result.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Complete {
    Complete,
}

/// Deserializes a member that is present, even if it is `null`.
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

    use super::{PlainAnswer, TASK, declared_tasks, needs_tasks, takes_tasks};
    use crate::wire::pending::Pending;

    fn read(line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
        super::read(line, &Pending::default(), None)
    }

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
        let takes: Vec<bool> = listed.tools.iter().map(takes_tasks).collect();
        assert_eq!(takes, [true, true, true, false]);
        assert_eq!(listed.tools[1].meta.as_ref().unwrap()["a"], 1);
    }

    fn result_of(line: &Value) -> ServerResult {
        let read = read(line.to_string().as_bytes()).unwrap();
        read.into_response().unwrap().0
    }

    #[test]
    fn a_task_comes_through_with_all_that_it_says_in_either_form() {
        let task = json!({ "taskId": "7", "status": "working", "ttl": 5, "pollInterval": 9 });
        for result in [
            task.clone(),
            json!({ "task": task }),
            json!({ "resultType": "task", "taskId": "7", "status": "working", "ttlMs": null,
                "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z" }),
        ] {
            let line = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
            let ServerResult::CustomResult(said) = result_of(&line) else {
                panic!("{line}");
            };
            assert_eq!(said.0[TASK], result);
        }
        // A result with content is a result, whatever other members it has.
        let line = json!({ "jsonrpc": "2.0", "id": 1, "result":
            { "content": [], "taskId": "7", "status": "working" } });
        assert!(matches!(result_of(&line), ServerResult::CallToolResult(_)));
    }

    #[test]
    fn what_a_server_declares_of_its_tasks_is_kept() {
        let tasks = json!({ "requests": { "tools": { "call": {} } } });
        let check = |capabilities: Value, expected: &Value| {
            let line = json!({ "jsonrpc": "2.0", "id": 1, "result": {
                "protocolVersion": "2025-11-25", "capabilities": capabilities,
                "serverInfo": { "name": "s", "version": "1" },
            } });
            let ServerResult::InitializeResult(it) = result_of(&line) else {
                panic!("{line}");
            };
            let declared = declared_tasks(&it.capabilities).cloned();
            assert_eq!(json!(declared), *expected, "{line}");
        };
        check(json!({ "tasks": tasks }), &tasks);
        check(json!({ "tasks": true, "tools": {} }), &Value::Null);
        check(json!({ "experimental": { "tasks": tasks } }), &Value::Null);
    }
}
