//! Runs one installation, from the claim of the lease to the list of tools.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::following::{Halt, Record};
use super::installing::{Order, Outcome, install, remove};
use super::lease_end;
use super::resolving::{Resolved, resolve};
use crate::catalogue::entry::ServerEntry;
use crate::health::probe_limits::ProbeLimits;
use crate::registry::Servers;
use crate::try_out::try_out;
use sepal_core::domain::{InstallState, InstalledPackage, SandboxId};
use sepal_store as store;
use sepal_store::clock::now;
use sepal_store::records::{InstallationRow, PackageVolume};

/// The interval at which the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(2);

/// The kind of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first installation of an entry's package.
    First,
    /// A copy, for this gateway's engine, of a package that another gateway installed.
    Copy,
    /// A newer version, beside the one in use.
    Update,
}

/// An installation that this gateway runs.
pub(super) struct Job {
    pub(super) servers: Servers,
    pub(super) entry: ServerEntry,
    pub(super) kind: Kind,
    pub(super) gateway: String,
    pub(super) turns: Arc<ProbeLimits>,
    /// Cancelled when the gateway shuts down.
    pub(super) closing: CancellationToken,
}

impl Job {
    /// Installs the package, unless another gateway holds the lease.
    pub(super) async fn run(self) -> Result<(), store::Error> {
        let records = self.servers.0.records.packages();
        let (scope, name) = (&self.entry.scope, self.entry.name.as_str());
        let Some(row) = records.get(scope, name).await? else {
            return Ok(());
        };
        if self.kind == Kind::Copy {
            return tokio::select! {
                () = self.closing.cancelled() => Ok(()),
                copied = self.copy(&row) => over(copied),
            };
        }
        let claimed = records.claim(&row, self.gateway.as_str(), lease_end(), now());
        if !claimed.await? {
            return Ok(());
        }
        let over = tokio::select! {
            worked = self.work(row) => over(worked),
            lost = self.keep_lease() => lost,
            () = self.closing.cancelled() => Ok(()),
        };
        // If the installation is unfinished, the next gateway that looks continues it.
        records.release(scope, name, &self.gateway).await?;
        over
    }

    /// Renews the lease until it is lost.
    async fn keep_lease(&self) -> Result<(), store::Error> {
        let (scope, name) = (&self.entry.scope, self.entry.name.as_str());
        loop {
            tokio::time::sleep(RENEWAL).await;
            let records = self.servers.0.records.packages();

            if !records
                .renew(scope, name, self.gateway.as_str(), lease_end())
                .await?
            {
                return Ok(());
            }
        }
    }

    async fn work(&self, row: InstallationRow) -> Result<(), Halt> {
        let _turn = match self.entry.tenant() {
            Some(tenant) => Some(self.turns.turn(tenant).await),
            None => None,
        };
        let spec = row.installation.spec.clone();
        let mut record = Record::new(self.servers.clone(), row);
        record.clear();
        record.phase(InstallState::Resolving).await?;
        let servers = &self.servers;
        let client = &servers.0.opener.clients.open;
        let Resolved { version, .. } = match resolve(client, &spec, &servers.0.place.packages).await
        {
            Ok(resolved) => resolved,
            Err(refused) => return record.fail(refused.problem, refused.text).await,
        };
        let order = Order {
            servers,
            spec: &spec,
            version: version.as_deref(),
            pins: None,
            volume: self.volume(),
        };
        match install(&order, Some(&mut record)).await? {
            Err(refused) => record.fail(refused.problem, refused.text).await,
            Ok(installed) => {
                let package = installed.package(&spec);
                let used = record.installation().installed.as_ref();
                if used.is_some_and(|used| used.content == package.content) {
                    remove(servers, &order.volume.sandbox).await?;
                    return record.is_newest().await;
                }
                self.complete(&order.volume.sandbox, &package).await?;
                record
                    .installed(package.clone(), &installed.done.lock)
                    .await?;
                self.list(&mut record, package).await
            }
        }
    }

    /// Lists the server's tools, so that people can review them and models can be told of them.
    async fn list(&self, record: &mut Record, package: InstalledPackage) -> Result<(), Halt> {
        record.phase(InstallState::Listing).await?;
        let entry = ServerEntry {
            package: Some(Arc::new(package)),
            ..self.entry.clone()
        };
        let mut phases = Vec::new();
        let listed = try_out(&self.servers, &entry, None, &mut phases).await;
        record.ready(listed.err()).await?;
        self.servers
            .changed(&self.entry.scope, &self.entry.name, None);
        Ok(())
    }

    /// Installs exactly what the pins say.
    async fn copy(&self, row: &InstallationRow) -> Result<(), Halt> {
        let servers = &self.servers;
        let installations = &servers.0.installations;
        let key = (row.scope.clone(), row.server.clone());
        installations.note_failure_here(&key, None);
        let (pins, _) = servers
            .0
            .records
            .packages()
            .pins(&row.scope, &row.server)
            .await?;
        let (Some(pins), Some(used)) = (pins, &row.installation.installed) else {
            return Ok(());
        };
        let order = Order {
            servers,
            spec: &row.installation.spec,
            version: None,
            pins: Some(&pins),
            volume: self.volume(),
        };
        let outcome: Outcome = install(&order, None).await?;
        let failure = match outcome {
            Ok(installed) if installed.package(order.spec).content == used.content => {
                self.complete(&order.volume.sandbox, used).await?;
                return Ok(installations.refresh().await.map(drop)?);
            }
            Ok(_) => {
                remove(servers, &order.volume.sandbox).await?;
                "what this machine makes of it is another content".to_owned()
            }
            Err(refused) => refused.text,
        };
        tracing::warn!(mcp.server = %row.server, "A package that is used cannot be installed here: {failure}");
        installations.note_failure_here(&key, Some(failure));
        Ok(())
    }

    async fn complete(
        &self,
        sandbox: &SandboxId,
        package: &InstalledPackage,
    ) -> Result<(), store::Error> {
        let records = self.servers.0.records.packages();
        records
            .complete_volume(sandbox, package.content.as_str())
            .await
    }

    fn volume(&self) -> PackageVolume {
        PackageVolume {
            sandbox: SandboxId::from_bits(rand::random()),
            engine: self.servers.0.place.runtime.engine(),
            scope: self.entry.scope.clone(),
            server: self.entry.name.clone(),
            content: None,
            gateway: self.gateway.clone(),
        }
    }
}

/// Converts the result: an installation that is no longer wanted is not an error.
fn over(worked: Result<(), Halt>) -> Result<(), store::Error> {
    match worked {
        Ok(()) | Err(Halt::Overtaken) => Ok(()),
        Err(Halt::Store(error)) => Err(error),
    }
}
