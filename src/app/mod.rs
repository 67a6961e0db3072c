//! The composition root: builds every part once, serves, and stops in order.

mod address;
mod doctor;
mod model;
mod place;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::serve::ListenerExt as _;
use secrecy::ExposeSecret as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use socketioxide::SocketIo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use address::{AddressInUse, base_url, bind};
pub use doctor::examine;

use crate::agent::{AgentFactory, Providers, SandboxPlace, Sessions, SessionsSettings};
use crate::config::{self, AuthMode, Settings};
use crate::gateway::{
    self, AccessRules, GatewayState, Installation, ModelList, SystemInfo, socket,
};
use crate::history::{self, SystemPrompt};
use crate::llm::{Catalogue, RetryConfig};
use crate::mcp::bundled_tools;
use crate::net::Guard;
use crate::sandbox::{Janitor, Runtime};
use crate::session::Rules;
use crate::store::{self, Access, Store};
use crate::tenancy::{Clock, Link, Tenancy};

/// How long a stop may take before what still runs is dropped.
const STOP_LIMIT: Duration = Duration::from_millis(1_500);
/// How long sockets have to take their farewell.
const FAREWELL: Duration = Duration::from_millis(200);
/// How often sessions that nobody needs are forgotten.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// A server that is ready to accept connections.
pub struct App {
    /// Where it listens.
    pub address: SocketAddr,
    /// The setup link, while nobody exists.
    pub setup: Option<Link>,
    /// The name by which it labels what it makes on this machine.
    pub installation: String,
    /// What this machine offers and lacks.
    pub report: Arc<SystemInfo>,
    /// The corridor to sessions, for tests and metrics.
    pub sessions: Sessions,
    /// People and keys, for tests.
    pub tenancy: Tenancy,
    listener: TcpListener,
    router: axum::Router,
    io: SocketIo,
    parts: Parts,
}

/// What has to be stopped, in the order of its fields.
struct Parts {
    doors: CancellationToken,
    agents: (TaskTracker, CancellationToken),
    janitor: Janitor,
    runtime: Arc<dyn Runtime>,
    writer: (TaskTracker, CancellationToken),
    store: Store,
}

impl App {
    /// Builds everything and goes on with what an earlier life left. The caller owns the listener.
    pub async fn build(settings: &Settings, listener: TcpListener) -> anyhow::Result<Self> {
        let address = listener
            .local_addr()
            .context("the listener has no address")?;
        let writer = (TaskTracker::new(), CancellationToken::new());
        let kept = store_settings(&settings.store);
        let store = Store::open(&kept, Access::Serve, &writer.0, writer.1.clone()).await?;
        let url = base_url(settings, address);
        store.dir().announce(&url)?;
        let tenancy = Tenancy::new(&store, Clock::system());
        let setup = match settings.auth.mode {
            AuthMode::Password => tenancy.start(&url).await?,
            AuthMode::None => None,
        };
        let installation = installation_id(&store);
        let place = place::open(&settings.sandbox, store.dir().path(), &installation).await;
        let guard = Guard::new(settings.runtime.outgoing.allow.clone());
        let model = model::open(&settings.llm, guard)?;
        let report = Arc::new(doctor::report(settings, &place, &model, &store));
        let providers = model.register(&store, &settings.auth).await?;
        let runtime = Arc::clone(&place.runtime);
        let agents = (TaskTracker::new(), CancellationToken::new());
        let place = place.for_sessions(&settings.sandbox, store.records());
        agents
            .0
            .spawn(model::refresh(providers.clone(), agents.1.clone()));
        let factory = factory(settings, providers.clone(), place)?;
        // Before anything new is started: what it finds now is of an earlier life.
        let janitor = Janitor::start(Arc::clone(&runtime), store.records(), store.live()).await?;
        let sessions = start_sessions(&store, factory, &agents).await?;
        let doors = CancellationToken::new();
        let shown = (providers, &report);
        let state = gateway_state(settings, shown, (&sessions, &tenancy, &store));
        let (layer, io) = socket::layer(
            state.clone(),
            socket_settings(settings),
            &installation_view(&report),
            (agents.0.clone(), doors.clone()),
        );
        let router = gateway::guard(&state, gateway::router(state.clone()).layer(layer));
        let parts = Parts {
            doors,
            agents,
            janitor,
            runtime,
            writer,
            store,
        };
        Ok(Self {
            address,
            setup,
            installation,
            report,
            sessions,
            tenancy,
            listener,
            router,
            io,
            parts,
        })
    }

    /// Serves until `stop`, then says goodbye to every client and ends within two seconds.
    pub async fn serve(self, stop: CancellationToken) -> anyhow::Result<()> {
        let Self {
            listener,
            router,
            io,
            parts,
            ..
        } = self;
        let listener = listener.tap_io(|stream| {
            // Without it the second small frame of a burst waits about 40 ms.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY was not set");
            }
        });
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let doors = parts.doors.clone();
        let farewell = async move {
            stop.cancelled().await;
            tracing::info!("Stopping");
            doors.cancel();
            tokio::time::sleep(FAREWELL).await;
            // A pending long poll would hold the server for up to the ping interval.
            io.close().await;
        };
        let serving = axum::serve(listener, service).with_graceful_shutdown(farewell);
        let doors = parts.doors.clone();
        let late = async move {
            doors.cancelled().await;
            tokio::time::sleep(STOP_LIMIT).await;
        };
        let served = tokio::select! {
            served = serving => served.context("the listener broke"),
            () = late => Ok(()),
        };
        parts.stop().await;
        served
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
        self.janitor.stop().await;
        self.runtime.close().await;
        self.writer.1.cancel();
        self.writer.0.close();
        self.writer.0.wait().await;
        self.store.close().await;
        tracing::info!("Stopped");
    }
}

/// Starts the registry, and goes on with what an earlier life left.
async fn start_sessions(
    store: &Store,
    factory: AgentFactory,
    agents: &(TaskTracker, CancellationToken),
) -> anyhow::Result<Sessions> {
    let settings = SessionsSettings::default();
    let sessions = Sessions::start(
        store.live(),
        store.records(),
        factory,
        settings,
        agents.clone(),
    );
    let unfinished = sessions.claim_unfinished().await?;
    if unfinished > 0 {
        tracing::info!(sessions = unfinished, "Go on with what the last life left");
    }
    agents.0.spawn(sweep(sessions.clone(), agents.1.clone()));
    Ok(sessions)
}

fn gateway_state(
    settings: &Settings,
    (providers, report): (Providers, &Arc<SystemInfo>),
    (sessions, tenancy, store): (&Sessions, &Tenancy, &Store),
) -> GatewayState {
    GatewayState {
        sessions: sessions.clone(),
        tenancy: tenancy.clone(),
        store: store.clone(),
        access: Arc::new(access_rules(settings)),
        auth_mode: settings.auth.mode,
        installation: Arc::new(Installation {
            name: settings.agent.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }),
        system: Arc::clone(report),
        models: Arc::new(ModelList::new(Arc::new(Catalogue::built_in()))),
        providers,
        body_limit: socket_settings(settings).frame_bytes,
    }
}

async fn sweep(sessions: Sessions, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(SWEEP_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => sessions.sweep(),
        }
    }
}

/// What the store takes of the settings.
pub fn store_settings(settings: &config::Store) -> store::Settings {
    store::Settings {
        data_dir: settings.data_dir.clone(),
        database_url: Some(settings.database_url.expose_secret().to_owned()),
        compression: settings.compression,
        redis_url: settings.redis_url.clone(),
        allow_volatile: settings.allow_volatile,
        history_ttl: settings.history_ttl,
    }
}

/// A name that no other installation on this machine has.
fn installation_id(store: &Store) -> String {
    let path = store.dir().path();
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
    hex::encode(hash.get(..6).unwrap_or_default())
}

fn factory(
    settings: &Settings,
    providers: Providers,
    place: SandboxPlace,
) -> anyhow::Result<AgentFactory> {
    let (chat, llm) = (&settings.chat, &settings.llm);
    let history = history::Limits {
        max_tokens: chat.max_tokens.map(|most| u64::from(most.get())),
        max_messages: chat
            .max_messages
            .and_then(|most| usize::try_from(most.get()).ok()),
    };
    Ok(AgentFactory {
        providers,
        catalogue: Arc::new(Catalogue::built_in()),
        rules: Arc::new(Rules {
            max_iterations: chat.max_llm_iterations.get(),
            ..Rules::default()
        }),
        prompt: Arc::new(SystemPrompt::new(&llm.prompt_template)?),
        history,
        retry: RetryConfig {
            max_retries: llm.retry.max_retries,
            initial_backoff: llm.retry.initial_backoff,
            max_backoff: llm.retry.max_backoff,
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a factor of a few, no exact number"
            )]
            backoff_multiplier: llm.retry.backoff_multiplier as f32,
        },
        temperature: llm.temperature,
        max_tokens: llm.max_tokens.map(std::num::NonZeroU32::get),
        place: Arc::new(place),
        bundled: bundled_tools()?.into(),
    })
}

fn socket_settings(settings: &Settings) -> socket::SocketSettings {
    let runtime = &settings.runtime;
    let limit =
        |most: Option<std::num::NonZeroU32>| most.and_then(|most| usize::try_from(most.get()).ok());
    let frame = limit(runtime.limits.frame_bytes).unwrap_or(usize::MAX);
    let payload = usize::try_from(runtime.socket.max_payload).unwrap_or(usize::MAX);
    socket::SocketSettings {
        ping_interval: runtime.socket.ping_interval,
        ping_timeout: runtime.socket.ping_timeout,
        frame_bytes: frame.min(payload),
        commands_per_socket: limit(runtime.limits.commands_per_socket),
        sockets_per_user: limit(runtime.limits.sockets_per_user),
        sockets: limit(runtime.limits.sockets),
        connects_per_minute: runtime
            .limits
            .connects_per_minute
            .map(std::num::NonZeroU32::get),
    }
}

fn access_rules(settings: &Settings) -> AccessRules {
    AccessRules::new(
        &settings.runtime.http,
        &settings.runtime.transports.http.host,
    )
}

/// What `system:ready` says of this installation.
fn installation_view(report: &SystemInfo) -> serde_json::Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "sandbox": report.sandbox,
        "storage": { "kind": report.storage.kind },
    })
}
