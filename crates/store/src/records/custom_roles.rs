//! Stores the custom roles of tenants, and who has them.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args, taken};
use super::given_rights::custom_rights;
use super::tenant_id;
use super::users::name_key;
use sepal_core::domain::{Rights, TenantId, Timestamp, UserId};

/// A named set of rights of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomRole {
    pub tenant: TenantId,
    /// `rol_…`.
    pub id: String,
    /// The name, unique in the tenant.
    pub name: String,
    /// May be empty.
    pub description: String,
    pub rights: Rights,
    pub created_at: Timestamp,
}

/// A custom role with what administrators see of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRole {
    pub role: CustomRole,
    /// The number of people who were given the role themselves.
    pub people: u64,
    /// The number of groups whose members have the role.
    pub groups: u64,
}

/// Access to the stored custom roles.
pub struct CustomRoles<'s> {
    db: &'s Db,
}

impl<'s> CustomRoles<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds a role. Returns [`Error::Taken`] if the name is in use in the tenant.
    pub async fn add(&self, role: &CustomRole) -> Result<(), Error> {
        let mut values = columns(role);
        values.push(Arg::from(role.created_at.0));
        let sql = "INSERT INTO custom_roles (tenant, id, name, name_key, description, rights, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let act = described(ActName::RoleAdded, role);
        let added = self.db.record(act, sql, values).await;
        added.map_err(taken(&role.name))?;
        Ok(())
    }

    /// Changes name, description and rights of a role. Returns false if it does not exist, and
    /// [`Error::Taken`] if the name is in use in the tenant.
    pub async fn change(&self, role: &CustomRole) -> Result<bool, Error> {
        let sql = "UPDATE custom_roles SET name = $3, name_key = $4, description = $5, rights = $6 \
                   WHERE tenant = $1 AND id = $2";
        let act = described(ActName::RoleChanged, role);
        let changed = self.db.record(act, sql, columns(role)).await;
        Ok(changed.map_err(taken(&role.name))? > 0)
    }

    /// Removes a role from everybody who has it, and deletes it. Returns false if it does not exist.
    pub async fn remove(&self, tenant: &TenantId, id: &str) -> Result<bool, Error> {
        let which = || args![tenant.as_str(), id];
        let done = self
            .db
            .execute_all(vec![
                Statement::new(
                    "DELETE FROM role_holders WHERE tenant = $1 AND role_id = $2",
                    which(),
                ),
                Statement::new(
                    "DELETE FROM group_roles WHERE tenant = $1 AND role_id = $2",
                    which(),
                ),
                Statement::required(
                    "DELETE FROM custom_roles WHERE tenant = $1 AND id = $2",
                    which(),
                )
                .recorded(Act::new(ActName::RoleRemoved, tenant, "role", id)),
            ])
            .await?;
        Ok(done.is_some())
    }

    /// The roles of a tenant by name: all, or the one with this id.
    pub async fn list(
        &self,
        tenant: &TenantId,
        id: Option<&str>,
    ) -> Result<Vec<ListedRole>, Error> {
        let sql = "SELECT r.*, (SELECT COUNT(*) FROM role_holders h WHERE h.tenant = r.tenant \
                   AND h.role_id = r.id) AS people, (SELECT COUNT(*) FROM group_roles g \
                   WHERE g.tenant = r.tenant AND g.role_id = r.id) AS in_groups \
                   FROM custom_roles r WHERE r.tenant = $1 AND ($2 = '' OR r.id = $2) \
                   ORDER BY r.name_key";
        let values = args![tenant.as_str(), id.unwrap_or_default()];
        let rows: Vec<RoleRow> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(RoleRow::into_listed).collect()
    }

    /// The roles that a person was given themselves, by name.
    pub async fn given_to(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Vec<CustomRole>, Error> {
        let sql = "SELECT r.*, CAST(0 AS BIGINT) AS people, CAST(0 AS BIGINT) AS in_groups FROM custom_roles r JOIN role_holders h \
                   ON h.tenant = r.tenant AND h.role_id = r.id \
                   WHERE h.tenant = $1 AND h.user_id = $2 ORDER BY r.name_key";
        self.roles(sql, args![tenant.as_str(), user.as_str()]).await
    }

    /// The roles that the members of a group have, by name.
    pub async fn of_group(&self, tenant: &TenantId, group: &str) -> Result<Vec<CustomRole>, Error> {
        let sql = "SELECT r.*, CAST(0 AS BIGINT) AS people, CAST(0 AS BIGINT) AS in_groups FROM custom_roles r JOIN group_roles g \
                   ON g.tenant = r.tenant AND g.role_id = r.id \
                   WHERE g.tenant = $1 AND g.group_id = $2 ORDER BY r.name_key";
        self.roles(sql, args![tenant.as_str(), group]).await
    }

    /// Gives roles to a person and takes others from them, as one step.
    pub async fn give(
        &self,
        (tenant, user): (&TenantId, &UserId),
        given: &[&CustomRole],
        taken: &[&CustomRole],
    ) -> Result<(), Error> {
        let act = |name, role: &CustomRole| {
            Act::new(name, tenant, "user", user.as_str())
                .detail("role", role.id.as_str())
                .detail("name", role.name.as_str())
                .detail("rights", role.rights.to_text())
        };
        let values = |role: &CustomRole| args![tenant.as_str(), user.as_str(), role.id.as_str()];
        let given = given.iter().map(|role| {
            let sql = "INSERT INTO role_holders (tenant, user_id, role_id) VALUES ($1, $2, $3) \
                       ON CONFLICT DO NOTHING";
            Statement::new(sql, values(role)).recorded(act(ActName::RoleGiven, role))
        });
        let taken = taken.iter().map(|role| {
            let sql =
                "DELETE FROM role_holders WHERE tenant = $1 AND user_id = $2 AND role_id = $3";
            Statement::new(sql, values(role)).recorded(act(ActName::RoleTaken, role))
        });
        self.db.execute_all(given.chain(taken).collect()).await?;
        Ok(())
    }

    /// The rights that custom roles and groups give a person.
    pub async fn rights_of(&self, tenant: &TenantId, user: &UserId) -> Result<Rights, Error> {
        let sql = concat!(
            "SELECT ",
            custom_rights!(),
            " FROM users u WHERE u.tenant = $1 AND u.id = $2"
        );
        let whom = args![tenant.as_str(), user.as_str()];
        let row: Option<(Option<String>,)> = self.db.fetch_optional(sql, whom).await?;
        let text = row.and_then(|(text,)| text).unwrap_or_default();
        Ok(Rights::from_text(&text))
    }

    async fn roles(&self, sql: &'static str, values: Vec<Arg>) -> Result<Vec<CustomRole>, Error> {
        let rows: Vec<RoleRow> = self.db.fetch_all(sql, values).await?;
        let roles = rows.into_iter();
        roles.map(|row| Ok(row.into_listed()?.role)).collect()
    }
}

fn described(name: ActName, role: &CustomRole) -> Act {
    Act::new(name, &role.tenant, "role", role.id.as_str())
        .detail("name", role.name.as_str())
        .detail("rights", role.rights.to_text())
}

fn columns(role: &CustomRole) -> Vec<Arg> {
    args![
        role.tenant.as_str(),
        role.id.as_str(),
        role.name.as_str(),
        name_key(&role.name).as_str(),
        role.description.as_str(),
        role.rights.to_text().as_str()
    ]
}

#[derive(sqlx_macros::FromRow)]
struct RoleRow {
    tenant: String,
    id: String,
    name: String,
    description: String,
    rights: String,
    created_at: i64,
    people: i64,
    in_groups: i64,
}

impl RoleRow {
    fn into_listed(self) -> Result<ListedRole, Error> {
        Ok(ListedRole {
            role: CustomRole {
                tenant: tenant_id(self.tenant)?,
                id: self.id,
                name: self.name,
                description: self.description,
                rights: Rights::from_text(&self.rights),
                created_at: Timestamp(self.created_at),
            },
            people: u64::try_from(self.people).unwrap_or(0),
            groups: u64::try_from(self.in_groups).unwrap_or(0),
        })
    }
}
