//! Stores skills of tenants and users: metadata, the files as one archive, and which users switched a skill
//! off for themselves.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, Statement, args, taken};
use super::super::versions::RecordName;
use super::user_id;
use sepal_core::domain::{SkillId, TenantId, Timestamp, UserId};

/// A stored skill without its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRow {
    pub id: SkillId,
    /// The user to whose sessions it applies; `None` = the sessions of everyone in the tenant.
    pub owner: Option<UserId>,
    pub name: String,
    pub description: String,
    /// The SHA-256 digest of its files, in hex.
    pub hash: String,
    /// The rest of its front matter, and the list of its files, as JSON.
    pub facts: String,
    /// True if the skill is switched on for its owner, or for the whole tenant if it has no owner.
    pub is_enabled: bool,
    /// The version of the skill, which counts from 1 and grows with each replacement.
    pub version: u64,
    pub created_by: UserId,
    pub created_at: Timestamp,
    pub updated_by: UserId,
    pub updated_at: Timestamp,
    /// True if the user who reads the list switched it off for themselves.
    pub is_off_for_reader: bool,
}

/// A skill as a session is offered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedSkill {
    pub id: SkillId,
    /// True if the skill is the user's own, false if it is the tenant's.
    pub is_own: bool,
    pub name: String,
    pub description: String,
    /// The SHA-256 digest of its files, in hex.
    pub hash: String,
}

/// Access to the stored skills.
pub struct Skills<'s> {
    db: &'s Db,
}

impl<'s> Skills<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The skills of the tenant and of this user, by name.
    pub async fn list(&self, tenant: &TenantId, person: &UserId) -> Result<Vec<SkillRow>, Error> {
        let sql = "SELECT s.*, EXISTS (SELECT 1 FROM skill_switches w WHERE w.tenant = s.tenant \
                   AND w.person = $2 AND w.skill = s.id) AS is_off FROM skills s \
                   WHERE s.tenant = $1 AND (s.owner = '' OR s.owner = $2) ORDER BY s.name, s.owner";
        let values = args![tenant.as_str(), person.as_str()];
        let rows: Vec<Row> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// A skill of the tenant or of this user.
    pub async fn find(
        &self,
        tenant: &TenantId,
        person: &UserId,
        id: &SkillId,
    ) -> Result<Option<SkillRow>, Error> {
        let sql = "SELECT s.*, EXISTS (SELECT 1 FROM skill_switches w WHERE w.tenant = s.tenant \
                   AND w.person = $2 AND w.skill = s.id) AS is_off FROM skills s \
                   WHERE s.tenant = $1 AND (s.owner = '' OR s.owner = $2) AND s.id = $3";
        let values = args![tenant.as_str(), person.as_str(), id.as_str()];
        let row: Option<Row> = self.db.fetch_optional(sql, values).await?;
        row.map(Row::into_row).transpose()
    }

    /// The skills offered to sessions of this user: all that are switched on, by name.
    pub async fn offered(
        &self,
        tenant: &TenantId,
        person: &UserId,
    ) -> Result<Vec<OfferedSkill>, Error> {
        let sql = "SELECT id, owner, name, description, hash FROM skills \
                   WHERE tenant = $1 AND (owner = '' OR owner = $2) AND is_enabled \
                   AND NOT EXISTS (SELECT 1 FROM skill_switches w WHERE w.tenant = skills.tenant \
                   AND w.person = $2 AND w.skill = skills.id) ORDER BY name, owner";
        let values = args![tenant.as_str(), person.as_str()];
        let rows: Vec<(String, String, String, String, String)> =
            self.db.fetch_all(sql, values).await?;
        let offered = rows
            .into_iter()
            .map(|(id, owner, name, description, hash)| {
                Ok(OfferedSkill {
                    id: skill_id(id)?,
                    is_own: !owner.is_empty(),
                    name,
                    description,
                    hash,
                })
            });
        offered.collect()
    }

    /// Adds a skill with its files. Returns false if its owner already has `most` skills, and
    /// [`Error::Taken`] if the owner has another skill of this name.
    pub async fn add(
        &self,
        tenant: &TenantId,
        row: &SkillRow,
        content: Vec<u8>,
        most: u64,
    ) -> Result<bool, Error> {
        let sql = "INSERT INTO skills (tenant, id, owner, name, description, hash, facts, is_enabled, \
                   version, created_by, created_at, updated_by, updated_at) \
                   SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $10, $11 WHERE \
                   (SELECT COUNT(*) FROM skills WHERE tenant = $1 AND owner = $3) < $12";
        let values = args![
            tenant.as_str(),
            row.id.as_str(),
            owner(row.owner.as_ref()),
            row.name.as_str(),
            row.description.as_str(),
            row.hash.as_str(),
            row.facts.as_str(),
            row.is_enabled,
            1_i64,
            row.created_by.as_str(),
            row.created_at.0,
            i64::try_from(most).unwrap_or(i64::MAX)
        ];
        let statements = vec![
            bundle(tenant, &row.hash, content),
            Statement::required(sql, values).recorded(of(ActName::SkillAdded, tenant, row)),
        ];
        let added = self.db.execute_all(statements).await;
        Ok(added.map_err(taken(&row.name))?.is_some())
    }

    /// Replaces the files of a skill, as its next version. Returns false if its version is no longer
    /// `row.version`. `old` is the hash of its previous files.
    pub async fn replace(
        &self,
        tenant: &TenantId,
        row: &SkillRow,
        content: Vec<u8>,
        old: &str,
    ) -> Result<bool, Error> {
        let sql = "UPDATE skills SET name = $4, description = $5, hash = $6, facts = $7, \
                   version = version + 1, updated_by = $8, updated_at = $9 \
                   WHERE tenant = $1 AND id = $2 AND owner = $3 AND version = $10";
        let values = args![
            tenant.as_str(),
            row.id.as_str(),
            owner(row.owner.as_ref()),
            row.name.as_str(),
            row.description.as_str(),
            row.hash.as_str(),
            row.facts.as_str(),
            row.updated_by.as_str(),
            row.updated_at.0,
            i64::try_from(row.version).unwrap_or(i64::MAX)
        ];
        let statements = vec![
            bundle(tenant, &row.hash, content),
            Statement::required(sql, values)
                .recorded(of(ActName::SkillReplaced, tenant, row))
                .changing(RecordName::skill(tenant, &row.id)),
            unused(tenant, old),
        ];
        let replaced = self.db.execute_all(statements).await;
        Ok(replaced.map_err(taken(&row.name))?.is_some())
    }

    /// Deletes a skill, and its files unless another skill has the same. Returns false if it does not exist.
    pub async fn remove(&self, tenant: &TenantId, row: &SkillRow) -> Result<bool, Error> {
        let whose = || args![tenant.as_str(), row.id.as_str()];
        let statements = vec![
            Statement::required("DELETE FROM skills WHERE tenant = $1 AND id = $2", whose())
                .recorded(of(ActName::SkillRemoved, tenant, row))
                .changing(RecordName::skill(tenant, &row.id)),
            Statement::new(
                "DELETE FROM skill_switches WHERE tenant = $1 AND skill = $2",
                whose(),
            ),
            unused(tenant, &row.hash),
        ];
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// Switches a skill on or off for everyone to whom it applies. Returns false if it does not exist.
    pub async fn set_enabled(
        &self,
        tenant: &TenantId,
        (id, is_enabled): (&SkillId, bool),
    ) -> Result<bool, Error> {
        let sql = "UPDATE skills SET is_enabled = $3 WHERE tenant = $1 AND id = $2";
        let values = args![tenant.as_str(), id.as_str(), is_enabled];
        let act = Act::new(ActName::SkillSwitched, tenant, "skill", id.as_str());
        let act = act.detail("isEnabled", is_enabled);
        let record = RecordName::skill(tenant, id);
        Ok(self.db.change(record, act, sql, values).await? > 0)
    }

    /// Switches a skill on or off for this user alone.
    pub async fn switch(
        &self,
        tenant: &TenantId,
        person: &UserId,
        id: &SkillId,
        is_on: bool,
    ) -> Result<(), Error> {
        let sql = if is_on {
            "DELETE FROM skill_switches WHERE tenant = $1 AND person = $2 AND skill = $3"
        } else {
            "INSERT INTO skill_switches (tenant, person, skill) \
             SELECT tenant, $2, id FROM skills WHERE tenant = $1 AND id = $3 ON CONFLICT DO NOTHING"
        };
        let values = args![tenant.as_str(), person.as_str(), id.as_str()];
        let act = Act::new(ActName::SkillSwitched, tenant, "skill", id.as_str())
            .detail("person", person.as_str())
            .detail("isEnabled", is_on);
        let record = RecordName::skill_switch(tenant, person, id);
        self.db.change(record, act, sql, values).await?;
        Ok(())
    }

    /// The archive of files with this hash.
    pub async fn content(&self, tenant: &TenantId, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        let sql = "SELECT content FROM skill_bundles WHERE tenant = $1 AND hash = $2";
        let values = args![tenant.as_str(), hash];
        let row: Option<(Vec<u8>,)> = self.db.fetch_optional(sql, values).await?;
        Ok(row.map(|(content,)| content))
    }
}

/// An act on a skill.
fn of(name: ActName, tenant: &TenantId, row: &SkillRow) -> Act {
    Act::new(name, tenant, "skill", row.id.as_str())
        .detail("name", row.name.as_str())
        .detail("owner", row.owner.as_ref().map(UserId::as_str))
        .detail("hash", row.hash.as_str())
}

/// Writes the files. The row is written even if it exists, which locks it, so that no other transaction
/// deletes it.
fn bundle(tenant: &TenantId, hash: &str, content: Vec<u8>) -> Statement {
    Statement::new(
        "INSERT INTO skill_bundles (tenant, hash, content) VALUES ($1, $2, $3) \
         ON CONFLICT (tenant, hash) DO UPDATE SET hash = excluded.hash",
        args![tenant.as_str(), hash, content],
    )
}

/// Deletes files that no skill uses any more.
fn unused(tenant: &TenantId, hash: &str) -> Statement {
    Statement::new(
        "DELETE FROM skill_bundles WHERE tenant = $1 AND hash = $2 AND NOT EXISTS \
         (SELECT 1 FROM skills WHERE tenant = $1 AND hash = $2)",
        args![tenant.as_str(), hash],
    )
}

fn owner(owner: Option<&UserId>) -> &str {
    owner.map_or("", UserId::as_str)
}

fn skill_id(text: String) -> Result<SkillId, Error> {
    SkillId::parse(&text).ok_or_else(|| Error::corrupt("skill id", text))
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    id: String,
    owner: String,
    name: String,
    description: String,
    hash: String,
    facts: String,
    is_enabled: bool,
    version: i64,
    created_by: String,
    created_at: i64,
    updated_by: String,
    updated_at: i64,
    is_off: bool,
}

impl Row {
    fn into_row(self) -> Result<SkillRow, Error> {
        let owner = self.owner;
        Ok(SkillRow {
            id: skill_id(self.id)?,
            owner: (!owner.is_empty()).then(|| user_id(owner)).transpose()?,
            name: self.name,
            description: self.description,
            hash: self.hash,
            facts: self.facts,
            is_enabled: self.is_enabled,
            version: u64::try_from(self.version).unwrap_or(0),
            created_by: user_id(self.created_by)?,
            created_at: Timestamp(self.created_at),
            updated_by: user_id(self.updated_by)?,
            updated_at: Timestamp(self.updated_at),
            is_off_for_reader: self.is_off,
        })
    }
}
