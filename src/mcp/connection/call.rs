//! What is asked of a server, and what it says meanwhile.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mcp::standstill::Standstill;

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The server's own name of the tool.
    pub tool: String,
    /// The arguments: a JSON object.
    pub args: Value,
    /// How long it may take.
    pub limit: Duration,
    /// Tells when the server is paused from outside: that time is not counted.
    pub standstill: Option<Standstill>,
}

/// News of a running call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolProgress {
    /// How far it is.
    pub progress: f64,
    pub total: Option<f64>,
    /// In words, or new output.
    pub message: Option<String>,
}
