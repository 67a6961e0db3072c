//! Reads what the vendor's own search for tools says. Pure.

use serde_json::Value;

/// How the names of all versions of the search begin.
const SEARCH: &str = "tool_search_tool";

/// Whether a call of the vendor's own tools is a search for tools.
pub(super) fn is_search(block: &Value) -> bool {
    text(block, "name").starts_with(SEARCH)
}

/// The names that a search found, as they were sent.
pub(super) fn found(result: &Value) -> impl Iterator<Item = &str> {
    let references = result.pointer("/content/tool_references");
    let references = references.and_then(Value::as_array).into_iter().flatten();
    references.map(|reference| text(reference, "tool_name"))
}

/// A text of a block; empty where it has none.
pub(super) fn text<'a>(block: &'a Value, field: &str) -> &'a str {
    block.get(field).and_then(Value::as_str).unwrap_or_default()
}
