//! Stores setup and sign-in links, whose secrets work once and only for a limited time.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::admission::SecretHash;
use super::{tenant_id, user_id};
use sepal_core::domain::{Scope, TenantId, Timestamp, UserId};

/// The target of a sign-in link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTarget {
    pub tenant: TenantId,
    /// The user whom the link signs in.
    pub user: UserId,
}

/// Access to the stored links.
pub struct Links<'s> {
    db: &'s Db,
}

impl<'s> Links<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Stores a link. A link without a user is a setup link.
    pub async fn add(
        &self,
        hash: &SecretHash,
        tenant: &TenantId,
        user: Option<&UserId>,
        expires_at: Timestamp,
    ) -> Result<(), Error> {
        let act = match user {
            Some(user) => Act::new(ActName::LinkAdded, tenant, "user", user.as_str()),
            None => Act::new(ActName::SetupLinkAdded, tenant, "tenant", tenant.as_str()),
        };
        self.db
            .record(
                act.detail("expiresAt", expires_at.0),
                "INSERT INTO links (hash, tenant, user_id, expires_at) VALUES ($1, $2, $3, $4)",
                args![
                    hash.as_str(),
                    tenant.as_str(),
                    user.map(UserId::as_str),
                    expires_at.0
                ],
            )
            .await?;
        Ok(())
    }

    /// Uses up a sign-in link; `None` if no valid link has this hash.
    pub async fn open(
        &self,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<LinkTarget>, Error> {
        let rows: Vec<(String, String)> = self
            .db
            .change_returning(
                "DELETE FROM links WHERE hash = $1 AND user_id IS NOT NULL AND expires_at > $2 \
                 RETURNING tenant, user_id",
                args![hash.as_str(), now.0],
                |rows: &[(String, String)]| rows.iter().filter_map(used).collect(),
            )
            .await?;
        rows.into_iter()
            .next()
            .map(|(tenant, user)| {
                Ok(LinkTarget {
                    tenant: tenant_id(tenant)?,
                    user: user_id(user)?,
                })
            })
            .transpose()
    }

    /// Returns true if a setup link is valid. Adding the first owner uses the link up.
    pub async fn opens_setup(&self, hash: &SecretHash, now: Timestamp) -> Result<bool, Error> {
        let row: Option<(i64,)> = self
            .db
            .fetch_optional(
                "SELECT expires_at FROM links \
                 WHERE hash = $1 AND user_id IS NULL AND expires_at > $2",
                args![hash.as_str(), now.0],
            )
            .await?;
        Ok(row.is_some())
    }

    /// Deletes every setup link.
    pub async fn remove_setup(&self) -> Result<(), Error> {
        let sql = "DELETE FROM links WHERE user_id IS NULL";
        let act = Act::new(
            ActName::SetupLinksRemoved,
            &Scope::Installation,
            "installation",
            "",
        );
        self.db.record(act, sql, args![]).await?;
        Ok(())
    }

    /// Deletes expired links.
    pub async fn remove_old(&self, now: Timestamp) -> Result<(), Error> {
        let sql = "DELETE FROM links WHERE expires_at <= $1";
        self.db.keep_up(sql, args![now.0]).await?;
        Ok(())
    }
}

/// The use of a link, by the user whom it signs in.
fn used((tenant, user): &(String, String)) -> Option<Act> {
    let (tenant, user) = (TenantId::parse(tenant)?, UserId::parse(user)?);
    let act = Act::new(ActName::LinkUsed, &tenant, "user", user.as_str());
    Some(act.by(&tenant, &user))
}
