//! What MCP servers offered: cached lists, so that a model request waits for no server, and when
//! the list of a server changed, so that people hear of it.

use super::super::Error;
use super::super::db::{Db, args};
use super::{from_json, to_json};
use crate::domain::{TenantId, Timestamp, Tool};

/// From when on a server offered what the hash names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionChange {
    /// The key of [`ToolDefinitions::get`], as its writer chose it.
    pub hash: String,
    /// When it was first seen after something else.
    pub first_seen: Timestamp,
}

/// The definitions.
pub struct ToolDefinitions<'s> {
    db: &'s Db,
}

impl<'s> ToolDefinitions<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The tools that are kept under a hash.
    pub async fn get(&self, hash: &str) -> Result<Option<Vec<Tool>>, Error> {
        let sql = "SELECT tools FROM tool_definitions WHERE hash = $1";
        let row: Option<(String,)> = self.db.fetch_optional(sql, args![hash]).await?;
        row.map(|(tools,)| from_json("tool definitions", &tools))
            .transpose()
    }

    /// Keeps tools under a hash, in place of what was there.
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

    /// Notes what a server offers a tenant now; true if that is not what it offered before.
    /// The first note of a server is true as well.
    pub async fn note(
        &self,
        (tenant, server): (&TenantId, &str),
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

    /// What a server offered a tenant, newest first: more than one entry means that it changed.
    pub async fn history(
        &self,
        (tenant, server): (&TenantId, &str),
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
