//! Stores bundles of MCP servers that tenants uploaded: metadata, and the file in parts.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, Statement, args};
use super::{tenant_id, user_id};
use sepal_core::domain::{TenantId, Timestamp, UserId};

/// The size of one part of a file, in bytes.
const PART_BYTES: usize = 1 << 20;

/// The metadata of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleRow {
    pub tenant: TenantId,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// The facts from its manifest, as JSON.
    pub facts: String,
    pub bytes: u64,
    pub created_by: UserId,
    pub created_at: Timestamp,
    /// The time at which someone last viewed or used the bundle.
    pub used_at: Timestamp,
}

/// Access to the stored bundles.
pub struct McpBundles<'s> {
    db: &'s Db,
}

impl<'s> McpBundles<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Stores a bundle and its file. If the bundle exists, updates its facts and the time of its last use.
    pub async fn put(&self, row: &BundleRow, file: &[u8]) -> Result<(), Error> {
        let (tenant, sha256) = (row.tenant.as_str(), row.sha256.as_str());
        let bytes = i64::try_from(row.bytes).unwrap_or(i64::MAX);
        let mut put = vec![Statement::new(
            "INSERT INTO mcp_bundles (tenant, sha256, facts, bytes, created_by, created_at, used_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant, sha256) \
             DO UPDATE SET facts = excluded.facts, used_at = excluded.used_at",
            args![
                tenant,
                sha256,
                row.facts.as_str(),
                bytes,
                row.created_by.as_str(),
                row.created_at.0,
                row.used_at.0
            ],
        )
        .recorded(Act::new(ActName::BundleAdded, &row.tenant, "bundle", sha256))];
        for (at, part) in file.chunks(PART_BYTES).enumerate() {
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            put.push(Statement::new(
                "INSERT INTO mcp_bundle_parts (tenant, sha256, part, content) \
                 VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                args![tenant, sha256, at, part.to_vec()],
            ));
        }
        self.db.execute_all(put).await?;
        Ok(())
    }

    /// The bundle of a tenant with this hash.
    pub async fn find(&self, tenant: &TenantId, sha256: &str) -> Result<Option<BundleRow>, Error> {
        let sql = "SELECT * FROM mcp_bundles WHERE tenant = $1 AND sha256 = $2";
        let row: Option<Row> = self
            .db
            .fetch_optional(sql, args![tenant.as_str(), sha256])
            .await?;
        row.map(Row::into_row).transpose()
    }

    /// All bundles of a tenant, oldest first.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<BundleRow>, Error> {
        let sql = "SELECT * FROM mcp_bundles WHERE tenant = $1 ORDER BY created_at, sha256";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![tenant.as_str()]).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// The bundles of every tenant that nobody viewed or used since `then`, for the gateways' cleanup.
    pub async fn unused_since(&self, then: Timestamp) -> Result<Vec<BundleRow>, Error> {
        let sql = "SELECT * FROM mcp_bundles WHERE used_at < $1 ORDER BY tenant, sha256";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![then.0]).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// The file of a bundle; `None` if the bundle does not exist or its file is incomplete.
    pub async fn content(&self, tenant: &TenantId, sha256: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(row) = self.find(tenant, sha256).await? else {
            return Ok(None);
        };
        let whole = usize::try_from(row.bytes).unwrap_or(usize::MAX);
        let mut file = Vec::new();
        let mut at = 0_i64;
        while file.len() < whole {
            let part: Option<(Vec<u8>,)> = self
                .db
                .fetch_optional(
                    "SELECT content FROM mcp_bundle_parts \
                     WHERE tenant = $1 AND sha256 = $2 AND part = $3",
                    args![tenant.as_str(), sha256, at],
                )
                .await?;
            let Some((part,)) = part.filter(|(part,)| !part.is_empty()) else {
                return Ok(None);
            };
            file.extend_from_slice(&part);
            at += 1;
        }
        Ok(Some(file))
    }

    /// Updates the time of a bundle's last use. Returns false if the bundle does not exist.
    pub async fn touch(
        &self,
        tenant: &TenantId,
        sha256: &str,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "UPDATE mcp_bundles SET used_at = $3 WHERE tenant = $1 AND sha256 = $2";
        let args = args![tenant.as_str(), sha256, now.0];
        Ok(self.db.execute(sql, args).await? > 0)
    }

    /// Removes a bundle, unless it was used after `then`.
    pub async fn remove(
        &self,
        tenant: &TenantId,
        sha256: &str,
        then: Timestamp,
    ) -> Result<(), Error> {
        let act = Act::new(ActName::BundleRemoved, tenant, "bundle", sha256);
        let (tenant, sha256) = (tenant.as_str(), sha256);
        let remove = vec![
            Statement::required(
                "DELETE FROM mcp_bundles WHERE tenant = $1 AND sha256 = $2 AND used_at <= $3",
                args![tenant, sha256, then.0],
            )
            .recorded(act),
            Statement::new(
                "DELETE FROM mcp_bundle_parts WHERE tenant = $1 AND sha256 = $2",
                args![tenant, sha256],
            ),
        ];
        self.db.execute_all(remove).await?;
        Ok(())
    }
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    tenant: String,
    sha256: String,
    facts: String,
    bytes: i64,
    created_by: String,
    created_at: i64,
    used_at: i64,
}

impl Row {
    fn into_row(self) -> Result<BundleRow, Error> {
        Ok(BundleRow {
            tenant: tenant_id(self.tenant)?,
            sha256: self.sha256,
            facts: self.facts,
            bytes: u64::try_from(self.bytes).unwrap_or_default(),
            created_by: user_id(self.created_by)?,
            created_at: Timestamp(self.created_at),
            used_at: Timestamp(self.used_at),
        })
    }
}
