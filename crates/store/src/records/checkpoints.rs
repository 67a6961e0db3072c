//! Stores the history of sessions' workspaces: the changes of each step, all entries after one of the steps,
//! and the contents of files, each once for a session.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::LazyLock;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::Error;
use super::super::db::{Db, PerRow, Statement, args};
use super::{from_json, to_json};
use sepal_core::domain::{
    ContentHash, FileChange, FileState, SessionKey, Timestamp, WorkspaceChange,
};
use sepal_jobs::Pool;

/// Compresses or decompresses lists and contents, at most four at a time.
pub(super) static PACKERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("packing of files", 4));

/// The approximate number of content bytes that one transaction writes.
const BATCH_BYTES: usize = 4 << 20;

/// Shorter contents are stored uncompressed.
const WORTH_PACKING: usize = 1024;
/// The encodings of a stored content.
const PLAIN: u8 = 0;
const GZIP: u8 = 1;

const PUT_CONTENTS: PerRow = PerRow {
    before: "INSERT INTO workspace_contents (tenant, session, hash, made_at, bytes, content) VALUES ",
    row: "(?, ?, ?, ?, ?, ?)",
    between: ", ",
    after: " ON CONFLICT DO NOTHING",
};

/// The entry of each path in a workspace.
pub type WorkspaceEntries = BTreeMap<String, FileState>;

/// The entries of a workspace at the start of its stored history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceBase {
    /// The number of the step after which the workspace had these entries; 0 = before the first step.
    pub number: u64,
    pub entries: WorkspaceEntries,
}

/// Access to the stored history of workspaces.
pub struct Checkpoints<'s> {
    db: &'s Db,
}

impl<'s> Checkpoints<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The stored steps of a session, newest first.
    pub async fn history(&self, key: &SessionKey) -> Result<Vec<WorkspaceChange>, Error> {
        let sql = "SELECT number, made_at, cause, counts FROM workspace_changes \
                   WHERE tenant = $1 AND session = $2 ORDER BY number DESC";
        let rows: Vec<Row> = self.db.fetch_all(sql, whose(key)).await?;
        rows.into_iter().map(Row::into_change).collect()
    }

    /// The step with this number and its changes; `None` if it is not stored.
    pub async fn change(
        &self,
        key: &SessionKey,
        number: u64,
    ) -> Result<Option<(WorkspaceChange, Vec<FileChange>)>, Error> {
        let sql = "SELECT number, made_at, cause, counts, changes FROM workspace_changes \
                   WHERE tenant = $1 AND session = $2 AND number = $3";
        let args = args![key.tenant.as_str(), key.session.as_str(), stored(number)];
        let row: Option<WholeRow> = self.db.fetch_optional(sql, args).await?;
        let Some(WholeRow { row, changes }) = row else {
            return Ok(None);
        };
        Ok(Some((row.into_change()?, unpack(changes).await?)))
    }

    /// The changes of all steps from `number` on, oldest first.
    pub async fn changes_from(
        &self,
        key: &SessionKey,
        number: u64,
    ) -> Result<Vec<(u64, Vec<FileChange>)>, Error> {
        let sql = "SELECT number, changes FROM workspace_changes \
                   WHERE tenant = $1 AND session = $2 AND number >= $3 ORDER BY number";
        let args = args![key.tenant.as_str(), key.session.as_str(), stored(number)];
        let rows: Vec<(i64, Vec<u8>)> = self.db.fetch_all(sql, args).await?;
        let mut steps = Vec::with_capacity(rows.len());
        for (number, changes) in rows {
            steps.push((read(number), unpack(changes).await?));
        }
        Ok(steps)
    }

    /// The start of a session's history; `None` if its workspace was never scanned.
    pub async fn base(&self, key: &SessionKey) -> Result<Option<WorkspaceBase>, Error> {
        let sql = "SELECT number, entries FROM workspace_states WHERE tenant = $1 AND session = $2";
        let row: Option<(i64, Vec<u8>)> = self.db.fetch_optional(sql, whose(key)).await?;
        let Some((number, entries)) = row else {
            return Ok(None);
        };
        Ok(Some(WorkspaceBase {
            number: read(number),
            entries: unpack(entries).await?,
        }))
    }

    /// The hashes of the contents stored for a session, with their sizes in bytes.
    pub async fn kept(&self, key: &SessionKey) -> Result<Vec<(ContentHash, u64)>, Error> {
        let sql = "SELECT hash, bytes FROM workspace_contents WHERE tenant = $1 AND session = $2";
        let rows: Vec<(String, i64)> = self.db.fetch_all(sql, whose(key)).await?;
        let kept = rows
            .into_iter()
            .map(|(hash, bytes)| (ContentHash::from_stored(hash), read(bytes)));
        Ok(kept.collect())
    }

    /// The content with this hash; `None` if it is not stored.
    pub async fn content(
        &self,
        key: &SessionKey,
        hash: &ContentHash,
    ) -> Result<Option<Vec<u8>>, Error> {
        let sql = "SELECT content FROM workspace_contents \
                   WHERE tenant = $1 AND session = $2 AND hash = $3";
        let args = args![key.tenant.as_str(), key.session.as_str(), hash.as_str()];
        let row: Option<(Vec<u8>,)> = self.db.fetch_optional(sql, args).await?;
        let Some((packed,)) = row else {
            return Ok(None);
        };
        let content = PACKERS.run(move || unpack_content(&packed)).await?;
        content
            .map(Some)
            .map_err(|_| Error::corrupt("content of a workspace", "gzip"))
    }

    /// Stores contents. Contents that are already stored stay unchanged.
    pub async fn put_contents(
        &self,
        key: &SessionKey,
        contents: Vec<(ContentHash, Vec<u8>)>,
        at: Timestamp,
    ) -> Result<(), Error> {
        let packing = move || {
            let packed = contents
                .into_iter()
                .map(|(hash, content)| Ok((hash, content.len() as u64, pack_content(&content)?)));
            packed.collect::<std::io::Result<Vec<_>>>()
        };
        let packed = PACKERS.run(packing).await?;
        let packed = packed.map_err(|_| Error::corrupt("content of a workspace", "not packed"))?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for (hash, size, content) in packed {
            bytes += content.len();
            let (tenant, session) = (key.tenant.as_str(), key.session.as_str());
            rows.push(args![
                tenant,
                session,
                hash.as_str(),
                at.0,
                stored(size),
                content
            ]);
            if bytes > BATCH_BYTES {
                let batch = PUT_CONTENTS.statements(std::mem::take(&mut rows));
                self.db.execute_all(batch.collect()).await?;
                bytes = 0;
            }
        }
        self.db
            .execute_all(PUT_CONTENTS.statements(rows).collect())
            .await?;
        Ok(())
    }

    /// Stores the start of a history, replacing an earlier one.
    pub async fn put_base(
        &self,
        key: &SessionKey,
        base: &WorkspaceBase,
        at: Timestamp,
    ) -> Result<(), Error> {
        let statement = put_base(key, base, at).await?;
        self.db.execute_all(vec![statement]).await?;
        Ok(())
    }

    /// Adds a step, and the entries after it if `base` is given. Returns false and stores nothing if a step
    /// with this number exists, because another gateway continued the history.
    pub async fn add(
        &self,
        key: &SessionKey,
        change: &WorkspaceChange,
        files: &[FileChange],
        base: Option<&WorkspaceBase>,
    ) -> Result<bool, Error> {
        let add = Statement::required(
            "INSERT INTO workspace_changes (tenant, session, number, made_at, cause, counts, changes) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
            args![
                key.tenant.as_str(),
                key.session.as_str(),
                stored(change.number),
                change.at.0,
                to_json("cause of a change", &change.cause)?.as_str(),
                to_json("counts of a change", &change.counts)?.as_str(),
                pack(&files).await?
            ],
        );
        let mut statements = vec![add];
        if let Some(base) = base {
            statements.push(put_base(key, base, change.at).await?);
        }
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// Deletes the steps before `from` and the given contents, and stores `base` as the new start of the
    /// history.
    pub async fn prune(
        &self,
        key: &SessionKey,
        from: u64,
        base: &WorkspaceBase,
        unheld: &[ContentHash],
        at: Timestamp,
    ) -> Result<(), Error> {
        let steps = Statement::new(
            "DELETE FROM workspace_changes WHERE tenant = $1 AND session = $2 AND number < $3",
            args![key.tenant.as_str(), key.session.as_str(), stored(from)],
        );
        let unheld = unheld.iter().map(|hash| {
            Statement::new(
                "DELETE FROM workspace_contents WHERE tenant = $1 AND session = $2 AND hash = $3",
                args![key.tenant.as_str(), key.session.as_str(), hash.as_str()],
            )
        });
        let mut statements = vec![put_base(key, base, at).await?, steps];
        statements.extend(unheld);
        self.db.execute_all(statements).await?;
        Ok(())
    }
}

/// Deletes the history of a deleted session. Also deletes rows older than `before` that a gateway wrote for
/// other sessions of the tenant that no longer exist.
pub(super) fn forget(key: &SessionKey, before: i64) -> Vec<Statement> {
    let tables = [
        "workspace_changes",
        "workspace_states",
        "workspace_contents",
        "dry_run_results",
    ];
    let forgetting = tables.into_iter().flat_map(|table| {
        let own = format!("DELETE FROM {table} WHERE tenant = $1 AND session = $2");
        let left = format!(
            "DELETE FROM {table} WHERE tenant = $1 AND made_at < $2 AND NOT EXISTS (SELECT 1 \
             FROM sessions WHERE sessions.tenant = {table}.tenant AND sessions.id = {table}.session)"
        );
        [
            Statement::new(own, whose(key)),
            Statement::new(left, args![key.tenant.as_str(), before]),
        ]
    });
    forgetting.collect()
}

async fn put_base(
    key: &SessionKey,
    base: &WorkspaceBase,
    at: Timestamp,
) -> Result<Statement, Error> {
    Ok(Statement::new(
        "INSERT INTO workspace_states (tenant, session, number, made_at, entries) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant, session) DO UPDATE SET \
         number = excluded.number, made_at = excluded.made_at, entries = excluded.entries",
        args![
            key.tenant.as_str(),
            key.session.as_str(),
            stored(base.number),
            at.0,
            pack(&base.entries).await?
        ],
    ))
}

fn whose(key: &SessionKey) -> Vec<super::super::db::Arg> {
    args![key.tenant.as_str(), key.session.as_str()]
}

fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn read(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Compresses a list for storage on a worker thread, because ten thousand entries are a megabyte.
async fn pack<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    let text = to_json("history of a workspace", value)?;
    let packed = PACKERS.run(move || gzip(text.as_bytes())).await?;
    packed.map_err(|_| Error::corrupt("history of a workspace", "not packed"))
}

async fn unpack<T: DeserializeOwned + Send + 'static>(packed: Vec<u8>) -> Result<T, Error> {
    let reading = move || {
        let text = gunzip(&packed).ok()?;
        Some(from_json(
            "history of a workspace",
            &String::from_utf8_lossy(&text),
        ))
    };
    let read = PACKERS.run(reading).await?;
    read.ok_or_else(|| Error::corrupt("history of a workspace", "gzip"))?
}

/// The most bytes that a stored value unpacks to: far more than one has that a gateway wrote.
const MAX_UNPACKED: u64 = 64 << 20;

/// Encodes a content. The first byte tells whether the rest is compressed: most files are too small to
/// benefit.
pub(super) fn pack_content(content: &[u8]) -> std::io::Result<Vec<u8>> {
    if content.len() < WORTH_PACKING {
        return Ok([&[PLAIN], content].concat());
    }
    let mut packed = vec![GZIP];
    packed.append(&mut gzip(content)?);
    Ok(packed)
}

pub(super) fn unpack_content(stored: &[u8]) -> std::io::Result<Vec<u8>> {
    match stored.split_first() {
        Some((&PLAIN, content)) => Ok(content.to_vec()),
        Some((&GZIP, packed)) => gunzip(packed),
        Some(_) | None => Err(std::io::ErrorKind::InvalidData.into()),
    }
}

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

fn gunzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    let mut unpacked = GzDecoder::new(body).take(MAX_UNPACKED + 1);
    if unpacked.read_to_end(&mut plain)? as u64 > MAX_UNPACKED {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    Ok(plain)
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    number: i64,
    made_at: i64,
    cause: String,
    counts: String,
}

#[derive(sqlx_macros::FromRow)]
struct WholeRow {
    #[sqlx(flatten)]
    row: Row,
    changes: Vec<u8>,
}

impl Row {
    fn into_change(self) -> Result<WorkspaceChange, Error> {
        Ok(WorkspaceChange {
            number: read(self.number),
            at: Timestamp(self.made_at),
            cause: from_json("cause of a change", &self.cause)?,
            counts: from_json("counts of a change", &self.counts)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::{Error, pack, unpack};

    /// The threads of a runtime that has ended take no work, as in a process that is stopping.
    #[test]
    fn a_history_that_no_thread_packs_or_unpacks_is_not_damaged() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let ended = runtime.handle().clone();
        drop(runtime);
        let _inside = ended.enter();
        let packing = pack(&["a"]).now_or_never().unwrap().unwrap_err();
        let unpacking = unpack::<Vec<String>>(Vec::new()).now_or_never();
        let unpacking = unpacking.unwrap().unwrap_err();
        for error in [packing, unpacking] {
            assert!(matches!(error, Error::NoWorker(_)), "{error:?}");
            assert!(!error.is_damage());
        }
    }
}
