//! Defines which roles may add MCP servers, by transport (`agent.mcp_roles`).

use serde::{Deserialize, Deserializer};

use super::{McpTransport, Role};

/// The lowest role that may add servers of each transport; `None` = nobody may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleByTransport {
    /// Commands in a sandbox, including packages.
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
    /// The lowest role that may add a server of that transport; `None` = nobody may.
    pub fn lowest(self, transport: McpTransport) -> Option<Role> {
        match transport {
            McpTransport::Stdio => self.stdio,
            McpTransport::StdioDocker => self.stdio_docker,
            McpTransport::Http => self.http,
            McpTransport::Sse => self.sse,
        }
    }
}

/// The roles that may add servers, by who will use these. Only its admins add servers for the whole
/// installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddingRoles {
    /// Servers for everybody in the tenant; never below admin.
    pub tenant: RoleByTransport,
    /// Servers for oneself only; never below member.
    pub person: RoleByTransport,
}

/// Reads any other text as `None`, since invalid roles were refused earlier.
fn role_or_nobody<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Role>, D::Error> {
    Ok(Role::parse(&String::deserialize(from)?))
}
