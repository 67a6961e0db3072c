//! The search for tools that the vendor runs: what it answers, and what it refuses of it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{check_fields, check_function, text};

/// The namespaces of functions that have to be found.
#[derive(Default)]
pub(super) struct Namespaces(HashMap<String, String>);

impl Namespaces {
    pub(super) fn of(body: &Value) -> Self {
        let tools = body["tools"].as_array().into_iter().flatten();
        let functions = tools.flat_map(|tool| {
            let namespace = text(tool, "/name").unwrap_or_default();
            let functions = tool["tools"].as_array().into_iter().flatten();
            functions.map(move |function| {
                let name = text(function, "/name").unwrap_or_default();
                (name.to_owned(), namespace.to_owned())
            })
        });
        Self(functions.collect())
    }

    pub(super) fn check_call(&self, call: &Value) -> Result<(), String> {
        let name = text(call, "/name").unwrap_or_default();
        let (given, known) = (text(call, "/namespace"), self.0.get(name));
        if given == known.map(String::as_str) {
            return Ok(());
        }
        Err(format!(
            "Missing namespace for function_call '{name}'. It does not exist in the default namespace."
        ))
    }

    /// An item that says what a search loaded.
    pub(super) fn check_output(&self, item: &Value) -> Result<(), String> {
        check_fields(
            item,
            &["type", "id", "call_id", "execution", "status", "tools"],
        )?;
        for tool in item["tools"].as_array().ok_or("a search without tools")? {
            let namespace = text(tool, "/name").unwrap_or_default();
            for function in tool["tools"].as_array().ok_or("no namespace was loaded")? {
                let name = text(function, "/name").unwrap_or_default();
                if self.0.get(name).map(String::as_str) != Some(namespace) {
                    return Err(format!(
                        "`{name}` is no function of namespace `{namespace}`"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// An item that says what was searched for.
pub(super) fn check_call(item: &Value) -> Result<(), String> {
    check_fields(
        item,
        &["type", "id", "call_id", "execution", "status", "arguments"],
    )?;
    if text(item, "/execution") == Some("server") && item["arguments"].is_object() {
        return Ok(());
    }
    Err("a search that the vendor has not made".to_owned())
}

/// The search itself, or a namespace; whether it was one of them.
pub(super) fn check_tool(tool: &Value, model: &str) -> Result<bool, String> {
    let is_old = ["gpt-4", "gpt-5.1", "o3"]
        .iter()
        .any(|start| model.starts_with(start))
        || model == "gpt-5";
    match text(tool, "/type") {
        Some(kind @ ("tool_search" | "namespace")) if is_old => Err(format!(
            "Tool '{kind}' is not supported with {model}: tool_search is unknown."
        )),
        Some("tool_search") => check_fields(tool, &["type"]).map(|()| true),
        Some("namespace") => {
            check_fields(tool, &["type", "name", "description", "tools"])?;
            if text(tool, "/description").is_none_or(str::is_empty) {
                return Err("a namespace without a description".to_owned());
            }
            let functions = tool["tools"].as_array().filter(|tools| !tools.is_empty());
            for function in functions.ok_or("a namespace without tools")? {
                check_function(function)?;
            }
            Ok(true)
        }
        Some(_) | None => Ok(false),
    }
}

/// The items of an answer that searched: as they began, and whole.
pub(super) fn items(query: &str, found: &[String], server: &str) -> [(Value, Value); 2] {
    let item = |kind: &str, status: &str| json!({"type": kind, "id": format!("{kind}_stub"), "call_id": null, "execution": "server", "status": status});
    let with = |mut item: Value, field: &str, value: Value| {
        item[field] = value;
        item
    };
    let functions = found.iter().map(
        |name| json!({"type": "function", "name": name, "defer_loading": true, "parameters": {}}),
    );
    let functions: Vec<Value> = functions.collect();
    let tools = json!([{"type": "namespace", "name": format!("mcp__{server}"), "description": "d", "tools": functions}]);
    let (call, output) = ("tool_search_call", "tool_search_output");
    [
        (
            with(item(call, "in_progress"), "arguments", json!({})),
            with(
                item(call, "completed"),
                "arguments",
                json!({ "query": query }),
            ),
        ),
        (
            with(item(output, "in_progress"), "tools", json!([])),
            with(item(output, "completed"), "tools", tools),
        ),
    ]
}
