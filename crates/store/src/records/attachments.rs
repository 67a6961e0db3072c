//! Stores attachments: metadata for each session, and each content once for each tenant.

use super::super::Error;
use super::super::db::{Arg, Db, Statement, args};
use super::{from_json, to_json};
use sepal_core::domain::{Attachment, BlobId, SessionId, SessionKey, Timestamp};

/// Deletes every blob of a tenant that neither a session nor an assistant has, including those left by earlier
/// deletions.
pub(super) const UNHELD_BLOBS: &str = "DELETE FROM blobs WHERE tenant = $1 AND NOT EXISTS \
    (SELECT 1 FROM attachments WHERE attachments.tenant = blobs.tenant \
    AND attachments.blob = blobs.id) AND NOT EXISTS (SELECT 1 FROM assistant_files \
    WHERE assistant_files.tenant = blobs.tenant AND assistant_files.blob = blobs.id)";

/// The session to which something is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachedTo<'k> {
    /// A session that is stored.
    Stored(&'k SessionKey),
    /// A session that is about to be written. Everything that its transcript names is attached before that.
    Ahead(&'k SessionKey),
}

impl AttachedTo<'_> {
    /// The key of the session.
    pub fn key(&self) -> &SessionKey {
        match self {
            Self::Stored(key) | Self::Ahead(key) => key,
        }
    }
}

/// The result of storing an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    Stored,
    /// The session has no row: it was deleted, or its row is not written yet.
    NoSession,
    /// The session would hold more bytes than it may.
    Full,
}

/// Access to the stored attachments.
pub struct Attachments<'s> {
    db: &'s Db,
}

impl<'s> Attachments<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Stores an attachment. A session may hold `most` bytes. If the session already holds this content, its
    /// metadata is replaced, and with that its name.
    pub async fn put(
        &self,
        to: AttachedTo<'_>,
        attachment: &Attachment,
        content: Vec<u8>,
        most: u64,
        at: Timestamp,
    ) -> Result<PutOutcome, Error> {
        let (key, is_ahead) = (to.key(), matches!(to, AttachedTo::Ahead(_)));
        let (tenant, session) = (key.tenant.as_str(), key.session.as_str());
        let id = attachment.id.as_str();
        let bytes = i64::try_from(attachment.bytes).unwrap_or(i64::MAX);
        let room = i64::try_from(most).unwrap_or(i64::MAX);
        let put = vec![
            // Writes the row even if it exists, which locks it, so that no other transaction deletes it in
            // between.
            Statement::new(
                "INSERT INTO blobs (tenant, id, content) VALUES ($1, $2, $3) \
                 ON CONFLICT (tenant, id) DO UPDATE SET id = excluded.id",
                args![tenant, id, content],
            ),
            Statement::required(
                "INSERT INTO attachments (tenant, session, blob, body, bytes, created_at) \
                 SELECT $1, $2, $3, $4, $5, $6 \
                 WHERE ($8 = CAST(1 AS BIGINT) \
                 OR EXISTS (SELECT 1 FROM sessions WHERE tenant = $1 AND id = $2)) \
                 AND $5 + COALESCE((SELECT SUM(held.bytes) FROM attachments held \
                 WHERE held.tenant = $1 AND held.session = $2 AND held.blob <> $3), 0) <= $7 \
                 ON CONFLICT (tenant, session, blob) DO UPDATE SET body = excluded.body",
                args![
                    tenant,
                    session,
                    id,
                    to_json("attachment", attachment)?.as_str(),
                    bytes,
                    at.0,
                    room,
                    i64::from(is_ahead)
                ],
            ),
        ];
        if self.db.execute_all(put).await?.is_some() {
            return Ok(PutOutcome::Stored);
        }
        let sql = "SELECT id FROM sessions WHERE tenant = $1 AND id = $2";
        let row: Option<(String,)> = self.db.fetch_optional(sql, args![tenant, session]).await?;
        Ok(if row.is_none() && !is_ahead {
            PutOutcome::NoSession
        } else {
            PutOutcome::Full
        })
    }

    /// Copies the attachments of a session to another one of the same tenant that is about to be written.
    pub async fn share(
        &self,
        from: &SessionKey,
        to: &SessionId,
        at: Timestamp,
    ) -> Result<(), Error> {
        let sql = "INSERT INTO attachments (tenant, session, blob, body, bytes, created_at) \
                   SELECT tenant, $3, blob, body, bytes, $4 FROM attachments \
                   WHERE tenant = $1 AND session = $2 ON CONFLICT DO NOTHING";
        let (tenant, session) = (from.tenant.as_str(), from.session.as_str());
        let args = args![tenant, session, to.as_str(), at.0];
        self.db.execute(sql, args).await?;
        Ok(())
    }

    /// The metadata of an attachment of the session.
    pub async fn find(&self, key: &SessionKey, id: &BlobId) -> Result<Option<Attachment>, Error> {
        let sql = "SELECT body FROM attachments WHERE tenant = $1 AND session = $2 AND blob = $3";
        let row: Option<(String,)> = self.db.fetch_optional(sql, whose(key, id)).await?;
        row.map(|(body,)| from_json("attachment", &body))
            .transpose()
    }

    /// The content of an attachment of the session.
    pub async fn content(&self, key: &SessionKey, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        let sql = "SELECT blobs.content FROM attachments JOIN blobs ON blobs.tenant = \
                   attachments.tenant AND blobs.id = attachments.blob WHERE attachments.tenant = $1 \
                   AND attachments.session = $2 AND attachments.blob = $3";
        let row: Option<(Vec<u8>,)> = self.db.fetch_optional(sql, whose(key, id)).await?;
        Ok(row.map(|(content,)| content))
    }
}

fn whose(key: &SessionKey, id: &BlobId) -> Vec<Arg> {
    args![key.tenant.as_str(), key.session.as_str(), id.as_str()]
}
