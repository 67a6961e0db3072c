//! Reads all sessions of one person, for an archive of what is theirs.

use std::sync::Arc;

use super::Sessions;
use super::shared::TranscriptPart;
use crate::agent::journal::Journal;
use crate::domain::{Attachment, BlobId, Caller, SessionId, SessionKey};
use crate::session::Refusal;
use crate::store;

/// The number of sessions that are listed at once.
const LISTED: usize = 200;

/// A session for its owner's archive. Only [`Archive::sessions`] makes one.
#[derive(Debug, Clone)]
pub struct ArchivedSession {
    key: SessionKey,
}

impl ArchivedSession {
    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.key.session
    }
}

/// Reads the sessions of one person, without opening them.
pub struct Archive<'s>(pub(super) &'s Sessions);

impl Archive<'_> {
    /// Returns the next sessions of their owner in the order of their ids; empty at the end.
    pub async fn sessions(
        &self,
        owner: &Caller,
        after: Option<&SessionId>,
    ) -> Result<Vec<ArchivedSession>, store::Error> {
        self.0.listed().await;
        let (tenant, user) = owner.whose();
        let rows = self.0.records().sessions();
        let ids = rows.of_owner(tenant, user, after, LISTED).await?;
        let archived = ids.into_iter().map(|session| ArchivedSession {
            key: SessionKey {
                tenant: tenant.clone(),
                session,
            },
        });
        Ok(archived.collect())
    }

    /// Returns the part of the transcript after that `seq`, oldest first. It is empty at the end.
    pub async fn page(
        &self,
        session: &ArchivedSession,
        after: u64,
        limit: usize,
    ) -> Result<TranscriptPart, Refusal> {
        let journal = Journal::new(Arc::clone(&self.0.0.store), session.key.clone());
        TranscriptPart::stored(journal, after, u64::MAX, limit).await
    }

    /// Returns an attachment of the session.
    pub async fn attachment(
        &self,
        session: &ArchivedSession,
        id: &BlobId,
    ) -> Result<Option<(Attachment, Vec<u8>)>, Refusal> {
        self.0.attachments().read(&session.key, id).await
    }
}
