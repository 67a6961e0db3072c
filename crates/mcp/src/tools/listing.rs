//! Lists a server's tools as our own types, within bounds: a list that is too long is cut.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{MetaObject, PaginatedRequestParams};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;

use crate::error::Error;
use crate::mask::Cleaner;
use crate::sending;
use crate::wire::lenient::LEFT_OUT;
use crate::wire::message;
use sepal_core::domain::{Tool, ToolAnnotations, ToolView};

/// The most tools of one server.
const MAX_TOOLS: usize = 1_000;
/// The most pages of the list.
const MAX_PAGES: usize = 100;
/// Most bytes of one definition.
const MAX_TOOL_BYTES: usize = 64 * 1024;
/// The most problems of one list.
const MAX_PROBLEMS: usize = 100;
/// The longest name of a tool, in bytes.
const MAX_NAME: usize = 200;

/// The tools of a server, and what was left out of its list.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<Tool>,
    /// One sentence each, for people.
    pub(crate) problems: Vec<String>,
}

/// Lists all tools, in the server's order.
pub(crate) async fn list(server: &str, peer: &Peer<RoleClient>) -> Result<Listed, Error> {
    let mut all = Listed::default();
    let mut page = PaginatedRequestParams::default();
    let mut cursors = BTreeSet::new();
    for _ in 0..MAX_PAGES {
        let listed = match peer.list_tools(Some(page)).await {
            Ok(listed) => listed,
            // The pages so far are good.
            Err(error) if !all.tools.is_empty() => {
                let error = failed(server, &error);
                all.note(server, format!("its tools were not all listed: {error}"));
                return Ok(all);
            }
            Err(error) => return Err(failed(server, &error)),
        };
        for problem in left_out(listed.meta.as_ref()) {
            all.note(server, problem);
        }
        for tool in listed.tools {
            match read(&tool, &all.tools) {
                Ok(tool) => all.tools.push(tool),
                Err(problem) => all.note(server, problem),
            }
            if all.tools.len() >= MAX_TOOLS {
                let problem =
                    format!("it offers more than {MAX_TOOLS} tools; the rest is left out");
                all.note(server, problem);
                return Ok(all);
            }
        }
        let Some(cursor) = listed.next_cursor else {
            return Ok(all);
        };
        if !cursors.insert(cursor.clone()) {
            all.note(server, "its list of tools repeats a page".to_owned());
            return Ok(all);
        }
        page = PaginatedRequestParams::default().with_cursor(Some(cursor));
    }
    let problem = format!("its list of tools does not end; {MAX_PAGES} pages were read");
    all.note(server, problem);
    Ok(all)
}

impl Listed {
    fn note(&mut self, server: &str, problem: String) {
        tracing::warn!(mcp.server = server, %problem, "A part of a server's list is left out");
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

/// Returns what was left out of a page, one sentence each.
pub(crate) fn left_out(meta: Option<&MetaObject>) -> Vec<String> {
    let said = meta.and_then(|meta| meta.0.get(LEFT_OUT)?.as_array());
    let said = said.into_iter().flatten().filter_map(Value::as_str);
    said.map(ToOwned::to_owned).collect()
}

/// Converts a definition, or says why the tool cannot be offered.
pub(crate) fn read(tool: &rmcp::model::Tool, so_far: &[Tool]) -> Result<Tool, String> {
    let name = tool.name.as_ref();
    let left_out = |reason: &str| {
        let name: String = name.chars().take(MAX_NAME).collect();
        Err(format!(
            "its tool `{}` is left out: {reason}",
            name.escape_debug()
        ))
    };
    let is_plain = |c: char| c.is_ascii_graphic() && c != '*';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
        return left_out(
            "its name has other characters than letters, digits and signs, or too many",
        );
    }
    if so_far.iter().any(|other| other.name == name) {
        return left_out("another tool before it has the same name");
    }
    let bytes = serde_json::to_string(tool).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_TOOL_BYTES {
        return left_out("its definition is longer than 64 KiB");
    }
    let (hints, output) = (tool.annotations.as_ref(), tool.output_schema.as_ref());
    let meta = tool.meta.as_ref().map(|meta| &meta.0);
    Ok(Tool {
        name: name.to_owned(),
        title: tool
            .title
            .clone()
            .or_else(|| hints.and_then(|hints| hints.title.clone())),
        description: tool.description.as_deref().unwrap_or_default().to_owned(),
        input_schema: Value::Object(tool.input_schema.as_ref().clone()),
        output_schema: output.map(|schema| Arc::new(Value::Object(schema.as_ref().clone()))),
        annotations: hints.map_or_else(ToolAnnotations::default, |hints| ToolAnnotations {
            read_only_hint: hints.read_only_hint,
            destructive_hint: hints.destructive_hint,
            idempotent_hint: hints.idempotent_hint,
            open_world_hint: hints.open_world_hint,
        }),
        needs_tasks: message::needs_tasks(tool),
        runs_as_task: message::takes_tasks(tool),
        view: meta.and_then(ToolView::of_meta).map(Arc::new),
    })
}

/// Adapts a definition to its server's task support. Without support, a tool that works only as a task cannot
/// be called, and every other tool is called without a task.
pub(crate) fn with_tasks(tool: Tool, server: &str, has_tasks: bool) -> Tool {
    if tool.needs_tasks && !has_tasks {
        tracing::warn!(mcp.server = server, tool.name = %tool.name,
            "A tool needs tasks, which its server does not declare: it is not offered");
    }
    Tool {
        needs_tasks: tool.needs_tasks && !has_tasks,
        runs_as_task: tool.runs_as_task && has_tasks,
        ..tool
    }
}

/// Masks secrets in the definitions; a tool whose name contains a secret is left out.
pub(crate) fn cleaned(tools: Vec<Tool>, cleaner: &Cleaner) -> Vec<Tool> {
    let clean = |text: String| cleaner.clean(&text);
    let tools = tools
        .into_iter()
        .filter(|tool| cleaner.clean(&tool.name) == tool.name);
    tools
        .map(|tool| Tool {
            title: tool.title.map(clean),
            description: clean(tool.description),
            input_schema: cleaner.clean_value(tool.input_schema),
            output_schema: tool
                .output_schema
                .map(|schema| Arc::new(cleaner.clean_value(Arc::unwrap_or_clone(schema)))),
            view: tool.view.map(|view| without_secret(view, cleaner)),
            ..tool
        })
        .collect()
}

/// Drops a view address that contains a secret: masked, it would be another address.
fn without_secret(view: Arc<ToolView>, cleaner: &Cleaner) -> Arc<ToolView> {
    let is_secret = |uri: &String| cleaner.clean(uri) != *uri;
    if view.uri.as_ref().is_some_and(is_secret) {
        return Arc::new(ToolView {
            uri: None,
            is_app_only: view.is_app_only,
            is_hidden_from_apps: view.is_hidden_from_apps,
        });
    }
    view
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the error type of rmcp may grow; what is not known is quoted"
)]
fn failed(server: &str, error: &ServiceError) -> Error {
    match error {
        ServiceError::McpError(data) => Error::of_answer(server, data),
        ServiceError::TransportSend(error) => sending::failed(server, error),
        ServiceError::TransportClosed => Error::Gone {
            server: server.to_owned(),
        },
        other => Error::Refused(other.to_string()),
    }
}
