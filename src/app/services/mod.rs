//! Opens the services that every way of running needs, with or without a listener: store, people, sandboxes,
//! sessions.

pub(super) mod audit;
pub(super) mod notifications;

use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use audit::{open_audit, read_public_key};

use super::contexts::Extensions;
use super::{Parts, contexts, deferred_engine, disk, doctor, model, sandboxes, servers};
use crate::agent::{
    self, AgentFactory, AgentParts, AttachmentLimits, Attachments, AuditTrail, BudgetSettings,
    Budgets, ContextSources, Reviewer, Sessions, SessionsSettings,
};
use crate::config::{self, Settings};
use crate::domain::MicroUsd;
use crate::gateway::System;
use crate::history::{self, CompactionStrategy, Input};
use crate::jobs::Pool;
use crate::net::{self, Guard};
use crate::providers::Providers;
use crate::sandbox::host::SandboxHost;
use crate::sandbox::{Janitor, Peers, Runtime};
use crate::servers::Servers;
use crate::session::ModelChoice;
use crate::skills::{self, SkillSettings, Skills};
use crate::store::{self, DataDir, Records, Sealer, SecretKeys, Store};
use crate::telemetry::traces::Traces;
use crate::tenancy::{Clock, Tenancy};

/// The interval at which unused sessions are dropped from memory.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// The services that every way of running needs: store, people, sandboxes and sessions.
pub(super) struct Services {
    /// The label of everything that it creates on this machine.
    pub(super) installation: String,
    pub(super) store: Store,
    pub(super) sealer: Sealer,
    pub(super) tenancy: Tenancy,
    pub(super) audit: AuditTrail,
    pub(super) providers: Providers,
    pub(super) report: System,
    pub(super) sessions: Sessions,
    pub(super) servers: Servers,
    pub(super) skills: Skills,
    pub(super) agents: (TaskTracker, CancellationToken),
    traces: Traces,
    writer: (TaskTracker, CancellationToken),
    runtime: Arc<dyn Runtime>,
    janitor: Option<Janitor>,
}

impl Services {
    /// Opens the store, announces the address of this gateway, and continues the unfinished work of an
    /// earlier process.
    pub(super) async fn open(
        settings: &Settings,
        url: Option<&str>,
        reads: (Input<'_>, &Extensions),
    ) -> anyhow::Result<Self> {
        let writer = (TaskTracker::new(), CancellationToken::new());
        let agents = (TaskTracker::new(), CancellationToken::new());
        // Reading hundreds of certificates takes as long as opening the store, so do both at the same time.
        let guard = Guard::new(settings.runtime.outgoing.allow.clone());
        let (llm, reach) = (settings.llm.clone(), guard.clone());
        let place = Pool::new("model", 1).place().await?;
        let model = place.start(move || model::open(&llm, reach));
        let kept = store_settings(&settings.store);
        let dir = DataDir::lock(&kept.data_dir)?;
        // A sandbox starts in another folder than this process.
        let data_dir = std::path::absolute(dir.path())?;
        let folder = sandboxes::hashed(&[data_dir.as_os_str().as_encoded_bytes()]);
        let (disk, trial) = sandboxes::begin(&settings.sandbox, data_dir, folder, &agents.0).await;
        let store = Store::open_locked(dir, &kept, &writer.0, writer.1.clone()).await?;
        let sealer = store.sealer(&secret_keys(&settings.auth)).await?;
        join(&store, &sealer, url).await?;
        let tenancy = Tenancy::new(&store, Clock::system());
        tenancy.set_device_key(store.records().device_key(&sealer).await?);
        let installation = installation_id(&store).await?;
        let names = sandboxes::Names {
            installation: installation.clone(),
            peers: Peers::new(store.cluster_bus()),
            is_beside: false,
        };
        let place = sandboxes::open(&settings.sandbox, names, &disk, trial).await;
        let model = model.await??.announced();
        let report = System::new(doctor::report(settings, &place, &model, &store));
        let providers = model.register(&store, sealer.clone()).await?;
        let runtime = Arc::clone(&place.runtime);
        let refreshing = model::refresh(providers.clone(), agents.1.clone());
        agents.0.spawn(refreshing);
        // Before anything new is started: everything that the janitor finds now is from an earlier process.
        let janitor = deferred_engine::janitor(&place, &store).await?;
        let found = place.clone();
        let place = Arc::new(place.for_sessions(&settings.sandbox, store.records()));
        let context = contexts::open(settings, reads, &guard)?;
        let servers = servers::open(
            settings,
            &store,
            sealer.clone(),
            Arc::clone(&place),
            guard,
            &agents,
        )?;
        follow(found, &report, &servers, &store, &agents);
        watch_groups(&tenancy, &providers, &servers);
        let traces = open_traces(&settings.telemetry)?;
        let skills = open_skills(&settings.skills, store.records());
        let parts = AgentParts {
            traces: traces.clone(),
            skills: Some(skills.clone()),
            history: context_rules(settings, &reads.1.strategies),
            observer: reads.1.observer.clone(),
            ..agent_parts(
                settings,
                providers.clone(),
                context,
                place,
                servers.clone(),
                store.records(),
                open_budgets(settings, &store, &agents).await?,
            )
        };
        let factory = AgentFactory::new(parts);
        let sessions = start_sessions(&store, settings, factory, &agents).await?;
        let audit = audit::start(settings, &store, &sealer, &tenancy, &agents).await?;
        Ok(Self {
            installation,
            store,
            sealer,
            tenancy,
            audit,
            providers,
            report,
            sessions,
            servers,
            skills,
            agents,
            traces,
            writer,
            runtime,
            janitor,
        })
    }

    /// Returns the parts that have to be stopped.
    pub(super) fn into_parts(self, doors: CancellationToken) -> Parts {
        Parts {
            doors,
            agents: self.agents,
            janitor: self.janitor,
            sessions: self.sessions,
            runtime: self.runtime,
            writer: self.writer,
            store: self.store,
            traces: self.traces,
        }
    }
}

/// Joins the store's other gateways, seals values that an earlier release stored in plain
/// text, and announces this gateway's address in the data folder.
async fn join(store: &Store, sealer: &Sealer, url: Option<&str>) -> anyhow::Result<()> {
    store.join().await?;
    store.records().seal_what_is_plain(sealer).await?;
    if let Some(url) = url {
        store.dir().announce(url)?;
    }
    Ok(())
}

/// Keeps people informed about the disk and the sandbox runtime from now on.
fn follow(
    place: sandboxes::FoundRuntime,
    report: &System,
    servers: &Servers,
    store: &Store,
    agents: &(TaskTracker, CancellationToken),
) {
    let showing = disk::show(place.disk.clone(), report.clone(), agents.1.clone());
    agents.0.spawn(showing);
    deferred_engine::begin(place, report.clone(), servers.clone(), store, agents);
}

/// Lets changes of groups count from the next step of each session on.
fn watch_groups(tenancy: &Tenancy, providers: &Providers, servers: &Servers) {
    let (providers, servers) = (providers.clone(), servers.clone());
    tenancy.watch_groups(move |tenant| {
        providers.forget_access(tenant);
        servers.groups_changed(tenant);
    });
}

/// Opens the budgets, and returns the reservations of ended requests from now on.
async fn open_budgets(
    settings: &Settings,
    store: &Store,
    agents: &(TaskTracker, CancellationToken),
) -> anyhow::Result<Budgets> {
    let limit = |usd: f64| (usd > 0.0).then(|| MicroUsd::from_usd(usd));
    let said = BudgetSettings {
        turn: limit(settings.chat.request_budget),
        session: limit(settings.chat.session_budget),
        unpriced_request: limit(settings.llm.unpriced_request_usd),
    };
    let (budgets, keeping) = Budgets::open(store.records(), said, agents.1.clone()).await?;
    agents.0.spawn(keeping);
    Ok(budgets)
}

/// Sends traces to the collector of the settings, if they name one.
fn open_traces(settings: &config::Telemetry) -> anyhow::Result<Traces> {
    if settings.otlp_endpoint.is_none() {
        return Ok(Traces::default());
    }
    let http = net::client(&net::Settings::default())?;
    Ok(Traces::open(settings, &http))
}

fn session_limits(limits: &config::Limits) -> SessionsSettings {
    SessionsSettings {
        live: limits.sessions(),
        new_per_minute: (limits.new_sessions_per_user, limits.new_sessions_per_tenant),
        ..SessionsSettings::default()
    }
}

fn attachment_limits(limits: &config::Limits) -> AttachmentLimits {
    let bytes = |mib: u32| u64::from(mib) * 1024 * 1024;
    AttachmentLimits {
        file: bytes(limits.attachment_mb),
        session: bytes(limits.attachments_mb_per_session),
        upload: bytes(limits.upload_mb),
    }
}

/// Opens the skills of these records.
fn open_skills(said: &config::Skills, records: Records) -> Skills {
    let settings = SkillSettings {
        is_on: said.enabled,
        has_workspace: said.workspace,
        most_offered: said.max_offered,
        most_kept: said.max_kept,
        limits: skills::Limits {
            bytes: said.max_kb * 1024,
            files: said.max_files,
        },
    };
    Skills::new(records, settings)
}

/// Starts the registry, and continues the unfinished work of an earlier process.
async fn start_sessions(
    store: &Store,
    settings: &Settings,
    factory: AgentFactory,
    agents: &(TaskTracker, CancellationToken),
) -> anyhow::Result<Sessions> {
    let sessions = Sessions::start(
        (store.live(), store.cluster_bus()),
        store.records(),
        factory,
        session_limits(&settings.runtime.limits),
        agents.clone(),
    );
    let unfinished = sessions.claim_unfinished().await?;
    if unfinished > 0 {
        tracing::info!(
            sessions = unfinished,
            "Go on with what the last process left"
        );
    }
    agents.0.spawn(sweep(sessions.clone(), agents.1.clone()));
    forget(&settings.store, store, agents);
    Ok(sessions)
}

/// Removes sessions from the list whose journals Redis expires by the operator's setting; a database keeps
/// them.
fn forget(settings: &config::Store, store: &Store, agents: &(TaskTracker, CancellationToken)) {
    let Some(after) = settings
        .history_ttl
        .filter(|_| store.cluster_bus().is_shared())
    else {
        return;
    };

    let looking =
        agent::remove_expired_rows(store.live(), store.records(), after, agents.1.clone());
    agents.0.spawn(looking);
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

/// The secret keys of the settings.
pub fn secret_keys(settings: &config::Auth) -> SecretKeys {
    SecretKeys {
        current: settings.secret_key.clone(),
        former: settings.former_secret_key.clone(),
    }
}

/// Returns the store's part of the settings.
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

/// Returns a name that no other installation at an engine has. Gateways on one store share it. A single
/// gateway adds its folder, because a copied folder is another installation.
async fn installation_id(store: &Store) -> Result<String, store::Error> {
    let id = store.records().installation().await?;
    if store.cluster_bus().is_shared() {
        return Ok(sandboxes::hashed(&[id.as_bytes()]));
    }
    Ok(sandboxes::installation_in(&id, store.dir().path()))
}

/// The rules of the working context, with the strategies of the embedding program.
fn context_rules(
    settings: &Settings,
    own: &[Arc<dyn CompactionStrategy>],
) -> history::ContextRules {
    let chat = &settings.chat;
    history::ContextRules {
        limits: history::Limits {
            max_tokens: chat.max_tokens.map(|most| u64::from(most.get())),
            max_messages: chat
                .max_messages
                .and_then(|most| usize::try_from(most.get()).ok()),
        },
        strategies: chat.compaction_strategy.as_slice().into(),
        own: own.into(),
    }
}

fn agent_parts(
    settings: &Settings,
    providers: Providers,
    context: ContextSources,
    place: Arc<SandboxHost>,
    servers: Servers,
    records: Records,
    budgets: Budgets,
) -> AgentParts {
    let (chat, llm) = (&settings.chat, &settings.llm);
    AgentParts {
        providers,
        context,
        history: history::ContextRules::default(),
        summary_budget: u64::from(chat.summary_budget_tokens),
        retry: model::retry(llm),
        temperature: llm.temperature,
        effort: llm.effort,
        defer_tools_percent: llm.defer_tools_percent,
        tool_search: llm.tool_search,
        max_tokens: llm.max_tokens.map(std::num::NonZeroU32::get),
        turn_limit: chat.turn_limit,
        place,
        servers,
        attachments: Attachments::new(records, attachment_limits(&settings.runtime.limits)),
        skills: None,
        budgets,
        traces: Traces::default(),
        agent_name: settings.agent.name.as_str().into(),
        observer: None,
        reviewer: settings.reviewer.model.as_ref().map(|model| Reviewer {
            choice: ModelChoice::new(model.provider.as_str(), model.model.as_str()),
            time_limit: settings.reviewer.time_limit,
        }),
    }
}
