//! Counts the changes of records that are changed as a whole. A writer can require that a record still has the
//! version that they read: the check is a statement of the transaction that writes, so of two writers who
//! read the same version, one is refused.

use super::Error;
use super::db::{Db, Statement, args};
use sepal_core::domain::{Scope, SessionKey, SkillId, TenantId, UserId};

/// Names a record that is changed as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordName {
    scope: String,
    name: String,
}

impl RecordName {
    fn new(scope: &str, name: impl Into<String>) -> Self {
        Self {
            scope: scope.to_owned(),
            name: name.into(),
        }
    }

    /// A model provider.
    pub fn provider(scope: &Scope, id: &str) -> Self {
        Self::new(scope.as_str(), format!("provider/{id}"))
    }

    /// The default model of a scope, or of a user.
    pub fn model_default(scope: &Scope, user: Option<&UserId>) -> Self {
        let user = user.map_or("", UserId::as_str);
        Self::new(scope.as_str(), format!("model_default/{user}"))
    }

    /// The default compaction of a tenant.
    pub fn compaction(tenant: &TenantId) -> Self {
        Self::new(tenant.as_str(), "compaction")
    }

    /// The budgets of a tenant, all together.
    pub fn budgets(tenant: &TenantId) -> Self {
        Self::new(tenant.as_str(), "budgets")
    }

    /// Whether links to sessions of a tenant are allowed.
    pub fn sharing(tenant: &TenantId) -> Self {
        Self::new(tenant.as_str(), "sharing")
    }

    /// The mail setting of a user.
    pub fn mail(tenant: &TenantId, user: &UserId) -> Self {
        Self::new(tenant.as_str(), format!("mail/{user}"))
    }

    /// A skill.
    pub fn skill(tenant: &TenantId, id: &SkillId) -> Self {
        Self::new(tenant.as_str(), format!("skill/{id}"))
    }

    /// A user's own switch of a skill.
    pub fn skill_switch(tenant: &TenantId, user: &UserId, id: &SkillId) -> Self {
        Self::new(tenant.as_str(), format!("skill_switch/{user}/{id}"))
    }

    /// The entry of an MCP server.
    pub fn server(scope: &Scope, name: &str) -> Self {
        Self::new(scope.as_str(), format!("server/{name}"))
    }

    /// The settings of the tools of an MCP server.
    pub fn tools(tenant: &TenantId, server: &str) -> Self {
        Self::new(tenant.as_str(), format!("tools/{server}"))
    }

    /// The marks of a session: pinned, archived, tags.
    pub fn marks(key: &SessionKey) -> Self {
        Self::new(key.tenant.as_str(), format!("marks/{}", key.session))
    }
}

/// The versions that a writer requires.
pub type Required = Vec<(RecordName, u64)>;

tokio::task_local! {
    static REQUIRED: Required;
}

/// Runs `work`, in which a change of each of these records succeeds only if it has this version. Otherwise
/// the change returns [`Error::Changed`], and nothing is written. The change has to be made by this task.
/// What this task requires already stays.
pub async fn requiring<T>(more: Required, work: impl Future<Output = T>) -> T {
    let mut all = REQUIRED.try_with(Clone::clone).unwrap_or_default();
    for (record, version) in more {
        if !all.iter().any(|(known, _)| *known == record) {
            all.push((record, version));
        }
    }
    REQUIRED.scope(all, work).await
}

/// Returns true if this task requires a version of the record.
pub fn is_required(record: &RecordName) -> bool {
    required(record).is_some()
}

fn required(record: &RecordName) -> Option<u64> {
    let found = |required: &Required| {
        let found = required.iter().find(|(known, _)| known == record);
        found.map(|(_, version)| *version)
    };
    REQUIRED.try_with(found).ok().flatten()
}

/// A record that a transaction changes, with the version that it must have.
pub(super) struct Counted {
    record: RecordName,
    required: Option<u64>,
}

impl Counted {
    pub(super) fn of(record: RecordName) -> Self {
        let required = required(&record);
        Self { record, required }
    }

    /// Returns the statement that counts the change. It changes no row if the version is another.
    pub(super) fn statement(&self) -> Statement {
        let RecordName { scope, name } = &self.record;
        let of_record = || args![scope.as_str(), name.as_str()];
        let sql = match self.required {
            None => {
                "INSERT INTO record_versions (scope, record, version) VALUES ($1, $2, 1) \
                 ON CONFLICT (scope, record) DO UPDATE SET version = record_versions.version + 1"
            }
            Some(0) => {
                "INSERT INTO record_versions (scope, record, version) VALUES ($1, $2, 1) \
                 ON CONFLICT (scope, record) DO NOTHING"
            }
            Some(version) => {
                let sql = "UPDATE record_versions SET version = version + 1 \
                           WHERE scope = $1 AND record = $2 AND version = $3";
                let version = i64::try_from(version).unwrap_or(i64::MAX);
                let args = args![scope.as_str(), name.as_str(), version];
                return Statement::required(sql, args);
            }
        };
        Statement::required(sql, of_record())
    }

    /// Returns [`Error::Changed`] if the record does not have the required version.
    pub(super) async fn check(&self, db: &Db) -> Result<(), Error> {
        match self.required {
            Some(required) if read(db, &self.record).await? != required => Err(Error::Changed),
            Some(_) | None => Ok(()),
        }
    }
}

async fn read(db: &Db, RecordName { scope, name }: &RecordName) -> Result<u64, Error> {
    let sql = "SELECT version FROM record_versions WHERE scope = $1 AND record = $2";
    let values = args![scope.as_str(), name.as_str()];
    let row: Option<(i64,)> = db.fetch_optional(sql, values).await?;
    Ok(row.map_or(0, |(version,)| u64::try_from(version).unwrap_or(0)))
}

/// Access to the versions of records.
#[derive(Debug, Clone)]
pub struct RecordVersions {
    db: Db,
}

impl RecordVersions {
    pub(super) fn new(db: Db) -> Self {
        Self { db }
    }

    /// Counts a change of a record that is not stored here, or returns [`Error::Changed`].
    pub async fn count(&self, record: RecordName) -> Result<(), Error> {
        self.db.count(record).await
    }

    /// The version of a record: 0 until its first change. Read it before the record, so that it is never
    /// newer than what was read.
    pub async fn of(&self, record: &RecordName) -> Result<u64, Error> {
        read(&self.db, record).await
    }
}
