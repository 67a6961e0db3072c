//! Caches the tools that MCP servers offered, so that a model request need not wait for a server. Also
//! records when the list of a server changed, so that people are told.

use super::super::Error;
use super::super::db::{Db, args};
use super::{from_json, to_json};
use sepal_core::domain::{TenantId, Timestamp, Tool};

/// A change of the tools that a server offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionChange {
    /// The key of [`ToolDefinitions::get`], as chosen by the caller of [`ToolDefinitions::put`].
    pub hash: String,
    /// The time at which this list was first seen after a different one.
    pub first_seen: Timestamp,
}

/// The most versions stored for one tool.
const MOST_VERSIONS: i64 = 20;

/// A definition of a tool that a tenant was offered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolVersion {
    /// [`Tool::hash`].
    pub hash: String,
    /// The time at which this definition was first seen after a different one.
    pub first_seen: Timestamp,
    pub definition: Tool,
}

/// Access to the stored definitions.
pub struct ToolDefinitions<'s> {
    db: &'s Db,
}

impl<'s> ToolDefinitions<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The tools cached under a hash.
    pub async fn get(&self, hash: &str) -> Result<Option<Vec<Tool>>, Error> {
        let sql = "SELECT tools FROM tool_definitions WHERE hash = $1";
        let row: Option<(String,)> = self.db.fetch_optional(sql, args![hash]).await?;
        row.map(|(tools,)| from_json("tool definitions", &tools))
            .transpose()
    }

    /// Caches tools under a hash, replacing earlier ones.
    pub async fn put(&self, hash: &str, tools: &[Tool]) -> Result<(), Error> {
        self.db
            .execute(
                "INSERT INTO tool_definitions (hash, tools) VALUES ($1, $2) \
                 ON CONFLICT (hash) DO UPDATE SET tools = excluded.tools",
                args![hash, to_json("tool definitions", tools)?.as_str()],
            )
            .await?;
        Ok(())
    }

    /// Records the hash of the tools that a server offers a tenant now. Returns true if it differs from the
    /// previous one, or if there was none.
    pub async fn note(
        &self,
        tenant: &TenantId,
        server: &str,
        hash: &str,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let changed = self
            .db
            .execute(
                "INSERT INTO tool_definition_history (tenant, server, first_seen, hash) \
                 SELECT $1, $2, $3, $4 WHERE $4 IS DISTINCT FROM \
                 (SELECT hash FROM tool_definition_history WHERE tenant = $1 AND server = $2 \
                 ORDER BY first_seen DESC LIMIT 1) \
                 ON CONFLICT (tenant, server, first_seen) DO UPDATE SET hash = excluded.hash",
                args![tenant.as_str(), server, now.0, hash],
            )
            .await?;
        Ok(changed > 0)
    }

    /// Records the definition of a tool, unless it equals the previous one. Only the newest 20 are kept.
    pub async fn note_version(
        &self,
        tenant: &TenantId,
        server: &str,
        tool: &Tool,
        now: Timestamp,
    ) -> Result<(), Error> {
        let hash = tool.hash();
        let definition = to_json("tool definition", tool)?;
        let changed = self
            .db
            .execute(
                "INSERT INTO tool_versions (tenant, server, tool, first_seen, hash, definition) \
                 SELECT $1, $2, $3, $4, $5, $6 WHERE $5 IS DISTINCT FROM \
                 (SELECT hash FROM tool_versions WHERE tenant = $1 AND server = $2 AND tool = $3 \
                 ORDER BY first_seen DESC LIMIT 1) \
                 ON CONFLICT (tenant, server, tool, first_seen) DO UPDATE \
                 SET hash = excluded.hash, definition = excluded.definition",
                args![
                    tenant.as_str(),
                    server,
                    tool.name.as_str(),
                    now.0,
                    hash.as_str(),
                    definition.as_str()
                ],
            )
            .await?;
        if changed > 0 {
            let sql = "DELETE FROM tool_versions WHERE tenant = $1 AND server = $2 AND tool = $3 \
                       AND first_seen <= (SELECT first_seen FROM tool_versions WHERE tenant = $1 \
                       AND server = $2 AND tool = $3 ORDER BY first_seen DESC LIMIT 1 OFFSET $4)";
            let of = args![tenant.as_str(), server, tool.name.as_str(), MOST_VERSIONS];
            self.db.execute(sql, of).await?;
        }
        Ok(())
    }

    /// The stored definitions of a tool that a tenant was offered, newest first.
    pub async fn versions(
        &self,
        tenant: &TenantId,
        server: &str,
        tool: &str,
    ) -> Result<Vec<ToolVersion>, Error> {
        let sql = "SELECT hash, first_seen, definition FROM tool_versions \
                   WHERE tenant = $1 AND server = $2 AND tool = $3 ORDER BY first_seen DESC";
        let of = args![tenant.as_str(), server, tool];
        let rows: Vec<(String, i64, String)> = self.db.fetch_all(sql, of).await?;
        let version = |(hash, first_seen, definition): (String, i64, String)| {
            Ok(ToolVersion {
                hash,
                first_seen: Timestamp(first_seen),
                definition: from_json("tool definition", &definition)?,
            })
        };
        rows.into_iter().map(version).collect()
    }

    /// The changes of the tools that a server offered a tenant, newest first. The first list that was seen
    /// counts as a change.
    pub async fn history(
        &self,
        tenant: &TenantId,
        server: &str,
    ) -> Result<Vec<DefinitionChange>, Error> {
        let rows: Vec<(String, i64)> = self
            .db
            .fetch_all(
                "SELECT hash, first_seen FROM tool_definition_history \
                 WHERE tenant = $1 AND server = $2 ORDER BY first_seen DESC",
                args![tenant.as_str(), server],
            )
            .await?;
        let change = |(hash, first_seen)| DefinitionChange {
            hash,
            first_seen: Timestamp(first_seen),
        };
        Ok(rows.into_iter().map(change).collect())
    }
}
