//! Lists a server's tools as our own types, within bounds: a list that is too long is cut.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::PaginatedRequestParams;
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;

use crate::error::Error;
use crate::mask::Cleaner;
use crate::sending;
use crate::wire::message;
use sepal_core::domain::{Tool, ToolAnnotations, ToolView};

/// The most tools of one server.
const MAX_TOOLS: usize = 1_000;
/// The most pages of the list.
const MAX_PAGES: usize = 100;
/// Most bytes of one definition.
const MAX_TOOL_BYTES: usize = 64 * 1024;
/// The longest name of a tool, in bytes.
const MAX_NAME: usize = 200;

/// Lists all tools, in the server's order.
pub(crate) async fn list(server: &str, peer: &Peer<RoleClient>) -> Result<Vec<Tool>, Error> {
    let mut tools: Vec<Tool> = Vec::new();
    let mut page = PaginatedRequestParams::default();
    for _ in 0..MAX_PAGES {
        let listed = peer.list_tools(Some(page)).await;
        let listed = listed.map_err(|error| failed(server, &error))?;
        for tool in listed.tools {
            if let Some(tool) = read(server, &tool, &tools) {
                tools.push(tool);
            }
            if tools.len() >= MAX_TOOLS {
                tracing::warn!(
                    mcp.server = server,
                    "The server offers more than {MAX_TOOLS} tools; the rest is left out"
                );
                return Ok(tools);
            }
        }
        let Some(cursor) = listed.next_cursor else {
            break;
        };
        page = PaginatedRequestParams::default().with_cursor(Some(cursor));
    }
    Ok(tools)
}

/// Converts a definition; `None` if the tool cannot be offered.
pub(crate) fn read(server: &str, tool: &rmcp::model::Tool, so_far: &[Tool]) -> Option<Tool> {
    let name = tool.name.as_ref();
    let is_plain = |c: char| c.is_ascii_graphic() && c != '*';
    let is_fit = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain);
    let is_new = so_far.iter().all(|other| other.name != name);
    let bytes = serde_json::to_string(tool).map_or(usize::MAX, |text| text.len());
    if !is_fit || !is_new || bytes > MAX_TOOL_BYTES {
        tracing::warn!(mcp.server = server, tool.name = %name.escape_debug(),
            "A tool is left out: its name is odd or taken, or its definition too long");
        return None;
    }
    let (hints, output) = (tool.annotations.as_ref(), tool.output_schema.as_ref());
    let meta = tool.meta.as_ref().map(|meta| &meta.0);
    Some(Tool {
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
        ServiceError::McpError(data) => Error::of_answer(data),
        ServiceError::TransportSend(error) => sending::failed(server, error),
        ServiceError::TransportClosed => Error::Gone {
            server: server.to_owned(),
        },
        other => Error::Refused(other.to_string()),
    }
}
