//! What this machine offers and lacks, each lack with its remedy.

use std::path::Path;

use serde::Serialize;
use tokio::net::TcpListener;

use super::model::Model;
use super::place::{self, OpenPlace};
use crate::config::Settings;
use crate::domain::{Enforcement, SandboxKind};
use crate::gateway::spa;
use crate::llm::ProviderKind;
use crate::sandbox::Limits;
use crate::store::Store;

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// Whether it is there.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What to do, if anything.
    pub remedy: Option<String>,
}

/// The whole picture, as `/api/system` and `sepal doctor` show it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Of this program.
    pub version: &'static str,
    /// The agent's name.
    pub installation: String,
    /// What answers.
    pub model: ModelReport,
    /// Where tools run.
    pub sandbox: SandboxReport,
    /// Where sessions are kept.
    pub storage: StorageReport,
    /// Everything that was looked at.
    pub checks: Vec<Check>,
}

/// What answers.
#[derive(Debug, Clone, Serialize)]
pub struct ModelReport {
    /// The provider.
    pub provider: &'static str,
    /// The model.
    pub model: String,
    /// Whether it is the demo.
    pub scripted: bool,
}

/// Where tools run.
#[derive(Debug, Clone, Serialize)]
pub struct SandboxReport {
    /// By what.
    pub kind: SandboxKind,
    /// What it can reach.
    pub network: &'static str,
    /// Whether it works.
    pub ok: bool,
    /// What holds each limit.
    pub limits: LimitsReport,
    /// In words.
    pub detail: String,
}

/// What holds each limit.
#[derive(Debug, Clone, Serialize)]
pub struct LimitsReport {
    /// Memory.
    pub memory: Enforcement,
    /// Processor time.
    pub cpu: Enforcement,
    /// Processes and threads.
    pub processes: Enforcement,
    /// Life time.
    pub time: Enforcement,
    /// Size of the workspace.
    pub workspace: Enforcement,
}

/// Where sessions are kept.
#[derive(Debug, Clone, Serialize)]
pub struct StorageReport {
    /// By what.
    pub kind: &'static str,
    /// Where.
    pub detail: String,
}

impl From<Limits> for LimitsReport {
    fn from(limits: Limits) -> Self {
        let Limits { memory, cpu, processes, time, workspace } = limits;
        Self { memory, cpu, processes, time, workspace }
    }
}

/// The picture of a running server.
pub(super) fn report(
    settings: &Settings,
    place: &OpenPlace,
    model: &Model,
    store: &Store,
) -> Report {
    let sandbox = sandbox_report(place);
    let storage = StorageReport {
        kind: "sqlite",
        detail: format!("one file in `{}`, synced at every commit", store.dir().path().display()),
    };
    let checks = vec![
        Check { name: "storage", ok: true, detail: storage.detail.clone(), remedy: None },
        sandbox_check(place, &sandbox),
        model_check(model),
        page_check(),
    ];
    Report {
        version: env!("CARGO_PKG_VERSION"),
        installation: settings.agent.name.clone(),
        model: ModelReport {
            provider: model.provider.kind().wire_name(),
            model: model.name.clone(),
            scripted: model.provider.kind() == ProviderKind::Scripted,
        },
        sandbox,
        storage,
        checks,
    }
}

fn sandbox_report(place: &OpenPlace) -> SandboxReport {
    let runtime = &place.place.runtime;
    let kind = runtime.kind();
    let detail = match (&place.problem, kind) {
        (Some(problem), _) => problem.to_string(),
        (None, SandboxKind::Bubblewrap) => "bubblewrap, no network".to_owned(),
        (None, kind) => kind.as_str().to_owned(),
    };
    SandboxReport {
        kind,
        network: "none",
        ok: place.problem.is_none(),
        limits: runtime.limits().into(),
        detail,
    }
}

fn sandbox_check(place: &OpenPlace, report: &SandboxReport) -> Check {
    let remedy = place.problem.as_ref().map(|problem| {
        format!("{problem}; sessions work without tools until then, start again afterwards")
    });
    Check { name: "sandbox", ok: report.ok, detail: report.detail.clone(), remedy }
}

fn model_check(model: &Model) -> Check {
    let kind = model.provider.kind();
    let detail = format!("{} · {}", kind.as_str(), model.name);
    let remedy = match (&model.problem, kind) {
        (Some((_, text)), _) => Some(text.clone()),
        (None, ProviderKind::Scripted) => Some(
            "a demo that follows a script: set OPENAI_API_KEY, or LLM_PROVIDER=openai-compatible \
             with OPENAI_BASE_URL"
                .to_owned(),
        ),
        (None, _) => None,
    };
    Check { name: "model", ok: model.problem.is_none(), detail, remedy }
}

fn page_check() -> Check {
    let ok = spa::is_built();
    Check {
        name: "page",
        ok,
        detail: if ok { "built".to_owned() } else { "not built".to_owned() },
        remedy: (!ok).then(|| "run `./run build`".to_owned()),
    }
}

/// Looks at everything that a start needs, without starting.
pub async fn examine(settings: &Settings) -> Vec<Check> {
    let mut checks = vec![data_dir_check(&settings.store.data_dir)];
    let scratch = std::env::temp_dir().join(format!("sepal-doctor-{}", std::process::id()));
    let place = place::open(&settings.sandbox, &scratch, "doctor").await;
    checks.push(sandbox_check(&place, &sandbox_report(&place)));
    place.place.runtime.close().await;
    if scratch.exists()
        && let Err(error) = std::fs::remove_dir_all(&scratch)
    {
        tracing::debug!(%error, "A scratch folder is left");
    }
    match super::model::open(&settings.llm) {
        Ok(model) => checks.push(model_check(&model)),
        Err(error) => checks.push(Check {
            name: "model",
            ok: false,
            detail: format!("{error:#}"),
            remedy: Some("see `sepal config show`".to_owned()),
        }),
    }
    checks.push(page_check());
    checks.push(port_check(settings).await);
    checks
}

fn data_dir_check(path: &Path) -> Check {
    let parent = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let is_writable = rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok();
    Check {
        name: "storage",
        ok: is_writable,
        detail: format!("data folder `{}`", path.display()),
        remedy: (!is_writable).then(|| {
            format!("make `{}` writable, or set SPL_DATA_DIR", parent.display())
        }),
    }
}

async fn port_check(settings: &Settings) -> Check {
    let port = settings.runtime.transports.http.port;
    match super::bind(settings).await.map(|listener: TcpListener| drop(listener)) {
        Ok(()) => Check { name: "port", ok: true, detail: format!("{port} is free"), remedy: None },
        Err(error) => Check {
            name: "port",
            ok: false,
            detail: format!("{error:#}"),
            remedy: Some("stop that program, or choose another port".to_owned()),
        },
    }
}
