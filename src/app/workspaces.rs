//! Saves the workspaces of sessions for `sepal backup`, and brings them back for `sepal restore`.
//!
//! A backup reads beside a running gateway and owns only the sandboxes that it starts: nothing here ends or
//! removes what a gateway made. A restore unpacks into new workspaces with new ids, so that neither the
//! workspaces of the data folder's former installation nor those of another one at the same engine are touched;
//! the rows of the restored sessions then name the new ones. What a killed restore leaves belongs to no session,
//! so the janitor removes it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::fs;

use super::sandboxes::{self, Names};
use crate::config::{Sandbox, SandboxDriver, Settings};
use crate::domain::{EngineId, SandboxId, SandboxKind, SessionId};
use crate::sandbox::archiving::{self, ArchiveError, PackedWorkspace};
use crate::sandbox::{Bounds, Peers, Runtime};
use crate::store::backup::{
    BackupDraft, MovedSandbox, StagedRestore, StagedWorkspace, StoredSandbox,
};

/// The name of the engine in the row of a session whose files could not be unpacked. People read that it keeps them.
const IN_BACKUP: &str = "the backup";

/// The time that packing or unpacking one workspace may take.
const LIMIT: Duration = Duration::from_hours(1);
/// The processor time of one of them, at least; the sandboxes' own limit is meant for many at once.
const CPU_MILLIS: u32 = 1_000;

/// The workspaces that a backup has.
#[derive(Debug, Default)]
pub struct SavedWorkspaces {
    pub saved: usize,
    /// The number of sessions whose files another engine keeps, which these settings do not use.
    pub elsewhere: usize,
    /// Files that are missing in the backup.
    pub missing: Vec<MissingFiles>,
}

/// The workspaces that came back with a restore.
#[derive(Debug, Default)]
pub struct RestoredWorkspaces {
    pub restored: usize,
    /// Workspaces that could not be unpacked.
    pub missing: Vec<MissingFiles>,
}

/// Files of a session that a backup or a restore left out.
#[derive(Debug)]
pub struct MissingFiles {
    pub session: SessionId,
    pub sandbox: SandboxId,
    /// The reason, for the operator.
    pub reason: String,
}

impl MissingFiles {
    fn new(of: &StoredSandbox, reason: &impl ToString) -> Self {
        Self {
            session: of.session.clone(),
            sandbox: of.sandbox.clone(),
            reason: reason.to_string(),
        }
    }
}

/// Adds the workspaces of all sessions to a backup. Fails before anything is saved if there is no sandbox
/// runtime; a single workspace that cannot be saved is reported.
pub async fn save(settings: &Settings, draft: &mut BackupDraft) -> anyhow::Result<SavedWorkspaces> {
    let (installation, mut stored) = draft.sandboxes().await?;
    let data_dir = std::path::absolute(&settings.store.data_dir)?;
    let open = async |sandbox: &Sandbox| {
        let names = names(&installation, &data_dir, Beside::Gateways);
        sandboxes::open_for_command(sandbox, names, data_dir.clone()).await
    };
    let sandbox = &settings.sandbox;
    let runtime = open(sandbox).await.map_err(anyhow::Error::new).context(
        "the files of sessions cannot be saved, and nothing was written; without --workspaces everything \
         else is saved",
    )?;
    let mut saved = SavedWorkspaces::default();
    let done = save_all(&*runtime, bounds(settings), draft, &mut stored, &mut saved).await;
    runtime.close().await;
    done?;
    // The gateway took bubblewrap if no engine answered when it started, and sessions of then go on there.
    let may_be_in_folders = |of: &StoredSandbox| {
        let engine = of.engine.as_str();
        engine.starts_with(SandboxKind::Bubblewrap.as_str())
    };
    if sandbox.driver == SandboxDriver::Auto
        && runtime.kind() == SandboxKind::Docker
        && stored.iter().any(may_be_in_folders)
    {
        let sandbox = Sandbox {
            driver: SandboxDriver::Bubblewrap,
            ..sandbox.clone()
        };
        if let Ok(runtime) = open(&sandbox).await {
            let done = save_all(&*runtime, bounds(settings), draft, &mut stored, &mut saved).await;
            runtime.close().await;
            done?;
        }
    }
    saved.elsewhere = stored.len();
    Ok(saved)
}

/// Saves the workspaces that the runtime keeps, and leaves the others in `stored`.
async fn save_all(
    runtime: &dyn Runtime,
    bounds: Bounds,
    draft: &mut BackupDraft,
    stored: &mut Vec<StoredSandbox>,
    saved: &mut SavedWorkspaces,
) -> anyhow::Result<()> {
    let engine = runtime.engine();
    for of in stored.extract_if(.., |of| of.engine == engine) {
        // A session has its row before its workspace, and may have been deleted meanwhile.
        if !exists(runtime, &of.sandbox).await? {
            continue;
        }
        let file = draft.workspace_file(&of.sandbox);
        match pack(runtime, &of.sandbox, bounds, &file).await {
            Ok(PackedWorkspace { unreadable, .. }) => {
                draft.keep_workspace(&of.sandbox);
                saved.saved += 1;
                if let Some(first) = unreadable.first() {
                    let reason = format!("the rest is in the backup, but not everything: {first}");
                    saved.missing.push(MissingFiles::new(&of, &reason));
                }
            }
            Err(ArchiveError::File(error)) => {
                return Err(error).with_context(|| format!("`{}`", file.display()));
            }
            Err(error) => {
                fs::remove_file(&file).await?;
                if exists(runtime, &of.sandbox).await? {
                    saved.missing.push(MissingFiles::new(&of, &error));
                }
            }
        }
    }
    Ok(())
}

async fn exists(runtime: &dyn Runtime, sandbox: &SandboxId) -> anyhow::Result<bool> {
    let found = runtime.has_workspace(sandbox).await;
    found.context("it is not known which workspaces there are, and nothing was written")
}

async fn pack(
    runtime: &dyn Runtime,
    sandbox: &SandboxId,
    bounds: Bounds,
    file: &Path,
) -> Result<PackedWorkspace, ArchiveError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut archive = options.open(file).await.map_err(ArchiveError::File)?;
    archiving::pack(runtime, sandbox, bounds, &mut archive).await
}

/// Unpacks the workspaces of a staged restore, and lets the sessions of its database have them. Fails before
/// anything changes if there is no sandbox runtime; a single workspace that cannot be unpacked is reported, and
/// its session says that its files are elsewhere.
pub async fn restore(
    settings: &Settings,
    staged: &StagedRestore,
) -> anyhow::Result<RestoredWorkspaces> {
    let (installation, workspaces) = staged.workspaces().await?;
    if workspaces.is_empty() {
        return Ok(RestoredWorkspaces::default());
    }
    let data_dir = std::path::absolute(&settings.store.data_dir)?;
    let stage = std::path::absolute(staged.stage())?;
    // Bubblewrap writes into the folder that it is given, and nothing may change if it does not work.
    let open = async |folder: PathBuf| {
        let names = names(&installation, &data_dir, Beside::Nobody);
        sandboxes::open_for_command(&settings.sandbox, names, folder).await
    };
    let mut runtime = open(stage).await.map_err(anyhow::Error::new).context(
        "the files of sessions in the backup cannot be unpacked, and nothing was changed; with \
         --without-workspaces everything else is restored",
    )?;
    if runtime.kind() == SandboxKind::Bubblewrap {
        runtime.close().await;
        drop(runtime);
        runtime = open(data_dir.clone()).await.map_err(anyhow::Error::new)?;
    }
    let mut made = Vec::new();
    let restored = restore_all(&*runtime, bounds(settings), staged, workspaces, &mut made).await;
    if restored.is_err() {
        for sandbox in &made {
            discard(&*runtime, sandbox).await;
        }
    }
    runtime.close().await;
    restored
}

/// Records every new workspace in `made` before it is made.
async fn restore_all(
    runtime: &dyn Runtime,
    bounds: Bounds,
    staged: &StagedRestore,
    workspaces: Vec<StagedWorkspace>,
    made: &mut Vec<SandboxId>,
) -> anyhow::Result<RestoredWorkspaces> {
    let (mut moved, mut lost, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for workspace in workspaces {
        let to = SandboxId::from_bits(rand::random());
        made.push(to.clone());
        let of = &workspace.stored;
        match unpack(runtime, &to, bounds, &workspace).await {
            Ok(()) => moved.push(MovedSandbox {
                from: of.sandbox.clone(),
                to,
            }),
            Err(error @ (ArchiveError::Start(_) | ArchiveError::File(_))) => {
                return Err(error).with_context(|| {
                    format!(
                        "the files of session `{}` cannot be unpacked; the database was not restored",
                        of.session
                    )
                });
            }
            Err(error @ (ArchiveError::TooLarge(_) | ArchiveError::Incomplete(_))) => {
                missing.push(MissingFiles::new(of, &error));
                discard(runtime, &to).await;
                lost.push(MovedSandbox {
                    from: of.sandbox.clone(),
                    to,
                });
            }
        }
        // Makes room for the next one.
        fs::remove_file(&workspace.file).await?;
    }
    staged.move_sandboxes(&moved, &runtime.engine()).await?;
    // Never the workspace of the same id, which may be that of an installation that goes on.
    staged
        .move_sandboxes(&lost, &EngineId::from(IN_BACKUP))
        .await?;
    Ok(RestoredWorkspaces {
        restored: moved.len(),
        missing,
    })
}

async fn unpack(
    runtime: &dyn Runtime,
    to: &SandboxId,
    bounds: Bounds,
    workspace: &StagedWorkspace,
) -> Result<(), ArchiveError> {
    let opened = fs::File::open(&workspace.file).await;
    let mut archive = opened.map_err(ArchiveError::File)?;
    archiving::unpack(runtime, to, bounds, &mut archive, workspace.bytes).await
}

/// Removes a workspace that no session has. The janitor of the next gateway removes what fails here.
async fn discard(runtime: &dyn Runtime, sandbox: &SandboxId) {
    if let Err(error) = runtime.remove_workspace(sandbox).await {
        tracing::warn!(sandbox.id = %sandbox, ?error, "A workspace is left to the janitor");
    }
}

/// The gateways that may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Gateways,
    /// None, because the data folder is locked.
    Nobody,
}

/// Returns the names that the gateway of the installation in `data_dir` gives to what it makes at an engine.
fn names(installation: &str, data_dir: &Path, beside: Beside) -> Names {
    Names {
        installation: sandboxes::installation_in(installation, data_dir),
        peers: Peers::none(),
        is_beside: beside == Beside::Gateways,
    }
}

fn bounds(settings: &Settings) -> Bounds {
    let bounds = sandboxes::bounds(&settings.sandbox);
    Bounds {
        cpu_millis: bounds.cpu_millis.max(CPU_MILLIS),
        lifetime: Some(LIMIT),
        ..bounds
    }
}
