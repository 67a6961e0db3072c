//! Manages bundles of MCP servers (`.mcpb`, formerly `.dxt`): ZIP archives with a manifest that an admin
//! uploads. They are checked, stored for the tenant by their hash, and turned into entries that are added
//! like any other.
//!
//! Nothing in a bundle is trusted: its archive is bounded and checked before it is unpacked, and the entry
//! that it proposes is shown to a person first. Its files go into the same kind of volume as packages, and it
//! runs in the same kind of sandbox.

mod archive;
mod facts;
mod filling;
mod manifest;
mod path;
mod project;
mod reading;
mod runtime;
mod template;
#[cfg(test)]
mod tests;
pub(crate) mod unpacking;

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

pub use self::facts::{BundleFacts, NamedPart, WantedValue};
pub use self::project::Dependencies;

use self::archive::Archive;
use super::error::Error;
use super::mcp_registry::FilledEntry;
use super::permission::administers_tenant;
use super::registry::Servers;
use sepal_core::domain::{Caller, McpBundle, Scope, Timestamp};
use sepal_jobs::Place;
use sepal_mcp::config::EntryProblem;
use sepal_store as store;
use sepal_store::clock::now;
use sepal_store::records::BundleRow;

/// The most bundles that a tenant stores, including those that no server uses.
const MOST_KEPT: usize = 60;
/// The time for which an unused bundle is stored.
const KEPT_MS: i64 = 60 * 60 * 1_000;

/// The operations of a caller on the bundles of their tenant.
pub struct Bundles<'a> {
    servers: &'a Servers,
    caller: &'a Caller,
}

/// The report about a bundle, for admins.
#[derive(Debug, Clone)]
pub struct BundleReport {
    /// The SHA-256 of its file, in hex.
    pub sha256: String,
    /// The size of its file in bytes.
    pub bytes: u64,
    pub facts: BundleFacts,
    /// The servers of the tenant that run a bundle of this name.
    pub used_by: Vec<BundleUse>,
}

/// A server that runs a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleUse {
    pub server: String,
    pub version: String,
    pub sha256: String,
    /// The answers that were given for it, without secrets.
    pub values: BTreeMap<String, String>,
}

impl<'a> Bundles<'a> {
    /// Operations in the name of `caller`.
    pub fn new(servers: &'a Servers, caller: &'a Caller) -> Self {
        Self { servers, caller }
    }

    /// Checks that the caller may upload a bundle and that this installation can run it; returns the most
    /// bytes that its file may have.
    pub fn admit(&self) -> Result<u64, Error> {
        administers_tenant(self.caller)?;
        let place = &self.servers.0.place;
        if !place.packages.is_on || !place.is_on() {
            return Err(Error::Package(
                "bundles are unpacked and run in sandboxes, which this installation has switched off \
                 (`sandbox.driver`, `sandbox.packages.enabled`): use the address of a remote server"
                    .to_owned(),
            ));
        }
        Ok(place.packages.bundle_bytes)
    }

    /// Checks an uploaded file and stores it, or returns its problems. The place in the pool is released when
    /// the check ends, even if the client disconnects before.
    pub async fn take_in(&self, file: Vec<u8>, place: Place) -> Result<BundleReport, Error> {
        let most_bytes = self.admit()?;
        if file.len() as u64 > most_bytes {
            return Err(Error::invalid("file", "it is too large"));
        }
        let most = self.servers.0.place.packages.bounds.workspace_bytes;
        let read = place.run(move || {
            let facts = inspect(&file, most)?;
            Ok::<_, Vec<EntryProblem>>((facts, hex::encode(Sha256::digest(&file)), file))
        });
        let broke = |_| Error::invalid("file", "the bundle could not be read: try again");
        let (facts, sha256, file) = read.await.map_err(broke)?.map_err(Error::Invalid)?;
        let bundles = self.servers.0.records.mcp_bundles();
        let tenant = &self.caller.tenant.id;
        let kept = bundles.list(tenant).await?;
        let is_known = kept.iter().any(|row| row.sha256 == sha256);
        if !is_known && kept.len() >= MOST_KEPT {
            return Err(Error::Package(format!(
                "a tenant keeps at most {MOST_KEPT} bundles: remove a server that nobody uses, or wait an \
                 hour, after which bundles without a server are removed"
            )));
        }
        let row = BundleRow {
            tenant: tenant.clone(),
            sha256,
            facts: serde_json::to_string(&facts).unwrap_or_default(),
            bytes: file.len() as u64,
            created_by: self.caller.user.id.clone(),
            created_at: now(),
            used_at: now(),
        };
        bundles.put(&row, &file).await?;
        tracing::info!(bundle.name = %facts.name, bundle.sha256 = %row.sha256, user.id = %self.caller.user.id, "A bundle was uploaded");
        self.reported(row, facts).await
    }

    /// Returns the report of a stored bundle.
    pub async fn report(&self, sha256: &str) -> Result<BundleReport, Error> {
        let (row, facts) = self.find(sha256).await?;
        self.reported(row, facts).await
    }

    /// Returns the entry of a bundle, filled in with a person's answers. Without `hosts`, the entry has no
    /// `network`. Stores nothing.
    pub async fn entry(
        &self,
        sha256: &str,
        answers: &BTreeMap<String, String>,
        hosts: Option<&[String]>,
    ) -> Result<FilledEntry, Error> {
        let (row, facts) = self.find(sha256).await?;
        filling::fill(&facts, &row.sha256, answers, hosts).map_err(Error::Invalid)
    }

    async fn find(&self, sha256: &str) -> Result<(BundleRow, BundleFacts), Error> {
        administers_tenant(self.caller)?;
        let bundles = self.servers.0.records.mcp_bundles();
        let tenant = &self.caller.tenant.id;
        let missing = || Error::NoBundle(sha256.to_owned());
        let row = bundles.find(tenant, sha256).await?.ok_or_else(missing)?;
        let facts = serde_json::from_str(&row.facts).map_err(|_| missing())?;
        bundles.touch(tenant, sha256, now()).await?;
        Ok((row, facts))
    }

    async fn reported(&self, row: BundleRow, facts: BundleFacts) -> Result<BundleReport, Error> {
        let records = &self.servers.0.records;
        let tenant = &self.caller.tenant.id;
        let mut used_by = Vec::new();
        for server in records.mcp_servers().list(tenant).await? {
            let Some(McpBundle { sha256, values }) = server.config.bundle else {
                continue;
            };
            let scope = Scope::Tenant(tenant.clone());
            let used = unpacking::kept_facts(records, &scope, &sha256).await?;
            if let Some(used) = used.filter(|used| used.name == facts.name) {
                used_by.push(BundleUse {
                    server: server.name,
                    version: used.version,
                    sha256,
                    values,
                });
            }
        }
        Ok(BundleReport {
            sha256: row.sha256,
            bytes: row.bytes,
            facts,
            used_by,
        })
    }
}

/// Checks a file and reads its facts, or returns its problems.
fn inspect(file: &[u8], most: u64) -> Result<BundleFacts, Vec<EntryProblem>> {
    let mut archive = Archive::read(file, most)?;
    let text = archive.manifest().map_err(|problem| vec![problem])?;
    let manifest = manifest::read(&text).map_err(|problem| vec![problem])?;
    facts::facts(manifest, &mut archive)
}

/// Checks that the bundle of an entry belongs to the entry's tenant and is stored; marks it as used.
pub(super) async fn check_kept(
    servers: &Servers,
    scope: &Scope,
    bundle: &McpBundle,
) -> Result<(), Error> {
    let Scope::Tenant(tenant) = scope else {
        let text = "a bundle serves the tenant that uploaded it: add it for your own tenant \
                    (`scope: tenant`)";
        return Err(Error::invalid("config.bundle", text));
    };
    let bundles = servers.0.records.mcp_bundles();
    if bundles.touch(tenant, &bundle.sha256, now()).await? {
        return Ok(());
    }
    let text = "no such bundle is kept: upload its file again (`POST /api/mcp-bundles`)";
    Err(Error::invalid("config.bundle", text))
}

/// Removes the file of a bundle that a server ran, unless another server of the tenant runs it too.
pub(super) async fn let_go(
    servers: &Servers,
    scope: &Scope,
    bundle: &McpBundle,
) -> Result<(), store::Error> {
    let Scope::Tenant(tenant) = scope else {
        return Ok(());
    };
    let records = &servers.0.records;
    let others = records.mcp_servers().list(tenant).await?;
    let of = |other: Option<McpBundle>| other.is_some_and(|other| other.sha256 == bundle.sha256);
    if others.into_iter().any(|other| of(other.config.bundle)) {
        return Ok(());
    }
    records
        .mcp_bundles()
        .remove(tenant, &bundle.sha256, now())
        .await
}

/// Removes bundles that no server runs and nobody has used for an hour.
pub(super) async fn tidy(servers: &Servers) -> Result<(), store::Error> {
    let then = Timestamp(now().0 - KEPT_MS);
    let bundles = servers.0.records.mcp_bundles();
    let unused = bundles.unused_since(then).await?;
    if unused.is_empty() {
        return Ok(());
    }
    // Read after the bundles: adding a server marks its bundle as used, so a server that is added meanwhile
    // keeps it.
    let servers = servers.0.records.mcp_servers().all().await?;
    for row in unused {
        let is_run = servers.iter().any(|server| {
            let bundle = server.config.bundle.as_ref();
            server.tenant == row.tenant && bundle.is_some_and(|it| it.sha256 == row.sha256)
        });
        if !is_run {
            bundles.remove(&row.tenant, &row.sha256, then).await?;
        }
    }
    Ok(())
}
