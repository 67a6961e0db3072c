//! Reports the installation's system state (`/api/system`) to the page's status bar and doctor.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use crate::domain::{Caller, Enforcement, SandboxKind};
use crate::gateway::GatewayState;
use crate::gateway::error::Problem;
use crate::gateway::word_list;
use crate::llm::ProviderKind;

/// The name of the sandbox check.
pub(super) const SANDBOX_CHECK: &str = "sandbox";
/// The name of the check of free disk space.
pub const DISK_CHECK: &str = "disk";

/// The known state of this installation's system. Clones share it.
#[derive(Debug, Clone)]
pub struct System(watch::Sender<Arc<SystemInfo>>);

impl System {
    /// Creates the state as found at the start.
    pub fn new(found: SystemInfo) -> Self {
        Self(watch::Sender::new(Arc::new(found)))
    }

    /// Returns the current state.
    pub fn now(&self) -> Arc<SystemInfo> {
        Arc::clone(&self.0.borrow())
    }

    /// Replaces the state of the sandbox and its check.
    pub fn put_sandbox(&self, sandbox: SandboxInfo, check: Check) {
        self.0.send_modify(|known| {
            let known = Arc::make_mut(known);
            known.sandbox = sandbox;
            let mut checks = known.checks.iter_mut();
            if let Some(before) = checks.find(|it| it.name == check.name) {
                *before = check;
            }
        });
    }

    /// Replaces the disk pressure and its check. Subscribers are notified only if pressure begins or ends.
    pub fn put_disk(&self, pressure: Option<DiskPressure>, check: Check) {
        self.0.send_if_modified(|known| {
            let has_changed = known.sandbox.disk_pressure.is_some() != pressure.is_some();
            let known = Arc::make_mut(known);
            known.sandbox.disk_pressure = pressure;
            let mut checks = known.checks.iter_mut();
            if let Some(before) = checks.find(|it| it.name == check.name) {
                *before = check;
            }
            has_changed
        });
    }

    /// Subscribes to changes.
    pub(in crate::gateway) fn changes(&self) -> watch::Receiver<Arc<SystemInfo>> {
        self.0.subscribe()
    }
}

/// The state of the installation, as last determined. The database is checked for each request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SystemInfo {
    /// The version of Sepal.
    pub version: String,
    /// The installation's name.
    pub installation: String,
    /// The model that answers in new sessions.
    pub model: ModelInfo,
    /// The sandbox in which tools run.
    pub sandbox: SandboxInfo,
    /// The storage of sessions.
    pub storage: StorageInfo,
    /// The results of all checks, passed and failed.
    pub checks: Vec<Check>,
}

/// The model that answers in new sessions.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ModelInfo {
    /// The provider's kind; for Anthropic it reads `claude`.
    pub provider: String,
    /// The model's name at the provider.
    pub model: String,
    /// True if the model only replays a script.
    pub scripted: bool,
}

/// The sandbox in which tools run.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SandboxInfo {
    /// The runtime of the sandboxes.
    #[schema(value_type = word_list::SandboxKind)]
    pub kind: SandboxKind,
    /// The hosts that commands in a session's sandbox may reach, separated by commas; `none` if there are
    /// none.
    pub network: String,
    /// True if sandboxes work.
    pub ok: bool,
    /// The mechanism that enforces each limit.
    pub limits: SandboxLimits,
    /// A description for people; the problem if sandboxes do not work.
    pub detail: String,
    /// Present while the disk has too little free space. Until there is more, everything that may write a
    /// workspace is paused, and nothing of that kind starts.
    #[serde(rename = "diskPressure", skip_serializing_if = "Option::is_none")]
    pub disk_pressure: Option<DiskPressure>,
}

/// Too little free space on a disk that holds workspaces or data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskPressure {
    /// The free space when the pressure began, in bytes.
    pub free_bytes: u64,
    /// The required free space (`sandbox.min_free_mb`), in bytes.
    pub min_free_bytes: u64,
}

/// The mechanism that enforces each limit of a sandbox.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct SandboxLimits {
    /// Limits the memory of all processes together.
    #[schema(value_type = word_list::LimitMeans)]
    pub memory: Enforcement,
    /// Limits the processor time.
    #[schema(value_type = word_list::LimitMeans)]
    pub cpu: Enforcement,
    /// Limits the number of processes and threads.
    #[schema(value_type = word_list::LimitMeans)]
    pub processes: Enforcement,
    /// Limits the lifetime of a sandbox.
    #[schema(value_type = word_list::LimitMeans)]
    pub time: Enforcement,
    /// Limits the size of the workspace.
    #[schema(value_type = word_list::LimitMeans)]
    pub workspace: Enforcement,
}

/// The storage of sessions.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StorageInfo {
    /// `sqlite` or `postgres`; `redis` if the sessions are in Redis and everything else is in a database.
    pub kind: String,
    /// A description for people, with the address or file.
    pub detail: String,
}

/// The result of a check.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Check {
    /// The name of the check, such as `storage`, `sandbox`, `disk`, `model`, `page` or `store`.
    pub name: String,
    /// True if the check passed.
    pub ok: bool,
    /// The finding, for people.
    pub detail: String,
    /// The remedy, for people; `null` if there is none.
    pub remedy: Option<String>,
}

/// Returns the state of the installation: version, model, sandbox, storage and checks.
#[utoipa::path(get, path = "/api/system", tag = "system", responses(
    (status = 200, body = SystemInfo), (status = 401, body = Problem),
))]
pub(super) async fn read_system(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Json<SystemInfo> {
    let mut system = (*state.system.now()).clone();
    let whose = (&caller.tenant.id, &caller.user.id);
    let choice = state.providers.default_choice(whose);
    if let Some(offer) = state.providers.find(&caller.tenant.id, &choice.provider) {
        let detail = format!("{} · {}", offer.id(), choice.model);
        let is_scripted = offer.kind() == ProviderKind::Scripted;
        system.model = ModelInfo {
            provider: offer.kind().wire_name().to_owned(),
            model: choice.model,
            scripted: is_scripted,
        };
        // A provider that was added later may have solved the problem that was found at the start.
        let checks = system.checks.iter_mut();
        let check = checks.filter(|_| offer.is_usable() && !is_scripted);
        for check in check.filter(|check| check.name == "model") {
            (check.ok, check.detail, check.remedy) = (true, detail.clone(), None);
        }
    }
    let answer = state.store.ping().await;
    system.checks.push(Check {
        name: "store".into(),
        ok: answer.is_ok(),
        remedy: answer
            .is_err()
            .then(|| "Look at the disk and at the log.".into()),
        detail: answer.map_or_else(
            |error| error.to_string(),
            |()| "the database answers".into(),
        ),
    });
    Json(system)
}
