//! The seam: whatever gives contexts, and the session that it gives them for (S4.2, S4.18, S4.20).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::value::Context;
use crate::domain::{Entry, SessionId, SessionKey, Stamp, TenantId, Timestamp, TurnId, Weighed};
use crate::history;

/// A source of contexts. Each is asked once for a turn, side by side with the others, and waited for
/// for 10 s. One that fails costs the turn its contexts and nothing else: people and the log are told.
#[async_trait]
pub trait ContextProvider: Send + Sync {
    /// What people, the log and metadata (`source`) call it.
    fn name(&self) -> &str;

    /// What it has for the session, the newest first (S4.15). Nothing is an empty list (S4.16). Of one
    /// provider a request takes 256 KiB at most.
    async fn provide(&self, session: &ContextSession<'_>) -> Result<Vec<Context>, ContextError>;

    /// The same, where it needs no waiting and costs next to nothing: then it is asked for each request
    /// and each estimate, and never for a turn. The others say nothing here.
    fn at_hand(&self, _session: &ContextSession<'_>) -> Option<Vec<Context>> {
        None
    }
}

/// Why a provider gives nothing. The words are for people: they hold no secret and no address that only
/// the operator may know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ContextError(String);

impl ContextError {
    /// In these words: lowercase, no full stop, with what helps.
    pub fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

/// A session as providers see it.
#[derive(Debug, Clone)]
pub struct ContextSession<'a> {
    key: Cow<'a, SessionKey>,
    entries: Cow<'a, [Arc<Weighed>]>,
    turn: TurnId,
    has_files: bool,
}

impl ContextSession<'static> {
    /// One in which nothing was said yet.
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
    /// One in which these entries were said, oldest first, in that turn.
    pub fn of(key: &'a SessionKey, entries: &'a [Arc<Weighed>], turn: TurnId) -> Self {
        Self {
            key: Cow::Borrowed(key),
            entries: Cow::Borrowed(entries),
            turn,
            has_files: false,
        }
    }

    /// Whether its workspace may hold files.
    #[must_use]
    pub fn with_files(self, has_files: bool) -> Self {
        Self { has_files, ..self }
    }

    /// Adds what was said last, at that time.
    pub fn add_entry(&mut self, entry: Entry, at: Timestamp) {
        let entries = self.entries.to_mut();
        let seq = entries.len() as u64 + 1;
        let stamp = Stamp { seq, nth: 0, at };
        entries.push(Weighed::stamped(entry, Some(stamp)));
    }

    /// Whose it is.
    pub fn tenant(&self) -> &TenantId {
        &self.key.tenant
    }

    /// Which one it is.
    pub fn session(&self) -> &SessionId {
        &self.key.session
    }

    /// The turn that asks.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// Whether its workspace may hold files: attachments, or what tools wrote.
    pub fn has_files(&self) -> bool {
        self.has_files
    }

    /// What was said, the newest first (S4.15).
    pub fn history(&self) -> impl Iterator<Item = &Arc<Weighed>> {
        self.entries.iter().rev()
    }

    /// What a person asked last; empty before the first message.
    pub fn input(&self) -> &str {
        history::last_input(&self.entries)
    }

    pub(super) fn entries(&self) -> &[Arc<Weighed>] {
        &self.entries
    }
}
