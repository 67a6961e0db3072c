//! Stores tenants.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, Statement, args, taken};
use super::super::versions::RecordName;
use super::audit::Audit;
use super::tenant_id;
use super::tenant_tables::{TENANT_TABLES, TenantTable};
use sepal_core::domain::{Scope, Tenant, TenantId, Timestamp};

/// The standing of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantStanding {
    Active,
    /// No one of the tenant may enter.
    Suspended,
    /// No one of the tenant may enter, and the tenant will be deleted.
    GivenUp,
}

/// Deletes cached tool definitions to which no tenant's history refers any more. Those that tenants accepted are
/// no cache.
const ORPHANS: [&str; 1] = [
    "DELETE FROM tool_definitions WHERE SUBSTR(hash, 1, 9) <> 'accepted:' \
     AND hash NOT IN (SELECT hash FROM tool_definition_history)",
];

/// A tenant with what administrators of the installation see of it: nothing of its conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTenant {
    pub tenant: Tenant,
    pub created_at: Timestamp,
    pub standing: TenantStanding,
    /// The number of its people, with those who may not enter.
    pub people: u64,
    /// The number of its sessions.
    pub sessions: u64,
    /// When one of its sessions last changed; `None` = it has none.
    pub active_at: Option<Timestamp>,
}

/// Access to the tenants of the installation.
pub struct Tenants<'s> {
    db: &'s Db,
}

impl<'s> Tenants<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds a tenant. Returns [`Error::Taken`] if its name is in use.
    pub async fn add(&self, tenant: &Tenant, now: Timestamp) -> Result<(), Error> {
        self.db
            .record(
                added(tenant),
                "INSERT INTO tenants (id, name, created_at) VALUES ($1, $2, $3)",
                args![tenant.id.as_str(), tenant.name.as_str(), now.0],
            )
            .await
            .map_err(taken(&tenant.name))?;
        Ok(())
    }

    /// The tenant with this name, added with the given id if there is none.
    pub async fn find_or_add(&self, tenant: Tenant, now: Timestamp) -> Result<Tenant, Error> {
        self.db
            .record(
                added(&tenant),
                "INSERT INTO tenants (id, name, created_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (name) DO NOTHING",
                args![tenant.id.as_str(), tenant.name.as_str(), now.0],
            )
            .await?;
        Ok(self.find_by_name(&tenant.name).await?.unwrap_or(tenant))
    }

    /// The tenant with this name.
    pub async fn find_by_name(&self, name: &str) -> Result<Option<Tenant>, Error> {
        let row: Option<TenantRow> = self
            .db
            .fetch_optional("SELECT id, name FROM tenants WHERE name = $1", args![name])
            .await?;
        row.map(TenantRow::into_tenant).transpose()
    }

    /// The tenant with this id.
    pub async fn find(&self, id: &TenantId) -> Result<Option<Tenant>, Error> {
        let row: Option<TenantRow> = self
            .db
            .fetch_optional(
                "SELECT id, name FROM tenants WHERE id = $1",
                args![id.as_str()],
            )
            .await?;
        row.map(TenantRow::into_tenant).transpose()
    }

    /// Returns true if people of the tenant may share sessions by link.
    pub async fn allows_links(&self, id: &TenantId) -> Result<bool, Error> {
        let sql = "SELECT allows_links FROM tenants WHERE id = $1";
        let row: Option<(bool,)> = self.db.fetch_optional(sql, args![id.as_str()]).await?;
        Ok(row.is_some_and(|(allows_links,)| allows_links))
    }

    /// Allows or forbids sharing sessions by link.
    pub async fn set_allows_links(&self, id: &TenantId, allows_links: bool) -> Result<(), Error> {
        let sql = "UPDATE tenants SET allows_links = $2 WHERE id = $1";
        let act = of(ActName::LinksSwitched, id).detail("linksAllowed", allows_links);
        let values = args![id.as_str(), allows_links];
        let record = RecordName::sharing(id);
        self.db.change(record, act, sql, values).await?;
        Ok(())
    }

    /// Locks a tenant out: no one of it may enter, and none of its work continues. Suspending it again
    /// changes nothing.
    pub async fn suspend(&self, id: &TenantId, now: Timestamp) -> Result<(), Error> {
        let sql = "UPDATE tenants SET suspended_at = COALESCE(suspended_at, $2) WHERE id = $1";
        let act = of(ActName::TenantSuspended, id);
        self.db.record(act, sql, args![id.as_str(), now.0]).await?;
        Ok(())
    }

    /// Lifts a suspension. Returns false if the tenant does not exist or is being deleted.
    pub async fn resume(&self, id: &TenantId) -> Result<bool, Error> {
        let sql = "UPDATE tenants SET suspended_at = NULL WHERE id = $1 AND delete_at IS NULL";
        let act = of(ActName::TenantResumed, id);
        Ok(self.db.record(act, sql, args![id.as_str()]).await? > 0)
    }

    /// Locks a tenant out for good, so that a living gateway deletes it.
    pub async fn give_up(&self, id: &TenantId, now: Timestamp) -> Result<(), Error> {
        // A time that is still to come is that of an import.
        let sql = "UPDATE tenants SET suspended_at = COALESCE(suspended_at, $2), \
                   delete_at = CASE WHEN delete_at < $2 THEN delete_at ELSE $2 END WHERE id = $1";
        let act = of(ActName::TenantGivenUp, id);
        self.db.record(act, sql, args![id.as_str(), now.0]).await?;
        Ok(())
    }

    /// The tenants that are to be deleted now. A tenant that is being imported is to be deleted later, and its
    /// import puts that time off.
    pub async fn given_up(&self, now: Timestamp) -> Result<Vec<TenantId>, Error> {
        let sql = "SELECT id FROM tenants WHERE delete_at <= $1 ORDER BY id";
        let rows: Vec<(String,)> = self.db.fetch_all(sql, args![now.0]).await?;
        rows.into_iter().map(|(id,)| tenant_id(id)).collect()
    }

    /// The standing of a tenant. An unknown tenant counts as active.
    pub async fn standing(&self, id: &TenantId) -> Result<TenantStanding, Error> {
        let sql =
            "SELECT suspended_at IS NOT NULL, delete_at IS NOT NULL FROM tenants WHERE id = $1";
        let row: Option<(bool, bool)> = self.db.fetch_optional(sql, args![id.as_str()]).await?;
        let active = TenantStanding::Active;
        Ok(row.map_or(active, |(is_suspended, is_given_up)| {
            standing(is_suspended, is_given_up)
        }))
    }

    /// Returns true if the tenant is to be deleted.
    pub(crate) async fn is_given_up(&self, id: &TenantId) -> Result<bool, Error> {
        Ok(self.standing(id).await? == TenantStanding::GivenUp)
    }

    /// Deletes a tenant and its rows in every table, and names the end of its audit in the audit of the
    /// installation. Its sessions must already be removed, because their workspaces can only be found by
    /// these rows. Of acts at the same time, those before are counted, and those after are refused
    /// ([`Error::TenantDeleted`]). Does nothing to a tenant that is not to be deleted by `now`: it may have been
    /// imported again meanwhile.
    pub async fn purge(&self, id: &TenantId, now: Timestamp) -> Result<(), Error> {
        while self.is_due(id, now).await? && !self.purge_up_to_its_end(id, now).await? {}
        Ok(())
    }

    /// Returns true if the tenant is to be deleted by `now`.
    pub async fn is_due(&self, id: &TenantId, now: Timestamp) -> Result<bool, Error> {
        let sql = "SELECT id FROM tenants WHERE id = $1 AND delete_at <= $2";
        let row = self.db.fetch_optional(sql, args![id.as_str(), now.0]);
        let row: Option<(String,)> = row.await?;
        Ok(row.is_some())
    }

    /// Returns false, and does nothing, if something was appended to the tenant's audit since its end was read, or the
    /// tenant is not to be deleted any more.
    async fn purge_up_to_its_end(&self, id: &TenantId, now: Timestamp) -> Result<bool, Error> {
        let head = Audit::new(self.db).head(&Scope::Tenant(id.clone())).await?;
        let (n, link) = head.map_or((0, None), |head| (head.n, Some(head.link)));
        let act = Act::new(
            ActName::TenantDeleted,
            &Scope::Installation,
            "tenant",
            id.as_str(),
        );
        let act = act.detail("records", n).detail("link", link);
        // Lets the triggers of the audit delete its records.
        let cut = "INSERT INTO audit_cuts (tenant, through) SELECT $1, 9223372036854775807 \
                   WHERE COALESCE((SELECT MAX(n) FROM audit WHERE tenant = $1), 0) = $2 \
                   AND EXISTS (SELECT 1 FROM tenants WHERE id = $1 AND delete_at <= $3) \
                   ON CONFLICT (tenant) DO UPDATE SET through = excluded.through";
        let mut statements = vec![Statement::required(cut, args![id.as_str(), n, now.0])];
        let purges = TENANT_TABLES.iter().map(TenantTable::deletion);
        statements.extend(purges.map(|sql| Statement::new(sql, args![id.as_str()])));
        statements.extend(ORPHANS.map(|sql| Statement::new(sql, args![])));
        let last = "DELETE FROM tenants WHERE id = $1";
        statements.push(Statement::new(last, args![id.as_str()]).recorded(act));
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// All tenants by name, with what administrators of the installation see of them.
    pub async fn list_with_use(&self) -> Result<Vec<ListedTenant>, Error> {
        let sql = "SELECT t.id, t.name, t.created_at, t.suspended_at IS NOT NULL AS is_suspended, \
                   t.delete_at IS NOT NULL AS is_given_up, \
                   (SELECT COUNT(*) FROM users u WHERE u.tenant = t.id) AS people, \
                   (SELECT COUNT(*) FROM sessions s WHERE s.tenant = t.id \
                    AND s.delete_at IS NULL) AS sessions, \
                   (SELECT MAX(s.updated_at) FROM sessions s WHERE s.tenant = t.id) AS active_at \
                   FROM tenants t ORDER BY t.name";
        let rows: Vec<ListedRow> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter().map(ListedRow::into_listed).collect()
    }

    /// All tenants, by name.
    pub async fn list(&self) -> Result<Vec<Tenant>, Error> {
        let rows: Vec<TenantRow> = self
            .db
            .fetch_all("SELECT id, name FROM tenants ORDER BY name", args![])
            .await?;
        rows.into_iter().map(TenantRow::into_tenant).collect()
    }
}

/// An act on a tenant, which the tenant itself is told.
fn of(name: ActName, id: &TenantId) -> Act {
    Act::new(name, id, "tenant", id.as_str())
}

fn added(tenant: &Tenant) -> Act {
    let act = Act::new(
        ActName::TenantAdded,
        &Scope::Installation,
        "tenant",
        tenant.id.as_str(),
    );
    act.detail("name", tenant.name.as_str())
}

fn standing(is_suspended: bool, is_given_up: bool) -> TenantStanding {
    match (is_suspended, is_given_up) {
        (_, true) => TenantStanding::GivenUp,
        (true, false) => TenantStanding::Suspended,
        (false, false) => TenantStanding::Active,
    }
}

#[derive(sqlx_macros::FromRow)]
struct ListedRow {
    id: String,
    name: String,
    created_at: i64,
    is_suspended: bool,
    is_given_up: bool,
    people: i64,
    sessions: i64,
    active_at: Option<i64>,
}

impl ListedRow {
    fn into_listed(self) -> Result<ListedTenant, Error> {
        Ok(ListedTenant {
            tenant: Tenant {
                id: tenant_id(self.id)?,
                name: self.name,
            },
            created_at: Timestamp(self.created_at),
            standing: standing(self.is_suspended, self.is_given_up),
            people: u64::try_from(self.people).unwrap_or(0),
            sessions: u64::try_from(self.sessions).unwrap_or(0),
            active_at: self.active_at.map(Timestamp),
        })
    }
}

#[derive(sqlx_macros::FromRow)]
struct TenantRow {
    id: String,
    name: String,
}

impl TenantRow {
    fn into_tenant(self) -> Result<Tenant, Error> {
        Ok(Tenant {
            id: tenant_id(self.id)?,
            name: self.name,
        })
    }
}

/// Reads the migrations, for tests that compare them with lists.
#[cfg(test)]
pub(super) mod schema_columns {
    use std::collections::BTreeSet;

    /// The columns of a kind of database that hold text, each with its table, as the migrations leave them.
    pub(in super::super) fn texts(kind: &str) -> BTreeSet<(String, String)> {
        let folder = format!("{}/../../migrations/{kind}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(folder).unwrap();
        let files: BTreeSet<_> = files.map(|file| file.unwrap().path()).collect();
        let mut columns = BTreeSet::new();
        for file in files {
            let text = std::fs::read_to_string(file).unwrap();
            let mut table = "";
            for line in text.lines() {
                let line = line.trim_end_matches([',', ';']);
                let words: Vec<&str> = line.split_whitespace().collect();
                match words[..] {
                    ["CREATE", "TABLE", name, "("] => table = name,
                    ["DROP", "TABLE", name] => columns.retain(|(table, _)| table != name),
                    ["ALTER", "TABLE", old, "RENAME", "TO", new] => {
                        let renamed = columns.into_iter().map(|(table, column): (String, _)| {
                            (if table == old { new.to_owned() } else { table }, column)
                        });
                        columns = renamed.collect();
                    }
                    ["ALTER", "TABLE", name, "ADD", "COLUMN", column, "TEXT", ..] => {
                        columns.insert((name.to_owned(), column.to_owned()));
                    }
                    [column, "TEXT", ..] => {
                        columns.insert((table.to_owned(), column.to_owned()));
                    }
                    _ => {}
                }
            }
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::schema_columns::texts;
    use crate::records::tenant_tables::{Owner, TENANT_TABLES, TenantTable};

    /// Asserts that no table keeps rows of a deleted tenant, and that none is forgotten by an export: each table to
    /// which the migrations give a column `tenant` or `scope` is listed with that column.
    #[test]
    fn every_table_with_rows_of_tenants_is_listed() {
        for kind in ["sqlite", "postgres"] {
            let mut wanted: BTreeSet<String> = texts(kind)
                .into_iter()
                .filter(|(_, column)| ["tenant", "scope"].contains(&column.as_str()))
                .map(|(table, column)| format!("DELETE FROM {table} WHERE {column} = $1"))
                .collect();
            assert!(wanted.remove("DELETE FROM package_volumes WHERE scope = $1"));
            let listed = TENANT_TABLES.iter();
            let by_column = listed.filter(|it| matches!(it.owner, Owner::Column(_)));
            let purged: BTreeSet<String> = by_column.map(TenantTable::deletion).collect();
            assert_eq!(wanted, purged, "{kind}");
        }
    }
}
