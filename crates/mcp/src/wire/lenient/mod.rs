//! Rewrites what servers send into the forms of the specification, member by member, so that one odd member
//! spoils only itself. What is left out is named: in the answer to a call where it stood, in a list under
//! [`LEFT_OUT`]. Pure.

mod declared;
mod lists;
mod results;

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde_json::{Map, Value, json};

use super::pending::{Pending, Request};
use sepal_core::domain::mend_surrogates;

/// The member of a list's `_meta` that says what was left out, one sentence each.
pub(crate) const LEFT_OUT: &str = "sepal/leftOut";

/// The error code that we put in place of an answer that is no JSON. JSON-RPC reserves no such code.
const UNREADABLE: ErrorCode = ErrorCode(422);
/// A byte order mark, which a JSON parser may ignore.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// The most characters that are quoted of a server's names.
const MAX_QUOTED: usize = 100;
/// The code of an error whose own code is none.
const INTERNAL_ERROR: i64 = ErrorCode::INTERNAL_ERROR.0 as i64;

/// Parses JSON as programs write it: with a byte order mark, with half characters, with `NaN`.
pub(crate) fn parse(text: &[u8]) -> serde_json::Result<Value> {
    let text = text.strip_prefix(MARK).unwrap_or(text);
    let error = match serde_json::from_slice(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let text = String::from_utf8_lossy(text);
    let mended = mend_surrogates(&text).unwrap_or_else(|| text.into_owned());
    serde_json::from_str(&mended)
        .or_else(|_| serde_json::from_str(&without_nan(&mended)))
        .map_err(|_| error)
}

/// Replaces `NaN` and `Infinity` outside of texts, which Python writes, with `null`.
fn without_nan(json: &str) -> String {
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    let (mut is_text, mut is_escaped) = (false, false);
    while let Some(next) = rest.chars().next() {
        let word = ["NaN", "-Infinity", "Infinity"]
            .into_iter()
            .find(|word| !is_text && rest.starts_with(word));
        if let Some(word) = word {
            mended.push_str("null");
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        if next == '"' && !is_escaped {
            is_text = !is_text;
        }
        is_escaped = is_text && next == '\\' && !is_escaped;
        mended.push(next);
        rest = rest.get(next.len_utf8()..).unwrap_or_default();
    }
    mended
}

/// Rewrites a message. `posted` is the request whose answer arrives in its own HTTP response. `None` if the
/// value is no message.
pub(crate) fn message(
    value: Value,
    pending: &Pending,
    posted: Option<&RequestId>,
) -> Option<Value> {
    let mut message = match value {
        Value::Object(message) => message,
        // Revision 2025-03-26 has batches.
        Value::Array(mut batch) if batch.len() == 1 => match batch.pop()? {
            Value::Object(message) => message,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => return None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return None;
        }
    };
    let is_versioned = message.contains_key("jsonrpc");
    if message.get("method").is_some_and(Value::is_string) {
        if is_versioned {
            message.insert("jsonrpc".to_owned(), "2.0".into());
        }
        return Some(Value::Object(message));
    }
    let is_answer = message.contains_key("result") || message.contains_key("error");
    if !is_versioned && !is_answer {
        return None;
    }
    let id = message.get("id").filter(|id| !id.is_null()).cloned();
    let has_error = message.get("error").is_some_and(|error| !error.is_null());
    let request = match (&id, posted) {
        (Some(id), _) => pending.take(id),
        (None, Some(posted)) => pending.take_own(posted),
        (None, None) if has_error => pending.take_only(),
        (None, None) => None,
    };
    // Programs also print lines of JSON that are no messages.
    let id = match &request {
        Some(request) => json!(request.id),
        None if is_versioned && is_answer => id.or_else(|| posted.map(|posted| json!(posted)))?,
        None => return None,
    };
    Some(answer(&id, request.as_ref(), message))
}

/// Rewrites an answer.
fn answer(id: &Value, request: Option<&Request>, mut message: Map<String, Value>) -> Value {
    let said = message.remove("error").filter(|error| !error.is_null());
    let result = message.remove("result");
    let has_result = result.as_ref().is_some_and(|result| !result.is_null());
    match said {
        Some(error) if !has_result || !is_empty(&error) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": self::error(&error) })
        }
        Some(_) | None => {
            let result = result.unwrap_or_default();
            let result = match request {
                Some(request) => mended(&request.method, result),
                None => result,
            };
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        }
    }
}

/// Rewrites the result of a request.
pub(crate) fn mended(method: &str, result: Value) -> Value {
    match method {
        "initialize" | "server/discover" => declared::declared(result),
        "tools/call" | "tasks/result" => results::tool(result),
        "tools/list" => lists::tools(result),
        "resources/list" => lists::resources(result),
        "resources/templates/list" => lists::templates(result),
        "prompts/list" => lists::prompts(result),
        "resources/read" => results::resource(result),
        "prompts/get" => results::prompt(result),
        "completion/complete" => results::completion(&result),
        _ => result,
    }
}

/// Rewrites the result of a tool that came with the state of its task.
pub(crate) fn tool_result(result: Value) -> Value {
    results::tool(result)
}

/// Rewrites an error: `code` becomes an integer, `message` the server's words.
fn error(error: &Value) -> Value {
    let said = error.get("code").cloned().unwrap_or_default();
    let code = match &said {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_i64().and_then(|code| i32::try_from(code).ok()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let words = words(error).unwrap_or_else(|| match &said {
        Value::Null => "it gave no reason".to_owned(),
        code @ (Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_)) => format!("it gave no reason but the code {}", text(code)),
    });
    let mut mended = json!({
        "code": code.map_or(INTERNAL_ERROR, i64::from),
        "message": words,
    });
    if let (Some(data), Some(mended)) = (error.get("data"), mended.as_object_mut()) {
        mended.insert("data".to_owned(), data.clone());
    }
    mended
}

/// Returns the words of an error in any of the usual forms: a text, or an object that has one.
pub(crate) fn words(error: &Value) -> Option<String> {
    match error {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Object(said) => {
            let members = [
                "message",
                "error_description",
                "error",
                "detail",
                "details",
                "reason",
                "title",
                "msg",
                "description",
                "data",
            ];
            members.iter().find_map(|member| words(said.get(*member)?))
        }
        Value::Array(all) => {
            let all: Vec<String> = all.iter().filter_map(words).collect();
            (!all.is_empty()).then(|| all.join("; "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Builds the error that replaces an answer that is no JSON.
pub(crate) fn unreadable(error: &serde_json::Error) -> ErrorData {
    let words = format!("its answer is not valid JSON ({error})");
    ErrorData::new(UNREADABLE, words, Some(json!({ "isUnreadable": true })))
}

/// Returns true for such an error; false for an error that the server itself wrote.
pub(crate) fn is_unreadable(error: &ErrorData) -> bool {
    let marked = error
        .data
        .as_ref()
        .and_then(|data| data.get("isUnreadable"));
    error.code == UNREADABLE && marked == Some(&Value::Bool(true))
}

/// Returns true for a value that says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Returns a text as it is, and any other value as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Returns a text for a text, a number or a truth value, which people write as one another.
pub(crate) fn simple_text(value: Option<&Value>) -> Option<String> {
    match value? {
        value @ (Value::String(_) | Value::Number(_) | Value::Bool(_)) => Some(text(value)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns a truth value in any of its usual spellings.
pub(crate) fn truth(value: Option<&Value>) -> Option<bool> {
    match value? {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => number.as_f64().map(|number| number != 0.0),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" | "on" => Some(true),
            "false" | "no" | "0" | "off" => Some(false),
            _ => None,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns an object that is one.
fn object(value: Option<&Value>) -> Option<Map<String, Value>> {
    value.and_then(Value::as_object).cloned()
}

/// Returns a server's text on one line, in code marks and shortened.
fn quoted(text: &str) -> String {
    let text: String = text.chars().take(MAX_QUOTED).collect();
    format!("`{}`", text.replace(['\n', '\r', '`'], " "))
}

/// Inserts a member that is there.
fn put(into: &mut Map<String, Value>, member: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        into.insert(member.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use rmcp::RoleClient;
    use rmcp::model::RequestId;
    use rmcp::service::RxJsonRpcMessage;
    use serde_json::{Value, json};

    use super::super::pending::Pending;
    use super::{message, parse};

    fn asked(method: &str) -> Pending {
        let pending = Pending::default();
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": method});
        pending.sent(&serde_json::from_value(request).unwrap());
        pending
    }

    /// Reads an answer to request 7, and checks that rmcp reads it too.
    fn read(said: &Value) -> Option<Value> {
        let read = message(said.clone(), &asked("ping"), None)?;
        serde_json::from_value::<RxJsonRpcMessage<RoleClient>>(read.clone()).unwrap();
        Some(read)
    }

    #[test]
    fn an_error_in_any_form_ends_its_request_with_the_servers_words() {
        let words = "disk on fire";
        for (error, code, expected) in [
            (json!({"code": -32000, "message": words}), -32000, words),
            (json!({"code": "INTERNAL", "message": words}), -32603, words),
            (json!({"code": "-32000", "message": words}), -32000, words),
            (json!({"code": 1.5, "message": words}), -32603, words),
            (json!({"code": 1e100, "message": words}), -32603, words),
            (
                json!({"code": 5_000_000_000_u64, "message": words}),
                -32603,
                words,
            ),
            (json!({"code": null, "message": words}), -32603, words),
            (json!({"code": [1], "message": words}), -32603, words),
            (json!({"message": words}), -32603, words),
            (json!({"code": -32000, "data": words}), -32000, words),
            (
                json!({"code": -32000, "message": null, "data": {"detail": words}}),
                -32000,
                words,
            ),
            (
                json!({"code": -32000, "message": {"text": 1}, "reason": words}),
                -32000,
                words,
            ),
            (json!({"code": -32000, "message": [words]}), -32000, words),
            (json!({"error": {"message": words}}), -32603, words),
            (json!(words), -32603, words),
            (
                json!([words, {"message": "and more"}]),
                -32603,
                "disk on fire; and more",
            ),
            (json!({"code": 5}), 5, "it gave no reason but the code 5"),
            (
                json!({"code": "E_DISK"}),
                -32603,
                "it gave no reason but the code E_DISK",
            ),
            (json!({}), -32603, "it gave no reason"),
            (json!(true), -32603, "it gave no reason"),
        ] {
            let said = json!({"jsonrpc": "2.0", "id": 7, "error": error});
            let read = read(&said).unwrap();
            assert_eq!(
                (&read["id"], &read["error"]["code"]),
                (&json!(7), &json!(code)),
                "{said}"
            );
            assert_eq!(read["error"]["message"], expected, "{said}");
        }
    }

    #[test]
    fn the_request_of_an_answer_is_found_however_the_answer_is_written() {
        let error = json!({"code": 1, "message": "no"});
        for said in [
            json!({"jsonrpc": "2.0", "id": "7", "error": error}),
            json!({"jsonrpc": "2.0", "id": 7.0, "error": error}),
            json!({"jsonrpc": "2.0", "id": null, "error": error}),
            json!({"jsonrpc": "2.0", "error": error}),
            json!({"jsonrpc": 2.0, "id": 7, "error": error}),
            json!({"id": 7, "error": error}),
            json!({"jsonrpc": "2.0", "id": 7, "result": null, "error": error}),
            json!({"jsonrpc": "2.0", "id": 7, "result": {"a": 1}, "error": error}),
            json!([{"jsonrpc": "2.0", "id": 7, "error": error}]),
        ] {
            let read = read(&said).unwrap();
            assert_eq!(
                read,
                json!({"jsonrpc": "2.0", "id": 7, "error": error}),
                "{said}"
            );
        }
        for said in [
            json!({"jsonrpc": "2.0", "id": 7, "result": {"a": 1}, "error": null}),
            json!({"jsonrpc": "2.0", "id": "7", "result": {"a": 1}, "error": {}}),
            json!({"jsonrpc": "2.0", "id": 7, "result": {"a": 1}, "error": false}),
            json!({"id": 7, "result": {"a": 1}}),
        ] {
            let expected = json!({"jsonrpc": "2.0", "id": 7, "result": {"a": 1}});
            assert_eq!(read(&said), Some(expected), "{said}");
        }
        // JavaScript leaves out a result that is `undefined`.
        let expected = json!({"jsonrpc": "2.0", "id": 7, "result": null});
        assert_eq!(
            message(json!({"jsonrpc": "2.0", "id": 7}), &asked("ping"), None),
            Some(expected)
        );
        // What a program prints beside its messages is none.
        for said in [
            json!({"id": 8, "error": "printed"}),
            json!({"level": 30, "id": 7, "msg": "started"}),
            json!([]),
            json!([{"id": 7, "error": 1}, {}]),
            json!("ready"),
        ] {
            assert_eq!(message(said.clone(), &asked("ping"), None), None, "{said}");
        }
    }

    #[test]
    fn an_answer_without_an_id_belongs_to_the_request_of_its_response() {
        let pending = asked("ping");
        let second = json!({"jsonrpc": "2.0", "id": 8, "method": "ping"});
        pending.sent(&serde_json::from_value(second).unwrap());
        let said = json!({"jsonrpc": "2.0", "id": null, "error": "no"});
        assert_eq!(message(said.clone(), &pending, None), None);
        let eight = RequestId::Number(8);
        let read = message(said, &pending, Some(&eight)).unwrap();
        assert_eq!(read["id"], 8);
    }

    #[test]
    fn what_is_almost_json_is_read() {
        for (text, expected) in [
            (&b"{\"a\":\"\\ud83d\"}"[..], json!({"a": "\u{fffd}"})),
            (
                b"{\"a\":NaN,\"b\":[Infinity,-Infinity],\"c\":\"NaN \\\" NaN\"}",
                json!({"a": null, "b": [null, null], "c": "NaN \" NaN"}),
            ),
            (b"{\"a\":\"\xff\"}", json!({"a": "\u{fffd}"})),
            (b" [1]\r", json!([1])),
            (b"\xEF\xBB\xBF{}", json!({})),
        ] {
            assert_eq!(parse(text).unwrap(), expected);
        }
        for text in ["", "ready", "{", "{\"a\":NaNcy}"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
