//! The handshake of a connection, and in which revision a server is spoken to: `initialize` until
//! 2025-11-25, `server/discover` from 2026-07-28 on.

use std::sync::Mutex;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _};
use rmcp::transport::IntoTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Connection;
use super::handler::Handler;
use crate::mcp::error::Error;
use crate::mcp::mask::Cleaner;
use crate::mcp::remote::{self, Remote};
use crate::mcp::wire::lines::Lines;

/// How long a server may take for the handshake: interpreted ones load slowly.
pub(super) const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);
/// A server of 2026-07-28 misses the header that names the revision in each request.
const HEADER_MISMATCH: ErrorCode = ErrorCode(-32_020);
/// It does not speak the revision that was asked for.
const UNSUPPORTED_VERSION: ErrorCode = ErrorCode(-32_022);

impl Connection {
    /// Makes the handshake on a stream. `roots` are the addresses (`file://…`) of the folders that the
    /// server may work in, if there are any.
    pub async fn open(
        server: &str,
        output: impl AsyncRead + Send + Unpin + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
        roots: Vec<String>,
    ) -> Result<Self, Error> {
        Self::shake_hands(server, Lines::new(output, input), roots).await
    }

    /// Makes the handshake over streamable HTTP. Which hosts may be reached is decided by the
    /// client. Most servers know `initialize`; one that refuses it as such is asked `server/discover`.
    pub async fn open_http(
        server: &str,
        client: reqwest::Client,
        remote: &Remote,
    ) -> Result<Self, Error> {
        let transport = remote::transport(server, client.clone(), remote)?;
        let initialize = ClientLifecycleMode::Initialize;
        match Self::serve(server, transport, (Vec::new(), initialize)).await? {
            Err(error) if wants_discovery(&error) => {
                let transport = remote::transport(server, client, remote)?;
                let discover = discover();
                let served = Self::serve(server, transport, (Vec::new(), discover)).await?;
                served.map_err(|error| remote::handshake_error(server, &error))
            }
            served => served.map_err(|error| remote::handshake_error(server, &error)),
        }
    }

    /// Makes the handshake over the HTTP with SSE of old servers, with the same client.
    pub async fn open_sse(
        server: &str,
        client: reqwest::Client,
        remote: &Remote,
    ) -> Result<Self, Error> {
        let opening = remote::legacy_transport(server, client, remote);
        let opened = tokio::time::timeout(HANDSHAKE_LIMIT, opening).await;
        let transport = opened.map_err(|_| no_answer(server))??;
        Self::shake_hands(server, transport, Vec::new()).await
    }

    async fn shake_hands<T, E, A>(
        server: &str,
        transport: T,
        roots: Vec<String>,
    ) -> Result<Self, Error>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let initialize = ClientLifecycleMode::Initialize;
        let served = Self::serve(server, transport, (roots, initialize)).await?;
        served.map_err(|error| remote::handshake_error(server, &error))
    }

    /// The library's own word where the handshake fails, unless its time is over.
    async fn serve<T, E, A>(
        server: &str,
        transport: T,
        (roots, lifecycle): (Vec<String>, ClientLifecycleMode),
    ) -> Result<Result<Self, ClientInitializeError>, Error>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let (handler, log) = Handler::new(roots);
        let serving = handler.serve_with_lifecycle(transport, lifecycle);
        let served = tokio::time::timeout(HANDSHAKE_LIMIT, serving).await;
        let served = served.map_err(|_| no_answer(server))?;
        Ok(served.map(|service| Self {
            server: server.to_owned(),
            service,
            log: Mutex::new(Some(log)),
            cleaner: Cleaner::default(),
        }))
    }
}

/// Whether a server refused `initialize` as one that knows only `server/discover`.
fn wants_discovery(error: &ClientInitializeError) -> bool {
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
fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

fn no_answer(server: &str) -> Error {
    Error::Handshake {
        server: server.to_owned(),
        reason: format!("no answer within {} s", HANDSHAKE_LIMIT.as_secs()),
    }
}
