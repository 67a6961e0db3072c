//! Stores the groups of tenants, their members and their custom roles.

use std::collections::BTreeSet;

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args, taken};
use super::super::versions::RecordName;
use super::custom_roles::CustomRole;
use super::users::name_key;
use super::{tenant_id, user_id};
use sepal_core::domain::{TenantId, Timestamp, UserId};

/// A group of people of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserGroup {
    pub tenant: TenantId,
    /// `grp_…`.
    pub id: String,
    /// The name, unique in the tenant.
    pub name: String,
    /// May be empty.
    pub description: String,
    pub created_at: Timestamp,
}

/// A group with the number of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    pub group: UserGroup,
    pub members: u64,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    pub user: UserId,
    pub name: String,
    /// The issuer whose groups made the person a member at their last sign-in, or `scim` for the directory; `None`
    /// = somebody added them here.
    pub issuer: Option<String>,
}

/// The groups that a person joins and leaves at a sign-in, because their issuer says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupsChange {
    pub joins: Vec<String>,
    pub leaves: Vec<String>,
}

impl GroupsChange {
    /// The statements that make the change. A membership that somebody gave here stays.
    pub(super) fn statements(
        &self,
        tenant: &TenantId,
        user: &UserId,
        issuer: &str,
    ) -> Vec<Statement> {
        let act = |name, id: &str| {
            of(name, tenant, id)
                .detail("user", user.as_str())
                .detail("issuer", issuer)
                .by(tenant, user)
        };
        let values = |id: &str| args![tenant.as_str(), user.as_str(), id, issuer];
        let joins = self.joins.iter().map(|id| {
            let sql = "INSERT INTO group_members (tenant, user_id, group_id, issuer) \
                       SELECT $1, $2, $3, $4 WHERE EXISTS (SELECT 1 FROM user_groups \
                       WHERE tenant = $1 AND id = $3) ON CONFLICT DO NOTHING";
            Statement::new(sql, values(id)).recorded(act(ActName::GroupJoined, id))
        });
        let leaves = self.leaves.iter().map(|id| {
            let sql = "DELETE FROM group_members WHERE tenant = $1 AND user_id = $2 \
                       AND group_id = $3 AND issuer = $4";
            Statement::new(sql, values(id)).recorded(act(ActName::GroupLeft, id))
        });
        joins.chain(leaves).collect()
    }
}

/// Access to the stored groups.
pub struct UserGroups<'s> {
    db: &'s Db,
}

impl<'s> UserGroups<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds a group. Returns [`Error::Taken`] if the name is in use in the tenant.
    pub async fn add(&self, group: &UserGroup) -> Result<(), Error> {
        let mut values = columns(group);
        values.push(Arg::from(group.created_at.0));
        let sql = "INSERT INTO user_groups (tenant, id, name, name_key, description, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let act = of(ActName::GroupAdded, &group.tenant, &group.id);
        let act = act.detail("name", group.name.as_str());
        let added = self.db.record(act, sql, values).await;
        added.map_err(taken(&group.name))?;
        Ok(())
    }

    /// Changes name and description of a group. Returns false if it does not exist, and [`Error::Taken`] if
    /// the name is in use in the tenant.
    pub async fn change(&self, group: &UserGroup) -> Result<bool, Error> {
        let sql = "UPDATE user_groups SET name = $3, name_key = $4, description = $5 \
                   WHERE tenant = $1 AND id = $2";
        let act = of(ActName::GroupChanged, &group.tenant, &group.id);
        let act = act.detail("name", group.name.as_str());
        let changed = self.db.record(act, sql, columns(group)).await;
        Ok(changed.map_err(taken(&group.name))? > 0)
    }

    /// Deletes a group with its rules and budgets and what it names; its members stay in the tenant. Returns
    /// false if it does not exist.
    pub async fn remove(&self, tenant: &TenantId, id: &str) -> Result<bool, Error> {
        let which = || args![tenant.as_str(), id];
        let done = self
            .db
            .execute_all(vec![
                Statement::new(
                    "DELETE FROM group_members WHERE tenant = $1 AND group_id = $2",
                    which(),
                ),
                Statement::new(
                    "DELETE FROM group_roles WHERE tenant = $1 AND group_id = $2",
                    which(),
                ),
                Statement::new(
                    "DELETE FROM directory_groups WHERE tenant = $1 AND group_id = $2",
                    which(),
                ),
                Statement::new(
                    "DELETE FROM group_access WHERE tenant = $1 AND group_id = $2",
                    which(),
                ),
                Statement::new(
                    "DELETE FROM rules WHERE tenant = $1 AND group_id = $2",
                    which(),
                ),
                Statement::new(
                    "DELETE FROM group_spend WHERE tenant = $1 AND group_id = $2",
                    which(),
                ),
                Statement::new(
                    "DELETE FROM budget_warnings WHERE tenant = $1 \
                     AND level IN ('group_each', 'group_pooled') \
                     AND (subject = $2 OR subject LIKE $2 || ' %')",
                    which(),
                ),
                Statement::new(
                    "DELETE FROM budgets WHERE tenant = $1 \
                     AND level IN ('group_each', 'group_pooled') AND subject = $2",
                    which(),
                )
                .changing(RecordName::budgets(tenant)),
                Statement::required(
                    "DELETE FROM user_groups WHERE tenant = $1 AND id = $2",
                    which(),
                )
                .recorded(of(ActName::GroupRemoved, tenant, id)),
            ])
            .await?;
        Ok(done.is_some())
    }

    /// The groups of a tenant by name: all, or the one with this id.
    pub async fn list(
        &self,
        tenant: &TenantId,
        id: Option<&str>,
    ) -> Result<Vec<ListedGroup>, Error> {
        let sql = "SELECT g.*, (SELECT COUNT(*) FROM group_members m WHERE m.tenant = g.tenant \
                   AND m.group_id = g.id) AS members FROM user_groups g \
                   WHERE g.tenant = $1 AND ($2 = '' OR g.id = $2) ORDER BY g.name_key";
        let values = args![tenant.as_str(), id.unwrap_or_default()];
        let rows: Vec<GroupRow> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(GroupRow::into_listed).collect()
    }

    /// The groups of a person, by name.
    pub async fn of_person(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Vec<UserGroup>, Error> {
        let sql = "SELECT g.*, CAST(0 AS BIGINT) AS members FROM user_groups g JOIN group_members m \
                   ON m.tenant = g.tenant AND m.group_id = g.id \
                   WHERE m.tenant = $1 AND m.user_id = $2 ORDER BY g.name_key";
        let values = args![tenant.as_str(), user.as_str()];
        let rows: Vec<GroupRow> = self.db.fetch_all(sql, values).await?;
        let groups = rows.into_iter();
        groups.map(|row| Ok(row.into_listed()?.group)).collect()
    }

    /// The ids of the groups in which an issuer put a person.
    pub async fn filled(
        &self,
        tenant: &TenantId,
        user: &UserId,
        issuer: &str,
    ) -> Result<BTreeSet<String>, Error> {
        let sql = "SELECT group_id FROM group_members \
                   WHERE tenant = $1 AND user_id = $2 AND issuer = $3";
        let values = args![tenant.as_str(), user.as_str(), issuer];
        let rows: Vec<(String,)> = self.db.fetch_all(sql, values).await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }

    /// The members of a group, by name.
    pub async fn members(&self, tenant: &TenantId, id: &str) -> Result<Vec<GroupMember>, Error> {
        let sql = "SELECT u.id, u.name, m.issuer FROM group_members m JOIN users u \
                   ON u.tenant = m.tenant AND u.id = m.user_id \
                   WHERE m.tenant = $1 AND m.group_id = $2 ORDER BY u.name_key";
        let rows: Vec<(String, String, Option<String>)> =
            self.db.fetch_all(sql, args![tenant.as_str(), id]).await?;
        rows.into_iter()
            .map(|(id, name, issuer)| {
                let user = user_id(id)?;
                Ok(GroupMember { user, name, issuer })
            })
            .collect()
    }

    /// Adds a person to a group. One whom their issuer made a member stays one from now on without it.
    pub async fn add_member(
        &self,
        tenant: &TenantId,
        id: &str,
        user: &UserId,
    ) -> Result<(), Error> {
        let act = of(ActName::GroupJoined, tenant, id).detail("user", user.as_str());
        let sql = "INSERT INTO group_members (tenant, user_id, group_id, issuer) \
                   VALUES ($1, $2, $3, NULL) ON CONFLICT (tenant, user_id, group_id) \
                   DO UPDATE SET issuer = NULL WHERE group_members.issuer IS NOT NULL";
        let values = args![tenant.as_str(), user.as_str(), id];
        self.db.record(act, sql, values).await?;
        Ok(())
    }

    /// Removes a person from a group. Returns false if they are no member.
    pub async fn remove_member(
        &self,
        tenant: &TenantId,
        id: &str,
        user: &UserId,
    ) -> Result<bool, Error> {
        let act = of(ActName::GroupLeft, tenant, id).detail("user", user.as_str());
        let sql = "DELETE FROM group_members WHERE tenant = $1 AND user_id = $2 AND group_id = $3";
        let values = args![tenant.as_str(), user.as_str(), id];
        Ok(self.db.record(act, sql, values).await? > 0)
    }

    /// Gives roles to the members of a group and takes others from them, as one step.
    pub async fn give(
        &self,
        (tenant, id): (&TenantId, &str),
        given: &[&CustomRole],
        taken: &[&CustomRole],
    ) -> Result<(), Error> {
        let act = |name, role: &CustomRole| {
            of(name, tenant, id)
                .detail("role", role.id.as_str())
                .detail("name", role.name.as_str())
                .detail("rights", role.rights.to_text())
        };
        let values = |role: &CustomRole| args![tenant.as_str(), id, role.id.as_str()];
        let given = given.iter().map(|role| {
            let sql = "INSERT INTO group_roles (tenant, group_id, role_id) VALUES ($1, $2, $3) \
                       ON CONFLICT DO NOTHING";
            Statement::new(sql, values(role)).recorded(act(ActName::RoleGiven, role))
        });
        let taken = taken.iter().map(|role| {
            let sql =
                "DELETE FROM group_roles WHERE tenant = $1 AND group_id = $2 AND role_id = $3";
            Statement::new(sql, values(role)).recorded(act(ActName::RoleTaken, role))
        });
        self.db.execute_all(given.chain(taken).collect()).await?;
        Ok(())
    }
}

fn of(name: ActName, tenant: &TenantId, id: &str) -> Act {
    Act::new(name, tenant, "group", id)
}

fn columns(group: &UserGroup) -> Vec<Arg> {
    args![
        group.tenant.as_str(),
        group.id.as_str(),
        group.name.as_str(),
        name_key(&group.name).as_str(),
        group.description.as_str()
    ]
}

#[derive(sqlx_macros::FromRow)]
struct GroupRow {
    tenant: String,
    id: String,
    name: String,
    description: String,
    created_at: i64,
    members: i64,
}

impl GroupRow {
    fn into_listed(self) -> Result<ListedGroup, Error> {
        Ok(ListedGroup {
            group: UserGroup {
                tenant: tenant_id(self.tenant)?,
                id: self.id,
                name: self.name,
                description: self.description,
                created_at: Timestamp(self.created_at),
            },
            members: u64::try_from(self.members).unwrap_or(0),
        })
    }
}
