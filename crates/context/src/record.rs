//! Converts records of other systems into contexts: known types in their form, everything else as JSON text,
//! so that nothing is lost and nothing fails (S4.11).

use serde_json::Value;

use super::kind::ContextKind;
use super::value::Context;

impl Context {
    /// Converts a record: an object with `type` (`message` with `role` and `text`, `tool_call`,
    /// `tool_result`, `thinking`), or with a text in `content` or `text`. Any other record becomes its own
    /// JSON. `id`, `timestamp` and the contents of `metadata` are kept as metadata.
    pub fn from_record(record: &Value) -> Self {
        let (kind, content) = known(record).unwrap_or_else(|| {
            let kind = text(record, "type").unwrap_or("record");
            let words = record.as_str().map(ToOwned::to_owned);
            let content = words.unwrap_or_else(|| record.to_string());
            (ContextKind::from(kind), content)
        });
        let mut made = Self::new(kind, content);
        let added = record.get("metadata").and_then(Value::as_object);
        for (name, value) in added.into_iter().flatten() {
            made = made.with_metadata(name.as_str(), value.clone());
        }
        let id = ["entry_id", "id"].into_iter().find_map(|at| record.get(at));
        if let Some(id) = id.filter(|id| id.is_string() || id.is_number()) {
            let id = id
                .as_str()
                .map_or_else(|| id.to_string(), ToOwned::to_owned);
            made = made.with_metadata("entry_id", id);
        }
        if let Some(at) = record.get("timestamp").filter(|at| at.is_string()) {
            made = made.with_metadata("timestamp", at.clone());
        }
        for name in ["tool", "tool_name"] {
            if let Some(tool) = text(record, name) {
                made = made.with_metadata("tool_name", tool);
            }
        }
        if let Some(success) = record.get("success").and_then(Value::as_bool) {
            made = made.with_metadata("success", success);
        }
        made
    }
}

/// Returns kind and content of a record that has the fields that its type requires.
fn known(record: &Value) -> Option<(ContextKind, String)> {
    let tool = || text(record, "tool").or_else(|| text(record, "tool_name"));
    let words = || text(record, "text").or_else(|| text(record, "content"));
    match text(record, "type") {
        Some("message") => Some((text(record, "role")?.into(), words()?.to_owned())),
        Some("tool_call") => {
            let parameters = record.get("parameters")?;
            let content = format!("Tool: {}\nParameters: {parameters}", tool()?);
            Some((ContextKind::ToolCall, content))
        }
        Some("tool_result") => {
            let tool = tool()?;
            let content = if record.get("success")?.as_bool()? {
                format!(
                    "Tool: {tool}\nSuccess: true\nResult: {}",
                    record.get("result")?
                )
            } else {
                let error = text(record, "error")?;
                format!("Tool: {tool}\nSuccess: false\nError: {error}")
            };
            Some((ContextKind::ToolResult, content))
        }
        Some("thinking") => Some((ContextKind::Thinking, words()?.to_owned())),
        Some(_) => None,
        None => Some((ContextKind::from("record"), words()?.to_owned())),
    }
}

fn text<'a>(record: &'a Value, name: &str) -> Option<&'a str> {
    record.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Context;

    fn check(record: &Value, kind: &str, content: &str) -> Context {
        let made = Context::from_record(record);
        assert_eq!(made.kind().as_str(), kind, "{record}");
        assert_eq!(made.content(), content, "{record}");
        made
    }

    /// Asserts S4.5, S4.6, S4.7, S4.8, S4.9.
    #[test]
    fn known_records_have_their_form() {
        let message = json!({"type": "message", "role": "user", "text": "hi", "id": 7, "timestamp": "2026-01-02T03:04:05Z", "metadata": {"lang": "en"}});
        let made = check(&message, "user", "hi");
        assert_eq!(
            Value::Object(made.metadata()),
            json!({"entry_id": "7", "timestamp": "2026-01-02T03:04:05Z", "lang": "en"})
        );
        let call = json!({"type": "tool_call", "tool": "add", "parameters": {"a": 1}});
        let made = check(&call, "tool_call", "Tool: add\nParameters: {\"a\":1}");
        assert_eq!(made.metadata()["tool_name"], "add");
        let done =
            json!({"type": "tool_result", "tool": "add", "success": true, "result": {"sum": 3}});
        let text = "Tool: add\nSuccess: true\nResult: {\"sum\":3}";
        assert_eq!(
            check(&done, "tool_result", text).metadata()["success"],
            true
        );
        let failed =
            json!({"type": "tool_result", "tool": "add", "success": false, "error": "no b"});
        let text = "Tool: add\nSuccess: false\nError: no b";
        assert_eq!(
            check(&failed, "tool_result", text).metadata()["success"],
            false
        );
        check(
            &json!({"type": "thinking", "content": "hm"}),
            "thinking",
            "hm",
        );
        check(&json!({"content": "a note"}), "record", "a note");
    }

    /// Asserts S4.11: unknown types, and known ones without their required fields.
    #[test]
    fn whatever_is_not_known_is_its_json() {
        for (record, kind) in [
            (json!({"type": "weather", "degrees": 3}), "weather"),
            (json!({"type": "message", "role": 3, "text": "x"}), "user"),
            (json!({"type": "message", "role": "user"}), "message"),
            (json!({"type": "tool_call", "tool": "add"}), "tool_call"),
            (
                json!({"type": "tool_result", "tool": "add", "success": "yes"}),
                "tool_result",
            ),
            (json!({"type": 3}), "record"),
            (json!([1, 2]), "record"),
            (json!(null), "record"),
        ] {
            let kind = if kind == "user" { "message" } else { kind };
            check(&record, kind, &record.to_string());
        }
        check(&json!("just text"), "record", "just text");
    }
}
