//! The wire form of a host that a server was refused.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::RefusedHost;

/// A host that a server was refused.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerRefusedHost {
    /// As it was asked for.
    host: String,
    port: u16,
    /// What the entry's `network` has to name for it to be reached; absent where nothing there helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    /// Why, in words.
    reason: String,
    /// When it was refused last (RFC 3339).
    at: String,
    /// How often since this gateway started.
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
