//! `agent.mcp_registry`: where published MCP servers are looked up.

use std::path::PathBuf;

use serde::Deserialize;
use url::Url;

use super::read;

/// `agent.mcp_registry`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpRegistry {
    /// Whether anything is looked up.
    pub enabled: bool,
    /// The registry, without `/v0.1`.
    #[serde(deserialize_with = "read::parsed_option")]
    pub url: Option<Url>,
    /// A file with its answers, in its place.
    pub file: Option<PathBuf>,
}
