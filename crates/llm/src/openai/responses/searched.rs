//! Reads the items of the vendor's tool search. Pure.

use serde_json::Value;

/// The kind of a search item.
pub(super) const CALL: &str = "tool_search_call";
/// The kind of an item with the result of a search.
pub(super) const OUTPUT: &str = "tool_search_output";

/// Returns true for a search or the result of a search.
pub(super) fn is_search(item: &Value) -> bool {
    matches!(kind(item), CALL | OUTPUT)
}

/// The functions that a search loaded, each with its namespace, if any.
pub(super) fn loaded(output: &Value) -> Vec<(Option<&str>, &str)> {
    let tools = output.get("tools").and_then(Value::as_array);
    let mut loaded = Vec::new();
    for tool in tools.into_iter().flatten() {
        let name = text(tool, "name");
        match tool.get("tools").and_then(Value::as_array) {
            Some(functions) => {
                let functions = functions.iter();
                loaded.extend(functions.map(|function| (Some(name), text(function, "name"))));
            }
            None => loaded.push((None, name)),
        }
    }
    loaded
}

/// All texts in a search's arguments, joined: the form of the arguments is not documented.
pub(super) fn query(call: &Value) -> String {
    let mut words = Vec::new();
    let arguments = call.get("arguments").unwrap_or(&Value::Null);
    collect_words(arguments, &mut words);
    words.join(", ")
}

fn collect_words<'a>(value: &'a Value, words: &mut Vec<&'a str>) {
    match value {
        Value::String(word) => words.push(word),
        Value::Array(values) => values.iter().for_each(|value| collect_words(value, words)),
        Value::Object(fields) => fields
            .values()
            .for_each(|value| collect_words(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The kind of an item.
pub(super) fn kind(item: &Value) -> &str {
    text(item, "type")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{loaded, query};

    #[test]
    fn what_was_looked_for_and_found_is_read_in_every_form() {
        assert_eq!(
            query(&json!({"arguments": {"paths": ["mcp__garden"]}})),
            "mcp__garden"
        );
        assert_eq!(
            query(&json!({"arguments": {"goal": "paint", "limit": 2}})),
            "paint"
        );
        assert_eq!(query(&json!({})), "");
        let output = json!({"tools": [{"type": "function", "name": "a"},
            {"type": "namespace", "name": "n", "tools": [{"name": "b"}]}, 7]});
        assert_eq!(loaded(&output), [(None, "a"), (Some("n"), "b"), (None, "")]);
    }
}
