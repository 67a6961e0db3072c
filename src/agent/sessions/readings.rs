//! Lets somebody with the right read a session of another person: for a stated reason, for an hour, and told to
//! its owner.

use std::sync::Arc;

use super::Sessions;
use super::refusal::not_found;
use super::shared::TranscriptPart;
use crate::agent::journal::Journal;
use crate::agent::row_error::RowError;
use crate::domain::{Attachment, BlobId, Caller, Code, Right, SessionId, SessionKey, Timestamp};
use crate::session::Refusal;
use crate::store::records::{ListedReading, Reading};

/// The time for which a session may be read, in milliseconds.
const LIFE_MS: i64 = 60 * 60_000;

/// The most characters of a reason.
const MAX_REASON: usize = 500;

/// Permission to read one session of another person now. Only [`Readings::open`] makes one.
#[derive(Debug, Clone)]
pub struct ReadingView {
    key: SessionKey,
}

impl ReadingView {
    /// The session's id.
    pub fn session(&self) -> &SessionId {
        &self.key.session
    }
}

/// Reads sessions of other people.
pub struct Readings<'s>(pub(super) &'s Sessions);

impl Readings<'_> {
    /// Lets the caller read a session of somebody else in their tenant for an hour. To callers without the
    /// right, the session does not exist.
    pub async fn begin(
        &self,
        key: &SessionKey,
        caller: &Caller,
        reason: &str,
        now: Timestamp,
    ) -> Result<ListedReading, RowError> {
        let may_exist = key.tenant == caller.tenant.id && caller.reaches(&key.session);
        if !caller.may(Right::ReadSessions) || !may_exist {
            return Err(not_found().into());
        }
        self.0.listed().await;
        let row = self.0.0.records().sessions().find(key).await?;
        let row = row.filter(|row| row.marks.delete_at.is_none() && !self.0.0.lists.is_hidden(key));
        let row = row.ok_or_else(not_found)?;
        if row.owner == caller.user.id {
            let text = "this session is yours: open it as usual";
            return Err(Refusal::new(Code::InvalidArguments, text).into());
        }
        let reading = Reading {
            key: key.clone(),
            id: format!("rea_{:032x}", rand::random::<u128>()),
            owner: row.owner,
            reader: caller.user.id.clone(),
            reason: checked(reason)?.to_owned(),
            created_at: now,
            expires_at: Timestamp(now.0.saturating_add(LIFE_MS)),
            seen_at: None,
        };
        if !self.0.0.records().session_readings().add(&reading).await? {
            let text = "you read 20 sessions of others already: end one of these first";
            return Err(Refusal::new(Code::TooManyRequests, text).into());
        }
        let listed = self.list(caller).await?.into_iter();
        let mut listed = listed.filter(|it| it.reading.id == reading.id);
        Ok(listed.next().ok_or_else(not_found)?)
    }

    /// The readings of the caller's sessions and those by the caller, newest first.
    pub async fn list(&self, caller: &Caller) -> Result<Vec<ListedReading>, RowError> {
        let readings = self.0.0.records().session_readings();
        let (tenant, user) = caller.whose();
        let mut listed = readings.of_person(tenant, user).await?;
        listed.retain(|it| caller.reaches(&it.reading.key.session));
        Ok(listed)
    }

    /// Notes that the caller has seen that a session of theirs was read.
    pub async fn see(&self, id: &str, caller: &Caller, now: Timestamp) -> Result<(), RowError> {
        let readings = self.0.0.records().session_readings();
        let (tenant, user) = caller.whose();
        if readings.see(tenant, id, user, now).await? {
            return Ok(());
        }
        Err(missing().into())
    }

    /// Ends a reading by the caller before its time.
    pub async fn end(&self, id: &str, caller: &Caller, now: Timestamp) -> Result<(), RowError> {
        let readings = self.0.0.records().session_readings();
        let (tenant, user) = caller.whose();
        if readings.end(tenant, id, user, now).await? {
            return Ok(());
        }
        Err(missing().into())
    }

    /// Opens a reading for its reader, who must still have the right.
    pub async fn open(
        &self,
        id: &str,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<ReadingView, RowError> {
        if !caller.may(Right::ReadSessions) {
            return Err(missing().into());
        }
        let readings = self.0.0.records().session_readings();
        let (tenant, user) = caller.whose();
        let found = readings.open(tenant, id, user, now).await?;
        let found = found.filter(|reading| {
            let key = &reading.key;
            caller.reaches(&key.session) && !self.0.0.lists.is_hidden(key)
        });
        let key = found.ok_or_else(missing)?.key;
        Ok(ReadingView { key })
    }

    /// Returns the part of the transcript after that `seq`, oldest first, as it is now. It is empty at the end.
    pub async fn page(
        &self,
        view: &ReadingView,
        after: u64,
        limit: usize,
    ) -> Result<TranscriptPart, Refusal> {
        let journal = Journal::new(Arc::clone(&self.0.0.store), view.key.clone());
        TranscriptPart::stored(journal, after, u64::MAX, limit).await
    }

    /// Returns an attachment of the session.
    pub async fn attachment(
        &self,
        view: &ReadingView,
        id: &BlobId,
    ) -> Result<Option<(Attachment, Vec<u8>)>, Refusal> {
        self.0.attachments().read(&view.key, id).await
    }
}

fn checked(reason: &str) -> Result<&str, Refusal> {
    let reason = reason.trim();
    let wrong = |text: &str| Err(Refusal::of_field(Code::InvalidArguments, "reason", text));
    if reason.is_empty() {
        return wrong(
            "`reason` says why you have to read this session: its owner and the audit are told",
        );
    }
    if reason.chars().count() > MAX_REASON {
        return wrong("`reason` has at most 500 characters");
    }
    Ok(reason)
}

fn missing() -> Refusal {
    Refusal::new(
        Code::NotFound,
        "there is no such permission to read (any more)",
    )
}
