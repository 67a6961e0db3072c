//! The keys and sign-ins with which turns were begun at this gateway.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::{Caller, CredentialId, SessionKey, TenantId};

/// The credential of each session's turn.
#[derive(Default)]
pub(super) struct BegunTurns(
    /// Never held across an await.
    Mutex<HashMap<SessionKey, CredentialId>>,
);

impl BegunTurns {
    /// Somebody has told the session something that a model answers.
    pub(super) fn note(&self, key: &SessionKey, caller: &Caller) {
        if let Some(credential) = &caller.credential {
            self.turns().insert(key.clone(), credential.clone());
        }
    }

    /// Those of all sessions.
    pub(super) fn turns(&self) -> MutexGuard<'_, HashMap<SessionKey, CredentialId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What they were begun with, each with its tenant and sessions.
    pub(super) fn by_credential(&self) -> HashMap<(TenantId, CredentialId), Vec<SessionKey>> {
        let mut found: HashMap<_, Vec<SessionKey>> = HashMap::new();
        for (key, credential) in self.turns().iter() {
            let place = (key.tenant.clone(), credential.clone());
            found.entry(place).or_default().push(key.clone());
        }
        found
    }
}
