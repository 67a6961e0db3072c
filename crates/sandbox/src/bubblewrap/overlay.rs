//! Makes copies on write: a workspace that shows another one, and stores only what was written since.
//!
//! The other workspace is the lower layer of an overlay file system, which `unshare` and `mount` of
//! util-linux mount in a mount namespace around the sandbox's bubblewrap: bubblewrap itself mounts overlays
//! only since 0.11. The mount is not visible outside, and it ends with the sandbox.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

use super::arguments::{Privilege, words};
use super::{Bubblewrap, blocking};
use crate::{Access, Bounds, CopyOrder, CopyResult, Error, Launch, Packages, Program, ProgramEnd};
use sepal_core::domain::SandboxId;

/// The upper layer, which is written to, below the folder of the copy.
const UPPER: &str = "upper";
/// The mount point of the overlay, below the same folder.
const MERGED: &str = "merged";
/// Mounts `$2` with the options `$1`, and executes the rest.
const MOUNT: &str = r#"mount -t overlay overlay -o "$1" "$2"; shift 2; exec "$@""#;
/// The command of the probe: everything that an overlay has to support.
const PROBE: &str =
    "read -r it </workspace/below && rm /workspace/below && echo x >/workspace/above";

/// The copies on write of this process. Those of an earlier process are only folders for the janitor.
#[derive(Debug, Default)]
pub(super) struct Overlays {
    /// True if this machine supports overlays; determined at the first copy.
    is_possible: OnceCell<bool>,
    /// Never held across an await.
    made: Mutex<BTreeMap<SandboxId, Arc<Overlay>>>,
}

#[derive(Debug)]
struct Overlay {
    lower: SandboxId,
    /// Allows one mount at a time: two mounts of the same upper layer have undefined effects.
    mounted: Arc<Semaphore>,
    /// The number of mounts so far. A volatile mount leaves a mark in its work folder that forbids the next
    /// one, so each mount has its own work folder.
    mounts: AtomicU32,
}

/// One sandbox's use of a copy. The next use can begin when this is dropped.
#[derive(Debug)]
pub(super) struct Mount {
    /// The folder of all workspaces; the mount uses names relative to it, which need no escaping and reveal
    /// nothing.
    pub(super) folder: PathBuf,
    lower: SandboxId,
    copy: SandboxId,
    work: String,
    _only: OwnedSemaphorePermit,
}

impl Overlays {
    /// Mounts the sandbox's workspace if it is a copy on write; fails while another sandbox uses the copy.
    pub(super) fn mount(&self, folder: &Path, copy: &SandboxId) -> Result<Option<Mount>, Error> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(overlay) = made.get(copy) else {
            return Ok(None);
        };
        let only = Arc::clone(&overlay.mounted).try_acquire_owned();
        let only = only.map_err(|_| {
            Error::BadLaunch("a copy on write is seen by one sandbox at a time".to_owned())
        })?;
        let work = format!("work-{}", overlay.mounts.fetch_add(1, Ordering::Relaxed));
        let mount = Mount {
            folder: folder.to_owned(),
            lower: overlay.lower.clone(),
            copy: copy.clone(),
            work,
            _only: only,
        };
        make(&mount.home().join(&mount.work), None)?;
        Ok(Some(mount))
    }

    /// Forgets a copy whose folder is removed.
    pub(super) fn forget(&self, copy: &SandboxId) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.remove(copy);
    }

    /// Creates the folders inside a copy's own folder, which exists.
    fn lay(
        &self,
        home: &Path,
        lower: &SandboxId,
        copy: &SandboxId,
        owner: Option<u32>,
    ) -> Result<(), Error> {
        // The root of the merged view has the owner and the mode of this folder.
        make(&home.join(UPPER), owner)?;
        make(&home.join(MERGED), None)?;
        let overlay = Overlay {
            lower: lower.clone(),
            mounted: Arc::new(Semaphore::new(1)),
            mounts: AtomicU32::new(0),
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.insert(copy.clone(), Arc::new(overlay));
        Ok(())
    }
}

impl Mount {
    fn home(&self) -> PathBuf {
        self.folder.join(self.copy.as_str())
    }

    /// Returns the mount point, which is mounted only in the sandbox's own mount namespace.
    pub(super) fn merged(&self) -> PathBuf {
        self.home().join(MERGED)
    }

    /// Returns the folder of the written files, whose size is the copy's disk usage.
    pub(super) fn upper(&self) -> PathBuf {
        self.home().join(UPPER)
    }

    /// Returns the beginning of a command line, which mounts the overlay and executes the rest; it runs in
    /// [`Self::folder`].
    ///
    /// Without root the mount needs a user namespace, whose root is the user. Bubblewrap runs the program in
    /// a nested one, in which it has no rights over the outer one.
    pub(super) fn line(&self, privilege: Privilege) -> Vec<OsString> {
        let mut line = words(["unshare", "--mount", "--propagation", "private"]);
        // Root's attributes are `trusted.`, which no program inside can set, so they may record where a
        // renamed folder was. A user's are `user.`, and the kernel then follows none that leads to another
        // file.
        let marks = match privilege {
            Privilege::Root => "redirect_dir=on,metacopy=off,index=off",
            Privilege::User => {
                line.extend(words(["--user", "--map-root-user"]));
                "userxattr"
            }
        };
        let Self {
            lower, copy, work, ..
        } = self;
        // Volatile: a temporary copy needs no syncing to the disk.
        let options = format!(
            "nosuid,nodev,volatile,xino=off,{marks},lowerdir={lower},upperdir={copy}/{UPPER},workdir={copy}/{work}"
        );
        let target = format!("{copy}/{MERGED}");
        line.extend(words(["--", "sh", "-ec", MOUNT, "sh", &options, &target]));
        line
    }
}

/// Makes a copy on write; `None` if this machine does not support it.
pub(super) async fn make_copy(
    runtime: &Bubblewrap,
    order: &CopyOrder,
) -> Result<Option<CopyResult>, Error> {
    if runtime.settings.forces_copies {
        return Ok(None);
    }
    let is_possible = &runtime.overlays.is_possible;
    if !*is_possible.get_or_init(|| is_possible_here(runtime)).await {
        return Ok(None);
    }
    if !runtime.workspaces.path(&order.from).is_dir() {
        return Ok(Some(CopyResult::Missing));
    }
    lay(
        runtime,
        &order.from,
        &order.to,
        order.bounds.workspace_bytes,
    )
    .await?;
    Ok(Some(CopyResult::OnWrite))
}

async fn lay(
    runtime: &Bubblewrap,
    from: &SandboxId,
    to: &SandboxId,
    limit: u64,
) -> Result<(), Error> {
    let home = runtime.provide(to, limit).await?;
    // The files below belong to this user, so the program has to run as the same user.
    let lower = fs::metadata(runtime.workspaces.path(from))?;
    let owner = (runtime.privilege == Privilege::Root).then(|| lower.uid());
    let laid = runtime.overlays.lay(&home, from, to, owner);
    if laid.is_err() {
        let (workspaces, to) = (runtime.workspaces.clone(), to.clone());
        blocking(move || workspaces.remove(&to)).await?;
    }
    laid
}

/// Tries an overlay, because file systems, kernels and distributions forbid them in many ways.
async fn is_possible_here(runtime: &Bubblewrap) -> bool {
    let [lower, copy] = [(); 2].map(|()| SandboxId::from_bits(rand::random()));
    let tried = attempt(runtime, &lower, &copy).await;
    runtime.overlays.forget(&copy);
    let workspaces = runtime.workspaces.clone();
    let removed = blocking(move || workspaces.remove(&copy).and(workspaces.remove(&lower))).await;
    if let Err(error) = removed {
        tracing::warn!(
            ?error,
            "What a trial of overlays made is left to the janitor"
        );
    }
    match tried {
        Ok(()) => true,
        Err(error) => {
            tracing::info!(%error, "Dry runs copy the workspace: there is no overlay of it here");
            false
        }
    }
}

async fn attempt(runtime: &Bubblewrap, lower: &SandboxId, copy: &SandboxId) -> Result<(), Error> {
    let bounds = Bounds::default();
    let below = runtime.workspaces.provide(lower)?.join("below");
    fs::write(&below, "x\n")?;
    lay(runtime, lower, copy, bounds.workspace_bytes).await?;
    let launch = Launch {
        sandbox: copy.clone(),
        packages: Packages::None,
        holder: None,
        server: "probe".to_owned(),
        program: Program::Command(["sh", "-c", PROBE].map(str::to_owned).to_vec()),
        environment: BTreeMap::new(),
        workspace: Access::ReadWrite,
        egress: None,
        bounds,
    };
    let mut running = runtime.launch(launch).await?;
    let ended = running.life.ended().await;
    let is_written = runtime
        .workspaces
        .path(copy)
        .join(UPPER)
        .join("above")
        .is_file();
    if ended == ProgramEnd::Exited(0) && is_written && below.is_file() {
        return Ok(());
    }
    let said = running.stderr.recv().await;
    Err(Error::Start(io::Error::other(
        said.unwrap_or_else(|| ended.to_string()),
    )))
}

fn make(folder: &Path, owner: Option<u32>) -> Result<(), Error> {
    let made = DirBuilder::new().mode(0o700).create(folder);
    made.and_then(|()| owner.map_or(Ok(()), |id| chown(folder, Some(id), Some(id))))
        .map_err(|source| Error::Workspace {
            path: folder.to_owned(),
            source,
        })
}
