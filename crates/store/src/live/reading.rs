//! Reads journals from SQLite and PostgreSQL with the same statements.

use super::packing::{self, PackedSnapshot};
use super::{Head, MAX_RECORDS_PER_READ, Record, Snapshot};
use crate::Error;
use crate::db::{Db, args};
use sepal_core::domain::{CommitId, SessionId, SessionKey, TenantId};

/// Builds a query whose last `search` row holds, in `high`, the first version for which `$is_past` is true:
/// the version after the head if it is true for none, and no row if there is no journal. Versions are dense
/// and `last_seq` never decreases, so this is a binary search and needs no index. The common read at the end
/// of a journal needs no search.
macro_rules! search {
    ($is_past:literal) => {
        concat!(
            "WITH RECURSIVE head (version, last_seq) AS (\
             SELECT version, last_seq FROM journal \
             WHERE tenant = $1 AND session = $2 ORDER BY version DESC LIMIT 1), \
             search (low, high) AS (\
             SELECT CASE WHEN ",
            $is_past,
            " THEN CAST(0 AS BIGINT) ELSE version END, version + 1 FROM head \
             UNION ALL \
             SELECT CASE WHEN ",
            $is_past,
            " THEN low ELSE (low + high) / 2 END, CASE WHEN ",
            $is_past,
            " THEN (low + high) / 2 ELSE high END \
             FROM search LEFT JOIN journal \
             ON tenant = $1 AND session = $2 AND version = (low + high) / 2 \
             WHERE high - low > 1) "
        )
    };
}

/// Reads journals and snapshots for the live stores that use a database.
#[derive(Debug, Clone)]
pub(super) struct Reading(Db);

impl Reading {
    pub(super) fn new(db: Db) -> Self {
        Self(db)
    }

    pub(super) async fn ping(&self) -> Result<(), Error> {
        self.0.ping().await
    }

    pub(super) async fn head(&self, key: &SessionKey) -> Result<Option<Head>, Error> {
        let sql = "SELECT version, last_seq, commit_id FROM journal \
                   WHERE tenant = $1 AND session = $2 ORDER BY version DESC LIMIT 1";
        let args = args![key.tenant.as_str(), key.session.as_str()];
        let row: Option<(i64, i64, String)> = self.0.fetch_optional(sql, args).await?;
        row.map(|(version, last_seq, commit_id)| {
            Ok(Head {
                version: count(version),
                last_seq: count(last_seq),
                commit_id: commit(commit_id)?,
            })
        })
        .transpose()
    }

    pub(super) async fn after_version(
        &self,
        key: &SessionKey,
        version: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let sql = "SELECT version, commit_id, first_seq, last_seq, body FROM journal \
                   WHERE tenant = $1 AND session = $2 AND version > $3 \
                   ORDER BY version LIMIT $4";
        self.records(sql, key, version, limit).await
    }

    pub(super) async fn after_seq(
        &self,
        key: &SessionKey,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        // Every record after the first match also matches.
        let sql = concat!(
            search!("last_seq > $3"),
            "SELECT version, commit_id, first_seq, last_seq, body FROM journal \
             WHERE tenant = $1 AND session = $2 \
             AND version >= (SELECT high FROM search WHERE high - low <= 1) \
             ORDER BY version LIMIT $4"
        );
        self.records(sql, key, seq, limit).await
    }

    pub(super) async fn before_seq(
        &self,
        key: &SessionKey,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        // All records before one with `first_seq < seq` have `last_seq < seq`.
        let sql = concat!(
            search!("last_seq >= $3"),
            "SELECT version, commit_id, first_seq, last_seq, body FROM journal \
             WHERE tenant = $1 AND session = $2 \
             AND version <= (SELECT high FROM search WHERE high - low <= 1) AND first_seq < $3 \
             ORDER BY version DESC LIMIT $4"
        );
        let mut records = self.records(sql, key, seq, limit).await?;
        records.reverse();
        Ok(records)
    }

    /// Runs a query whose placeholders are tenant, session, position and limit.
    async fn records(
        &self,
        sql: &'static str,
        key: &SessionKey,
        position: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let limit = i64::try_from(limit.min(MAX_RECORDS_PER_READ)).unwrap_or(i64::MAX);
        let args = args![
            key.tenant.as_str(),
            key.session.as_str(),
            int(position),
            limit
        ];
        let rows: Vec<RecordRow> = self.0.fetch_all(sql, args).await?;
        rows.into_iter().map(RecordRow::into_record).collect()
    }

    pub(super) async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Error> {
        let sql = "SELECT version, schema, is_compressed, body FROM snapshots \
                   WHERE tenant = $1 AND session = $2";
        let args = args![key.tenant.as_str(), key.session.as_str()];
        let row: Option<SnapshotRow> = self.0.fetch_optional(sql, args).await?;
        let Some(row) = row else { return Ok(None) };
        let packed = PackedSnapshot {
            is_compressed: row.is_compressed,
            body: row.body.into(),
        };
        Ok(Some(Snapshot {
            version: count(row.version),
            schema: u32::try_from(row.schema)
                .map_err(|_| Error::corrupt("snapshot schema", row.schema.to_string()))?,
            body: packing::unpack(packed).await?,
        }))
    }

    pub(super) async fn active(&self) -> Result<Vec<SessionKey>, Error> {
        let sql = "SELECT tenant, session FROM active ORDER BY tenant, session";
        let rows: Vec<(String, String)> = self.0.fetch_all(sql, args![]).await?;
        rows.into_iter()
            .map(|(tenant, session)| {
                Ok(SessionKey {
                    tenant: TenantId::parse(&tenant)
                        .ok_or_else(|| Error::corrupt("tenant id", tenant))?,
                    session: SessionId::parse(&session)
                        .ok_or_else(|| Error::corrupt("session id", session))?,
                })
            })
            .collect()
    }
}

#[derive(sqlx_macros::FromRow)]
struct RecordRow {
    version: i64,
    commit_id: String,
    first_seq: i64,
    last_seq: i64,
    body: Vec<u8>,
}

impl RecordRow {
    fn into_record(self) -> Result<Record, Error> {
        Ok(Record {
            version: count(self.version),
            commit_id: commit(self.commit_id)?,
            first_seq: count(self.first_seq),
            last_seq: count(self.last_seq),
            body: self.body.into(),
        })
    }
}

#[derive(sqlx_macros::FromRow)]
struct SnapshotRow {
    version: i64,
    schema: i64,
    is_compressed: bool,
    body: Vec<u8>,
}

fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Converts a count to the integer type of SQL.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn commit(text: String) -> Result<CommitId, Error> {
    CommitId::parse(&text).ok_or_else(|| Error::corrupt("commit id", text))
}
