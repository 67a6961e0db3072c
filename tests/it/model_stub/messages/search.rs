//! The search for tools that the vendor runs: what it answers, and what it refuses of it.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::text_of;

/// How the only search that the stand-in knows is called.
const NAME: &str = "tool_search_tool_bm25";

/// The blocks of an answer that searched, each with the pieces that follow it.
pub(super) fn blocks(query: &str, found: &[String]) -> [(Value, Vec<Value>); 2] {
    let references = found
        .iter()
        .map(|name| json!({"type": "tool_reference", "tool_name": name}));
    let references: Vec<Value> = references.collect();
    let input = json!({ "query": query }).to_string();
    let (head, tail) = input.split_at(4);
    let pieces = ["", head, tail];
    let pieces = pieces.map(|json| json!({"type": "input_json_delta", "partial_json": json}));
    let content = json!({"type": "tool_search_tool_search_result", "tool_references": references});
    [
        (
            json!({"type": "server_tool_use", "id": "srvtoolu_stub", "name": NAME, "input": {}}),
            pieces.to_vec(),
        ),
        (
            json!({"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_stub", "content": content}),
            Vec::new(),
        ),
    ]
}

/// Whether a tool is the search; the vendor's older models know none.
pub(super) fn is_search(tool: &Value, model: &str) -> Result<bool, String> {
    let kind = text_of(tool, "/type");
    if kind.is_empty() || kind == "custom" {
        return Ok(false);
    }
    let is_old = ["claude-3", "claude-opus-4-1", "claude-sonnet-4-2"];
    let is_old = is_old.iter().any(|start| model.starts_with(start));
    if kind != "tool_search_tool_bm25_20251119" || text_of(tool, "/name") != NAME || is_old {
        return Err(format!(
            "tools: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        ));
    }
    Ok(true)
}

/// What holds of deferred tools.
pub(super) fn check_tools(tools: &[Value]) -> Result<(), String> {
    let is_deferred = |tool: &&Value| tool["defer_loading"] == json!(true);
    if tools.iter().all(|tool| is_deferred(&tool)) {
        return Err("At least one tool must have defer_loading=false".to_owned());
    }
    let marked = tools.iter().filter(is_deferred);
    let marked = marked.map(|tool| (text_of(tool, "/name"), tool.get("cache_control")));
    for (name, mark) in marked {
        if mark.is_some() {
            return Err(format!(
                "Tool '{name}' cannot have both defer_loading=true and cache_control set."
            ));
        }
    }
    Ok(())
}

/// What holds of the searches in the conversation.
pub(super) fn check_messages(body: &Value) -> Result<(), String> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let names: HashSet<&str> = tools.map(|tool| text_of(tool, "/name")).collect();
    for message in body["messages"].as_array().into_iter().flatten() {
        let blocks = message["content"].as_array().into_iter().flatten();
        let mut asked = None;
        for block in blocks {
            match text_of(block, "/type") {
                "server_tool_use" if text_of(block, "/name") == NAME => {
                    if !names.contains(NAME) {
                        return Err(format!("Tool '{NAME}' not found in provided tools"));
                    }
                    asked = Some(text_of(block, "/id"));
                }
                "tool_search_tool_result" => {
                    if asked.take() != Some(text_of(block, "/tool_use_id")) {
                        return Err("unexpected `tool_use_id` found in a search".to_owned());
                    }
                    let found = block["content"]["tool_references"].as_array();
                    for reference in found.ok_or("a search that found no list")? {
                        let name = text_of(reference, "/tool_name");
                        if !names.contains(name) {
                            return Err(format!(
                                "Tool reference '{name}' not found in available tools"
                            ));
                        }
                    }
                }
                _ => {}
            }
        }
        if asked.is_some() {
            return Err(format!("`{NAME}` tool use was found without a result"));
        }
    }
    Ok(())
}
