//! Stores the users of a tenant: people and services.

mod deletion;

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args, taken};
use super::super::versions::RecordName;
use super::admission::{SecretHash, role};
use super::{tenant_id, user_id};
use sepal_core::domain::{Role, Scope, TenantId, Timestamp, User, UserId};

/// A user with the data needed for signing in.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of the table")]
pub struct UserRecord {
    pub user: User,
    /// Argon2id in PHC form; `None` for a user without a password.
    pub password_hash: Option<String>,
    /// True if the user is disabled and may not enter.
    pub is_disabled: bool,
    /// True if the user's tenant is suspended, so that no one of it may enter.
    pub is_suspended: bool,
    /// True for the local person of `auth.mode none`.
    pub is_local: bool,
    pub kind: UserKind,
    /// True if the user signs in by passkeys and never by their password.
    pub is_passkey_only: bool,
}

/// The kind of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserKind {
    /// Somebody who signs in.
    Person,
    /// A service account, which has keys and no other way in.
    Service,
}

impl UserRecord {
    /// Returns true for a service account.
    pub fn is_service(&self) -> bool {
        self.kind == UserKind::Service
    }

    /// Returns true if the user may enter.
    pub fn may_enter(&self) -> bool {
        !self.is_disabled && !self.is_suspended
    }

    /// Returns true if the user may sign in with a browser.
    pub fn may_sign_in(&self) -> bool {
        self.may_enter() && !self.is_service()
    }

    /// The hash of the password by which the user may prove who they are; `None` if they have none, or passkeys
    /// alone count.
    pub fn usable_password(&self) -> Option<&str> {
        let hash = self.password_hash.as_deref();
        hash.filter(|_| !self.is_passkey_only)
    }
}

/// Builds a query for the columns of [`UserRow`].
macro_rules! user_where {
    ($which:literal) => {
        concat!(
            "SELECT u.*, t.suspended_at IS NOT NULL AS is_suspended FROM users u \
             JOIN tenants t ON t.id = u.tenant WHERE ",
            $which
        )
    };
}

/// A condition: the user `$2` of the tenant `$1` is not the last owner who may enter.
macro_rules! is_not_last_owner {
    () => {
        "(role <> 'owner' OR EXISTS (SELECT 1 FROM users o WHERE o.tenant = $1 AND o.id <> $2 \
         AND o.role = 'owner' AND NOT o.is_disabled))"
    };
}
pub(super) use is_not_last_owner;

/// A user to add.
#[derive(Clone)]
pub struct NewUser {
    pub user: User,
    /// Argon2id in PHC form.
    pub password_hash: Option<String>,
    /// True for the local person of `auth.mode none`.
    pub is_local: bool,
}

/// The first owner, who takes over the installation with a setup link.
#[derive(Clone)]
pub struct FirstOwner {
    /// The owner. If a local person exists, that person keeps their own id.
    pub user: User,
    /// Argon2id in PHC form.
    pub password_hash: String,
    /// The setup link, which is used up.
    pub link: SecretHash,
}

/// A user with what administrators see of them.
#[derive(Clone)]
pub struct ListedUser {
    pub record: UserRecord,
    pub created_at: Timestamp,
    /// The approximate time of their last use of a browser or a key; `None` = never.
    pub last_seen_at: Option<Timestamp>,
    /// The number of their passkeys.
    pub passkeys: u64,
    /// The number of their sessions.
    pub sessions: u64,
}

/// A user's mail address, and whether they want mail when calls wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailChoice {
    /// The address; `None` if the user gave none.
    pub address: Option<String>,
    /// The time since which the user wants mail; `None` if they do not.
    pub since: Option<Timestamp>,
}

/// Access to the stored users.
pub struct Users<'s> {
    db: &'s Db,
}

pub(super) const INSERT_USER: &str = "INSERT INTO users (tenant, id, name, name_key, role, is_installation_admin, \
     is_disabled, is_local, password_hash, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6, FALSE, $7, $8, $9)";

impl<'s> Users<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds a user. Returns [`Error::Taken`] if the name is in use in the tenant.
    pub async fn add(&self, new: &NewUser, now: Timestamp) -> Result<(), Error> {
        let user = &new.user;
        let act = of(ActName::UserAdded, &user.tenant, &user.id)
            .detail("name", user.name.as_str())
            .detail("role", user.role.as_str())
            .detail("installationAdmin", user.installation_admin)
            .detail("password", new.password_hash.is_some());
        self.db
            .record(act, INSERT_USER, args_of_user(new, now))
            .await
            .map_err(taken(&user.name))?;
        Ok(())
    }

    /// Adds a service account. Returns [`Error::Taken`] if the name is in use in the tenant.
    pub async fn add_service(&self, user: &User, now: Timestamp) -> Result<(), Error> {
        let act = of(ActName::UserAdded, &user.tenant, &user.id)
            .detail("name", user.name.as_str())
            .detail("role", user.role.as_str())
            .detail("service", true);
        let sql = "INSERT INTO users (tenant, id, name, name_key, role, is_installation_admin, \
                   is_disabled, is_local, is_service, created_at) \
                   VALUES ($1, $2, $3, $4, $5, FALSE, FALSE, FALSE, TRUE, $6)";
        let values = args![
            user.tenant.as_str(),
            user.id.as_str(),
            user.name.as_str(),
            name_key(&user.name).as_str(),
            user.role.as_str(),
            now.0
        ];
        let added = self.db.record(act, sql, values).await;
        added.map_err(taken(&user.name))?;
        Ok(())
    }

    /// Renames a service account. Returns [`Error::Taken`] if the name is in use in the tenant, and false if there
    /// is no such account.
    pub async fn rename_service(
        &self,
        tenant: &TenantId,
        id: &UserId,
        name: &str,
    ) -> Result<bool, Error> {
        let act = of(ActName::UserRenamed, tenant, id).detail("name", name);
        let sql = "UPDATE users SET name = $3, name_key = $4 \
                   WHERE tenant = $1 AND id = $2 AND is_service";
        let values = args![tenant.as_str(), id.as_str(), name, name_key(name).as_str()];
        let changed = self.db.record(act, sql, values).await;
        Ok(changed.map_err(taken(name))? > 0)
    }

    /// Uses up the setup link and adds the first owner, or gives the local person this name and password.
    /// Returns false if the link is not valid, or a user other than the local person exists.
    pub async fn add_first(&self, first: &FirstOwner, now: Timestamp) -> Result<bool, Error> {
        let user = &first.user;
        let done = self
            .db
            .execute_all(vec![
                Statement::required(
                    "DELETE FROM links WHERE hash = $1 AND user_id IS NULL AND expires_at > $2 \
                     AND NOT EXISTS (SELECT 1 FROM users WHERE NOT is_local AND NOT is_service)",
                    args![first.link.as_str(), now.0],
                ),
                Statement::required(
                    "INSERT INTO users (tenant, id, name, name_key, role, is_installation_admin, \
                     is_disabled, is_local, password_hash, created_at) \
                     SELECT $1, coalesce((SELECT id FROM users WHERE tenant = $1 AND is_local), $2), \
                     $3, $4, 'owner', TRUE, FALSE, FALSE, $5, $6 WHERE TRUE \
                     ON CONFLICT (tenant, id) DO UPDATE SET name = excluded.name, \
                     name_key = excluded.name_key, role = excluded.role, is_disabled = FALSE, \
                     is_installation_admin = TRUE, is_local = FALSE, \
                     password_hash = excluded.password_hash",
                    args![
                        user.tenant.as_str(),
                        user.id.as_str(),
                        user.name.as_str(),
                        name_key(&user.name).as_str(),
                        first.password_hash.as_str(),
                        now.0
                    ],
                )
                .recorded(
                    of(ActName::SetupDone, &user.tenant, &user.id)
                        .detail("name", user.name.as_str()),
                ),
                Statement::new("DELETE FROM links WHERE user_id IS NULL", args![]),
            ])
            .await?;
        Ok(done.is_some())
    }

    /// Returns true if any tenant has a user who can sign in, other than the local person.
    pub async fn exist(&self) -> Result<bool, Error> {
        let row: Option<(String,)> = self
            .db
            .fetch_optional(
                "SELECT id FROM users WHERE NOT is_local AND NOT is_service LIMIT 1",
                args![],
            )
            .await?;
        Ok(row.is_some())
    }

    /// The user with this id.
    pub async fn find(&self, tenant: &TenantId, id: &UserId) -> Result<Option<UserRecord>, Error> {
        let row: Option<UserRow> = self
            .db
            .fetch_optional(
                user_where!("u.tenant = $1 AND u.id = $2"),
                args![tenant.as_str(), id.as_str()],
            )
            .await?;
        row.map(UserRow::into_record).transpose()
    }

    /// The user with this name, compared case-insensitively.
    pub async fn find_by_name(
        &self,
        tenant: &TenantId,
        name: &str,
    ) -> Result<Option<UserRecord>, Error> {
        let row: Option<UserRow> = self
            .db
            .fetch_optional(
                user_where!("u.tenant = $1 AND u.name_key = $2"),
                args![tenant.as_str(), name_key(name).as_str()],
            )
            .await?;
        row.map(UserRow::into_record).transpose()
    }

    /// The oldest owner of a tenant who is not disabled.
    pub async fn first_owner(&self, tenant: &TenantId) -> Result<Option<UserRecord>, Error> {
        let row: Option<UserRow> = self
            .db
            .fetch_optional(
                user_where!(
                    "u.tenant = $1 AND u.role = 'owner' AND NOT u.is_disabled \
                     ORDER BY u.created_at, u.id LIMIT 1"
                ),
                args![tenant.as_str()],
            )
            .await?;
        row.map(UserRow::into_record).transpose()
    }

    /// The users of a tenant, by name.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<UserRecord>, Error> {
        let rows: Vec<UserRow> = self
            .db
            .fetch_all(
                user_where!("u.tenant = $1 ORDER BY u.name_key"),
                args![tenant.as_str()],
            )
            .await?;
        rows.into_iter().map(UserRow::into_record).collect()
    }

    /// The users of a tenant with what administrators see of them, by name: all, or the one with this id. Those
    /// that are to be deleted are not among them.
    pub async fn list_with_use(
        &self,
        tenant: &TenantId,
        id: Option<&UserId>,
    ) -> Result<Vec<ListedUser>, Error> {
        let sql = "SELECT u.*, FALSE AS is_suspended, \
                   (SELECT MAX(w.last_seen_at) FROM web_sessions w WHERE w.tenant = u.tenant \
                    AND w.user_id = u.id) AS seen_at, \
                   (SELECT MAX(k.last_used_at) FROM api_keys k WHERE k.tenant = u.tenant \
                    AND k.user_id = u.id) AS key_used_at, \
                   (SELECT COUNT(*) FROM passkeys p WHERE p.tenant = u.tenant \
                    AND p.user_id = u.id) AS passkeys, \
                   (SELECT COUNT(*) FROM sessions s WHERE s.tenant = u.tenant \
                    AND s.owner = u.id AND s.delete_at IS NULL) AS sessions \
                   FROM users u WHERE u.tenant = $1 AND ($2 = '' OR u.id = $2) AND u.delete_at IS NULL \
                   ORDER BY u.name_key";
        let values = args![tenant.as_str(), id.map_or("", UserId::as_str)];
        let rows: Vec<ListedRow> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(ListedRow::into_listed).collect()
    }

    /// Signs out every browser of a user, and deletes their links and gestures. Returns false if the user does
    /// not exist.
    pub async fn sign_out_everywhere(&self, tenant: &TenantId, id: &UserId) -> Result<bool, Error> {
        let whom = || args![tenant.as_str(), id.as_str()];
        let done = self
            .db
            .execute_all(vec![
                // Changes nothing: it is an act even if no browser is signed in.
                Statement::required(
                    "UPDATE users SET is_disabled = is_disabled WHERE tenant = $1 AND id = $2",
                    whom(),
                )
                .recorded(of(ActName::UserSignedOut, tenant, id)),
                Statement::new(
                    "DELETE FROM web_sessions WHERE tenant = $1 AND user_id = $2",
                    whom(),
                ),
                Statement::new(
                    "DELETE FROM links WHERE tenant = $1 AND user_id = $2",
                    whom(),
                ),
                Statement::new(
                    "DELETE FROM gestures WHERE tenant = $1 AND user_id = $2",
                    whom(),
                ),
            ])
            .await?;
        Ok(done.is_some())
    }

    /// Changes a user's role. Returns false if the user does not exist or is the last owner.
    pub async fn set_role(
        &self,
        tenant: &TenantId,
        id: &UserId,
        role: Role,
    ) -> Result<bool, Error> {
        let act = of(ActName::UserRoleSet, tenant, id).detail("role", role.as_str());
        let changed = self
            .db
            .record(
                act,
                concat!(
                    "UPDATE users SET role = $3 WHERE tenant = $1 AND id = $2 \
                     AND NOT (is_service AND $3 = 'owner') AND ($3 = 'owner' OR ",
                    is_not_last_owner!(),
                    ")"
                ),
                args![tenant.as_str(), id.as_str(), role.as_str()],
            )
            .await?;
        Ok(changed > 0)
    }

    /// Sets whether the user administers the installation. Returns false if the user does not exist.
    pub async fn set_installation_admin(
        &self,
        tenant: &TenantId,
        id: &UserId,
        is_admin: bool,
    ) -> Result<bool, Error> {
        let act = Act::new(
            ActName::InstallationAdminSet,
            &Scope::Installation,
            "user",
            id.as_str(),
        );
        let act = act
            .detail("tenant", tenant.as_str())
            .detail("installationAdmin", is_admin);
        let changed = self
            .db
            .record(
                act,
                "UPDATE users SET is_installation_admin = $3 WHERE tenant = $1 AND id = $2 \
                 AND NOT is_service",
                args![tenant.as_str(), id.as_str(), is_admin],
            )
            .await?;
        Ok(changed > 0)
    }

    /// Disables a user, and deletes their sign-ins, links, gestures and grants at MCP servers. Returns false
    /// if the user does not exist or is the last owner.
    pub async fn disable(&self, tenant: &TenantId, id: &UserId) -> Result<bool, Error> {
        let ended = Statement::required(
            concat!(
                "UPDATE users SET is_disabled = TRUE WHERE tenant = $1 AND id = $2 AND ",
                is_not_last_owner!()
            ),
            args![tenant.as_str(), id.as_str()],
        );
        let mut statements = vec![ended.recorded(of(ActName::UserDisabled, tenant, id))];
        statements.push(decided_here(tenant, id));
        statements.extend(ended_access(tenant, id));
        let done = self.db.execute_all(statements).await?;
        Ok(done.is_some())
    }

    /// Returns true if a person may no longer act: they are disabled, a viewer or an approver, or their tenant is
    /// suspended.
    pub async fn is_barred(&self, tenant: &TenantId, id: &UserId) -> Result<bool, Error> {
        let sql = "SELECT u.id FROM users u JOIN tenants t ON t.id = u.tenant \
                   WHERE u.tenant = $1 AND u.id = $2 \
                   AND (u.is_disabled OR u.role IN ('viewer', 'approver') OR t.suspended_at IS NOT NULL)";
        let whom = args![tenant.as_str(), id.as_str()];
        let row: Option<(String,)> = self.db.fetch_optional(sql, whom).await?;
        Ok(row.is_some())
    }

    /// Enables a user again. Returns false if the user does not exist, or is to be deleted.
    pub async fn enable(&self, tenant: &TenantId, id: &UserId) -> Result<bool, Error> {
        let restored = Statement::required(
            "UPDATE users SET is_disabled = FALSE \
             WHERE tenant = $1 AND id = $2 AND delete_at IS NULL",
            args![tenant.as_str(), id.as_str()],
        );
        let restored = restored.recorded(of(ActName::UserEnabled, tenant, id));
        let done = self
            .db
            .execute_all(vec![restored, decided_here(tenant, id)])
            .await?;
        Ok(done.is_some())
    }

    /// The user's mail address, and whether they want mail.
    pub async fn mail(&self, tenant: &TenantId, id: &UserId) -> Result<MailChoice, Error> {
        let sql = "SELECT email, mail_since FROM users WHERE tenant = $1 AND id = $2";
        let values = args![tenant.as_str(), id.as_str()];
        let row: Option<(Option<String>, Option<i64>)> =
            self.db.fetch_optional(sql, values).await?;
        Ok(
            row.map_or_else(MailChoice::default, |(address, since)| MailChoice {
                address,
                since: since.map(Timestamp),
            }),
        )
    }

    /// Sets the user's mail address, and whether they want mail. Batches that began to wait before the user
    /// wanted mail are not announced.
    pub async fn set_mail(
        &self,
        (tenant, id): (&TenantId, &UserId),
        choice: &MailChoice,
    ) -> Result<(), Error> {
        let sql = "UPDATE users SET email = $3, mail_since = CASE WHEN $4 THEN \
                   COALESCE(mail_since, $5) ELSE NULL END WHERE tenant = $1 AND id = $2";
        let values = args![
            tenant.as_str(),
            id.as_str(),
            choice.address.as_deref(),
            choice.since.is_some(),
            choice.since.map(|since| since.0)
        ];
        let act = of(ActName::MailSet, tenant, id)
            .detail("address", choice.address.is_some())
            .detail("isOn", choice.since.is_some());
        let record = RecordName::mail(tenant, id);
        self.db.change(record, act, sql, values).await?;
        Ok(())
    }

    /// Sets whether the user signs in by passkeys alone. Returns false if the user does not exist, or has fewer than
    /// `least` passkeys.
    pub async fn set_passkey_only(
        &self,
        (tenant, id): (&TenantId, &UserId),
        is_passkey_only: bool,
        least: i64,
    ) -> Result<bool, Error> {
        let act = of(ActName::PasskeyOnlySet, tenant, id).detail("passkeyOnly", is_passkey_only);
        let changed = self
            .db
            .record(
                act,
                "UPDATE users SET is_passkey_only = $3 WHERE tenant = $1 AND id = $2 AND \
                 (SELECT COUNT(*) FROM passkeys p WHERE p.tenant = $1 AND p.user_id = $2) >= $4",
                args![tenant.as_str(), id.as_str(), is_passkey_only, least],
            )
            .await?;
        Ok(changed > 0)
    }

    /// Sets a password, which counts from then on, and deletes the user's links, gestures and sign-ins, except for
    /// the sign-in `kept`. Returns false if the user does not exist.
    pub async fn set_password(
        &self,
        tenant: &TenantId,
        id: &UserId,
        password_hash: &str,
        kept: Option<&str>,
    ) -> Result<bool, Error> {
        let done = self
            .db
            .execute_all(vec![
                Statement::required(
                    "UPDATE users SET password_hash = $3, is_local = FALSE, is_passkey_only = FALSE \
                     WHERE tenant = $1 AND id = $2 AND NOT is_service",
                    args![tenant.as_str(), id.as_str(), password_hash],
                )
                .recorded(of(ActName::PasswordSet, tenant, id)),
                Statement::new(
                    "DELETE FROM web_sessions WHERE tenant = $1 AND user_id = $2 AND id <> $3",
                    args![tenant.as_str(), id.as_str(), kept.unwrap_or_default()],
                ),
                Statement::new(
                    "DELETE FROM links WHERE tenant = $1 AND user_id = $2",
                    args![tenant.as_str(), id.as_str()],
                ),
                Statement::new(
                    "DELETE FROM gestures WHERE tenant = $1 AND user_id = $2",
                    args![tenant.as_str(), id.as_str()],
                ),
            ])
            .await?;
        Ok(done.is_some())
    }
}

/// The values of [`INSERT_USER`].
pub(super) fn args_of_user(new: &NewUser, now: Timestamp) -> Vec<Arg> {
    let user = &new.user;
    args![
        user.tenant.as_str(),
        user.id.as_str(),
        user.name.as_str(),
        name_key(&user.name).as_str(),
        user.role.as_str(),
        user.installation_admin,
        new.is_local,
        new.password_hash.as_deref(),
        now.0
    ]
}

/// Deletes the sign-ins of a user, and what else lets somebody act for them.
pub(super) fn ended_access(tenant: &TenantId, id: &UserId) -> Vec<Statement> {
    let deletions = [
        "DELETE FROM web_sessions WHERE tenant = $1 AND user_id = $2",
        "DELETE FROM links WHERE tenant = $1 AND user_id = $2",
        "DELETE FROM gestures WHERE tenant = $1 AND user_id = $2",
        "DELETE FROM mcp_authorizations WHERE tenant = $1 AND user_id = $2",
        "DELETE FROM mcp_grants WHERE tenant = $1 AND user_id = $2",
    ];
    let whom = || args![tenant.as_str(), id.as_str()];
    deletions.map(|sql| Statement::new(sql, whom())).into()
}

/// Notes that somebody here decided whether a user may enter, so that their directory cannot restore them.
fn decided_here(tenant: &TenantId, id: &UserId) -> Statement {
    let sql = "UPDATE directory_people SET is_disabled = FALSE WHERE tenant = $1 AND user_id = $2";
    Statement::new(sql, args![tenant.as_str(), id.as_str()])
}

/// An act on a user.
fn of(name: ActName, tenant: &TenantId, id: &UserId) -> Act {
    Act::new(name, tenant, "user", id.as_str())
}

/// The form in which names are compared.
pub(super) fn name_key(name: &str) -> String {
    name.to_lowercase()
}

#[derive(sqlx_macros::FromRow)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of the table")]
struct UserRow {
    tenant: String,
    id: String,
    name: String,
    role: String,
    is_installation_admin: bool,
    is_disabled: bool,
    is_suspended: bool,
    is_local: bool,
    is_service: bool,
    is_passkey_only: bool,
    password_hash: Option<String>,
}

#[derive(sqlx_macros::FromRow)]
struct ListedRow {
    #[sqlx(flatten)]
    user: UserRow,
    created_at: i64,
    seen_at: Option<i64>,
    key_used_at: Option<i64>,
    passkeys: i64,
    sessions: i64,
}

impl ListedRow {
    fn into_listed(self) -> Result<ListedUser, Error> {
        Ok(ListedUser {
            record: self.user.into_record()?,
            created_at: Timestamp(self.created_at),
            last_seen_at: self.seen_at.max(self.key_used_at).map(Timestamp),
            passkeys: u64::try_from(self.passkeys).unwrap_or(0),
            sessions: u64::try_from(self.sessions).unwrap_or(0),
        })
    }
}

impl UserRow {
    fn into_record(self) -> Result<UserRecord, Error> {
        Ok(UserRecord {
            user: User {
                id: user_id(self.id)?,
                tenant: tenant_id(self.tenant)?,
                name: self.name,
                role: role(&self.role)?,
                installation_admin: self.is_installation_admin,
            },
            password_hash: self.password_hash,
            is_disabled: self.is_disabled,
            is_suspended: self.is_suspended,
            is_local: self.is_local,
            kind: if self.is_service {
                UserKind::Service
            } else {
                UserKind::Person
            },
            is_passkey_only: self.is_passkey_only,
        })
    }
}
