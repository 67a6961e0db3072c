//! Writes everything of a tenant into one file.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::format::{ChainEnd, FORMAT, Header, Mark, RecordLine, TenantFacts, VERSION};
use super::shape::{ExportedTable, Shape};
use super::writing::{self, LineWriter};
use super::{AuditLines, Error, TenantCounts};
use crate::audit::{Act, ActName};
use crate::db::{AnyRow, Db, args};
use crate::live::LiveStore;
use crate::records::{Records, SessionState, TenantStanding};
use sepal_core::domain::{Scope, SessionId, SessionKey, Tenant, TenantId};

/// The rows of one read. A row with the content of a file is read alone.
const ROWS: usize = 50;
/// The records of a journal of one read.
const RECORDS: usize = 16;
/// The sessions of one read.
const SESSIONS: i64 = 500;

/// Sums over the sessions of a tenant, which differ after a change of one of them.
type Fingerprint = (i64, i64, i64, i64);

/// Exports a suspended tenant into `target`, a file that must not exist yet.
pub(crate) async fn export(
    (db, records, live): (&Db, &Records, &dyn LiveStore),
    tenant: &Tenant,
    target: &Path,
    lines: AuditLines,
) -> Result<TenantCounts, Error> {
    if target.exists() {
        return Err(Error::InTheWay(target.to_owned()));
    }
    let exporting = Exporting {
        db,
        records,
        live,
        tenant,
        lines,
    };
    let (writer, writing) = writing::begin(target);
    let (collected, draft) = tokio::join!(exporting.collect(writer), writing);
    // What stopped the writing counts before what its end broke.
    let draft = draft?;
    let (counts, sha256) = collected?;
    let Some(draft) = draft else {
        return Err(crate::Error::NoAnswer.into());
    };
    let act = |chain: &Scope| {
        let act = Act::new(ActName::TenantExported, chain, "tenant", tenant.id.as_str());
        act.detail("name", tenant.name.as_str())
            .detail("rows", counts.rows)
            .detail("sessions", counts.sessions)
            .detail("sha256", sha256.as_str())
    };
    // The tenant is told, too.
    let acts = [Scope::Installation, Scope::Tenant(tenant.id.clone())];
    db.append(acts.iter().map(act).collect()).await?;
    draft.place(target).await?;
    Ok(counts)
}

struct Exporting<'a> {
    db: &'a Db,
    records: &'a Records,
    live: &'a dyn LiveStore,
    tenant: &'a Tenant,
    lines: AuditLines,
}

impl Exporting<'_> {
    /// Writes all lines, and returns what was counted and the digest of the lines.
    async fn collect(&self, mut writer: LineWriter) -> Result<(TenantCounts, String), Error> {
        self.check_rest().await?;
        let before = self.fingerprint().await?;
        let shape = Shape::of(self.db).await?;
        writer.value(&self.header(shape.schema).await?).await?;
        let mut counts = TenantCounts::default();
        for table in &shape.tables {
            counts.rows += self.table(&mut writer, table).await?;
        }
        self.journals(&mut writer, &mut counts).await?;
        writer.value(&Mark::Audit {}).await?;
        self.audit(&mut writer).await?;
        self.check_rest().await?;
        if self.fingerprint().await? != before {
            return Err(Error::Changed);
        }
        let sha256 = writer.digest();
        let end = Mark::End {
            rows: counts.rows,
            sessions: counts.sessions,
            records: counts.records,
            sha256: sha256.clone(),
        };
        writer.value(&end).await?;
        writer.finish().await?;
        Ok((counts, sha256))
    }

    fn id(&self) -> &TenantId {
        &self.tenant.id
    }

    /// Checks that nobody may enter and that nothing runs.
    async fn check_rest(&self) -> Result<(), Error> {
        let name = || self.tenant.name.clone();
        match self.records.tenants().standing(self.id()).await? {
            TenantStanding::Suspended => {}
            TenantStanding::Active => return Err(Error::NotSuspended(name())),
            TenantStanding::GivenUp => return Err(Error::BeingDeleted(name())),
        }
        let active = self.live.active().await?;
        let active = active.iter().filter(|key| key.tenant == *self.id()).count();
        let at_rest = [SessionState::Idle, SessionState::Failed].map(SessionState::as_str);
        let sql = "SELECT COUNT(*) FROM sessions WHERE tenant = $1 AND state NOT IN ($2, $3)";
        let values = args![self.id().as_str(), at_rest[0], at_rest[1]];
        let busy: Option<(i64,)> = self.db.fetch_optional(sql, values).await?;
        let busy = busy.map_or(0, |(count,)| usize::try_from(count).unwrap_or(0));
        match active.max(busy) {
            0 => Ok(()),
            sessions => Err(Error::Busy {
                name: name(),
                sessions,
            }),
        }
    }

    async fn fingerprint(&self) -> Result<Fingerprint, Error> {
        let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(version), 0) AS BIGINT), \
                   CAST(COALESCE(SUM(usage_version), 0) AS BIGINT), \
                   CAST(COALESCE(SUM(marked), 0) AS BIGINT) FROM sessions WHERE tenant = $1";
        let found = self.db.fetch_optional(sql, args![self.id().as_str()]);
        Ok(found.await?.unwrap_or_default())
    }

    async fn header(&self, schema: i64) -> Result<Header, Error> {
        let sql = "SELECT created_at, allows_links FROM tenants WHERE id = $1";
        let row = self.db.fetch_optional(sql, args![self.id().as_str()]);
        let (created_at, allows_links): (i64, bool) = row.await?.ok_or(Error::Changed)?;
        let chain = Scope::Tenant(self.id().clone());
        let head = self.records.audit().head(&chain).await?;
        Ok(Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            schema,
            created_at: jiff::Timestamp::now().to_string(),
            tenant: TenantFacts {
                id: self.id().as_str().to_owned(),
                name: self.tenant.name.clone(),
                created_at,
                allows_links,
            },
            audit: ChainEnd {
                records: head.as_ref().map_or(0, |head| head.n),
                link: head.map(|head| head.link),
            },
        })
    }

    /// Writes the rows of a table, and returns their number.
    async fn table(&self, writer: &mut LineWriter, table: &ExportedTable) -> Result<u64, Error> {
        let names = table.columns.iter().map(|it| it.name.clone());
        let mark = Mark::Table {
            name: table.table.name.to_owned(),
            columns: names.collect(),
        };
        writer.value(&mark).await?;
        let limit = if table.has_contents() { 1 } else { ROWS };
        let has_key = table.keys().next().is_some();
        let mut after = None;
        let mut count = 0;
        loop {
            let sql = table.query(after.is_none(), limit);
            let mut values = args![self.id().as_str()];
            values.extend(after.take().unwrap_or_default());
            let rows: Vec<AnyRow> = self.db.fetch_all(sql, values).await?;
            let read = rows.len();
            for AnyRow(row) in rows {
                after = Some(table.key_of(&row));
                writer.value(&table.to_json(self.id(), row)?).await?;
                count += 1;
            }
            // A table without a further key has one row for a tenant.
            if read < limit || !has_key {
                return Ok(count);
            }
        }
    }

    async fn journals(
        &self,
        writer: &mut LineWriter,
        counts: &mut TenantCounts,
    ) -> Result<(), Error> {
        let sql = "SELECT id, version, usage_version FROM sessions \
                   WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3";
        let mut last = String::new();
        loop {
            let values = args![self.id().as_str(), last.as_str(), SESSIONS];
            let rows: Vec<(String, i64, i64)> = self.db.fetch_all(sql, values).await?;
            if rows.is_empty() {
                return Ok(());
            }
            for (id, version, used) in rows {
                last.clone_from(&id);
                let session = SessionId::parse(&id);
                let session = session.ok_or_else(|| crate::Error::corrupt("session id", id))?;
                let key = SessionKey {
                    tenant: self.id().clone(),
                    session,
                };
                counts.records += self.journal(writer, &key, (version, used)).await?;
                counts.sessions += 1;
            }
        }
    }

    /// Writes the journal of a session, and returns the number of its records.
    async fn journal(
        &self,
        writer: &mut LineWriter,
        key: &SessionKey,
        (version, used): (i64, i64),
    ) -> Result<u64, Error> {
        // A row may outlive its journal, or be ahead of it after a loss.
        let head = i64::try_from(self.live.version(key).await?).unwrap_or(i64::MAX);
        let version = version.min(head).max(0);
        let mark = Mark::Journal {
            session: key.session.as_str().to_owned(),
            version,
            used: used.min(version).max(0),
        };
        writer.value(&mark).await?;
        let mut last = 0;
        loop {
            let records = self.live.read_after_version(key, last, RECORDS).await?;
            if records.is_empty() {
                return Ok(last);
            }
            for record in records {
                if record.version != last + 1 {
                    return Err(crate::Error::corrupt("journal", key.to_string()).into());
                }
                last = record.version;
                let body = STANDARD.encode(&record.body);
                let commit = record.commit_id.as_str().to_owned();
                let line = RecordLine(commit, record.first_seq, record.last_seq, body);
                writer.value(&line).await?;
            }
        }
    }

    /// Writes the chain of the tenant with its signatures.
    async fn audit(&self, writer: &mut LineWriter) -> Result<(), Error> {
        let chain = Scope::Tenant(self.id().clone());
        let audit = self.records.audit();
        let mut after = 0;
        loop {
            let page = audit.records(&chain, after).await?;
            let Some(last) = page.last().map(|record| record.n) else {
                return Ok(());
            };
            let mut seals = audit.seals(&chain, after).await?;
            seals.retain(|seal| seal.n <= last);
            let mut seals = seals.into_iter().peekable();
            for record in page {
                let n = record.n;
                let line = (self.lines.record)(&chain, record);
                writer.line(line.as_bytes()).await?;
                while let Some(seal) = seals.next_if(|seal| seal.n <= n) {
                    let line = (self.lines.seal)(&chain, &seal);
                    writer.line(line.as_bytes()).await?;
                }
            }
            after = last;
        }
    }
}
