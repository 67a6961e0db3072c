//! Tracks the packages of servers: the state of each installation, and its volume on this gateway's engine.
//! Read from the records, so that all gateways agree.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::entry::ServerEntry;
use sepal_core::domain::{
    InstallState, Installation, InstalledPackage, PackageSpec, SandboxId, Scope,
};
use sepal_sandbox::host::SandboxHost;
use sepal_store::records::{InstallationRow, PackageVolume};
use sepal_store::{self as store, Records};

/// The time for which the start of a server waits for its installation.
const PATIENCE: Duration = Duration::from_mins(1);
/// The interval at which a waiting caller reads the records, because another gateway may be installing.
const LOOK: Duration = Duration::from_secs(2);

/// The scope and the name of the server that an installation belongs to.
pub(crate) type ServerKey = (Scope, String);

/// The installations of all servers.
pub(crate) struct Installations {
    pub records: Records,
    pub place: Arc<SandboxHost>,
    /// Never held across an await.
    known: Mutex<Known>,
    /// Counts the changes of the known state.
    changes: watch::Sender<u64>,
    /// Wakes the installer when there may be something to install.
    pub bell: Notify,
}

#[derive(Default)]
struct Known {
    rows: HashMap<ServerKey, Arc<InstallationRow>>,
    volumes: Vec<PackageVolume>,
    /// The reasons why packages that another gateway installed could not be installed here.
    failed_here: HashMap<ServerKey, String>,
}

/// A package that can be started here.
pub(crate) struct Available {
    pub package: InstalledPackage,
    /// The sandbox whose workspace contains the package.
    pub sandbox: SandboxId,
}

/// The reason why a package cannot be started now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unavailable {
    #[error("its package is being installed ({}): try again in a moment", .0.as_str())]
    Installing(InstallState),
    #[error("its package could not be installed: {text}; {remedy}")]
    Failed { text: String, remedy: &'static str },
    #[error("another version of its package is used by now: try again")]
    Replaced,
    #[error("its package could not be installed on this gateway: {0}; the log says more")]
    NotHere(String),
    #[error(
        "packages are installed when a server is added: add this one, and its tools are listed as \
         soon as it is installed"
    )]
    Trial,
    #[error(
        "packages are not installed here (`sandbox.packages.enabled`); name an image that has the \
         server (`containerImage`), a program of the sandboxes, or the address of a remote server"
    )]
    Off,
}

impl Installations {
    pub(crate) fn new(records: Records, place: Arc<SandboxHost>) -> Self {
        Self {
            records,
            place,
            known: Mutex::default(),
            changes: watch::Sender::new(0),
            bell: Notify::new(),
        }
    }

    /// Reads the state from the records again; returns true if it has changed.
    pub(crate) async fn refresh(&self) -> Result<bool, store::Error> {
        let rows = self.records.packages().all().await?;
        let volumes = self.records.packages().volumes().await?;
        let mut known = self.known();
        let is_same = known.volumes == volumes
            && known.rows.len() == rows.len()
            && rows.iter().all(|row| {
                let key = (row.scope.clone(), row.server.clone());
                let before = known.rows.get(&key);
                before.is_some_and(|before| before.installation == row.installation)
            });
        let rows = rows.into_iter();
        known.rows = rows
            .map(|row| ((row.scope.clone(), row.server.clone()), Arc::new(row)))
            .collect();
        known.volumes = volumes;
        drop(known);
        if !is_same {
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(!is_same)
    }

    /// Returns the installation of that server's package; `None` if none was begun.
    pub(crate) fn of(&self, scope: &Scope, server: &str) -> Option<Arc<InstallationRow>> {
        let key = (scope.clone(), server.to_owned());
        self.known().rows.get(&key).cloned()
    }

    /// Returns the installed package for a spec; `None` if another spec or nothing is installed.
    pub(crate) fn package(
        &self,
        scope: &Scope,
        server: &str,
        spec: &PackageSpec,
    ) -> Option<Arc<InstalledPackage>> {
        let row = self.of(scope, server)?;
        let Installation {
            spec: installed_spec,
            installed,
            ..
        } = &row.installation;
        let installed = installed.as_ref().filter(|_| installed_spec == spec)?;
        Some(Arc::new(installed.clone()))
    }

    /// Returns the volumes of all servers on all engines.
    pub(crate) fn volumes(&self) -> Vec<PackageVolume> {
        self.known().volumes.clone()
    }

    /// Returns the sandbox whose volume has that content on this gateway's engine.
    pub(crate) fn sandbox(
        &self,
        (scope, server): (&Scope, &str),
        content: &str,
    ) -> Option<SandboxId> {
        let engine = self.place.runtime.engine();
        let known = self.known();
        let mut volumes = known.volumes.iter();
        let found = volumes.find(|volume| {
            volume.engine == engine
                && &volume.scope == scope
                && volume.server == server
                && volume.content.as_deref() == Some(content)
        });
        found.map(|volume| volume.sandbox.clone())
    }

    /// Records or clears the reason why a package that another gateway installed cannot be installed here.
    pub(crate) fn note_failure_here(&self, key: &ServerKey, failure: Option<String>) {
        let mut known = self.known();
        match failure {
            Some(failure) => drop(known.failed_here.insert(key.clone(), failure)),
            None => drop(known.failed_here.remove(key)),
        }
        drop(known);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Waits until the package of an entry can be started here, for at most a minute. Only the content that
    /// was shown is started: if the entry has a package, never one with another content.
    pub(crate) async fn available(
        &self,
        entry: &ServerEntry,
        spec: &PackageSpec,
    ) -> Result<Available, Unavailable> {
        if entry.is_trial {
            return Err(Unavailable::Trial);
        }
        if !self.place.packages.is_on {
            return Err(Unavailable::Off);
        }
        let deadline = Instant::now() + PATIENCE;
        let mut changes = self.changes.subscribe();
        loop {
            match self.find_available(entry, spec) {
                Err(Unavailable::Installing(_)) if Instant::now() < deadline => {}
                found => return found,
            }
            self.bell.notify_one();
            let next = deadline.min(Instant::now() + LOOK);
            if timeout_at(next, changes.changed()).await.is_err()
                && let Err(error) = self.refresh().await
            {
                tracing::debug!(%error, "The installations are not read now");
            }
        }
    }

    /// Waits until each of these packages can be started here or has failed. Calls `tell` with the name and
    /// state of each at every change; `None` means that it can be started.
    pub(crate) async fn settled(
        &self,
        entries: &[(ServerEntry, PackageSpec)],
        mut tell: impl FnMut(&str, Option<&Unavailable>),
    ) {
        let mut told: HashMap<&str, Option<Unavailable>> = HashMap::new();
        let mut changes = self.changes.subscribe();
        loop {
            let mut is_open = false;
            for (entry, spec) in entries {
                let found = self.state(entry, spec);
                is_open |= matches!(found, Some(Unavailable::Installing(_)));
                if told.get(entry.name.as_str()) != Some(&found) {
                    tell(&entry.name, found.as_ref());
                    told.insert(&entry.name, found);
                }
            }
            if !is_open {
                return;
            }
            self.bell.notify_one();
            if timeout(LOOK, changes.changed()).await.is_err()
                && let Err(error) = self.refresh().await
            {
                tracing::debug!(%error, "The installations are not read now");
            }
        }
    }

    /// Returns the reason why a server cannot be used now; `None` if its package can be started and its tools
    /// were listed.
    fn state(&self, entry: &ServerEntry, spec: &PackageSpec) -> Option<Unavailable> {
        match self.find_available(entry, spec) {
            Ok(_) => {
                let row = self.of(&entry.scope, &entry.name)?;
                let state = row.installation.state;
                state.is_open().then_some(Unavailable::Installing(state))
            }
            Err(unavailable) => Some(unavailable),
        }
    }

    fn find_available(
        &self,
        entry: &ServerEntry,
        spec: &PackageSpec,
    ) -> Result<Available, Unavailable> {
        let whose = (&entry.scope, entry.name.as_str());
        let Some(row) = self.of(whose.0, whose.1) else {
            return Err(Unavailable::Installing(InstallState::Waiting));
        };
        let installation = &row.installation;
        if installation.spec != *spec {
            return Err(Unavailable::Installing(InstallState::Waiting));
        }
        let offered = [&installation.installed, &installation.candidate];
        let mut offered = offered.into_iter().flatten();
        let package = match &entry.package {
            Some(shown) => match offered.find(|it| it.content == shown.content) {
                Some(package) => package,
                None => return Err(Unavailable::Replaced),
            },
            None => match &installation.installed {
                Some(package) => package,
                None if installation.state == InstallState::Failed => {
                    return Err(Unavailable::Failed {
                        text: installation.error().unwrap_or_default().to_owned(),
                        remedy: installation.problem.map_or("try again", |it| it.remedy()),
                    });
                }
                None => return Err(Unavailable::Installing(installation.state)),
            },
        };
        if let Some(sandbox) = self.sandbox(whose, package.content.as_str()) {
            return Ok(Available {
                package: package.clone(),
                sandbox,
            });
        }
        let key = (entry.scope.clone(), entry.name.clone());
        match self.known().failed_here.get(&key) {
            Some(failure) => Err(Unavailable::NotHere(failure.clone())),
            None => Err(Unavailable::Installing(InstallState::Downloading)),
        }
    }

    /// Forgets a volume that is gone, so that the package is installed again.
    pub(crate) async fn lost(&self, sandbox: &SandboxId) -> Result<(), store::Error> {
        self.records.packages().forget_volume(sandbox).await?;
        self.refresh().await?;
        self.bell.notify_one();
        Ok(())
    }

    /// Forgets the installation of a removed server, so that its volumes are removed.
    pub(crate) async fn forget(&self, scope: &Scope, server: &str) -> Result<(), store::Error> {
        self.records.packages().forget(scope, server).await?;
        self.refresh().await?;
        self.bell.notify_one();
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
