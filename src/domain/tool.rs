//! Tools as every layer sees them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Hints of an MCP server about a tool: a claim, believed only of trusted servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// Changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// May destroy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeating it changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Reaches beyond its own place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A tool's definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name that the model uses; unique in a session.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, as the model reads it.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// Hints of its server.
    #[serde(default)]
    pub annotations: ToolAnnotations,
}

/// Where a tool lives: the server and the server's own name for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolRef {
    /// The MCP server's name in the registry.
    pub server: String,
    /// The tool's name at that server.
    pub tool: String,
}
