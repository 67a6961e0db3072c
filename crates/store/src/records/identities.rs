//! Stores the accounts at OpenID providers by which people sign in.
//!
//! An account is bound to one user of a tenant when that user is made, and never to a user who exists already:
//! whoever can choose a name or a mail address at a provider would otherwise take over a person of that name.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args, taken};
use super::admission::AccountName;
use super::user_groups::GroupsChange;
use super::user_id;
use super::users::{INSERT_USER, NewUser, args_of_user};
use super::web_sessions::{self, Identity, NewWebSession};
use sepal_core::domain::{Role, TenantId, Timestamp, UserId};

/// A sign-in of a person whose account is known.
#[derive(Clone)]
pub struct IdentitySignIn {
    pub sign_in: NewWebSession,
    pub identity: Identity,
    /// The role that the issuer's groups give; `None` = the person keeps theirs.
    pub role: Option<Role>,
    /// The groups that the person joins and leaves, because the issuer says so.
    pub groups: GroupsChange,
}

/// Access to the stored accounts.
pub struct Identities<'s> {
    db: &'s Db,
}

impl<'s> Identities<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The user to whom an account is bound in a tenant.
    pub async fn find(
        &self,
        tenant: &TenantId,
        identity: &Identity,
    ) -> Result<Option<UserId>, Error> {
        let sql = "SELECT user_id FROM identities \
                   WHERE tenant = $1 AND issuer = $2 AND subject = $3";
        let row: Option<(String,)> = self.db.fetch_optional(sql, key(tenant, identity)).await?;
        row.map(|(id,)| user_id(id)).transpose()
    }

    /// The accounts by which a user signs in, the last used first.
    pub async fn of_user(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Vec<AccountName>, Error> {
        let sql = "SELECT issuer, subject FROM identities WHERE tenant = $1 AND user_id = $2 \
                   ORDER BY last_used_at DESC, issuer, subject";
        let whom = args![tenant.as_str(), user.as_str()];
        let rows: Vec<(String, String)> = self.db.fetch_all(sql, whom).await?;
        let account = |(issuer, subject)| AccountName { issuer, subject };
        Ok(rows.into_iter().map(account).collect())
    }

    /// Returns true if a user signs in by an account.
    pub async fn has_any(&self, tenant: &TenantId, user: &UserId) -> Result<bool, Error> {
        let sql = "SELECT user_id FROM identities WHERE tenant = $1 AND user_id = $2 LIMIT 1";
        let whom = args![tenant.as_str(), user.as_str()];
        let row: Option<(String,)> = self.db.fetch_optional(sql, whom).await?;
        Ok(row.is_some())
    }

    /// Adds a user with their account and their first sign-in, as one step. Returns [`Error::Taken`] if the
    /// name is in use in the tenant or the account is bound already, and false if the tenant was suspended
    /// meanwhile.
    pub async fn add(
        &self,
        new: &NewUser,
        first: &IdentitySignIn,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let (user, identity) = (&new.user, &first.identity);
        let act = Act::new(ActName::UserAdded, &user.tenant, "user", user.id.as_str())
            .detail("name", user.name.as_str())
            .detail("role", user.role.as_str())
            .detail("installationAdmin", false)
            .detail("password", false)
            .detail("issuer", identity.issuer.as_str())
            .detail("subject", identity.subject.as_str())
            .by(&user.tenant, &user.id);
        let mut bound = key(&user.tenant, identity);
        bound.extend(args![user.id.as_str(), now.0]);
        let mut statements = vec![
            Statement::new(INSERT_USER, args_of_user(new, now)).recorded(act),
            Statement::new(
                "INSERT INTO identities (tenant, issuer, subject, user_id, created_at, \
                 last_used_at) VALUES ($1, $2, $3, $4, $5, $5)",
                bound,
            ),
        ];
        let groups = &first.groups;
        statements.extend(groups.statements(&user.tenant, &user.id, &identity.issuer));
        statements.push(web_sessions::insert(&first.sign_in, Some(identity), now));
        let done = self.db.execute_all(statements).await;
        let done = done.map_err(taken(&user.name))?;
        Ok(done.is_some())
    }

    /// Adds a sign-in of a known account and gives its user the role of its groups, as one step. The last
    /// owner of a tenant who is not disabled stays one. Returns false if, meanwhile, the user was disabled,
    /// their tenant suspended or the account removed.
    pub async fn sign_in(&self, known: &IdentitySignIn, now: Timestamp) -> Result<bool, Error> {
        let IdentitySignIn {
            sign_in,
            identity,
            role,
            groups,
        } = known;
        let (tenant, user) = (&sign_in.tenant, &sign_in.user);
        let mut whose = key(tenant, identity);
        whose.extend(args![user.as_str(), now.0]);
        let mut statements = vec![Statement::required(
            "UPDATE identities SET last_used_at = $5 WHERE tenant = $1 AND issuer = $2 \
             AND subject = $3 AND user_id = $4",
            whose,
        )];
        if let Some(role) = role {
            let act = Act::new(ActName::UserRoleSet, tenant, "user", user.as_str())
                .detail("role", role.as_str())
                .detail("issuer", identity.issuer.as_str())
                .by(tenant, user);
            let change = Statement::new(
                "UPDATE users SET role = $3 WHERE tenant = $1 AND id = $2 AND role <> $3 \
                 AND NOT is_disabled AND (role <> 'owner' OR EXISTS (SELECT 1 FROM users o \
                 WHERE o.tenant = $1 AND o.id <> $2 AND o.role = 'owner' AND NOT o.is_disabled))",
                args![tenant.as_str(), user.as_str(), role.as_str()],
            );
            statements.push(change.recorded(act));
        }
        statements.extend(groups.statements(tenant, user, &identity.issuer));
        statements.push(web_sessions::insert(sign_in, Some(identity), now));
        let done = self.db.execute_all(statements).await?;
        Ok(done.is_some())
    }
}

fn key(tenant: &TenantId, identity: &Identity) -> Vec<Arg> {
    args![
        tenant.as_str(),
        identity.issuer.as_str(),
        identity.subject.as_str()
    ]
}
