//! The wire form of a host that a server was refused.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::RefusedHost;

/// A host that a server was refused.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerRefusedHost {
    /// The host, as it was requested.
    host: String,
    /// The port.
    port: u16,
    /// The item that the entry's `network` needs to allow the host; absent if no item would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    /// The reason, for people.
    reason: String,
    /// When the host was last refused (RFC 3339).
    at: String,
    /// The number of refusals since this gateway started.
    count: u64,
}

impl From<RefusedHost> for ServerRefusedHost {
    fn from(refused: RefusedHost) -> Self {
        Self {
            host: refused.host,
            port: refused.port,
            entry: refused.entry,
            reason: refused.reason,
            at: refused.at.to_rfc3339(),
            count: refused.count,
        }
    }
}
