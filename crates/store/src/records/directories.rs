//! Stores what the directory of a tenant (SCIM) says of people and groups.
//!
//! A directory sees the people and groups that it made, and those to which somebody here linked it. What it
//! deleted stays as a row that it does not see, so that it can come back as the same person.

use std::collections::BTreeSet;

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, Statement, args, taken};
use super::admission::role;
use super::user_groups::UserGroup;
use super::users::{INSERT_USER, NewUser, args_of_user, ended_access, is_not_last_owner, name_key};
use super::web_sessions::Identity;
use super::{tenant_id, user_id};
use sepal_core::domain::{TenantId, Timestamp, User, UserId};

/// The issuer of memberships that a directory gave.
pub const DIRECTORY: &str = "scim";

/// What a directory says of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name in the directory, unique in the tenant.
    pub user_name: String,
    /// The directory's own id of the person, unique in the tenant.
    pub external_id: Option<String>,
    /// What else it says, as JSON.
    pub profile: String,
}

/// A person of a tenant whom its directory made or to whom it was linked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryPerson {
    pub user: User,
    /// True if the person may not enter, whoever decided that.
    pub is_disabled: bool,
    pub entry: DirectoryEntry,
    /// True if the person was here before the directory.
    pub is_linked: bool,
    /// True if the directory deleted the person and does not see them any more.
    pub is_removed: bool,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
}

/// Which people to read; `None` = any.
#[derive(Debug, Clone, Copy, Default)]
pub struct PeopleWanted<'a> {
    pub id: Option<&'a str>,
    /// In upper or lower case.
    pub user_name: Option<&'a str>,
    pub external_id: Option<&'a str>,
    /// True if people whom the directory deleted are read, too.
    pub with_removed: bool,
}

/// A group that the directory of its tenant made or to which it was linked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryGroup {
    pub group: UserGroup,
    pub external_id: Option<String>,
    /// True if the group was here before the directory.
    pub is_linked: bool,
    pub changed_at: Timestamp,
}

/// The membership of a person whom the directory sees in a group that it sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryMember {
    pub group: String,
    pub group_name: String,
    pub user: UserId,
    /// True if the directory made the person a member; otherwise it cannot take that back.
    pub is_by_directory: bool,
}

/// Which memberships to read: of groups or of people whose ids are between two, both included.
#[derive(Debug, Clone, Copy)]
pub enum MembersOf<'a> {
    Groups(&'a str, &'a str),
    People(&'a str, &'a str),
}

/// The value by which a directory's person is found for an account that signs in for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryKey<'a> {
    ExternalId(&'a str),
    UserName(&'a str),
}

/// Access to what directories say.
pub struct Directories<'s> {
    db: &'s Db,
}

const SELECT_PEOPLE: &str = "SELECT u.tenant, u.id, u.name, u.role, u.is_installation_admin, u.is_disabled, \
     u.created_at, d.user_name, d.external_id, d.profile, d.is_linked, \
     d.removed_at IS NOT NULL AS is_removed, d.changed_at \
     FROM directory_people d JOIN users u ON u.tenant = d.tenant AND u.id = d.user_id \
     WHERE d.tenant = $1 AND u.delete_at IS NULL AND ($2 = '' OR d.user_id = $2) \
     AND ($3 = '' OR d.user_name_key = $3) AND ($4 = '' OR d.external_id = $4) \
     AND ($5 OR d.removed_at IS NULL) ORDER BY d.user_id";

/// Selects memberships; a condition on the ids follows.
macro_rules! members_where {
    ($which:literal) => {
        concat!(
            "SELECT m.group_id, g.name AS group_name, m.user_id, m.issuer \
             FROM group_members m \
             JOIN directory_groups dg ON dg.tenant = m.tenant AND dg.group_id = m.group_id \
             JOIN user_groups g ON g.tenant = m.tenant AND g.id = m.group_id \
             JOIN directory_people d ON d.tenant = m.tenant AND d.user_id = m.user_id \
             AND d.removed_at IS NULL \
             JOIN users u ON u.tenant = m.tenant AND u.id = m.user_id AND u.delete_at IS NULL \
             WHERE m.tenant = $1 AND ",
            $which,
            " ORDER BY m.group_id, m.user_id"
        )
    };
}

impl<'s> Directories<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The people of a tenant whom its directory sees, by id.
    pub async fn people(
        &self,
        tenant: &TenantId,
        wanted: PeopleWanted<'_>,
    ) -> Result<Vec<DirectoryPerson>, Error> {
        let user_name = name_key(wanted.user_name.unwrap_or_default());
        let values = args![
            tenant.as_str(),
            wanted.id.unwrap_or_default(),
            user_name.as_str(),
            wanted.external_id.unwrap_or_default(),
            wanted.with_removed
        ];
        let rows: Vec<PersonRow> = self.db.fetch_all(SELECT_PEOPLE, values).await?;
        rows.into_iter().map(PersonRow::into_person).collect()
    }

    /// Adds a user with what the directory says of them, as one step. Returns [`Error::Taken`] if a name or the
    /// directory's id is in use in the tenant.
    pub async fn add_person(
        &self,
        new: &NewUser,
        entry: &DirectoryEntry,
        now: Timestamp,
    ) -> Result<(), Error> {
        let user = &new.user;
        let act = person_act(ActName::UserAdded, &user.tenant, &user.id)
            .detail("name", user.name.as_str())
            .detail("role", user.role.as_str())
            .detail("installationAdmin", false)
            .detail("password", false)
            .detail("userName", entry.user_name.as_str())
            .detail("externalId", entry.external_id.as_deref());
        let statements = vec![
            Statement::new(INSERT_USER, args_of_user(new, now)).recorded(act),
            insert(&user.tenant, &user.id, entry, false, now),
        ];
        let done = self.db.execute_all(statements).await;
        done.map_err(taken(&entry.user_name))?;
        Ok(())
    }

    /// Links a user who exists already. Returns [`Error::Taken`] if they are linked already, or the name or id
    /// in the directory is in use.
    pub async fn link_person(
        &self,
        (tenant, id): (&TenantId, &UserId),
        entry: &DirectoryEntry,
        now: Timestamp,
    ) -> Result<(), Error> {
        let act = person_act(ActName::DirectoryPersonLinked, tenant, id)
            .detail("userName", entry.user_name.as_str())
            .detail("externalId", entry.external_id.as_deref());
        let linked = insert(tenant, id, entry, true, now).recorded(act);
        let done = self.db.execute_all(vec![linked]).await;
        done.map_err(taken(&entry.user_name))?;
        Ok(())
    }

    /// Forgets what the directory says of a user, who stays. Returns false if it says nothing of them.
    pub async fn unlink_person(&self, tenant: &TenantId, id: &UserId) -> Result<bool, Error> {
        let whom = || args![tenant.as_str(), id.as_str()];
        let gone = Statement::required(
            "DELETE FROM directory_people WHERE tenant = $1 AND user_id = $2",
            whom(),
        );
        let gone = gone.recorded(person_act(ActName::DirectoryPersonUnlinked, tenant, id));
        let done = self
            .db
            .execute_all(vec![gone, leave_groups(tenant, id)])
            .await?;
        Ok(done.is_some())
    }

    /// Changes what the directory says of a person, and their name here if one is given. A person whom it had
    /// deleted is seen again. Returns false if there is no such person, and [`Error::Taken`] if a name or the
    /// directory's id is in use.
    pub async fn change_person(
        &self,
        (tenant, id): (&TenantId, &UserId),
        entry: &DirectoryEntry,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let act = person_act(ActName::DirectoryPersonChanged, tenant, id)
            .detail("userName", entry.user_name.as_str())
            .detail("externalId", entry.external_id.as_deref())
            .detail("name", name);
        let changed = Statement::required(
            "UPDATE directory_people SET user_name = $3, user_name_key = $4, external_id = $5, \
             profile = $6, removed_at = NULL, changed_at = $7 WHERE tenant = $1 AND user_id = $2",
            args![
                tenant.as_str(),
                id.as_str(),
                entry.user_name.as_str(),
                name_key(&entry.user_name).as_str(),
                entry.external_id.as_deref(),
                entry.profile.as_str(),
                now.0
            ],
        );
        let mut statements = vec![changed.recorded(act)];
        if let Some(name) = name {
            statements.push(Statement::new(
                "UPDATE users SET name = $3, name_key = $4 WHERE tenant = $1 AND id = $2",
                args![tenant.as_str(), id.as_str(), name, name_key(name).as_str()],
            ));
        }
        let done = self.db.execute_all(statements).await;
        Ok(done.map_err(taken(&entry.user_name))?.is_some())
    }

    /// Ends the access of a person because the directory says so. Returns false if they have none already, or are
    /// the last owner.
    pub async fn disable(
        &self,
        tenant: &TenantId,
        id: &UserId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let whom = || args![tenant.as_str(), id.as_str()];
        let ended = Statement::required(
            concat!(
                "UPDATE users SET is_disabled = TRUE WHERE tenant = $1 AND id = $2 \
                 AND NOT is_disabled AND ",
                is_not_last_owner!()
            ),
            whom(),
        );
        let mut statements = vec![
            ended.recorded(person_act(ActName::UserDisabled, tenant, id)),
            Statement::required(
                "UPDATE directory_people SET is_disabled = TRUE, changed_at = $3 \
                 WHERE tenant = $1 AND user_id = $2",
                args![tenant.as_str(), id.as_str(), now.0],
            ),
        ];
        statements.extend(ended_access(tenant, id));
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// Restores the access of a person whom the directory had disabled. Returns false if it had not, or somebody
    /// here disabled them since.
    pub async fn enable(
        &self,
        tenant: &TenantId,
        id: &UserId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let restored = Statement::required(
            "UPDATE directory_people SET is_disabled = FALSE, changed_at = $3 \
             WHERE tenant = $1 AND user_id = $2 AND is_disabled",
            args![tenant.as_str(), id.as_str(), now.0],
        );
        let statements = vec![
            restored.recorded(person_act(ActName::UserEnabled, tenant, id)),
            Statement::required(
                "UPDATE users SET is_disabled = FALSE \
                 WHERE tenant = $1 AND id = $2 AND delete_at IS NULL",
                args![tenant.as_str(), id.as_str()],
            ),
        ];
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// Hides a person from the directory, which deleted them. They leave the groups in which it put them.
    pub async fn remove_person(
        &self,
        tenant: &TenantId,
        id: &UserId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let removed = Statement::required(
            "UPDATE directory_people SET removed_at = $3, changed_at = $3 \
             WHERE tenant = $1 AND user_id = $2 AND removed_at IS NULL",
            args![tenant.as_str(), id.as_str(), now.0],
        );
        let removed = removed.recorded(person_act(ActName::DirectoryPersonRemoved, tenant, id));
        let done = self
            .db
            .execute_all(vec![removed, leave_groups(tenant, id)])
            .await?;
        Ok(done.is_some())
    }

    /// Binds an account to the person whom the directory made under a key, if they have no account yet. Returns
    /// them; `None` if there is no such person. A disabled person is returned, and not bound.
    pub async fn bind(
        &self,
        tenant: &TenantId,
        key: DirectoryKey<'_>,
        identity: &Identity,
        now: Timestamp,
    ) -> Result<Option<UserId>, Error> {
        let wanted = match key {
            DirectoryKey::ExternalId(id) => PeopleWanted {
                external_id: Some(id),
                with_removed: true,
                ..PeopleWanted::default()
            },
            DirectoryKey::UserName(name) => PeopleWanted {
                user_name: Some(name),
                with_removed: true,
                ..PeopleWanted::default()
            },
        };
        if matches!(
            key,
            DirectoryKey::ExternalId("") | DirectoryKey::UserName("")
        ) {
            return Ok(None);
        }
        let mut found = self.people(tenant, wanted).await?.into_iter();
        let Some(person) = found.find(|it| !it.is_linked) else {
            return Ok(None);
        };
        let id = person.user.id;
        if person.is_disabled {
            // They are refused, and nobody new is made in their place.
            return Ok(Some(id));
        }
        let act = person_act(ActName::AccountBound, tenant, &id)
            .detail("issuer", identity.issuer.as_str())
            .detail("subject", identity.subject.as_str())
            .by(tenant, &id);
        let bound = Statement::required(
            "INSERT INTO identities (tenant, issuer, subject, user_id, created_at, last_used_at) \
             SELECT $1, $3, $4, $2, $5, $5 WHERE NOT EXISTS (SELECT 1 FROM identities \
             WHERE tenant = $1 AND user_id = $2) AND EXISTS (SELECT 1 FROM directory_people d \
             WHERE d.tenant = $1 AND d.user_id = $2 AND NOT d.is_linked AND d.removed_at IS NULL \
             AND d.user_name_key = $6)",
            args![
                tenant.as_str(),
                id.as_str(),
                identity.issuer.as_str(),
                identity.subject.as_str(),
                now.0,
                name_key(&person.entry.user_name).as_str()
            ],
        );
        let done = self.db.execute_all(vec![bound.recorded(act)]).await;
        let done = done.map_err(taken(&identity.subject));
        if matches!(done, Err(Error::Taken(_))) {
            // Another sign-in of the account was faster.
            return Ok(None);
        }
        Ok(done?.map(|_| id))
    }

    /// The groups of a tenant that its directory sees, by id: all, or the one with this id.
    pub async fn groups(
        &self,
        tenant: &TenantId,
        id: Option<&str>,
    ) -> Result<Vec<DirectoryGroup>, Error> {
        let sql = "SELECT g.*, d.external_id, d.is_linked, d.changed_at FROM directory_groups d \
                   JOIN user_groups g ON g.tenant = d.tenant AND g.id = d.group_id \
                   WHERE d.tenant = $1 AND ($2 = '' OR d.group_id = $2) ORDER BY d.group_id";
        let values = args![tenant.as_str(), id.unwrap_or_default()];
        let rows: Vec<GroupRow> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(GroupRow::into_group).collect()
    }

    /// Adds a group. Returns [`Error::Taken`] if the name is in use in the tenant.
    pub async fn add_group(&self, new: &DirectoryGroup) -> Result<(), Error> {
        let group = &new.group;
        let act = group_act(ActName::GroupAdded, &group.tenant, &group.id)
            .detail("name", group.name.as_str())
            .detail("externalId", new.external_id.as_deref());
        let added = Statement::new(
            "INSERT INTO user_groups (tenant, id, name, name_key, description, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6)",
            args![
                group.tenant.as_str(),
                group.id.as_str(),
                group.name.as_str(),
                name_key(&group.name).as_str(),
                group.description.as_str(),
                group.created_at.0
            ],
        );
        let statements = vec![added.recorded(act), insert_group(new)];
        let done = self.db.execute_all(statements).await;
        done.map_err(taken(&group.name))?;
        Ok(())
    }

    /// Links a group that exists already. Returns [`Error::Taken`] if it is linked already.
    pub async fn link_group(&self, linked: &DirectoryGroup) -> Result<(), Error> {
        let group = &linked.group;
        let act = group_act(ActName::DirectoryGroupLinked, &group.tenant, &group.id)
            .detail("externalId", linked.external_id.as_deref());
        let done = self
            .db
            .execute_all(vec![insert_group(linked).recorded(act)])
            .await;
        done.map_err(taken(&group.name))?;
        Ok(())
    }

    /// Forgets that the directory sees a group, which stays. The members whom it put there leave if `leave` says
    /// so. Returns false if the directory does not see it.
    pub async fn unlink_group(
        &self,
        tenant: &TenantId,
        id: &str,
        leave: bool,
    ) -> Result<bool, Error> {
        let which = || args![tenant.as_str(), id];
        let gone = Statement::required(
            "DELETE FROM directory_groups WHERE tenant = $1 AND group_id = $2",
            which(),
        );
        let mut statements =
            vec![gone.recorded(group_act(ActName::DirectoryGroupUnlinked, tenant, id))];
        if leave {
            statements.push(Statement::new(
                "DELETE FROM group_members WHERE tenant = $1 AND group_id = $2 AND issuer = 'scim'",
                which(),
            ));
        }
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// Changes the name of a group and the directory's id of it. Returns false if the directory does not see it,
    /// and [`Error::Taken`] if the name is in use in the tenant.
    pub async fn change_group(&self, changed: &DirectoryGroup) -> Result<bool, Error> {
        let group = &changed.group;
        let act = group_act(ActName::GroupChanged, &group.tenant, &group.id)
            .detail("name", group.name.as_str())
            .detail("externalId", changed.external_id.as_deref());
        let statements = vec![
            Statement::required(
                "UPDATE directory_groups SET external_id = $3, changed_at = $4 \
                 WHERE tenant = $1 AND group_id = $2",
                args![
                    group.tenant.as_str(),
                    group.id.as_str(),
                    changed.external_id.as_deref(),
                    changed.changed_at.0
                ],
            )
            .recorded(act),
            Statement::required(
                "UPDATE user_groups SET name = $3, name_key = $4 WHERE tenant = $1 AND id = $2",
                args![
                    group.tenant.as_str(),
                    group.id.as_str(),
                    group.name.as_str(),
                    name_key(&group.name).as_str()
                ],
            ),
        ];
        let done = self.db.execute_all(statements).await;
        Ok(done.map_err(taken(&group.name))?.is_some())
    }

    /// The memberships that the directory sees, by group and person.
    pub async fn members(
        &self,
        tenant: &TenantId,
        of: MembersOf<'_>,
    ) -> Result<Vec<DirectoryMember>, Error> {
        let (sql, first, last) = match of {
            MembersOf::Groups(first, last) => {
                let sql = members_where!("m.group_id >= $2 AND m.group_id <= $3");
                (sql, first, last)
            }
            MembersOf::People(first, last) => {
                let sql = members_where!("m.user_id >= $2 AND m.user_id <= $3");
                (sql, first, last)
            }
        };
        let values = args![tenant.as_str(), first, last];
        let rows: Vec<MemberRow> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(MemberRow::into_member).collect()
    }

    /// Makes people members of a group and takes others out of it, as one step. Only people and groups that the
    /// directory sees are touched, and who is a member by anything else stays one.
    pub async fn change_members(
        &self,
        (tenant, id): (&TenantId, &str),
        joins: &BTreeSet<UserId>,
        leaves: &BTreeSet<UserId>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let act = |name, user: &UserId| {
            group_act(name, tenant, id)
                .detail("user", user.as_str())
                .detail("issuer", DIRECTORY)
        };
        let values = |user: &UserId| args![tenant.as_str(), user.as_str(), id];
        let joins = joins.iter().map(|user| {
            let sql = "INSERT INTO group_members (tenant, user_id, group_id, issuer) \
                       SELECT $1, $2, $3, 'scim' WHERE EXISTS (SELECT 1 FROM directory_groups \
                       WHERE tenant = $1 AND group_id = $3) AND EXISTS (SELECT 1 FROM directory_people \
                       WHERE tenant = $1 AND user_id = $2 AND removed_at IS NULL) \
                       ON CONFLICT DO NOTHING";
            Statement::new(sql, values(user)).recorded(act(ActName::GroupJoined, user))
        });
        let leaves = leaves.iter().map(|user| {
            let sql = "DELETE FROM group_members WHERE tenant = $1 AND user_id = $2 \
                       AND group_id = $3 AND issuer = 'scim'";
            Statement::new(sql, values(user)).recorded(act(ActName::GroupLeft, user))
        });
        let mut statements: Vec<Statement> = joins.chain(leaves).collect();
        if statements.is_empty() {
            return Ok(());
        }
        statements.push(Statement::new(
            "UPDATE directory_groups SET changed_at = $3 WHERE tenant = $1 AND group_id = $2",
            args![tenant.as_str(), id, now.0],
        ));
        self.db.execute_all(statements).await?;
        Ok(())
    }
}

fn insert(
    tenant: &TenantId,
    id: &UserId,
    entry: &DirectoryEntry,
    is_linked: bool,
    now: Timestamp,
) -> Statement {
    Statement::new(
        "INSERT INTO directory_people (tenant, user_id, user_name, user_name_key, external_id, profile, \
         is_linked, is_disabled, changed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, FALSE, $8)",
        args![
            tenant.as_str(),
            id.as_str(),
            entry.user_name.as_str(),
            name_key(&entry.user_name).as_str(),
            entry.external_id.as_deref(),
            entry.profile.as_str(),
            is_linked,
            now.0
        ],
    )
}

fn insert_group(new: &DirectoryGroup) -> Statement {
    Statement::new(
        "INSERT INTO directory_groups (tenant, group_id, external_id, is_linked, changed_at) \
         VALUES ($1, $2, $3, $4, $5)",
        args![
            new.group.tenant.as_str(),
            new.group.id.as_str(),
            new.external_id.as_deref(),
            new.is_linked,
            new.changed_at.0
        ],
    )
}

fn leave_groups(tenant: &TenantId, id: &UserId) -> Statement {
    Statement::new(
        "DELETE FROM group_members WHERE tenant = $1 AND user_id = $2 AND issuer = 'scim'",
        args![tenant.as_str(), id.as_str()],
    )
}

fn person_act(name: ActName, tenant: &TenantId, id: &UserId) -> Act {
    Act::new(name, tenant, "user", id.as_str())
}

fn group_act(name: ActName, tenant: &TenantId, id: &str) -> Act {
    Act::new(name, tenant, "group", id)
}

#[derive(sqlx_macros::FromRow)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of the tables")]
struct PersonRow {
    tenant: String,
    id: String,
    name: String,
    role: String,
    is_installation_admin: bool,
    is_disabled: bool,
    created_at: i64,
    user_name: String,
    external_id: Option<String>,
    profile: String,
    is_linked: bool,
    is_removed: bool,
    changed_at: i64,
}

impl PersonRow {
    fn into_person(self) -> Result<DirectoryPerson, Error> {
        Ok(DirectoryPerson {
            user: User {
                id: user_id(self.id)?,
                tenant: tenant_id(self.tenant)?,
                name: self.name,
                role: role(&self.role)?,
                installation_admin: self.is_installation_admin,
            },
            is_disabled: self.is_disabled,
            entry: DirectoryEntry {
                user_name: self.user_name,
                external_id: self.external_id,
                profile: self.profile,
            },
            is_linked: self.is_linked,
            is_removed: self.is_removed,
            created_at: Timestamp(self.created_at),
            changed_at: Timestamp(self.changed_at),
        })
    }
}

#[derive(sqlx_macros::FromRow)]
struct GroupRow {
    tenant: String,
    id: String,
    name: String,
    description: String,
    created_at: i64,
    external_id: Option<String>,
    is_linked: bool,
    changed_at: i64,
}

impl GroupRow {
    fn into_group(self) -> Result<DirectoryGroup, Error> {
        Ok(DirectoryGroup {
            group: UserGroup {
                tenant: tenant_id(self.tenant)?,
                id: self.id,
                name: self.name,
                description: self.description,
                created_at: Timestamp(self.created_at),
            },
            external_id: self.external_id,
            is_linked: self.is_linked,
            changed_at: Timestamp(self.changed_at),
        })
    }
}

#[derive(sqlx_macros::FromRow)]
struct MemberRow {
    group_id: String,
    group_name: String,
    user_id: String,
    issuer: Option<String>,
}

impl MemberRow {
    fn into_member(self) -> Result<DirectoryMember, Error> {
        Ok(DirectoryMember {
            group: self.group_id,
            group_name: self.group_name,
            user: user_id(self.user_id)?,
            is_by_directory: self.issuer.as_deref() == Some(DIRECTORY),
        })
    }
}
