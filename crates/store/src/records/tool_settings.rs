//! Stores a tenant's settings for single tools of its MCP servers.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args};
use super::super::versions::RecordName;
use sepal_core::domain::{Scope, TenantId, ToolRef};
use sepal_core::session::PolicyEffect;

/// The settings of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSetting {
    /// The tool, by the server's own name for it.
    pub tool: ToolRef,
    /// True if the tool is offered to the model.
    pub is_enabled: bool,
    /// The effect of the policy on the tool's calls.
    pub effect: PolicyEffect,
}

/// Access to the stored settings. A tool without settings is enabled, and its calls need approval.
pub struct ToolSettings<'s> {
    db: &'s Db,
}

impl<'s> ToolSettings<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// All settings of a tenant, by server and tool.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<ToolSetting>, Error> {
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                "SELECT server, tool, is_enabled, effect FROM mcp_tool_settings \
                 WHERE tenant = $1 ORDER BY server, tool",
                args![tenant.as_str()],
            )
            .await?;
        rows.into_iter().map(Row::into_setting).collect()
    }

    /// The settings of one server, by tool.
    pub async fn of_server(
        &self,
        tenant: &TenantId,
        server: &str,
    ) -> Result<Vec<ToolSetting>, Error> {
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                "SELECT server, tool, is_enabled, effect FROM mcp_tool_settings \
                 WHERE tenant = $1 AND server = $2 ORDER BY tool",
                args![tenant.as_str(), server],
            )
            .await?;
        rows.into_iter().map(Row::into_setting).collect()
    }

    /// Adds or replaces the settings of a tool.
    pub async fn put(&self, tenant: &TenantId, setting: &ToolSetting) -> Result<(), Error> {
        let tool = format!("{}/{}", setting.tool.server, setting.tool.tool);
        let act = Act::new(ActName::ToolSet, tenant, "tool", tool)
            .detail("isEnabled", setting.is_enabled)
            .detail("effect", setting.effect.as_str());
        self.db
            .change(
                RecordName::tools(tenant, &setting.tool.server),
                act,
                "INSERT INTO mcp_tool_settings (tenant, server, tool, is_enabled, effect) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant, server, tool) DO UPDATE SET \
                 is_enabled = excluded.is_enabled, effect = excluded.effect",
                args![
                    tenant.as_str(),
                    setting.tool.server.as_str(),
                    setting.tool.tool.as_str(),
                    setting.is_enabled,
                    setting.effect.as_str()
                ],
            )
            .await?;
        Ok(())
    }

    /// Deletes what a tenant decided and saw of the tools of a server: settings, accepted tools, history and
    /// versions. For a server of the installation, deletes this for all tenants. The number of statements
    /// does not grow with the number of tenants, because others wait for the writer meanwhile.
    pub async fn forget(&self, scope: &Scope, server: &str) -> Result<(), Error> {
        let tables = [
            "mcp_tool_settings",
            "tool_definition_history",
            "tool_versions",
        ];
        let (of_scope, accepted, whom) = match scope {
            Scope::Installation => (
                "server = $1",
                "hash IN (SELECT 'accepted:' || id || ':' || $1 FROM tenants)",
                vec![server],
            ),
            Scope::Tenant(tenant) => (
                "server = $1 AND tenant = $2",
                "hash = 'accepted:' || $2 || ':' || $1",
                vec![server, tenant.as_str()],
            ),
        };
        let delete = |table: &str, condition: &str| {
            let sql = format!("DELETE FROM {table} WHERE {condition}");
            let values = whom.iter().map(|text| Arg::from(*text));
            let act = Act::new(ActName::ToolsForgotten, scope, "server", server);
            let statement = Statement::new(sql, values.collect());
            // What was decided is an act; what was seen is not.
            if table == "mcp_tool_settings" {
                statement.recorded(act)
            } else {
                statement
            }
        };
        let rows = tables.map(|table| delete(table, of_scope)).into_iter();
        let all = rows.chain([delete("tool_definitions", accepted)]);
        self.db.execute_all(all.collect()).await?;
        Ok(())
    }
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    server: String,
    tool: String,
    is_enabled: bool,
    effect: String,
}

impl Row {
    fn into_setting(self) -> Result<ToolSetting, Error> {
        Ok(ToolSetting {
            tool: ToolRef {
                server: self.server,
                tool: self.tool,
            },
            is_enabled: self.is_enabled,
            effect: PolicyEffect::parse(&self.effect)
                .ok_or_else(|| Error::corrupt("effect", self.effect))?,
        })
    }
}
