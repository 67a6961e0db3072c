//! Stores the rules by which people and admins decide calls in advance, and counts their uses.

use std::collections::HashMap;

use sepal_policy::Rule;

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::{from_json, to_json, user_id};
use sepal_core::domain::{Digest, TenantId, Timestamp, UserId};

/// The most rules of one person, of one group, and of a tenant's admins. The limit exists because every call is checked
/// against each rule.
pub const MOST_RULES: i64 = 200;

/// A rule that applies beyond one session.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleRow {
    pub rule: Rule,
    /// The person to whose sessions it applies; `None` = the sessions of a group's members, or of everyone in
    /// the tenant.
    pub owner: Option<UserId>,
    /// The id of the group to whose members' sessions it applies; `None` = it is of a person or the tenant.
    pub group: Option<String>,
    pub created_by: UserId,
    pub created_at: Timestamp,
}

/// The number of calls that a rule decided, and the time of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleUses {
    pub count: u64,
    pub last: Timestamp,
}

/// Access to the stored rules.
pub struct Rules<'s> {
    db: &'s Db,
}

impl<'s> Rules<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// All rules of a tenant, including those of its users, oldest first.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<RuleRow>, Error> {
        let sql = "SELECT owner, group_id, body, created_by, created_at FROM rules WHERE tenant = $1 \
                   ORDER BY created_at, id";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![tenant.as_str()]).await?;
        rows.into_iter().map(rule_row).collect()
    }

    /// Adds a rule. Returns false if its owner, its group or the tenant already has [`MOST_RULES`], or if the
    /// group does not exist.
    pub async fn add(&self, tenant: &TenantId, row: &RuleRow) -> Result<bool, Error> {
        let sql = "INSERT INTO rules (tenant, id, owner, body, created_by, created_at, group_id) \
                   SELECT $1, $2, $3, $4, $5, $6, $8 WHERE \
                   (SELECT COUNT(*) FROM rules WHERE tenant = $1 AND owner = $3 AND group_id = $8) < $7 \
                   AND ($8 = '' OR EXISTS (SELECT 1 FROM user_groups WHERE tenant = $1 AND id = $8))";
        let body = to_json("rule", &row.rule)?;
        let values = args![
            tenant.as_str(),
            row.rule.id.as_str(),
            row.owner.as_ref().map_or("", UserId::as_str),
            body.as_str(),
            row.created_by.as_str(),
            row.created_at.0,
            MOST_RULES,
            row.group.as_deref().unwrap_or_default()
        ];
        let act = of(
            ActName::RuleAdded,
            tenant,
            row.rule.id.as_str(),
            row.owner.as_ref(),
        );
        let act = match &row.group {
            Some(group) => act.detail("group", group.as_str()),
            None => act,
        };
        // The conditions of a rule may hold arguments of calls, so its hash stands for it.
        let act = act.detail("hash", Digest::of_bytes(body.as_bytes()).as_str());
        Ok(self.db.record(act, sql, values).await? > 0)
    }

    /// Deletes a rule of this owner; without one, of a group or the tenant. Returns true if it existed.
    pub async fn remove(
        &self,
        tenant: &TenantId,
        id: &str,
        owner: Option<&UserId>,
    ) -> Result<bool, Error> {
        let sql = "DELETE FROM rules WHERE tenant = $1 AND id = $2 AND owner = $3";
        let act = of(ActName::RuleRemoved, tenant, id, owner);
        let owner = owner.map_or("", UserId::as_str);
        let values = args![tenant.as_str(), id, owner];
        Ok(self.db.record(act, sql, values).await? > 0)
    }

    /// The uses of each rule in the sessions of `owner`, or in all sessions of the tenant.
    pub async fn uses(
        &self,
        tenant: &TenantId,
        owner: Option<&UserId>,
    ) -> Result<HashMap<String, RuleUses>, Error> {
        let sql = "SELECT rule, COUNT(*), MAX(at) FROM tool_calls WHERE tenant = $1 \
                   AND rule IS NOT NULL AND ($2 = '' OR owner = $2) GROUP BY rule";
        let values = args![tenant.as_str(), owner.map_or("", UserId::as_str)];
        let rows: Vec<(String, i64, i64)> = self.db.fetch_all(sql, values).await?;
        let uses = rows.into_iter().map(|(id, count, last)| {
            let count = u64::try_from(count).unwrap_or(0);
            let last = Timestamp(last);
            (id, RuleUses { count, last })
        });
        Ok(uses.collect())
    }
}

/// An act on a rule of a person, or of the tenant.
fn of(name: ActName, tenant: &TenantId, id: &str, owner: Option<&UserId>) -> Act {
    Act::new(name, tenant, "rule", id).detail("owner", owner.map(UserId::as_str))
}

type Row = (String, String, String, String, i64);

fn rule_row((owner, group, body, created_by, created_at): Row) -> Result<RuleRow, Error> {
    Ok(RuleRow {
        rule: from_json("rule", &body)?,
        owner: (!owner.is_empty()).then(|| user_id(owner)).transpose()?,
        group: (!group.is_empty()).then_some(group),
        created_by: user_id(created_by)?,
        created_at: Timestamp(created_at),
    })
}
