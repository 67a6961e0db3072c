//! Stores assistants: every version, who may do what with each, and their files.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args};
use super::super::versions::RecordName;
use super::attachments::UNHELD_BLOBS;
use super::{from_json, to_json, user_id};
use sepal_core::domain::{
    AssistantId, Attachment, BlobId, SessionKey, TenantId, Timestamp, UserId,
};
use sepal_core::session::AssistantDefinition;

/// The most versions of one assistant.
pub const MOST_VERSIONS: u64 = 1_000;

/// What somebody may do with an assistant. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AssistantLevel {
    /// Read it.
    See,
    /// Start sessions with it.
    Use,
    /// Make new versions.
    Edit,
    /// Say who may do what, and delete it.
    Own,
}

impl AssistantLevel {
    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::See => "see",
            Self::Use => "use",
            Self::Edit => "edit",
            Self::Own => "own",
        }
    }

    /// Parses the form that [`Self::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::See, Self::Use, Self::Edit, Self::Own];
        all.into_iter().find(|level| level.as_str() == text)
    }
}

/// A stored assistant without its definition, and what one person was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssistantRow {
    pub id: AssistantId,
    /// The person who made it for themselves; `None` = it is the team's.
    pub owner: Option<UserId>,
    pub name: String,
    pub description: String,
    /// The newest version.
    pub version: u64,
    pub created_by: UserId,
    pub created_at: Timestamp,
    pub updated_by: UserId,
    pub updated_at: Timestamp,
    /// What the person who reads was given.
    pub own_level: Option<AssistantLevel>,
    /// What everybody of the tenant was given.
    pub team_level: Option<AssistantLevel>,
}

/// One entry of the list of who may do what with an assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssistantAccess {
    /// `None` = everybody of the tenant.
    pub person: Option<UserId>,
    pub level: AssistantLevel,
}

/// A version, without its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssistantVersion {
    pub version: u64,
    pub made_by: UserId,
    pub made_at: Timestamp,
    /// The earlier version that this one repeats.
    pub restored_from: Option<u64>,
}

/// A version to store.
#[derive(Debug, Clone)]
pub struct NewAssistantVersion {
    pub definition: AssistantDefinition,
    /// Files that no earlier version had, with their content.
    pub files: Vec<(Attachment, Vec<u8>)>,
    pub by: UserId,
    pub at: Timestamp,
    /// The earlier version that this one repeats.
    pub restored_from: Option<u64>,
}

/// Access to the stored assistants.
pub struct Assistants<'s> {
    db: &'s Db,
}

/// Selects assistants with what the person `$2` was given.
macro_rules! selected {
    ($rest:literal) => {
        concat!(
            "SELECT a.id, a.owner, a.name, a.description, a.version, a.created_by, a.created_at, \
             a.updated_by, a.updated_at, (SELECT level FROM assistant_access x \
             WHERE x.tenant = a.tenant AND x.assistant = a.id AND x.person = $2) AS own_level, \
             (SELECT level FROM assistant_access y WHERE y.tenant = a.tenant \
             AND y.assistant = a.id AND y.person = '') AS team_level FROM assistants a \
             WHERE a.tenant = $1",
            $rest
        )
    };
}

impl<'s> Assistants<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// All assistants of a tenant by name, with what this person was given.
    pub async fn list(
        &self,
        tenant: &TenantId,
        person: &UserId,
    ) -> Result<Vec<AssistantRow>, Error> {
        let sql = selected!(" ORDER BY a.name, a.id");
        let values = args![tenant.as_str(), person.as_str()];
        let rows: Vec<Row> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// An assistant, with what this person was given.
    pub async fn find(
        &self,
        tenant: &TenantId,
        person: &UserId,
        id: &AssistantId,
    ) -> Result<Option<AssistantRow>, Error> {
        let sql = selected!(" AND a.id = $3");
        let values = args![tenant.as_str(), person.as_str(), id.as_str()];
        let row: Option<Row> = self.db.fetch_optional(sql, values).await?;
        row.map(Row::into_row).transpose()
    }

    /// The definition of a version.
    pub async fn definition(
        &self,
        tenant: &TenantId,
        id: &AssistantId,
        version: u64,
    ) -> Result<Option<AssistantDefinition>, Error> {
        let sql = "SELECT definition FROM assistant_versions \
                   WHERE tenant = $1 AND assistant = $2 AND version = $3";
        let values = args![tenant.as_str(), id.as_str(), int(version)];
        let row: Option<(String,)> = self.db.fetch_optional(sql, values).await?;
        row.map(|(text,)| from_json("assistant", &text)).transpose()
    }

    /// The versions of an assistant, newest first.
    pub async fn versions(
        &self,
        tenant: &TenantId,
        id: &AssistantId,
    ) -> Result<Vec<AssistantVersion>, Error> {
        let sql = "SELECT version, made_by, made_at, restored_from FROM assistant_versions \
                   WHERE tenant = $1 AND assistant = $2 ORDER BY version DESC";
        let values = args![tenant.as_str(), id.as_str()];
        let rows: Vec<(i64, String, i64, Option<i64>)> = self.db.fetch_all(sql, values).await?;
        let versions = rows.into_iter().map(|(version, by, at, from)| {
            Ok(AssistantVersion {
                version: count(version),
                made_by: user_id(by)?,
                made_at: Timestamp(at),
                restored_from: from.map(count),
            })
        });
        versions.collect()
    }

    /// Adds an assistant with its first version. Returns false if the tenant, or the owner, already has `most`.
    pub async fn add(
        &self,
        tenant: &TenantId,
        (id, owner): (&AssistantId, Option<&UserId>),
        new: NewAssistantVersion,
        access: &[AssistantAccess],
        most: u64,
    ) -> Result<bool, Error> {
        let sql = "INSERT INTO assistants (tenant, id, owner, name, description, version, \
                   created_by, created_at, updated_by, updated_at) \
                   SELECT $1, $2, $3, $4, $5, 1, $6, $7, $6, $7 WHERE \
                   (SELECT COUNT(*) FROM assistants WHERE tenant = $1 AND owner = $3) < $8";
        let values = args![
            tenant.as_str(),
            id.as_str(),
            text(owner),
            new.definition.name.as_str(),
            new.definition.description.as_str(),
            new.by.as_str(),
            new.at.0,
            int(most)
        ];
        let act = of(ActName::AssistantAdded, tenant, id)
            .detail("name", new.definition.name.as_str())
            .detail("owner", owner.map(UserId::as_str));
        let mut statements = vec![Statement::required(sql, values).recorded(act)];
        statements.extend(version(tenant, id, 1, new)?);
        statements.extend(access.iter().map(|entry| given(tenant, id, entry)));
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// Adds the version after `before`. Returns false if that is not the newest version any more.
    pub async fn change(
        &self,
        tenant: &TenantId,
        (id, before): (&AssistantId, u64),
        new: NewAssistantVersion,
    ) -> Result<bool, Error> {
        let sql = "UPDATE assistants SET name = $3, description = $4, version = version + 1, \
                   updated_by = $5, updated_at = $6 WHERE tenant = $1 AND id = $2 AND version = $7";
        let values = args![
            tenant.as_str(),
            id.as_str(),
            new.definition.name.as_str(),
            new.definition.description.as_str(),
            new.by.as_str(),
            new.at.0,
            int(before)
        ];
        let next = before.saturating_add(1);
        let act = of(ActName::AssistantChanged, tenant, id)
            .detail("name", new.definition.name.as_str())
            .detail("version", next)
            .detail("restoredFrom", new.restored_from);
        let changed = Statement::required(sql, values)
            .recorded(act)
            .changing(RecordName::assistant(tenant, id));
        let mut statements = vec![changed];
        statements.extend(version(tenant, id, next, new)?);
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// Deletes an assistant with its versions and files. Returns false if it does not exist.
    pub async fn remove(&self, tenant: &TenantId, row: &AssistantRow) -> Result<bool, Error> {
        let id = &row.id;
        let whose = || args![tenant.as_str(), id.as_str()];
        let parts = [
            "DELETE FROM assistant_files WHERE tenant = $1 AND assistant = $2",
            "DELETE FROM assistant_access WHERE tenant = $1 AND assistant = $2",
            "DELETE FROM assistant_versions WHERE tenant = $1 AND assistant = $2",
        ];
        let mut statements: Vec<Statement> = parts.map(|sql| Statement::new(sql, whose())).into();
        let act = of(ActName::AssistantRemoved, tenant, id).detail("name", row.name.as_str());
        let sql = "DELETE FROM assistants WHERE tenant = $1 AND id = $2";
        let removed = Statement::required(sql, whose())
            .recorded(act)
            .changing(RecordName::assistant(tenant, id));
        statements.push(removed);
        let existed = self.db.execute_all(statements).await?.is_some();
        if existed {
            self.db
                .execute(UNHELD_BLOBS, args![tenant.as_str()])
                .await?;
        }
        Ok(existed)
    }

    /// Who may do what with an assistant, by person.
    pub async fn access(
        &self,
        tenant: &TenantId,
        id: &AssistantId,
    ) -> Result<Vec<AssistantAccess>, Error> {
        let sql = "SELECT person, level FROM assistant_access \
                   WHERE tenant = $1 AND assistant = $2 ORDER BY person";
        let values = args![tenant.as_str(), id.as_str()];
        let rows: Vec<(String, String)> = self.db.fetch_all(sql, values).await?;
        let entries = rows.into_iter().map(|(person, text)| {
            Ok(AssistantAccess {
                person: (!person.is_empty()).then(|| user_id(person)).transpose()?,
                level: level(text)?,
            })
        });
        entries.collect()
    }

    /// Replaces the list of who may do what. Returns false if there is no such assistant, or one of the people
    /// is not of the tenant.
    pub async fn set_access(
        &self,
        tenant: &TenantId,
        id: &AssistantId,
        entries: &[AssistantAccess],
    ) -> Result<bool, Error> {
        let told = entries.iter().map(|entry| {
            let person = entry.person.as_ref();
            let whom = person.map_or("team", UserId::as_str);
            format!("{whom}: {}", entry.level.as_str())
        });
        let told: Vec<String> = told.collect();
        let act = of(ActName::AssistantShared, tenant, id).detail("access", told.join(", "));
        // Changes nothing but the version: so that a deleted assistant gets no list.
        let exists = Statement::required(
            "UPDATE assistants SET version = version WHERE tenant = $1 AND id = $2",
            args![tenant.as_str(), id.as_str()],
        )
        .recorded(act)
        .changing(RecordName::assistant_access(tenant, id));
        let cleared = Statement::new(
            "DELETE FROM assistant_access WHERE tenant = $1 AND assistant = $2",
            args![tenant.as_str(), id.as_str()],
        );
        let mut statements = vec![exists, cleared];
        statements.extend(entries.iter().map(|entry| given(tenant, id, entry)));
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// The file with that content, if a version of the assistant has it.
    pub async fn file(
        &self,
        tenant: &TenantId,
        id: &AssistantId,
        blob: &BlobId,
    ) -> Result<Option<(Attachment, Vec<u8>)>, Error> {
        let sql = "SELECT f.body, b.content FROM assistant_files f JOIN blobs b \
                   ON b.tenant = f.tenant AND b.id = f.blob \
                   WHERE f.tenant = $1 AND f.assistant = $2 AND f.blob = $3";
        let values = args![tenant.as_str(), id.as_str(), blob.as_str()];
        let row: Option<(String, Vec<u8>)> = self.db.fetch_optional(sql, values).await?;
        row.map(|(body, content)| Ok((from_json("attachment", &body)?, content)))
            .transpose()
    }

    /// Attaches files of an assistant to a session. Returns false if the assistant does not have all of them any
    /// more.
    pub async fn attach(
        &self,
        key: &SessionKey,
        id: &AssistantId,
        files: &[Attachment],
        at: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "INSERT INTO attachments (tenant, session, blob, body, bytes, created_at) \
                   SELECT f.tenant, $3, f.blob, f.body, f.bytes, $5 FROM assistant_files f \
                   WHERE f.tenant = $1 AND f.assistant = $2 AND f.blob = $4 \
                   ON CONFLICT (tenant, session, blob) DO UPDATE SET body = excluded.body";
        let statements = files.iter().map(|file| {
            let values = args![
                key.tenant.as_str(),
                id.as_str(),
                key.session.as_str(),
                file.id.as_str(),
                at.0
            ];
            Statement::required(sql, values)
        });
        let attached = self.db.execute_all(statements.collect()).await?;
        Ok(attached.is_some())
    }
}

/// The statements that store a version, with its new files.
fn version(
    tenant: &TenantId,
    id: &AssistantId,
    number: u64,
    new: NewAssistantVersion,
) -> Result<Vec<Statement>, Error> {
    let mut statements = Vec::new();
    for (file, content) in new.files {
        statements.push(Statement::new(
            "INSERT INTO blobs (tenant, id, content) VALUES ($1, $2, $3) \
             ON CONFLICT (tenant, id) DO UPDATE SET id = excluded.id",
            args![tenant.as_str(), file.id.as_str(), content],
        ));
        statements.push(Statement::new(
            "INSERT INTO assistant_files (tenant, assistant, blob, body, bytes) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant, assistant, blob) \
             DO UPDATE SET body = excluded.body",
            args![
                tenant.as_str(),
                id.as_str(),
                file.id.as_str(),
                to_json("attachment", &file)?.as_str(),
                int(file.bytes)
            ],
        ));
    }
    statements.push(Statement::new(
        "INSERT INTO assistant_versions (tenant, assistant, version, definition, made_by, \
         made_at, restored_from) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        args![
            tenant.as_str(),
            id.as_str(),
            int(number),
            to_json("assistant", &new.definition)?.as_str(),
            new.by.as_str(),
            new.at.0,
            new.restored_from.map(int)
        ],
    ));
    Ok(statements)
}

/// The statement that stores an entry of the list of who may do what. It changes nothing if the person is not of
/// the tenant.
fn given(tenant: &TenantId, id: &AssistantId, entry: &AssistantAccess) -> Statement {
    let values: Vec<Arg> = args![
        tenant.as_str(),
        id.as_str(),
        text(entry.person.as_ref()),
        entry.level.as_str()
    ];
    Statement::required(
        "INSERT INTO assistant_access (tenant, assistant, person, level) \
         SELECT $1, $2, $3, $4 WHERE $3 = '' \
         OR EXISTS (SELECT 1 FROM users WHERE tenant = $1 AND id = $3)",
        values,
    )
}

fn of(name: ActName, tenant: &TenantId, id: &AssistantId) -> Act {
    Act::new(name, tenant, "assistant", id.as_str())
}

fn text(person: Option<&UserId>) -> &str {
    person.map_or("", UserId::as_str)
}

fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn count(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

fn level(text: String) -> Result<AssistantLevel, Error> {
    AssistantLevel::parse(&text).ok_or_else(|| Error::corrupt("level of access", text))
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    id: String,
    owner: String,
    name: String,
    description: String,
    version: i64,
    created_by: String,
    created_at: i64,
    updated_by: String,
    updated_at: i64,
    own_level: Option<String>,
    team_level: Option<String>,
}

impl Row {
    fn into_row(self) -> Result<AssistantRow, Error> {
        let (id, owner) = (self.id, self.owner);
        Ok(AssistantRow {
            id: AssistantId::parse(&id).ok_or_else(|| Error::corrupt("assistant id", id))?,
            owner: (!owner.is_empty()).then(|| user_id(owner)).transpose()?,
            name: self.name,
            description: self.description,
            version: count(self.version),
            created_by: user_id(self.created_by)?,
            created_at: Timestamp(self.created_at),
            updated_by: user_id(self.updated_by)?,
            updated_at: Timestamp(self.updated_at),
            own_level: self.own_level.map(level).transpose()?,
            team_level: self.team_level.map(level).transpose()?,
        })
    }
}
