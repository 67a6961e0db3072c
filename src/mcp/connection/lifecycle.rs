//! Which revision a server is spoken to in: `initialize` until 2025-11-25, `server/discover` from
//! 2026-07-28 on.

use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode};

use super::HANDSHAKE_LIMIT;
use crate::mcp::error::Error;

/// A server of 2026-07-28 misses the header that names the revision in each request.
const HEADER_MISMATCH: ErrorCode = ErrorCode(-32_020);
/// It does not speak the revision that was asked for.
const UNSUPPORTED_VERSION: ErrorCode = ErrorCode(-32_022);

/// Whether a server refused `initialize` as one that knows only `server/discover`.
pub(super) fn wants_discovery(error: &ClientInitializeError) -> bool {
    let ClientInitializeError::JsonRpcError(error) = error else {
        return false;
    };
    [
        HEADER_MISMATCH,
        UNSUPPORTED_VERSION,
        ErrorCode::METHOD_NOT_FOUND,
    ]
    .contains(&error.code)
}

/// The lifecycle without a handshake.
pub(super) fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

/// The handshake took too long.
pub(super) fn no_answer(server: &str) -> Error {
    Error::Handshake {
        server: server.to_owned(),
        reason: format!("no answer within {} s", HANDSHAKE_LIMIT.as_secs()),
    }
}
