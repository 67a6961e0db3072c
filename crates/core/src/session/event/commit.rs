//! Commits group the events of one decision as the journal stores them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Event;
use crate::domain::{CallId, CommitId, Timestamp};

/// Initial buffer capacity in bytes; the stored form of most commits fits.
const COMMIT: usize = 2048;
/// The schema that this release writes. Older ones are upcast when they are read.
pub const SCHEMA: u32 = 1;

/// The events that one decision appended atomically.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    /// Version number in the journal, dense from 1.
    pub version: u64,
    /// Identifies the commit when it is read back after an append timed out.
    pub commit_id: CommitId,
    /// Schema version of the events.
    pub schema: u32,
    /// Time of the decision.
    pub at: Timestamp,
    /// `seq` of the last shown event before this commit.
    pub seq: u64,
    pub events: Vec<Event>,
    /// True if the commit comes from the session that this one was forked from, or from an import; its usage
    /// was not paid for here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_inherited: bool,
}

/// The work of a session that is still unfinished.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnfinishedWork {
    /// True if a turn is running.
    pub has_turn: bool,
    /// True if the session waits for a copy of its workspace.
    pub awaits_workspace: bool,
    /// Calls of views without a result.
    pub view_calls: BTreeSet<CallId>,
}

impl UnfinishedWork {
    /// Returns true if any work is unfinished.
    pub fn is_any(&self) -> bool {
        self.has_turn || self.awaits_workspace || !self.view_calls.is_empty()
    }
}

/// A stored commit cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Written by a newer release.
    #[error("schema {0} of a journal entry is newer than this release")]
    NewerSchema(u32),
    /// Not a commit that this or an older release wrote.
    #[error("a journal entry cannot be read")]
    Malformed(#[from] serde_json::Error),
    /// Its link to the commit before it cannot be read.
    #[error("the link of journal entry {version} cannot be read")]
    BrokenLink {
        /// Version of the commit.
        version: u64,
    },
}

impl Commit {
    /// `seq` of the last shown event after this commit.
    pub fn last_seq(&self) -> u64 {
        let shown = self.events.iter().filter(|event| event.is_shown()).count();
        self.seq.saturating_add(shown as u64)
    }

    /// Returns true if the commit hands the session's effects to another process.
    pub fn hands_over(&self) -> bool {
        let mut events = self.events.iter();
        events.any(|event| matches!(event, Event::OwnerChanged { .. }))
    }

    /// Returns true if work is unfinished after this commit, given the unfinished work before it. Only the
    /// events below start or end such work.
    pub fn is_unfinished_after(&self, before: UnfinishedWork) -> bool {
        let mut now = before;
        for event in &self.events {
            if matches!(event, Event::Thinking { .. }) {
                now.has_turn = true;
            } else if matches!(
                event,
                Event::Answered { .. } | Event::TurnFailed { .. } | Event::Cancelled { .. }
            ) {
                now.has_turn = false;
            } else if let Event::Forked { has_files, .. } = event {
                now.awaits_workspace = *has_files == Some(true);
            } else if matches!(event, Event::WorkspaceCopied { .. }) {
                now.awaits_workspace = false;
            } else if let Event::ViewCalled { call, .. } = event {
                now.view_calls.insert(call.id.clone());
            } else if let Event::Ended { call, .. } = event {
                now.view_calls.remove(call);
            }
        }
        now.is_any()
    }

    /// The shown events with their `seq`.
    pub fn shown(&self) -> impl Iterator<Item = (u64, &Event)> {
        let numbers = (1..).map(|place: u64| self.seq.saturating_add(place));
        numbers.zip(self.events.iter().filter(|event| event.is_shown()))
    }

    /// The stored form, without a link.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CommitError> {
        let mut bytes = Vec::with_capacity(COMMIT);
        serde_json::to_writer(&mut bytes, self)?;
        Ok(bytes)
    }

    /// Reads the stored form of this or an older release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CommitError> {
        #[derive(Deserialize)]
        struct Head {
            schema: u32,
        }
        let head: Head = serde_json::from_slice(bytes)?;
        if head.schema > SCHEMA {
            return Err(CommitError::NewerSchema(head.schema));
        }
        Ok(serde_json::from_slice(bytes)?)
    }
}
