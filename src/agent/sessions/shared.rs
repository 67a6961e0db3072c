//! Shares a session of its owner with others, who read it as it was at that time.

use std::sync::Arc;

use secrecy::SecretString;

use super::refusal::{not_found, unreadable};
use super::{Sessions, may_act};
use crate::agent::feed::ShownEvent;
use crate::agent::journal::{Journal, StoredEvents};
use crate::agent::row_error::RowError;
use crate::domain::{
    Attachment, BlobId, Caller, Code, SessionId, SessionKey, SharedSessionId, TenantId, Timestamp,
};
use crate::session::Refusal;
use crate::store;
use crate::store::records::{Audience, SharedSession};
use crate::tenancy;

/// Permission to read another's session. Only [`Sharing::open`] makes one.
#[derive(Debug, Clone)]
pub struct SharedView {
    id: SharedSessionId,
    key: SessionKey,
    seq: u64,
    at: Timestamp,
}

impl SharedView {
    /// Identifies the share. The content of a share never changes.
    pub fn id(&self) -> &SharedSessionId {
        &self.id
    }

    /// The session's id, which by itself gives no access.
    pub fn session(&self) -> &SessionId {
        &self.key.session
    }

    /// The time at which it was shared.
    pub fn shared_at(&self) -> Timestamp {
        self.at
    }
}

/// A part of a transcript that was fetched but not parsed.
#[derive(Debug)]
pub struct TranscriptPart {
    key: SessionKey,
    stored: StoredEvents,
    until: u64,
}

impl TranscriptPart {
    pub(super) async fn stored(
        journal: Journal,
        after: u64,
        until: u64,
        limit: usize,
    ) -> Result<Self, Refusal> {
        let key = journal.key().clone();
        match journal.stored_after(after, limit).await {
            Ok(stored) => Ok(Self { key, stored, until }),
            Err(error) => Err(unreadable(&key, &error)),
        }
    }

    /// Parses the events, oldest first; empty = the end of the transcript. Keeps the thread busy for a while.
    pub fn read(self) -> Result<Vec<ShownEvent>, Refusal> {
        let Self { key, stored, until } = self;
        let events = stored.read();
        let mut events = events.map_err(|error| unreadable(&key, &error))?;
        events.retain(|event| event.seq <= until);
        Ok(events)
    }
}

/// The credential that opens a share.
pub enum SharedBy<'a> {
    /// The secret of a link.
    Link(&'a SecretString),
    /// The share's id, for somebody in the tenant.
    Id(&'a TenantId, &'a SharedSessionId),
}

/// Shares sessions, and reads shared ones.
pub struct Sharing<'s>(pub(super) &'s Sessions);

impl Sharing<'_> {
    /// Lets others read a session of the caller up to now. The secret of a link is returned once and not
    /// stored.
    pub async fn share(
        &self,
        key: &SessionKey,
        caller: &Caller,
        audience: Audience,
        now: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<(SharedSession, Option<SecretString>), RowError> {
        let seq = self.own_seq(key, caller).await?;
        self.0.listed().await;
        let shared = SharedSession {
            key: key.clone(),
            id: SharedSessionId::from_bits(rand::random()),
            audience,
            seq,
            created_at: now,
            expires_at,
        };
        let secret = (audience == Audience::Link).then(tenancy::random_secret);
        let hash = secret.as_ref().map(tenancy::secret_hash);
        let records = self.0.0.records().shared_sessions();
        if !records.add(&shared, hash.as_ref()).await? {
            let text = "the session is shared in too many ways; end one of them first";
            return Err(Refusal::new(Code::TooManyRequests, text).into());
        }
        Ok((shared, secret))
    }

    /// Lists the shares of a session of the caller.
    pub async fn ways(
        &self,
        key: &SessionKey,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Vec<SharedSession>, RowError> {
        self.0.admit(key, caller).await?;
        let records = self.0.0.records().shared_sessions();
        Ok(records.of_session(key, now).await?)
    }

    /// Ends a share, which gives no access from now on.
    pub async fn stop(
        &self,
        key: &SessionKey,
        caller: &Caller,
        id: &SharedSessionId,
    ) -> Result<(), RowError> {
        may_act(caller)?;
        self.0.admit(key, caller).await?;
        if self.0.0.records().shared_sessions().remove(key, id).await? {
            return Ok(());
        }
        let text = "the session is not shared in such a way (any more)";
        Err(Refusal::new(Code::NotFound, text).into())
    }

    /// Opens a share for somebody who is not the owner; `None` if it does not exist or has ended.
    pub async fn open(
        &self,
        by: SharedBy<'_>,
        now: Timestamp,
    ) -> Result<Option<SharedView>, store::Error> {
        let records = self.0.0.records().shared_sessions();
        let found = match by {
            SharedBy::Link(secret) => {
                let hash = tenancy::secret_hash(secret);
                records.open_link(&hash, now).await?
            }
            SharedBy::Id(tenant, id) => records.open_in_tenant(tenant, id, now).await?,
        };
        let found = found.filter(|shared| !self.0.0.lists.is_hidden(&shared.key));
        Ok(found.map(|shared| SharedView {
            id: shared.id,
            key: shared.key,
            seq: shared.seq,
            at: shared.created_at,
        }))
    }

    /// Returns the part of the shared transcript after that `seq`, oldest first. It is empty at the end.
    pub async fn page(
        &self,
        view: &SharedView,
        after: u64,
        limit: usize,
    ) -> Result<TranscriptPart, Refusal> {
        let journal = Journal::new(Arc::clone(&self.0.0.store), view.key.clone());
        TranscriptPart::stored(journal, after, view.seq, limit).await
    }

    /// Returns an attachment of the shared session.
    pub async fn attachment(
        &self,
        view: &SharedView,
        id: &BlobId,
    ) -> Result<Option<(Attachment, Vec<u8>)>, Refusal> {
        self.0.attachments().read(&view.key, id).await
    }

    /// Returns the newest `seq` of a session that the caller may share.
    async fn own_seq(&self, key: &SessionKey, caller: &Caller) -> Result<u64, Refusal> {
        may_act(caller)?;
        let joined = self.0.join(key, caller).await?;
        if !joined.view.is_stored {
            return Err(not_found());
        }
        Ok(joined.view.seq)
    }
}
