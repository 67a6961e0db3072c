//! Remembers the API keys and sign-ins with which turns were begun at this gateway.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::{Caller, CredentialId, SessionKey, TenantId};

/// The credential behind each session's turn.
#[derive(Default)]
pub(super) struct BegunTurns(
    /// Never held across an await.
    Mutex<Turns>,
);

#[derive(Default)]
struct Turns {
    of_session: HashMap<SessionKey, BegunTurn>,
    /// The number of turns recorded so far.
    noted: u64,
}

struct BegunTurn {
    credential: CredentialId,
    /// Distinguishes this turn from a later one of the same session.
    number: u64,
}

impl BegunTurns {
    /// Records that the caller sent a request that begins a turn.
    pub(super) fn note(&self, key: &SessionKey, caller: &Caller) {
        let Some(credential) = caller.credential.clone() else {
            return;
        };
        let mut turns = self.turns();
        turns.noted += 1;
        let number = turns.noted;
        let begun = BegunTurn { credential, number };
        turns.of_session.insert(key.clone(), begun);
    }

    /// Returns the number of turns recorded so far; `None` if none of them is remembered.
    pub(super) fn noted(&self) -> Option<u64> {
        let turns = self.turns();
        (!turns.of_session.is_empty()).then_some(turns.noted)
    }

    /// Forgets the turns that have ended: those of sessions that were not active when only `noted` turns had
    /// been recorded. Later ones may have begun since.
    pub(super) fn forget_ended(&self, noted: u64, active: &HashSet<SessionKey>) {
        let mut turns = self.turns();
        let sessions = &mut turns.of_session;
        sessions.retain(|key, begun| begun.number > noted || active.contains(key));
    }

    /// Forgets the turn of a session.
    pub(super) fn forget(&self, key: &SessionKey) {
        self.turns().of_session.remove(key);
    }

    /// Groups the sessions by the credential that began their turn.
    pub(super) fn by_credential(&self) -> HashMap<(TenantId, CredentialId), Vec<SessionKey>> {
        let mut found: HashMap<_, Vec<SessionKey>> = HashMap::new();
        for (key, begun) in &self.turns().of_session {
            let place = (key.tenant.clone(), begun.credential.clone());
            found.entry(place).or_default().push(key.clone());
        }
        found
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::BegunTurns;
    use crate::domain::{
        Caller, CredentialId, Rights, Role, SessionId, SessionKey, Tenant, TenantId, User, UserId,
    };

    fn caller() -> Caller {
        let tenant = Tenant {
            id: TenantId::from_bits(1),
            name: "acme".into(),
        };
        let id = UserId::from_bits(1);
        Caller {
            user: User {
                id: id.clone(),
                tenant: tenant.id.clone(),
                name: "ana".into(),
                role: Role::Member,
                installation_admin: false,
            },
            tenant,
            custom_rights: Rights::NONE,
            credential: Some(CredentialId::Local(id)),
            grant: None,
        }
    }

    #[test]
    fn a_turn_that_begins_while_the_active_ones_are_read_is_not_forgotten() {
        let turns = BegunTurns::default();
        let key = |bits: u128| SessionKey {
            tenant: TenantId::from_bits(1),
            session: SessionId::from_bits(bits),
        };
        assert_eq!(turns.noted(), None);
        for ended_or_running in [1, 2] {
            turns.note(&key(ended_or_running), &caller());
        }
        let noted = turns.noted().unwrap();
        turns.note(&key(3), &caller());
        turns.forget_ended(noted, &HashSet::from([key(2)]));
        let left = |turns: &BegunTurns| {
            let mut left: Vec<_> = turns.by_credential().into_values().flatten().collect();
            left.sort_by_key(|key| key.session.to_string());
            left
        };
        assert_eq!(left(&turns), [key(2), key(3)]);
        let noted = turns.noted().unwrap();
        turns.note(&key(2), &caller());
        turns.forget_ended(noted, &HashSet::new());
        assert_eq!(left(&turns), [key(2)], "its second turn stays");
        turns.forget(&key(2));
        assert_eq!(turns.noted(), None);
    }
}
