//! An MCP server over HTTP with any number of tools, which are never called.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Serves until the process is ended; prints its address on standard output.
pub(crate) async fn serve(count: usize) -> Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("{}", listener.local_addr()?);
    let tools: Arc<Vec<Value>> = Arc::new((0..count).map(tool).collect());
    let routes = Router::new().route("/mcp", post(answer)).with_state(tools);
    axum::serve(listener, routes).await?;
    Ok(())
}

/// Builds a definition as long as those of real servers.
fn tool(number: usize) -> Value {
    json!({
        "name": format!("tool_{number}"),
        "description": format!(
            "Looks up record {number} in the register, by its key or by a part of its name, and \
             gives what is kept of it: who made it, when it was changed, and where it belongs."
        ),
        "inputSchema": {
            "type": "object", "required": ["key"],
            "properties": {
                "key": { "type": "string", "description": "The record's key, or a part of its name" },
                "limit": { "type": "integer", "description": "How many records at most" },
            },
        },
    })
}

async fn answer(State(tools): State<Arc<Vec<Value>>>, Json(asked): Json<Value>) -> Response {
    let Some(id) = asked.get("id") else {
        return StatusCode::ACCEPTED.into_response();
    };
    let result = match asked.get("method").and_then(Value::as_str) {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "many", "version": "1" },
        }),
        Some("tools/list") => json!({ "tools": *tools }),
        Some("ping") => json!({}),
        _ => {
            let error = json!({ "code": -32601, "message": "there is no such method" });
            return Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_response();
        }
    };
    Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response()
}
