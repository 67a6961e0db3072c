//! Defines context providers, and the session for which they provide contexts (S4.2, S4.18, S4.20).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::value::Context;
use sepal_core::domain::{
    CountedEntry, Entry, SessionId, SessionKey, Stamp, TenantId, Timestamp, TurnId,
};
use sepal_core::history;

/// A source of contexts. Each is asked once per turn, concurrently with the others, for at most 10 s. If one
/// fails, the turn only lacks its contexts: people and the log are told.
#[async_trait]
pub trait ContextProvider: Send + Sync {
    /// The name for people, the log and metadata (`source`).
    fn name(&self) -> &str;

    /// Returns the contexts for the session, newest first (S4.15); an empty list if there are none (S4.16). A
    /// request takes at most 256 KiB of one provider.
    async fn provide(&self, session: &ContextSession<'_>) -> Result<Vec<Context>, ContextError>;

    /// Returns the contexts without waiting, if that costs next to nothing: then this is called for each
    /// request and each estimate, and `provide` never for a turn. Other providers return `None`.
    fn at_hand(&self, _session: &ContextSession<'_>) -> Option<Vec<Context>> {
        None
    }
}

/// The reason a provider gives nothing. The text is shown to people, so it contains no secret and no address
/// that only the operator may know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ContextError(String);

impl ContextError {
    /// Makes an error with this text: lowercase, no full stop, with a remedy.
    pub fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

/// A session as providers see it.
#[derive(Debug, Clone)]
pub struct ContextSession<'a> {
    key: Cow<'a, SessionKey>,
    entries: Cow<'a, [Arc<CountedEntry>]>,
    turn: TurnId,
    has_files: bool,
}

impl ContextSession<'static> {
    /// Makes a session without entries.
    pub fn create(key: SessionKey) -> Self {
        Self {
            key: Cow::Owned(key),
            entries: Cow::Owned(Vec::new()),
            turn: TurnId(1),
            has_files: false,
        }
    }
}

impl<'a> ContextSession<'a> {
    /// Makes a session with these entries, oldest first, in that turn.
    pub fn of(key: &'a SessionKey, entries: &'a [Arc<CountedEntry>], turn: TurnId) -> Self {
        Self {
            key: Cow::Borrowed(key),
            entries: Cow::Borrowed(entries),
            turn,
            has_files: false,
        }
    }

    /// Sets whether its workspace may hold files.
    #[must_use]
    pub fn with_files(self, has_files: bool) -> Self {
        Self { has_files, ..self }
    }

    /// Appends an entry with that time.
    pub fn add_entry(&mut self, entry: Entry, at: Timestamp) {
        let entries = self.entries.to_mut();
        let seq = entries.len() as u64 + 1;
        let stamp = Stamp { seq, nth: 0, at };
        entries.push(CountedEntry::stamped(entry, Some(stamp)));
    }

    /// The session's tenant.
    pub fn tenant(&self) -> &TenantId {
        &self.key.tenant
    }

    /// The session's id.
    pub fn session(&self) -> &SessionId {
        &self.key.session
    }

    /// The current turn.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// Returns true if its workspace may hold files: attachments, or files that tools wrote.
    pub fn has_files(&self) -> bool {
        self.has_files
    }

    /// Returns the entries, newest first (S4.15).
    pub fn history(&self) -> impl Iterator<Item = &Arc<CountedEntry>> {
        self.entries.iter().rev()
    }

    /// The newest message of a person; empty before the first message.
    pub fn input(&self) -> &str {
        history::last_input(&self.entries)
    }

    pub(super) fn entries(&self) -> &[Arc<CountedEntry>] {
        &self.entries
    }
}
