//! Stores MCP servers that tenants and their users added. Servers from files and settings are not stored
//! here.

use std::collections::BTreeMap;

use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args, taken};
use super::super::versions::RecordName;
use super::super::{Error, Sealer};
use super::{from_json, tenant_id, to_json, user_id};
use sepal_core::domain::{McpServerConfig, Scope, TenantId, Timestamp, UserId};

/// A stored server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServerRow {
    pub tenant: TenantId,
    /// The name, unique in the tenant, including the servers of its users.
    pub name: String,
    /// The user who alone can use the server; `None` = everyone in the tenant.
    pub owner: Option<UserId>,
    /// The configuration. The texts that are in `sealed` are empty here.
    pub config: McpServerConfig,
    /// The private texts of the configuration by field, each sealed for its field; `None` in a row written
    /// by an earlier release, which has them in `config`.
    pub sealed: Option<BTreeMap<String, String>>,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl McpServerRow {
    /// Builds the row of a configuration and seals its private texts.
    pub fn seal(
        tenant: TenantId,
        name: String,
        owner: Option<UserId>,
        mut config: McpServerConfig,
        sealer: &Sealer,
        updated_at: Timestamp,
    ) -> Result<Self, Error> {
        let mut kept = BTreeMap::new();
        for (field, text) in config.private_texts() {
            let text = std::mem::take(text);
            let context = context(&tenant, &name, &field);
            kept.insert(field, sealer.seal(&context, text.as_bytes())?);
        }
        Ok(Self {
            tenant,
            name,
            owner,
            config,
            sealed: Some(kept),
            updated_at,
        })
    }

    /// Returns the configuration with its private texts. A text that cannot be opened is replaced by a
    /// reference to a secret that is not set: nothing is sent, and setting that secret fixes the server.
    pub fn open(&self, sealer: &Sealer) -> McpServerConfig {
        let mut config = self.config.clone();
        let Some(kept) = &self.sealed else {
            return config;
        };
        for (field, text) in config.private_texts() {
            let Some(text_kept) = kept.get(&field) else {
                continue;
            };
            let opened = sealer.open(&context(&self.tenant, &self.name, &field), text_kept);
            *text = match opened {
                Ok(opened) => String::from_utf8_lossy(&opened).into_owned(),
                Err(error) => {
                    tracing::error!(tenant.id = %self.tenant, mcp.server = %self.name, field, %error,
                        "A value of MCP server `{}` cannot be opened", self.name);
                    let is_fit = |c: char| c.is_ascii_alphanumeric();
                    format!("${{secret:LOST_{}}}", field.replace(|c| !is_fit(c), "_"))
                }
            };
        }
        config
    }
}

/// The context to which a sealed text is bound.
fn context(tenant: &TenantId, name: &str, field: &str) -> String {
    format!("mcp_server/{tenant}/{name}/{field}")
}

/// Access to the stored servers.
pub struct McpServers<'s> {
    db: &'s Db,
}

impl<'s> McpServers<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The servers of a tenant, by name.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<McpServerRow>, Error> {
        let sql = "SELECT * FROM mcp_servers WHERE tenant = $1 ORDER BY name";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![tenant.as_str()]).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// The servers of every tenant, for the health monitor.
    pub async fn all(&self) -> Result<Vec<McpServerRow>, Error> {
        let sql = "SELECT * FROM mcp_servers ORDER BY tenant, name";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// The server of a tenant with this name.
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

    /// Adds a server. Returns [`Error::Taken`] if the tenant has a server of this name.
    pub async fn put(&self, server: &McpServerRow) -> Result<(), Error> {
        self.db
            .change(
                record(&server.tenant, &server.name),
                written(ActName::ServerAdded, server),
                "INSERT INTO mcp_servers (tenant, name, config, updated_at, owner, sealed) \
                 VALUES ($1, $2, $3, $4, $5, $6)",
                arguments(server)?,
            )
            .await
            .map_err(taken(&server.name))?;
        Ok(())
    }

    /// Replaces the configuration of a server. Returns false if it does not exist.
    pub async fn update(&self, server: &McpServerRow) -> Result<bool, Error> {
        let changed = self
            .db
            .change(
                record(&server.tenant, &server.name),
                written(ActName::ServerChanged, server),
                "UPDATE mcp_servers SET config = $3, updated_at = $4, sealed = $6 \
                 WHERE tenant = $1 AND name = $2 AND COALESCE(owner, '') = COALESCE($5, '')",
                arguments(server)?,
            )
            .await?;
        Ok(changed > 0)
    }

    /// Seals the private texts that earlier releases stored unsealed, and returns the number of such rows.
    /// Skips a row that another writer changes meanwhile, because that change seals it.
    pub(crate) async fn seal_all(&self, sealer: &Sealer) -> Result<usize, Error> {
        let sql = "SELECT * FROM mcp_servers WHERE sealed IS NULL";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![]).await?;
        let count = rows.len();
        for row in rows {
            let was = row.config.clone();
            let row = row.into_row()?;

            let row = McpServerRow::seal(
                row.tenant,
                row.name,
                row.owner,
                row.config,
                sealer,
                row.updated_at,
            )?;
            let sql = "UPDATE mcp_servers SET config = $3, sealed = $4 \
                       WHERE tenant = $1 AND name = $2 AND config = $5 AND sealed IS NULL";
            let values = args![
                row.tenant.as_str(),
                row.name.as_str(),
                to_json("server", &row.config)?.as_str(),
                to_json("server", &row.sealed)?.as_str(),
                was.as_str()
            ];
            self.db.keep_up(sql, values).await?;
        }
        Ok(count)
    }

    /// Deletes a server and all decisions about its tools, so that another server of that name inherits no
    /// permission. Returns false if it does not exist.
    pub async fn delete(&self, tenant: &TenantId, name: &str) -> Result<bool, Error> {
        let whom = || args![tenant.as_str(), name];
        let done = self
            .db
            .execute_all(vec![
                Statement::required(
                    "DELETE FROM mcp_servers WHERE tenant = $1 AND name = $2",
                    whom(),
                )
                .recorded(Act::new(ActName::ServerRemoved, tenant, "server", name))
                .changing(record(tenant, name)),
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

fn written(name: ActName, server: &McpServerRow) -> Act {
    let act = Act::new(name, &server.tenant, "server", server.name.as_str());
    act.detail("owner", server.owner.as_ref().map(UserId::as_str))
}

fn record(tenant: &TenantId, name: &str) -> RecordName {
    RecordName::server(&Scope::Tenant(tenant.clone()), name)
}

fn arguments(server: &McpServerRow) -> Result<Vec<Arg>, Error> {
    let sealed = server.sealed.as_ref();
    let sealed = sealed.map(|it| to_json("server", it)).transpose()?;
    Ok(args![
        server.tenant.as_str(),
        server.name.as_str(),
        to_json("server", &server.config)?.as_str(),
        server.updated_at.0,
        server.owner.as_ref().map(UserId::as_str),
        sealed.as_deref()
    ])
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    tenant: String,
    name: String,
    config: String,
    updated_at: i64,
    owner: Option<String>,
    sealed: Option<String>,
}

impl Row {
    fn into_row(self) -> Result<McpServerRow, Error> {
        Ok(McpServerRow {
            tenant: tenant_id(self.tenant)?,
            name: self.name,
            owner: self.owner.map(user_id).transpose()?,
            config: from_json("configuration of an MCP server", &self.config)?,
            sealed: self
                .sealed
                .map(|sealed| from_json("values of an MCP server", &sealed))
                .transpose()?,
            updated_at: Timestamp(self.updated_at),
        })
    }
}
