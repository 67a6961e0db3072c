//! Reads the stored commits that prove the decisions of a session.

use std::sync::Arc;

use super::Sessions;
use super::refusal::{not_found, unreadable};
use crate::agent::journal::{Journal, JournalError};
use crate::domain::{Caller, Code, Right, SessionKey};
use crate::session::Refusal;
use crate::session::proof::DecisionDocument;
use crate::store::Record;

/// Permission to read the decisions of a session. Only [`Sessions::decisions`] makes one.
pub struct DecisionReader {
    journal: Journal,
    is_owner: bool,
}

/// Stored commits that are not verified yet.
#[derive(Debug)]
pub struct DecisionPart {
    key: SessionKey,
    records: Vec<Record>,
}

impl Sessions {
    /// Lets the owner of the session read its decisions, and those who read the audit of the tenant.
    pub async fn decisions(
        &self,
        key: &SessionKey,
        caller: &Caller,
    ) -> Result<DecisionReader, Refusal> {
        let admitted = self.admit(key, caller).await;
        let may_exist = key.tenant == caller.tenant.id && caller.reaches(&key.session);
        let reads_audit = caller.may(Right::ReadAudit) && may_exist;
        let is_owner = match admitted {
            Ok(()) => true,
            Err(refusal) if refusal.code == Code::SessionNotFound && reads_audit => {
                if self.0.lists.is_hidden(key) {
                    return Err(refusal);
                }
                false
            }
            Err(refusal) => return Err(refusal),
        };
        let journal = Journal::new(Arc::clone(&self.0.store), key.clone());
        let version = journal.version().await;
        match version.map_err(|error| unreadable(key, &JournalError::Store(error)))? {
            0 => Err(not_found()),
            _ => Ok(DecisionReader { journal, is_owner }),
        }
    }
}

impl DecisionReader {
    /// The session.
    pub fn key(&self) -> &SessionKey {
        self.journal.key()
    }

    /// Returns true if the reader owns the session, and so may read the arguments of its calls.
    pub fn is_owner(&self) -> bool {
        self.is_owner
    }

    /// Returns at most `limit` commits after that version; empty at the end.
    pub async fn part(&self, after: u64, limit: usize) -> Result<DecisionPart, Refusal> {
        let key = self.key().clone();
        match self.journal.records_after(after, limit).await {
            Ok(records) => Ok(DecisionPart { key, records }),
            Err(error) => Err(unreadable(&key, &error)),
        }
    }
}

impl DecisionPart {
    /// Verifies the commits and adds them to the document. Returns false if there were none. Keeps the thread
    /// busy for a while.
    pub fn add_to(self, document: &mut DecisionDocument) -> Result<bool, Refusal> {
        for record in &self.records {
            document.take(&record.body).map_err(|broken| {
                tracing::error!(session.id = %self.key.session, tenant.id = %self.key.tenant, %broken,
                    "The journal of a session is not as it was written");
                let text = format!("the journal of this session is not as it was written: {broken}");
                Refusal::new(Code::SessionUnreadable, text)
            })?;
        }
        Ok(!self.records.is_empty())
    }
}
