//! Stores the installations of packages of MCP servers, and the workspaces that hold the installed files.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::{from_json, scope, to_json};
use sepal_core::domain::{EngineId, Installation, SandboxId, Scope, Timestamp};

/// A stored installation.
#[derive(Debug, Clone, PartialEq)]
pub struct InstallationRow {
    /// The scope of the server.
    pub scope: Scope,
    pub server: String,
    pub installation: Installation,
    /// Counts the changes of this row.
    pub revision: i64,
    /// The name of the gateway that installs; `None` = no gateway does.
    pub lease_gateway: Option<String>,
    /// The time until which other gateways leave the work to that gateway.
    pub lease_until: Timestamp,
}

/// A workspace with an installed package, or with one that is being installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageVolume {
    /// The sandbox whose workspace it is.
    pub sandbox: SandboxId,
    /// The engine that keeps the workspace.
    pub engine: EngineId,
    pub scope: Scope,
    pub server: String,
    /// The hash of everything that was installed; `None` during the installation.
    pub content: Option<String>,
    /// The gateway that made it.
    pub gateway: String,
}

/// Access to the stored installations.
pub struct Packages<'s> {
    db: &'s Db,
}

impl<'s> Packages<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// All installations of every tenant, for gateways, which maintain them all.
    pub async fn all(&self) -> Result<Vec<InstallationRow>, Error> {
        let sql = "SELECT scope, server, body, revision, lease_gateway, lease_until \
                   FROM package_installations ORDER BY scope, server";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// The installation of one server.
    pub async fn get(&self, of: &Scope, server: &str) -> Result<Option<InstallationRow>, Error> {
        let sql = "SELECT scope, server, body, revision, lease_gateway, lease_until \
                   FROM package_installations WHERE scope = $1 AND server = $2";
        let row: Option<Row> = self
            .db
            .fetch_optional(sql, args![of.as_str(), server])
            .await?;
        row.map(Row::into_row).transpose()
    }

    /// The pins with which the same packages can be installed again: those of the version in use, and those
    /// of a newer version.
    pub async fn pins(
        &self,
        of: &Scope,
        server: &str,
    ) -> Result<(Option<String>, Option<String>), Error> {
        let row: Option<(Option<String>, Option<String>)> = self
            .db
            .fetch_optional(
                "SELECT pins, next_pins FROM package_installations \
                 WHERE scope = $1 AND server = $2",
                args![of.as_str(), server],
            )
            .await?;
        Ok(row.unwrap_or_default())
    }

    /// Starts a new installation, replacing any earlier one of the server.
    pub async fn begin(
        &self,
        of: &Scope,
        server: &str,
        installation: &Installation,
    ) -> Result<(), Error> {
        let body = to_json("installation", installation)?;
        self.db
            .record(
                Act::new(ActName::PackageBegun, of, "server", server),
                "INSERT INTO package_installations \
                 (scope, server, body, revision, lease_until) VALUES ($1, $2, $3, 1, 0) \
                 ON CONFLICT (scope, server) DO UPDATE SET body = $3, pins = NULL, \
                 next_pins = NULL, lease_gateway = NULL, lease_until = 0, \
                 revision = package_installations.revision + 1",
                args![of.as_str(), server, body.as_str()],
            )
            .await?;
        Ok(())
    }

    /// Takes the lease of an installation until `until`. Returns false if another gateway has the lease, or
    /// the row was changed since it was read.
    pub async fn claim(
        &self,
        row: &InstallationRow,
        gateway: &str,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let changed = self
            .db
            .execute(
                "UPDATE package_installations SET lease_gateway = $4, lease_until = $5 \
                 WHERE scope = $1 AND server = $2 AND revision = $3 \
                 AND (lease_gateway IS NULL OR lease_gateway = $4 OR lease_until < $6)",
                args![
                    row.scope.as_str(),
                    row.server.as_str(),
                    row.revision,
                    gateway,
                    until.0,
                    now.0
                ],
            )
            .await?;
        Ok(changed > 0)
    }

    /// Extends the lease. Returns false if another gateway has it, or the installation was deleted.
    pub async fn renew(
        &self,
        of: &Scope,
        server: &str,
        gateway: &str,
        until: Timestamp,
    ) -> Result<bool, Error> {
        let changed = self
            .db
            .execute(
                "UPDATE package_installations SET lease_until = $4 \
                 WHERE scope = $1 AND server = $2 AND lease_gateway = $3",
                args![of.as_str(), server, gateway, until.0],
            )
            .await?;
        Ok(changed > 0)
    }

    /// Ends the lease of any gateway.
    pub async fn free(&self, of: &Scope, server: &str) -> Result<(), Error> {
        self.db
            .execute(
                "UPDATE package_installations SET lease_gateway = NULL, lease_until = 0 \
                 WHERE scope = $1 AND server = $2",
                args![of.as_str(), server],
            )
            .await?;
        Ok(())
    }

    /// Releases this gateway's lease, so that another gateway can take it.
    pub async fn release(&self, of: &Scope, server: &str, gateway: &str) -> Result<(), Error> {
        self.db
            .execute(
                "UPDATE package_installations SET lease_gateway = NULL, lease_until = 0 \
                 WHERE scope = $1 AND server = $2 AND lease_gateway = $3",
                args![of.as_str(), server, gateway],
            )
            .await?;
        Ok(())
    }

    /// Stores the progress and returns the new row. Returns `None` if the row was changed since it was read.
    pub async fn save(&self, row: &InstallationRow) -> Result<Option<InstallationRow>, Error> {
        let body = to_json("installation", &row.installation)?;
        let changed = self
            .db
            .keep_up(
                "UPDATE package_installations SET body = $4, revision = revision + 1 \
                 WHERE scope = $1 AND server = $2 AND revision = $3",
                args![
                    row.scope.as_str(),
                    row.server.as_str(),
                    row.revision,
                    body.as_str()
                ],
            )
            .await?;
        Ok((changed > 0).then(|| InstallationRow {
            revision: row.revision + 1,
            ..row.clone()
        }))
    }

    /// Stores the progress as [`Self::save`] does, with the pins of the version in use and of a newer
    /// version.
    pub async fn save_pins(
        &self,
        row: &InstallationRow,
        pins: Option<&str>,
        next: Option<&str>,
    ) -> Result<Option<InstallationRow>, Error> {
        let body = to_json("installation", &row.installation)?;
        let changed = self
            .db
            .record(
                Act::new(
                    ActName::PackageChanged,
                    &row.scope,
                    "server",
                    row.server.as_str(),
                )
                .detail("pinned", pins.is_some())
                .detail("newer", next.is_some()),
                "UPDATE package_installations SET body = $4, pins = $5, next_pins = $6, \
                 revision = revision + 1 \
                 WHERE scope = $1 AND server = $2 AND revision = $3",
                args![
                    row.scope.as_str(),
                    row.server.as_str(),
                    row.revision,
                    body.as_str(),
                    pins,
                    next
                ],
            )
            .await?;
        Ok((changed > 0).then(|| InstallationRow {
            revision: row.revision + 1,
            ..row.clone()
        }))
    }

    /// Deletes the installation of a server that was removed. The gateway that keeps the installed files
    /// removes them.
    pub async fn forget(&self, of: &Scope, server: &str) -> Result<(), Error> {
        self.db
            .record(
                Act::new(ActName::PackageRemoved, of, "server", server),
                "DELETE FROM package_installations WHERE scope = $1 AND server = $2",
                args![of.as_str(), server],
            )
            .await?;
        Ok(())
    }

    /// All workspaces with an installed package, or one that is being installed.
    pub async fn volumes(&self) -> Result<Vec<PackageVolume>, Error> {
        let sql = "SELECT sandbox, engine, scope, server, content, gateway \
                   FROM package_volumes ORDER BY sandbox";
        let rows: Vec<VolumeRow> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter().map(VolumeRow::into_volume).collect()
    }

    /// Records a workspace before it is made.
    pub async fn add_volume(&self, volume: &PackageVolume) -> Result<(), Error> {
        self.db
            .execute(
                "INSERT INTO package_volumes (sandbox, engine, scope, server, content, gateway) \
                 VALUES ($1, $2, $3, $4, $5, $6)",
                args![
                    volume.sandbox.as_str(),
                    volume.engine.as_str(),
                    volume.scope.as_str(),
                    volume.server.as_str(),
                    volume.content.as_deref().unwrap_or_default(),
                    volume.gateway.as_str()
                ],
            )
            .await?;
        Ok(())
    }

    /// Records that an installation is complete, so that it can be used.
    pub async fn complete_volume(&self, sandbox: &SandboxId, content: &str) -> Result<(), Error> {
        self.db
            .execute(
                "UPDATE package_volumes SET content = $2 WHERE sandbox = $1",
                args![sandbox.as_str(), content],
            )
            .await?;
        Ok(())
    }

    /// Deletes the row of a workspace that no longer exists.
    pub async fn forget_volume(&self, sandbox: &SandboxId) -> Result<(), Error> {
        self.db
            .execute(
                "DELETE FROM package_volumes WHERE sandbox = $1",
                args![sandbox.as_str()],
            )
            .await?;
        Ok(())
    }
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    scope: String,
    server: String,
    body: String,
    revision: i64,
    lease_gateway: Option<String>,
    lease_until: i64,
}

impl Row {
    fn into_row(self) -> Result<InstallationRow, Error> {
        Ok(InstallationRow {
            scope: scope(self.scope)?,
            server: self.server,
            installation: from_json("installation of a package", &self.body)?,
            revision: self.revision,
            lease_gateway: self.lease_gateway,
            lease_until: Timestamp(self.lease_until),
        })
    }
}

#[derive(sqlx_macros::FromRow)]
struct VolumeRow {
    sandbox: String,
    engine: String,
    scope: String,
    server: String,
    content: String,
    gateway: String,
}

impl VolumeRow {
    fn into_volume(self) -> Result<PackageVolume, Error> {
        let sandbox = SandboxId::parse(&self.sandbox);
        Ok(PackageVolume {
            sandbox: sandbox.ok_or_else(|| Error::corrupt("sandbox id", self.sandbox))?,
            engine: self.engine.into(),
            scope: scope(self.scope)?,
            server: self.server,
            content: Some(self.content).filter(|content| !content.is_empty()),
            gateway: self.gateway,
        })
    }
}
