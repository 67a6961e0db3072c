//! `agent.mcp_registry`: the registry of published MCP servers.

use std::path::PathBuf;

use serde::Deserialize;
use url::Url;

use super::read;

/// `agent.mcp_registry`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpRegistry {
    /// True if servers may be looked up.
    pub enabled: bool,
    /// The URL of the registry, without `/v0.1`.
    #[serde(deserialize_with = "read::parsed_option")]
    pub url: Option<Url>,
    /// A file that is read instead of asking the registry.
    pub file: Option<PathBuf>,
}
