//! Brings a tenant into the store from the file of an export.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::reading::{Expected, ExportFacts, Item, ReadError, read};
use super::shape::Shape;
use super::{Error, FILES, ImportedTenant, broken};
use crate::audit::{Act, ActName};
use crate::clock;
use crate::db::{Arg, Db, Statement, args, newest_schema, taken};
use crate::live::{AppendOutcome, LiveStore, NewRecord};
use crate::records::Records;
use crate::{Sealer, Store};
use sepal_core::domain::{Scope, SessionId, SessionKey, TenantId};

/// The end of the name of a tenant that is being imported. No other tenant can be named so.
const UNFINISHED: &str = ".import";

/// The time after which an import that stands still is deleted, in milliseconds.
const LEASE_MS: i64 = 600_000;
/// The time after which the lease is renewed even if nothing is written, in milliseconds.
const RENEW_MS: i64 = 60_000;

/// The statements of one transaction at most, and the approximate number of their bytes.
const STATEMENTS: usize = 64;
const BYTES: usize = 2 << 20;

/// The records of a journal that are written in one step at most, and the approximate number of their bytes.
const RECORDS: usize = 256;
const RECORD_BYTES: usize = 4 << 20;

/// The items that are read ahead.
const AHEAD: usize = 4;

/// A verified export that is about to be imported.
pub struct Importing {
    path: PathBuf,
    shape: Arc<Shape>,
    facts: ExportFacts,
    name: String,
}

impl Importing {
    /// The name that the tenant will have.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the whole file and checks it. Writes nothing.
    pub(crate) async fn verify(
        db: &Db,
        sealer: &Sealer,
        path: &Path,
        name: Option<&str>,
    ) -> Result<Self, Error> {
        let shape = Arc::new(Shape::of(db).await?);
        let (of, with, keys) = (path.to_owned(), Arc::clone(&shape), sealer.clone());
        let reading = FILES.run(move || read_file(&of, &with, Expected::Any(&keys), |_| true));
        let facts = reading.await.map_err(broken(path))??;
        let name = name.unwrap_or(&facts.header.tenant.name).to_owned();
        Ok(Self {
            path: path.to_owned(),
            shape,
            facts,
            name,
        })
    }
}

fn read_file(
    path: &Path,
    shape: &Shape,
    expected: Expected<'_>,
    take: impl FnMut(Item) -> bool,
) -> Result<ExportFacts, Error> {
    let file = File::open(path).map_err(Error::disk(path, "cannot be read"))?;
    read(file, shape, expected, take).map_err(|error| {
        let path = path.to_owned();
        match error {
            ReadError::Foreign(reason) => Error::Foreign { path, reason },
            ReadError::Damaged(reason) => Error::Damaged { path, reason },
            ReadError::OtherSchema { program, schema } => Error::OtherSchema {
                program,
                schema,
                ours: newest_schema(),
            },
            ReadError::Stopped => crate::Error::NoAnswer.into(),
        }
    })
}

/// Imports a verified export. The tenant is suspended afterwards.
pub(crate) async fn import(store: &Store, wanted: Importing) -> Result<ImportedTenant, Error> {
    let (db, records, live) = (store.db(), store.records(), store.live());
    let tenant = wanted.facts.tenant.clone();
    let unfinished = format!("{}{UNFINISHED}", wanted.name);
    if let Some(found) = records.tenants().find(&tenant).await? {
        if found.name.ends_with(UNFINISHED) {
            // An earlier import was killed.
            remove(&records, &*live, &tenant).await?;
        } else if records.tenants().is_given_up(&tenant).await? {
            return Err(Error::BeingDeleted(found.name));
        } else {
            return Err(Error::Here(found.name));
        }
    }
    if records
        .tenants()
        .find_by_name(&wanted.name)
        .await?
        .is_some()
    {
        return Err(Error::Taken(wanted.name));
    }
    let importing = Writing {
        db,
        live: &*live,
        tenant: &tenant,
        statements: Vec::new(),
        bytes: 0,
        renewed: 0,
        lease: 0,
    };
    let mut importing = importing;
    importing.begin(&wanted, &unfinished).await?;
    match importing.fill(&wanted, &records).await {
        Ok(()) => {}
        Err(error) => {
            // Nothing is there that could be removed if somebody else did so.
            if !matches!(error, Error::Overtaken) {
                let removed = remove(&records, &*live, &tenant).await;
                if let Err(error) = removed {
                    tracing::warn!(tenant.id = %tenant, ?error,
                        "What a failed import left is deleted by a gateway, ten minutes from now");
                }
            }
            return Err(error);
        }
    }
    Ok(ImportedTenant {
        name: wanted.name,
        counts: wanted.facts.counts,
        closed_secrets: wanted.facts.closed_secrets,
        former_admins: wanted.facts.former_admins,
    })
}

/// Deletes what an unfinished import left: it has no workspace, and no gateway has opened its sessions.
async fn remove(
    records: &Records,
    live: &dyn LiveStore,
    tenant: &TenantId,
) -> Result<(), crate::Error> {
    records.tenants().give_up(tenant, clock::now()).await?;
    for (key, _) in records.sessions().of_tenant(tenant, None).await? {
        live.remove(&key).await?;
    }
    records.tenants().purge(tenant, clock::now()).await
}

/// Writes the parts of an export, each transaction with the renewal of the lease.
struct Writing<'a> {
    db: &'a Db,
    live: &'a dyn LiveStore,
    tenant: &'a TenantId,
    statements: Vec<Statement>,
    bytes: usize,
    /// When the lease was last renewed, in milliseconds.
    renewed: i64,
    /// The end of the lease as it was last written. Another import of the same tenant has another one.
    lease: i64,
}

impl Writing<'_> {
    /// Adds the tenant, locked out and due for deletion.
    async fn begin(&mut self, wanted: &Importing, unfinished: &str) -> Result<(), Error> {
        let (facts, now) = (&wanted.facts.header.tenant, clock::now().0);
        self.lease = now.saturating_add(LEASE_MS);
        let act = self.act(ActName::TenantImportBegun, &wanted.name);
        let sql = "INSERT INTO tenants (id, name, created_at, allows_links, suspended_at, delete_at) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let values = args![
            self.tenant.as_str(),
            unfinished,
            facts.created_at,
            facts.allows_links,
            now,
            self.lease
        ];
        let added = self.db.record(act, sql, values).await;
        match added.map_err(taken(&wanted.name)) {
            Ok(_) => Ok(()),
            Err(crate::Error::Taken(name)) => Err(Error::Taken(name)),
            Err(error) => Err(error.into()),
        }
    }

    fn act(&self, name: ActName, tenant: &str) -> Act {
        let on = self.tenant.as_str();
        Act::new(name, &Scope::Installation, "tenant", on).detail("name", tenant)
    }

    /// Reads the file once more and writes what it has.
    async fn fill(mut self, wanted: &Importing, records: &Records) -> Result<(), Error> {
        let (items, mut received) = mpsc::channel(AHEAD);
        let (path, shape) = (wanted.path.clone(), Arc::clone(&wanted.shape));
        let tenant = self.tenant.clone();
        let reading = FILES.run(move || {
            read_file(&path, &shape, Expected::Tenant(&tenant), |item| {
                items.blocking_send(item).is_ok()
            })
        });
        let writing = async {
            let written = self
                .take(&wanted.shape, &mut received, (records, &wanted.path))
                .await;
            // The reader ends, too.
            drop(received);
            written
        };
        let (read, written) = tokio::join!(reading, writing);
        written?;
        let read = read.map_err(broken(&wanted.path))??;
        if read.sha256 != wanted.facts.sha256 {
            return Err(Error::Damaged {
                path: wanted.path.clone(),
                reason: "it was changed while it was imported".to_owned(),
            });
        }
        self.check_lists(records, &wanted.path).await?;
        self.finish(wanted).await
    }

    async fn take(
        &mut self,
        shape: &Shape,
        items: &mut mpsc::Receiver<Item>,
        (records, path): (&Records, &Path),
    ) -> Result<(), Error> {
        let mut insertion = String::new();
        let mut has_owner = true;
        let mut journal: Option<Journal> = None;
        while let Some(item) = items.recv().await {
            match item {
                Item::Table { table, columns } => {
                    let Some(table) = shape.tables.get(table) else {
                        continue;
                    };
                    insertion = table.insertion(&columns);
                    has_owner = table.has_owner_column();
                    // Triggers may have filled it.
                    let empty = args![self.tenant.as_str()];
                    self.add(table.table.deletion(), empty).await?;
                }
                Item::Row(row) => {
                    let owner = has_owner.then(|| Arg::from(self.tenant.as_str()));
                    let values = owner.into_iter().chain(row).collect();
                    self.add(insertion.clone(), values).await?;
                }
                Item::Journal {
                    session,
                    version,
                    used,
                } => {
                    if let Some(journal) = journal.take() {
                        self.end_journal(journal).await?;
                    } else {
                        // Whoever removes an unfinished import finds the journals by these rows.
                        self.flush().await?;
                        // Journals take long, so rows that gateways cannot read are found before them.
                        self.check_lists(records, path).await?;
                    }
                    journal = Some(Journal::new(self.tenant, session, version, used));
                }
                Item::Record(record) => {
                    if let Some(journal) = &mut journal {
                        journal.add(record);
                        if journal.is_full() {
                            journal.write(self.live).await?;
                            self.renew().await?;
                        }
                    }
                }
            }
        }
        if let Some(journal) = journal {
            self.end_journal(journal).await?;
        }
        self.flush().await
    }

    /// Writes the rest of a journal, and lets the session's row show it.
    async fn end_journal(&mut self, mut journal: Journal) -> Result<(), Error> {
        journal.write(self.live).await?;
        let sql =
            "UPDATE sessions SET version = $3, usage_version = $4 WHERE tenant = $1 AND id = $2";
        let values = args![
            self.tenant.as_str(),
            journal.key.session.as_str(),
            journal.version,
            journal.used
        ];
        self.add(sql.to_owned(), values).await?;
        self.renew().await
    }

    async fn add(&mut self, sql: String, values: Vec<Arg>) -> Result<(), Error> {
        let sizes = values.iter().map(|arg| match arg {
            Arg::Text(text) => text.as_ref().map_or(0, String::len),
            Arg::Bytes(bytes) => bytes.len(),
            Arg::Int(_) | Arg::Bool(_) => 8,
        });
        self.bytes += sizes.sum::<usize>();
        // The import is the act.
        self.statements.push(Statement::new(sql, values).upkeep());
        if self.statements.len() >= STATEMENTS || self.bytes >= BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Renews the lease if that is due.
    async fn renew(&mut self) -> Result<(), Error> {
        if clock::now().0.saturating_sub(self.renewed) >= RENEW_MS {
            self.flush().await?;
        }
        Ok(())
    }

    /// Writes the collected statements, unless the tenant was deleted or its lease is over.
    async fn flush(&mut self) -> Result<(), Error> {
        let now = clock::now().0;
        let sql =
            "UPDATE tenants SET delete_at = $2 WHERE id = $1 AND delete_at > $3 AND delete_at = $4";
        let lease = now.saturating_add(LEASE_MS);
        let values = args![self.tenant.as_str(), lease, now, self.lease];
        let mut statements = vec![Statement::required(sql, values).upkeep()];
        statements.append(&mut self.statements);
        self.bytes = 0;
        self.renewed = now;
        match self.db.execute_all(statements).await? {
            Some(_) => {
                self.lease = lease;
                Ok(())
            }
            None => Err(Error::Overtaken),
        }
    }

    /// Checks that the rows can be read by what gateways read of all tenants: one that cannot would be in the way of
    /// the others.
    async fn check_lists(&self, records: &Records, path: &Path) -> Result<(), Error> {
        records.check_lists().await.map_err(|error| {
            if error.is_damage() {
                Error::Foreign {
                    path: path.to_owned(),
                    reason: format!("a gateway cannot read its rows: {error}"),
                }
            } else {
                error.into()
            }
        })
    }

    /// Makes a suspended tenant of what was imported.
    async fn finish(&self, wanted: &Importing) -> Result<(), Error> {
        let facts = &wanted.facts;
        let act = self
            .act(ActName::TenantImported, &wanted.name)
            .detail("rows", facts.counts.rows)
            .detail("sessions", facts.counts.sessions)
            .detail("sha256", facts.sha256.as_str())
            .detail("records", facts.header.audit.records)
            .detail("link", facts.header.audit.link.clone());
        let sql = "UPDATE tenants SET delete_at = NULL, name = $2 \
                   WHERE id = $1 AND delete_at > $3 AND delete_at = $4";
        let values = args![
            self.tenant.as_str(),
            wanted.name.as_str(),
            clock::now().0,
            self.lease
        ];
        let done = self.db.record(act, sql, values).await;
        match done.map_err(taken(&wanted.name)) {
            Ok(0) => Err(Error::Overtaken),
            Ok(_) => Ok(()),
            Err(crate::Error::Taken(name)) => Err(Error::Taken(name)),
            Err(error) => Err(error.into()),
        }
    }
}

/// A journal that is being written.
struct Journal {
    key: SessionKey,
    /// The version of the journal that the session's row shows.
    version: i64,
    /// The version up to which the session's usage is counted.
    used: i64,
    /// The number of records that were written.
    written: u64,
    records: Vec<NewRecord>,
    bytes: usize,
}

impl Journal {
    fn new(tenant: &TenantId, session: SessionId, version: i64, used: i64) -> Self {
        Self {
            key: SessionKey {
                tenant: tenant.clone(),
                session,
            },
            version,
            used,
            written: 0,
            records: Vec::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, record: NewRecord) {
        self.bytes += record.body.len();
        self.records.push(record);
    }

    fn is_full(&self) -> bool {
        self.records.len() >= RECORDS || self.bytes >= RECORD_BYTES
    }

    /// Writes the collected records: the first ones in one step, and each later one after the others.
    async fn write(&mut self, live: &dyn LiveStore) -> Result<(), Error> {
        let records = std::mem::take(&mut self.records);
        self.bytes = 0;
        if self.written == 0 && !records.is_empty() {
            self.written = records.len() as u64;
            return outcome(live.create(&self.key, records).await);
        }
        for record in records {
            outcome(live.append(&self.key, self.written, record).await)?;
            self.written += 1;
        }
        Ok(())
    }
}

fn outcome(outcome: AppendOutcome) -> Result<(), Error> {
    match outcome {
        AppendOutcome::Ok => Ok(()),
        AppendOutcome::Conflict => Err(Error::Overtaken),
        AppendOutcome::Unknown(error) => Err(error.into()),
    }
}
