//! Stores invitations: links by which new people enter a tenant, each once.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args, taken};
use super::admission::{SecretHash, role};
use super::users::{INSERT_USER, NewUser, args_of_user};
use super::{tenant_id, user_id};
use sepal_core::domain::{Role, TenantId, Timestamp, UserId};

/// The time, in milliseconds, for which an expired invitation stays listed.
const LISTED_MS: i64 = 30 * 24 * 60 * 60_000;

/// Begins a query or condition for the invitation `i` that somebody may come by at the time `$1`: unused, of a
/// tenant that is not suspended, and made by somebody who could make it now. Nobody comes back by a link that
/// they made before they lost their rights.
macro_rules! open_invitation {
    ($before:literal, $which:literal) => {
        concat!(
            $before,
            " WHERE ",
            $which,
            " AND i.used_at IS NULL AND i.expires_at > $1 \
             AND EXISTS (SELECT 1 FROM tenants t WHERE t.id = i.tenant AND t.suspended_at IS NULL) \
             AND (i.invited_by IS NULL OR EXISTS (SELECT 1 FROM users u WHERE u.id = i.invited_by \
             AND NOT u.is_disabled AND (u.is_installation_admin OR (u.tenant = i.tenant \
             AND (u.role = 'owner' OR (i.role IN ('viewer', 'approver', 'member') OR ",
            $crate::records::given_rights::has_right!("people.manage_admins"),
            ") AND (u.role = 'admin' OR ",
            $crate::records::given_rights::has_right!("people.manage"),
            "))))))"
        )
    };
}

/// An invitation, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub tenant: TenantId,
    pub id: String,
    /// The role that the new person gets.
    pub role: Role,
    /// For whom it is meant, in the words of who invites; may be empty.
    pub note: String,
    /// The user who invites; `None` = the operator, on the command line.
    pub invited_by: Option<UserId>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The user who came by it, and when; `None` = nobody yet.
    pub used: Option<(UserId, Timestamp)>,
}

/// Access to the stored invitations.
pub struct Invitations<'s> {
    db: &'s Db,
}

impl<'s> Invitations<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds an invitation.
    pub async fn add(&self, new: &Invitation, hash: &SecretHash) -> Result<(), Error> {
        let act = of(ActName::InvitationAdded, &new.tenant, &new.id)
            .detail("role", new.role.as_str())
            .detail("expiresAt", new.expires_at.0);
        self.db
            .record(
                act,
                "INSERT INTO invitations (tenant, id, hash, role, note, invited_by, created_at, \
                 expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                args![
                    new.tenant.as_str(),
                    new.id.as_str(),
                    hash.as_str(),
                    new.role.as_str(),
                    new.note.as_str(),
                    new.invited_by.as_ref().map(UserId::as_str),
                    new.created_at.0,
                    new.expires_at.0
                ],
            )
            .await?;
        Ok(())
    }

    /// The invitations of a tenant, newest first.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<Invitation>, Error> {
        let sql = "SELECT tenant, id, role, note, invited_by, created_at, expires_at, used_by, \
                   used_at FROM invitations WHERE tenant = $1 ORDER BY created_at DESC, id";
        let rows: Vec<InvitationRow> = self.db.fetch_all(sql, args![tenant.as_str()]).await?;
        rows.into_iter()
            .map(InvitationRow::into_invitation)
            .collect()
    }

    /// The invitation with this secret, if somebody may still come by it.
    pub async fn find(
        &self,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<Invitation>, Error> {
        let sql = open_invitation!(
            "SELECT i.tenant, i.id, i.role, i.note, i.invited_by, i.created_at, i.expires_at, \
             i.used_by, i.used_at FROM invitations i",
            "i.hash = $2"
        );
        let row: Option<InvitationRow> = self
            .db
            .fetch_optional(sql, args![now.0, hash.as_str()])
            .await?;
        row.map(InvitationRow::into_invitation).transpose()
    }

    /// Uses an invitation up and adds the person who came by it, as one step. Returns false if the invitation
    /// is not valid any more, and [`Error::Taken`] if the name is in use in the tenant.
    pub async fn accept(
        &self,
        invitation: &Invitation,
        new: &NewUser,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let user = &new.user;
        let place: Vec<Arg> = args![
            now.0,
            user.id.as_str(),
            user.tenant.as_str(),
            invitation.id.as_str()
        ];
        let came = of(ActName::InvitationUsed, &user.tenant, &invitation.id)
            .detail("name", user.name.as_str())
            .detail("user", user.id.as_str())
            .by(&user.tenant, &user.id);
        let added = Act::new(ActName::UserAdded, &user.tenant, "user", user.id.as_str())
            .detail("name", user.name.as_str())
            .detail("role", user.role.as_str())
            .detail("installationAdmin", false)
            .detail("password", new.password_hash.is_some())
            .by(&user.tenant, &user.id);
        let done = self
            .db
            .execute_all(vec![
                Statement::required(
                    open_invitation!(
                        "UPDATE invitations AS i SET used_at = $1, used_by = $2",
                        "i.tenant = $3 AND i.id = $4"
                    ),
                    place,
                )
                .recorded(came),
                Statement::new(INSERT_USER, args_of_user(new, now)).recorded(added),
            ])
            .await
            .map_err(taken(&user.name))?;
        Ok(done.is_some())
    }

    /// Takes back an invitation that nobody has used. Returns false if there is none.
    pub async fn withdraw(&self, tenant: &TenantId, id: &str) -> Result<bool, Error> {
        let sql = "DELETE FROM invitations WHERE tenant = $1 AND id = $2 AND used_at IS NULL";
        let act = of(ActName::InvitationWithdrawn, tenant, id);
        let changed = self.db.record(act, sql, args![tenant.as_str(), id]).await?;
        Ok(changed > 0)
    }

    /// Deletes invitations that have expired long ago.
    pub async fn remove_old(&self, now: Timestamp) -> Result<(), Error> {
        let sql = "DELETE FROM invitations WHERE expires_at <= $1";
        let before = now.0.saturating_sub(LISTED_MS);
        self.db.keep_up(sql, args![before]).await?;
        Ok(())
    }
}

fn of(name: ActName, tenant: &TenantId, id: &str) -> Act {
    Act::new(name, tenant, "invitation", id)
}

#[derive(sqlx_macros::FromRow)]
struct InvitationRow {
    tenant: String,
    id: String,
    role: String,
    note: String,
    invited_by: Option<String>,
    created_at: i64,
    expires_at: i64,
    used_by: Option<String>,
    used_at: Option<i64>,
}

impl InvitationRow {
    fn into_invitation(self) -> Result<Invitation, Error> {
        Ok(Invitation {
            tenant: tenant_id(self.tenant)?,
            id: self.id,
            role: role(&self.role)?,
            note: self.note,
            invited_by: self.invited_by.map(user_id).transpose()?,
            created_at: Timestamp(self.created_at),
            expires_at: Timestamp(self.expires_at),
            used: match (self.used_by, self.used_at) {
                (Some(user), Some(at)) => Some((user_id(user)?, Timestamp(at))),
                _ => None,
            },
        })
    }
}
