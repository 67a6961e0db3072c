//! Sessions that were held elsewhere, taken in as sessions of the caller.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::refusal::unreadable;
use super::{Sessions, derived_id, may_act};
use crate::agent::journal::{Journal, JournalError};
use crate::domain::{Caller, Code, CommitId, SessionKey, Timestamp};
use crate::session::{Import, Refusal, SaidElsewhere};

/// A conversation as it was held elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Where, and the id that it has there: the same one is taken in once.
    pub origin: (&'static str, String),
    /// 200 characters at most.
    pub title: String,
    pub created_at: Option<Timestamp>,
    pub said: Vec<SaidElsewhere>,
}

/// What became of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    New(SessionKey),
    /// It was taken in before.
    There(SessionKey),
}

/// An import that runs; there are few at a time, because what comes is held in memory meanwhile.
pub struct Importing {
    sessions: Sessions,
    caller: Caller,
    _permit: OwnedSemaphorePermit,
}

impl Importing {
    /// Asks before anything is read.
    pub fn begin(sessions: &Sessions, caller: &Caller) -> Result<Self, Refusal> {
        may_act(caller)?;
        let permit = Arc::clone(&sessions.0.imports).try_acquire_owned();
        let permit = permit.map_err(|_| {
            let text = "other imports run; try again in a minute";
            Refusal::new(Code::TooManyRequests, text)
        })?;
        // As one: what is in the file is bounded by its size.
        sessions.0.creation_limit.count(&caller.holder())?;
        Ok(Self {
            sessions: sessions.clone(),
            caller: caller.clone(),
            _permit: permit,
        })
    }

    /// Takes a conversation in. Its id follows from tenant, person, place and its id there, so the same
    /// one is taken in once for each person, however often it comes.
    pub async fn take(&self, conversation: &Conversation) -> Result<Imported, Refusal> {
        let registry = &self.sessions.0;
        let (place, id) = (conversation.origin.0, conversation.origin.1.as_str());
        let Caller { tenant, user } = &self.caller;
        let words = [tenant.id.as_str(), user.id.as_str(), "import", place, id];
        let key = SessionKey {
            tenant: tenant.id.clone(),
            session: derived_id(&words),
        };
        if self.has_journal(&key).await? {
            return Ok(Imported::There(key));
        }
        let now = Timestamp(jiff::Timestamp::now().as_millisecond());
        let id = || CommitId::from_bits(rand::random());
        let first = conversation.said.iter().find_map(|said| said.at);
        let begun = conversation.created_at.or(first).unwrap_or(now);
        let genesis = registry.genesis(&key.tenant, self.caller.actor());
        let mut import = Import::new(genesis, (&conversation.title, begun, now), id());
        for said in &conversation.said {
            import.take(said, id());
        }
        let (commits, state) = import.finish(id());
        let journal = Journal::new(Arc::clone(&registry.store), key.clone());
        if let Err(refusal) = journal.create(&commits).await {
            // The same file at another door was faster.
            let is_there = refusal.code == Code::Internal && self.has_journal(&key).await?;
            return is_there.then_some(Imported::There(key)).ok_or(refusal);
        }
        registry.projection.tell(&key, &state.control);
        Ok(Imported::New(key))
    }

    async fn has_journal(&self, key: &SessionKey) -> Result<bool, Refusal> {
        let head = self.sessions.0.store.head(key).await;
        let head = head.map_err(|error| unreadable(key, &JournalError::Store(error)))?;
        Ok(head.is_some())
    }
}
