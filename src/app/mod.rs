//! The composition root: builds every part once, serves, and stops in order.

mod agent;
mod contexts;
mod deferred_engine;
mod disk;
mod doctor;
mod listen;
mod model;
mod oidc;
mod sandboxes;
mod servers;
mod services;
pub mod workspaces;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use socketioxide::SocketIo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceBuilder;

pub use agent::{AgentApp, Purpose};
pub use contexts::Extensions;
pub use doctor::examine;
pub use listen::address::{AddressInUse, base_url, bind};
pub use services::{open_audit, read_public_key, secret_keys, store_settings};

use services::Services;

use crate::agent::{AuditTrail, Sessions};
use crate::config::{self, AuthMode, Settings};
use crate::domain::Shares;
use crate::gateway::{
    self, AccessRules, Addresses, Documents, DoorLimits, GatewayParts, GatewayState, Installation,
    ModelList, Pace, SystemInfo, mcp, socket,
};
use crate::sandbox::{Janitor, Runtime};
use crate::store::Store;
use crate::telemetry::traces::Traces;
use crate::tenancy::{Clock, Link, Tenancy};

/// The time that a stop may take before running work is dropped.
const STOP_LIMIT: Duration = Duration::from_millis(1_500);
/// The time that sockets have for their farewell.
const FAREWELL: Duration = Duration::from_millis(200);

/// A server that is ready to accept connections.
pub struct App {
    pub address: SocketAddr,
    /// The setup link, while there are no users.
    pub setup: Option<Link>,
    /// The address that answers `/metrics` without a key, if any.
    pub metrics: Option<SocketAddr>,
    /// The label of everything that it creates on this machine.
    pub installation: String,
    /// The state of this machine at start.
    pub report: Arc<SystemInfo>,
    /// The sessions, for tests and metrics.
    pub sessions: Sessions,
    /// The people and keys, for tests.
    pub tenancy: Tenancy,
    /// The audit, for tests.
    pub audit: AuditTrail,
    listener: TcpListener,
    router: axum::Router,
    io: SocketIo,
    connections: listen::serving::Connections,
    parts: Parts,
}

/// The parts to stop, in the order of the fields.
struct Parts {
    doors: CancellationToken,
    agents: (TaskTracker, CancellationToken),
    /// `None` if the runtime comes later.
    janitor: Option<Janitor>,
    sessions: Sessions,
    runtime: Arc<dyn Runtime>,
    writer: (TaskTracker, CancellationToken),
    store: Store,
    traces: Traces,
}

impl App {
    /// Builds everything and continues the unfinished work of an earlier process. The caller owns the
    /// listener.
    pub async fn build(settings: &Settings, listener: TcpListener) -> anyhow::Result<Self> {
        Self::build_for(settings, listener, Purpose::Gateway).await
    }

    /// Does the same as [`Self::build`] for another purpose of the listener.
    pub async fn build_for(
        settings: &Settings,
        listener: TcpListener,
        purpose: Purpose,
    ) -> anyhow::Result<Self> {
        Self::build_with(settings, listener, purpose, &Extensions::default()).await
    }

    /// Does the same with context providers of a program that embeds the gateway: every session asks them
    /// besides those of the settings.
    pub async fn build_with(
        settings: &Settings,
        listener: TcpListener,
        purpose: Purpose,
        own: &Extensions,
    ) -> anyhow::Result<Self> {
        let address = listener
            .local_addr()
            .context("the listener has no address")?;
        let url = base_url(settings, address);
        let reads = (agent::input(settings, purpose), own);
        let services = Services::open(settings, Some(&url), reads).await?;
        let setup = match settings.auth.mode {
            AuthMode::Password => services.tenancy.setup().start(&url).await?,
            AuthMode::None => None,
        };
        let Services {
            sessions,
            tenancy,
            report,
            agents,
            ..
        } = &services;
        let doors = CancellationToken::new();
        let metrics = listen::metrics::open(&settings.runtime.metrics, &agents.0, &doors).await?;
        let connected = socket::LiveConnections::new(
            socket_settings(settings),
            agents.0.clone(),
            doors.clone(),
        );
        let state = gateway_state(settings, &services, &url, connected)?;
        let (layer, io) = socket::layer(&state);
        let life = mcp::Life {
            tasks: agents.0.clone(),
            stop: doors.clone(),
        };
        let exposed = mcp::routes(&state, agent::exposure(settings, purpose), life);
        let doors_of_all = gateway::router(state.clone()).merge(exposed);
        let sockets = ServiceBuilder::new()
            .map_request(socket::detach)
            .layer(layer);
        let router = gateway::guard(&state, doors_of_all.layer(sockets));
        Ok(Self {
            address,
            setup,
            metrics,
            installation: services.installation.clone(),
            report: report.now(),
            sessions: sessions.clone(),
            tenancy: tenancy.clone(),
            audit: state.audit.clone(),
            listener,
            router,
            io,
            connections: connections(settings, Arc::clone(&state.access)),
            parts: services.into_parts(doors),
        })
    }

    /// Serves until `stop`, then says goodbye to every client and ends within two seconds, or up to five
    /// later if a collector is slow to accept the last traces.
    pub async fn serve(self, stop: CancellationToken) {
        let Self {
            listener,
            router,
            io,
            connections,
            parts,
            ..
        } = self;
        let doors = parts.doors.clone();
        let farewell = async move {
            stop.cancelled().await;
            tracing::info!("Stopping");
            doors.cancel();
            tokio::time::sleep(FAREWELL).await;
            // A pending long poll would hold the server for up to the ping interval.
            io.close().await;
        };
        let serving = listen::serving::serve(listener, router, connections, farewell);
        let doors = parts.doors.clone();
        let late = async move {
            doors.cancelled().await;
            tokio::time::sleep(STOP_LIMIT).await;
        };
        tokio::select! {
            () = serving => {}
            () = late => {}
        }
        parts.stop().await;
    }
}

impl Parts {
    async fn stop(self) {
        self.doors.cancel();
        self.agents.1.cancel();
        self.agents.0.close();
        if tokio::time::timeout(STOP_LIMIT, self.agents.0.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                "Some sessions did not come to rest; they are taken over at the next start"
            );
        }
        if let Some(janitor) = self.janitor {
            janitor.stop().await;
        }
        self.runtime.close().await;
        // Other gateways take over from here, without waiting for missed heartbeats.
        self.sessions.hand_over().await;
        self.writer.1.cancel();
        self.writer.0.close();
        self.writer.0.wait().await;
        self.store.close().await;
        self.traces.close().await;
        tracing::info!("Stopped");
    }
}

fn gateway_state(
    settings: &Settings,
    services: &Services,
    url: &str,
    live: socket::LiveConnections,
) -> anyhow::Result<GatewayState> {
    let sealer = services.sealer.clone();
    Ok(GatewayState::new(GatewayParts {
        sessions: services.sessions.clone(),
        servers: services.servers.clone(),
        skills: services.skills.clone(),
        tenancy: services.tenancy.clone(),
        store: services.store.probe(),
        versions: services.store.records().versions(),
        idempotency_keys: services.store.records().idempotency_keys(sealer),
        access: Arc::new(access_rules(settings)),
        auth_mode: settings.auth.mode,
        oidc: oidc::doors(&settings.auth)?,
        proxy: oidc::proxy(&settings.auth.proxy)?.map(Arc::new),
        installation: Arc::new(Installation {
            name: settings.agent.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }),
        system: services.report.clone(),
        models: Arc::new(ModelList::new(Clock::system())),
        providers: services.providers.clone(),
        audit: services.audit.clone(),
        notifications: services::notifications::start(settings, url, services)?,
        body_limit: socket_settings(settings).frame_bytes,
        limits: door_limits(&settings.runtime.limits),
        live,
        documents: Documents::new(settings.store.data_dir.clone()),
    }))
}

fn connections(settings: &Settings, access: Arc<AccessRules>) -> listen::serving::Connections {
    let limits = &settings.runtime.limits;
    let (most, per_address) = (limits.connections, limits.connections_per_address);
    listen::serving::Connections {
        head_limit: listen::serving::HEAD_LIMIT,
        open: Addresses::new(size(most), size(per_address)),
        access: Some(access),
    }
}

fn door_limits(limits: &config::Limits) -> DoorLimits {
    DoorLimits {
        requests: Addresses::new(None, size(limits.connections_per_address)),
        body_time: limits.body,
        readers: TaskTracker::new(),
        questions: Shares::new(limits.questions()),
        streams: Shares::new(limits.streams()),
        pace: Arc::new(Pace::new(limits.requests_per_minute)),
    }
}

/// Converts a limit to a number of things in memory.
fn size(most: Option<NonZeroU32>) -> Option<usize> {
    most.and_then(|most| usize::try_from(most.get()).ok())
}

fn socket_settings(settings: &Settings) -> socket::SocketSettings {
    let runtime = &settings.runtime;
    let frame = size(runtime.limits.frame_bytes).unwrap_or(usize::MAX);
    let payload = usize::try_from(runtime.socket.max_payload).unwrap_or(usize::MAX);
    socket::SocketSettings {
        ping_interval: runtime.socket.ping_interval,
        ping_timeout: runtime.socket.ping_timeout,
        frame_bytes: frame.min(payload),
        commands_per_socket: size(runtime.limits.commands_per_socket),
        waiting_bytes_per_socket: size(runtime.limits.waiting_bytes_per_socket),
        waiting_bytes: runtime.limits.waiting_bytes(),
        sockets: runtime.limits.sockets(),
        connects_per_minute: runtime.limits.connects_per_minute.map(NonZeroU32::get),
    }
}

fn access_rules(settings: &Settings) -> AccessRules {
    AccessRules::new(
        &settings.runtime.http,
        &settings.runtime.transports.http.host,
    )
}
