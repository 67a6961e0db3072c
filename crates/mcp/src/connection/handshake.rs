//! Opens connections: with `initialize` on a stream, over HTTP in the lifecycle that the server speaks.

use std::sync::Mutex;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
use rmcp::transport::IntoTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Connection;
use super::handler::{ClientOffer, Handler};
use super::listening::Listening;
use crate::error::Error;
use crate::mask::Cleaner;
use crate::remote::{self, Lifecycle, Remote};
use crate::wire::lines::Lines;

/// The time limit of the handshake: interpreted servers load slowly.
pub(super) const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);
impl Connection {
    /// Opens a connection on a stream, with the handshake.
    pub async fn open(
        server: &str,
        output: impl AsyncRead + Send + Unpin + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
        offer: ClientOffer,
    ) -> Result<Self, Error> {
        Self::shake_hands(server, Lines::new(output, input), offer).await
    }

    /// Opens a connection on a stream without a handshake, as revisions from 2026-07-28 on do: for servers
    /// that answered the handshake with [`Error::NoHandshake`].
    pub async fn open_discovered(
        server: &str,
        output: impl AsyncRead + Send + Unpin + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
        offer: ClientOffer,
    ) -> Result<Self, Error> {
        let lines = Lines::new(output, input);
        Self::serve(server, lines, offer, discovering()).await
    }

    /// Opens a connection over streamable HTTP, in the lifecycle that the server asks for. `client` decides
    /// which hosts may be reached.
    pub async fn open_http(
        server: &str,
        client: reqwest::Client,
        remote: &Remote,
        offer: ClientOffer,
    ) -> Result<Self, Error> {
        let (lifecycle, url) = remote::lifecycle(server, &client, remote).await?;
        let remote = &Remote {
            url,
            ..remote.clone()
        };
        let lifecycle = match lifecycle {
            Lifecycle::Initialize => ClientLifecycleMode::Initialize,
            Lifecycle::Discover => discovering(),
        };
        let transport = remote::transport(server, client, remote)?;
        Self::serve(server, transport, offer, lifecycle).await
    }

    /// Opens a connection over the HTTP with SSE of old servers, with the same client.
    pub async fn open_sse(
        server: &str,
        client: reqwest::Client,
        remote: &Remote,
        offer: ClientOffer,
    ) -> Result<Self, Error> {
        let opening = remote::legacy_transport(server, client, remote);
        let opened = tokio::time::timeout(HANDSHAKE_LIMIT, opening).await;
        let transport = opened.map_err(|_| no_answer(server))??;
        Self::shake_hands(server, transport, offer).await
    }

    async fn shake_hands<T, E, A>(
        server: &str,
        transport: T,
        offer: ClientOffer,
    ) -> Result<Self, Error>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        Self::serve(server, transport, offer, ClientLifecycleMode::Initialize).await
    }

    async fn serve<T, E, A>(
        server: &str,
        transport: T,
        offer: ClientOffer,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, Error>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let is_discovered = matches!(lifecycle, ClientLifecycleMode::Discover { .. });
        let (handler, log) = Handler::new(offer, is_discovered);
        let beginning = handler.serve_with_lifecycle(transport, lifecycle);
        let begun = tokio::time::timeout(HANDSHAKE_LIMIT, beginning).await;
        let begun = begun.map_err(|_| no_answer(server))?;
        let service = begun.map_err(|error| remote::handshake_error(server, &error))?;
        let listening = is_discovered
            .then(|| Listening::begin(service.peer().clone(), service.service().clone()));
        Ok(Self {
            server: server.to_owned(),
            service,
            listening,
            log: Mutex::new(Some(log)),
            cleaner: Cleaner::default(),
            tool_problems: Mutex::default(),
        })
    }
}

fn discovering() -> ClientLifecycleMode {
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
