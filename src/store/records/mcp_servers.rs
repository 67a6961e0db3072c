//! MCP servers that tenants and their people added; those of files and settings are not here.

use super::super::Error;
use super::super::db::{Arg, Db, Statement, args, taken};
use super::{from_json, tenant_id, to_json, user_id};
use crate::domain::{McpServerConfig, TenantId, Timestamp, UserId};

/// A server as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServerRow {
    pub tenant: TenantId,
    /// Its name, unique in the tenant, those of its people included.
    pub name: String,
    /// The person whose it is alone; `None` = everybody's in the tenant.
    pub owner: Option<UserId>,
    /// How it is reached. Secrets stand in it as `${secret:NAME}`.
    pub config: McpServerConfig,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The servers.
pub struct McpServers<'s> {
    db: &'s Db,
}

impl<'s> McpServers<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Those of a tenant by name.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<McpServerRow>, Error> {
        let sql = "SELECT * FROM mcp_servers WHERE tenant = $1 ORDER BY name";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![tenant.as_str()]).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// Those of every tenant, for the health monitor.
    pub async fn all(&self) -> Result<Vec<McpServerRow>, Error> {
        let sql = "SELECT * FROM mcp_servers ORDER BY tenant, name";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// One of a tenant.
    pub async fn get(&self, tenant: &TenantId, name: &str) -> Result<Option<McpServerRow>, Error> {
        let row: Option<Row> = self
            .db
            .fetch_optional(
                "SELECT * FROM mcp_servers WHERE tenant = $1 AND name = $2",
                args![tenant.as_str(), name],
            )
            .await?;
        row.map(Row::into_row).transpose()
    }

    /// Adds one; its name must be free in the tenant, or the answer is [`Error::Taken`].
    pub async fn put(&self, server: &McpServerRow) -> Result<(), Error> {
        self.db
            .execute(
                "INSERT INTO mcp_servers (tenant, name, config, updated_at, owner) \
                 VALUES ($1, $2, $3, $4, $5)",
                arguments(server)?,
            )
            .await
            .map_err(taken(&server.name))?;
        Ok(())
    }

    /// Replaces the configuration of one; false if there is none.
    pub async fn update(&self, server: &McpServerRow) -> Result<bool, Error> {
        let changed = self
            .db
            .execute(
                "UPDATE mcp_servers SET config = $3, updated_at = $4 \
                 WHERE tenant = $1 AND name = $2 AND COALESCE(owner, '') = COALESCE($5, '')",
                arguments(server)?,
            )
            .await?;
        Ok(changed > 0)
    }

    /// Removes one with everything decided about its tools, so that another server of that name
    /// inherits no permission; false if there is none.
    pub async fn delete(&self, tenant: &TenantId, name: &str) -> Result<bool, Error> {
        let whom = || args![tenant.as_str(), name];
        let done = self
            .db
            .execute_all(vec![
                Statement::required(
                    "DELETE FROM mcp_servers WHERE tenant = $1 AND name = $2",
                    whom(),
                ),
                Statement::new(
                    "DELETE FROM mcp_tool_settings WHERE tenant = $1 AND server = $2",
                    whom(),
                ),
                Statement::new(
                    "DELETE FROM tool_definition_history WHERE tenant = $1 AND server = $2",
                    whom(),
                ),
                Statement::new(
                    "DELETE FROM tool_versions WHERE tenant = $1 AND server = $2",
                    whom(),
                ),
            ])
            .await?;
        Ok(done.is_some())
    }
}

fn arguments(server: &McpServerRow) -> Result<Vec<Arg>, Error> {
    Ok(args![
        server.tenant.as_str(),
        server.name.as_str(),
        to_json("server", &server.config)?.as_str(),
        server.updated_at.0,
        server.owner.as_ref().map(UserId::as_str)
    ])
}

#[derive(sqlx::FromRow)]
struct Row {
    tenant: String,
    name: String,
    config: String,
    updated_at: i64,
    owner: Option<String>,
}

impl Row {
    fn into_row(self) -> Result<McpServerRow, Error> {
        Ok(McpServerRow {
            tenant: tenant_id(self.tenant)?,
            name: self.name,
            owner: self.owner.map(user_id).transpose()?,
            config: from_json("configuration of an MCP server", &self.config)?,
            updated_at: Timestamp(self.updated_at),
        })
    }
}
