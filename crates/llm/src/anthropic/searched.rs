//! Reads the blocks of the vendor's tool search. Pure.

use serde_json::Value;

/// The common name prefix of all versions of the search tool.
const SEARCH: &str = "tool_search_tool";

/// Returns true if a call of a vendor-run tool is a tool search.
pub(super) fn is_search(block: &Value) -> bool {
    text(block, "name").starts_with(SEARCH)
}

/// The tool names that a search found, in their wire form.
pub(super) fn found(result: &Value) -> impl Iterator<Item = &str> {
    let references = result.pointer("/content/tool_references");
    let references = references.and_then(Value::as_array).into_iter().flatten();
    references.map(|reference| text(reference, "tool_name"))
}

/// A text field of a block; empty if missing.
pub(super) fn text<'a>(block: &'a Value, field: &str) -> &'a str {
    block.get(field).and_then(Value::as_str).unwrap_or_default()
}
