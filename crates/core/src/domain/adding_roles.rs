//! Who may add MCP servers, by how those are reached (`agent.mcp_roles`).

use serde::{Deserialize, Deserializer};

use super::{McpTransport, Role};

/// The lowest role that may add servers of each transport; `None` = nobody may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleByTransport {
    /// Commands, packages among them, in a sandbox.
    #[serde(deserialize_with = "role_or_nobody")]
    pub stdio: Option<Role>,
    /// Container images.
    #[serde(deserialize_with = "role_or_nobody")]
    pub stdio_docker: Option<Role>,
    /// Remote servers.
    #[serde(deserialize_with = "role_or_nobody")]
    pub http: Option<Role>,
    /// Remote servers that speak the old HTTP with SSE.
    #[serde(deserialize_with = "role_or_nobody")]
    pub sse: Option<Role>,
}

impl RoleByTransport {
    /// The lowest role that may add a server of that transport.
    pub fn lowest(self, transport: McpTransport) -> Option<Role> {
        match transport {
            McpTransport::Stdio => self.stdio,
            McpTransport::StdioDocker => self.stdio_docker,
            McpTransport::Http => self.http,
            McpTransport::Sse => self.sse,
        }
    }
}

/// Who may add servers for whom. Those of the installation are its admins' alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddingRoles {
    /// For everybody in their tenant; never less than an admin of it.
    pub tenant: RoleByTransport,
    /// For themselves alone; never less than a member.
    pub person: RoleByTransport,
}

/// What is no role was refused before.
fn role_or_nobody<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Role>, D::Error> {
    Ok(Role::parse(&String::deserialize(from)?))
}
