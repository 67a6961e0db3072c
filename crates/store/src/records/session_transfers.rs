//! Stores which sessions of a person were copied for somebody else.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::session_id;
use sepal_core::domain::{SessionId, SessionKey, TenantId, Timestamp, UserId};

/// Access to the stored transfers.
pub struct SessionTransfers<'s> {
    db: &'s Db,
}

impl<'s> SessionTransfers<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The sessions of `owner` that have no complete copy for `recipient`, in the order of their ids, from the one
    /// after `after` on.
    pub async fn pending(
        &self,
        tenant: &TenantId,
        [owner, recipient]: [&UserId; 2],
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionId>, Error> {
        let ids: Vec<(String,)> = self
            .db
            .fetch_all(
                "SELECT s.id FROM sessions s WHERE s.tenant = $1 AND s.owner = $2 AND s.id > $4 \
                 AND s.delete_at IS NULL AND NOT EXISTS (SELECT 1 FROM session_transfers t \
                 WHERE t.tenant = s.tenant AND t.session = s.id AND t.user_id = $3 \
                 AND t.done_at IS NOT NULL) ORDER BY s.id LIMIT $5",
                args![
                    tenant.as_str(),
                    owner.as_str(),
                    recipient.as_str(),
                    after.map_or("", SessionId::as_str),
                    i64::try_from(limit).unwrap_or(i64::MAX)
                ],
            )
            .await?;
        ids.into_iter().map(|(id,)| session_id(id)).collect()
    }

    /// Notes that a session is being copied for a person, and returns the id of the copy: `copy`, or that of an
    /// attempt that was interrupted.
    pub async fn begin(
        &self,
        key: &SessionKey,
        recipient: &UserId,
        copy: &SessionId,
    ) -> Result<SessionId, Error> {
        let whom = || {
            args![
                key.tenant.as_str(),
                key.session.as_str(),
                recipient.as_str()
            ]
        };
        let mut values = whom();
        values.extend(args![copy.as_str()]);
        self.db
            .execute(
                "INSERT INTO session_transfers (tenant, session, user_id, copy) \
                 VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, session, user_id) DO NOTHING",
                values,
            )
            .await?;
        let found: Option<(String,)> = self
            .db
            .fetch_optional(
                "SELECT copy FROM session_transfers \
                 WHERE tenant = $1 AND session = $2 AND user_id = $3",
                whom(),
            )
            .await?;
        let missing = || Error::corrupt("transfer", key.session.to_string());
        session_id(found.ok_or_else(missing)?.0)
    }

    /// Notes that a copy is complete. Returns false if it was before.
    pub async fn finish(
        &self,
        key: &SessionKey,
        [owner, recipient]: [&UserId; 2],
        copy: &SessionId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let (tenant, session) = (key.tenant.as_str(), key.session.as_str());
        let act = Act::new(ActName::SessionHandedOver, &key.tenant, "session", session)
            .detail("owner", owner.as_str())
            .detail("recipient", recipient.as_str())
            .detail("copy", copy.as_str());
        let changed = self
            .db
            .record(
                act,
                "UPDATE session_transfers SET done_at = $4 \
                 WHERE tenant = $1 AND session = $2 AND user_id = $3 AND done_at IS NULL",
                args![tenant, session, recipient.as_str(), now.0],
            )
            .await?;
        Ok(changed > 0)
    }
}
