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

/// What was found at start or came later. The store is asked anew for each answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SystemInfo {
    /// Sepal's version.
    pub version: String,
    /// The installation's name.
    pub installation: String,
    /// What answers in new sessions.
    pub model: ModelInfo,
    /// What seals tools in.
    pub sandbox: SandboxInfo,
    /// Where sessions are kept.
    pub storage: StorageInfo,
    /// What was looked at, good or bad.
    pub checks: Vec<Check>,
}

/// What answers in new sessions.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ModelInfo {
    /// The provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// Whether it only follows a script.
    pub scripted: bool,
}

/// What seals tools in.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SandboxInfo {
    /// What it is.
    #[schema(value_type = word_list::SandboxKind)]
    pub kind: SandboxKind,
    /// The hosts that commands in a session's sandbox may reach, with commas; or `none`.
    pub network: String,
    /// Whether it works.
    pub ok: bool,
    /// What holds each limit in force.
    pub limits: SandboxLimits,
    /// In words.
    pub detail: String,
    /// What is left on the disk is too little: until there is more, whatever may write a workspace is
    /// paused, and nothing of that kind starts.
    #[serde(rename = "diskPressure", skip_serializing_if = "Option::is_none")]
    pub disk_pressure: Option<DiskPressure>,
}

/// Too little is left on a disk that workspaces or data are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskPressure {
    /// What was left when it began, in bytes.
    pub free_bytes: u64,
    /// What has to be left (`sandbox.min_free_mb`), in bytes.
    pub min_free_bytes: u64,
}

/// What holds each limit in force.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct SandboxLimits {
    /// Memory of all processes together.
    #[schema(value_type = word_list::LimitMeans)]
    pub memory: Enforcement,
    /// Processor time.
    #[schema(value_type = word_list::LimitMeans)]
    pub cpu: Enforcement,
    /// Processes and threads.
    #[schema(value_type = word_list::LimitMeans)]
    pub processes: Enforcement,
    /// The life of a sandbox.
    #[schema(value_type = word_list::LimitMeans)]
    pub time: Enforcement,
    /// The size of the workspace.
    #[schema(value_type = word_list::LimitMeans)]
    pub workspace: Enforcement,
}

/// Where sessions are kept.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StorageInfo {
    /// `sqlite`.
    pub kind: String,
    /// In words.
    pub detail: String,
}

/// Something that was looked at.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Check {
    /// What.
    pub name: String,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// What this installation runs on.
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
