//! Checks what this machine offers and lacks, with a remedy for each problem.

use std::path::Path;

use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::model::Models;
use super::sandboxes::{self, FoundRuntime};
use crate::config::Settings;
use crate::domain::McpNetwork;
use crate::gateway::{
    Check, DISK_CHECK, DiskPressure, ModelInfo, SandboxInfo, SandboxLimits, StorageInfo,
    SystemInfo, page_is_built,
};
use crate::llm::ProviderKind;
use crate::net::Guard;
use crate::sandbox::{DiskMonitor, Error, Peers};
use crate::store::Store;

/// Reports on a running server.
pub(super) fn report(
    settings: &Settings,
    place: &FoundRuntime,
    model: &Models,
    store: &Store,
) -> SystemInfo {
    let (sandbox, checked) = self::sandbox(place);
    let storage = storage_report(store);
    let checks = vec![
        Check {
            name: "storage".to_owned(),
            ok: true,
            detail: storage.detail.clone(),
            remedy: None,
        },
        checked,
        self::disk(&place.disk).1,
        model_check(model),
        page_check(),
    ];
    SystemInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        installation: settings.agent.name.clone(),
        model: ModelInfo {
            provider: model.default_kind().wire_name().to_owned(),
            model: model.choice.model.clone(),
            scripted: model.default_kind() == ProviderKind::Scripted,
        },
        sandbox,
        storage,
        checks,
    }
}

fn storage_report(store: &Store) -> StorageInfo {
    let (kind, place) = store.database();
    let (kind, detail) = match store.redis() {
        Some(address) => (
            "redis",
            format!("sessions in Redis at `{address}`, everything else in {place}"),
        ),
        None => (kind, format!("{place}, synced at every commit")),
    };
    StorageInfo {
        kind: kind.to_owned(),
        detail,
    }
}

/// Reports on the sandbox, with a remedy if there is none.
pub(super) fn sandbox(place: &FoundRuntime) -> (SandboxInfo, Check) {
    let report = sandbox_report(place);
    let check = sandbox_check(place, &report);
    (report, check)
}

fn network(network: &McpNetwork) -> String {
    match network.hosts() {
        [] => "no network".to_owned(),
        hosts => format!("commands may reach {}", hosts.join(", ")),
    }
}

fn sandbox_report(place: &FoundRuntime) -> SandboxInfo {
    let runtime = &place.runtime;
    let kind = runtime.kind();
    let mut detail = match &place.problem {
        Some(problem) => problem.to_string(),
        None => format!("{}, {}", kind.as_str(), network(&place.network)),
    };
    if let Some(passed_over) = &place.passed_over {
        detail = format!("{detail} (not docker: {passed_over})");
    }
    let limits = runtime.limits();
    SandboxInfo {
        kind,
        network: match place.network.hosts() {
            [] => "none".to_owned(),
            hosts => hosts.join(", "),
        },
        ok: place.problem.is_none(),
        limits: SandboxLimits {
            memory: limits.memory,
            cpu: limits.cpu,
            processes: limits.processes,
            time: limits.time,
            workspace: limits.workspace,
        },
        detail,
        disk_pressure: disk(&place.disk).0,
    }
}

/// Reports the free space on the disks of data and workspaces, and the pressure if it is too little.
pub(super) fn disk(disk: &DiskMonitor) -> (Option<DiskPressure>, Check) {
    let (free, floor) = (disk.free().unwrap_or_default(), disk.floor());
    let pressure = disk.is_pressed().then_some(DiskPressure {
        free_bytes: free,
        min_free_bytes: floor,
    });
    let left = match disk.free() {
        Some(free) => format!("{} MB are free", free >> 20),
        None => "what is free cannot be read".to_owned(),
    };
    let rule = match floor {
        0 => "nothing holds what sandboxes leave of it".to_owned(),
        floor => format!("sandboxes are paused below {} MB", floor >> 20),
    };
    let remedy = pressure
        .is_some()
        .then(|| Error::DiskFull { free, floor }.remedy());
    let check = Check {
        name: DISK_CHECK.to_owned(),
        ok: pressure.is_none(),
        detail: format!("{left}; {rule}"),
        remedy,
    };
    (pressure, check)
}

fn sandbox_check(place: &FoundRuntime, report: &SandboxInfo) -> Check {
    let remedy = place.problem.as_ref().map(|problem| {
        let remedy = problem.remedy();
        let next = match (&place.search, &place.passed_over) {
            (None, _) => "; then start again".to_owned(),
            (Some(_), None) => ", which is noticed without a restart".to_owned(),
            // Only Docker is looked for again, not bubblewrap.
            (Some(_), Some(engine)) => format!(
                " and start again; or {}, which is noticed without a restart",
                engine.remedy()
            ),
        };
        format!("{remedy}{next}: sessions work without tools until then")
    });
    Check {
        name: "sandbox".to_owned(),
        ok: report.ok,
        detail: report.detail.clone(),
        remedy,
    }
}

fn model_check(model: &Models) -> Check {
    let kind = model.default_kind();
    let detail = format!("{} · {}", kind.as_str(), model.choice.model);
    let remedy = match (model.problem(), kind) {
        (Some(problem), _) => Some(problem.message.clone()),
        (None, ProviderKind::Scripted) => Some(
            "a demo that follows a script: set OPENAI_API_KEY, or LLM_PROVIDER=openai-compatible \
             with OPENAI_BASE_URL"
                .to_owned(),
        ),
        (None, _) => None,
    };
    Check {
        name: "model".to_owned(),
        ok: model.problem().is_none(),
        detail,
        remedy,
    }
}

fn page_check() -> Check {
    let ok = page_is_built();
    Check {
        name: "page".to_owned(),
        ok,
        detail: if ok {
            "built".to_owned()
        } else {
            "not built".to_owned()
        },
        remedy: (!ok).then(|| "run `./run build`".to_owned()),
    }
}

/// Checks everything that a start needs, without starting.
pub async fn examine(settings: &Settings) -> Vec<Check> {
    let mut checks = vec![data_dir_check(&settings.store.data_dir)];
    checks.extend(database_check(settings).await);
    let scratch = std::env::temp_dir().join(format!("sepal-doctor-{}", std::process::id()));
    let names = sandboxes::Names {
        installation: "doctor".to_owned(),
        peers: Peers::none(),
        is_beside: false,
    };
    let disk = sandboxes::watch_disk(&settings.sandbox, &settings.store.data_dir).await;
    let trial = sandboxes::Trial::begin(
        &settings.sandbox,
        scratch.clone(),
        "doctor".to_owned(),
        &disk,
        &TaskTracker::new(),
    );
    let place = sandboxes::open(&settings.sandbox, names, &disk, trial).await;
    checks.push(sandbox(&place).1);
    checks.push(self::disk(&disk).1);
    place.runtime.close().await;
    if scratch.exists()
        && let Err(error) = std::fs::remove_dir_all(&scratch)
    {
        tracing::debug!(%error, "A scratch folder is left");
    }
    match super::model::open(&settings.llm, Guard::default()) {
        Ok(model) => checks.push(model_check(&model)),
        Err(error) => checks.push(Check {
            name: "model".to_owned(),
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
    let parent = path
        .ancestors()
        .find(|folder| folder.exists())
        .unwrap_or(Path::new("."));
    let is_writable = rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok();
    Check {
        name: "storage".to_owned(),
        ok: is_writable,
        detail: format!("data folder `{}`", path.display()),
        remedy: (!is_writable)
            .then(|| format!("make `{}` writable, or set SPL_DATA_DIR", parent.display())),
    }
}

/// Checks that the database server accepts our connection; `None` for SQLite, which has no server.
async fn database_check(settings: &Settings) -> Option<Check> {
    let answer = Store::try_server(&super::store_settings(&settings.store)).await;
    let (ok, detail) = match answer.map_err(anyhow::Error::from) {
        Ok(address) => (true, format!("`{}` lets us in", address?)),
        Err(error) => (false, format!("{error:#}")),
    };
    Some(Check {
        name: "database".to_owned(),
        ok,
        detail,
        remedy: (!ok).then(|| "start that server, or set DATABASE_URL".to_owned()),
    })
}

async fn port_check(settings: &Settings) -> Check {
    let port = settings.runtime.transports.http.port;
    match super::bind(settings)
        .await
        .map(|listener: TcpListener| drop(listener))
    {
        Ok(()) => Check {
            name: "port".to_owned(),
            ok: true,
            detail: format!("{port} is free"),
            remedy: None,
        },
        Err(error) => Check {
            name: "port".to_owned(),
            ok: false,
            detail: format!("{error:#}"),
            remedy: Some("stop that program, or choose another port".to_owned()),
        },
    }
}
