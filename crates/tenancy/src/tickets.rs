//! Issues tickets: single-use substitutes for a cookie or key in an address, valid for a minute.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use secrecy::SecretString;

use super::credential::AuthenticatedCaller;
use super::secret;
use sepal_core::domain::{Timestamp, UserId};
use sepal_store::records::SecretHash;

const LIFE_MS: u64 = 60_000;

/// The most open tickets of one person: each socket uses one, so more are requested without being used. The
/// person's own oldest tickets are dropped, never those of others.
const MAX_OF_PERSON: usize = 32;

/// The tickets of this process.
#[derive(Default)]
pub(super) struct Tickets {
    /// Never held across an await.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    tickets: HashMap<SecretHash, (AuthenticatedCaller, Timestamp)>,
    /// Oldest first. Used tickets stay until they would have expired.
    of_person: HashMap<UserId, VecDeque<(SecretHash, Timestamp)>>,
    /// The time of the last sweep over all persons.
    swept_at: Option<Timestamp>,
}

impl Open {
    /// Drops expired tickets of all persons, once per ticket lifetime.
    fn sweep(&mut self, now: Timestamp) {
        let is_due = |at: Timestamp| now.since_ms(at) >= LIFE_MS;
        if !self.swept_at.is_none_or(is_due) {
            return;
        }
        self.swept_at = Some(now);
        let lives = |since: Timestamp| now.since_ms(since) < LIFE_MS;
        self.tickets.retain(|_, (_, since)| lives(*since));
        self.of_person.retain(|_, own| {
            own.retain(|(_, since)| lives(*since));
            !own.is_empty()
        });
    }
}

impl Tickets {
    /// Issues a ticket for an authenticated caller.
    pub(super) fn issue(&self, holder: &AuthenticatedCaller, now: Timestamp) -> SecretString {
        let ticket = secret::random();
        let hash = secret::hash(&ticket);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = &mut *open;
        open.sweep(now);
        let own = open.of_person.entry(holder.caller.user.id.clone());
        let own = own.or_default();
        if own.len() >= MAX_OF_PERSON
            && let Some((oldest, _)) = own.pop_front()
        {
            open.tickets.remove(&oldest);
        }
        own.push_back((hash.clone(), now));
        open.tickets.insert(hash, (holder.clone(), now));
        ticket
    }

    /// Redeems a ticket.
    pub(super) fn take(
        &self,
        ticket: &SecretString,
        now: Timestamp,
    ) -> Option<AuthenticatedCaller> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (holder, since) = open.tickets.remove(&secret::hash(ticket))?;
        (now.since_ms(since) < LIFE_MS).then_some(holder)
    }
}

#[cfg(test)]
mod tests {
    use super::{LIFE_MS, MAX_OF_PERSON, Tickets};
    use crate::AuthenticatedCaller;
    use sepal_core::domain::{
        Caller, CredentialId, Rights, Role, Tenant, TenantId, Timestamp, User, UserId,
    };

    fn holder(person: u128) -> AuthenticatedCaller {
        let tenant = Tenant {
            id: TenantId::from_bits(person),
            name: "acme".into(),
        };
        let id = UserId::from_bits(person);
        let user = User {
            id: id.clone(),
            tenant: tenant.id.clone(),
            name: "ana".into(),
            role: Role::Viewer,
            installation_admin: false,
        };
        AuthenticatedCaller {
            caller: Caller {
                user,
                tenant,
                custom_rights: Rights::NONE,
                credential: None,
                grant: None,
            },
            credential: CredentialId::Local(id),
            proxied: None,
        }
    }

    #[test]
    fn whoever_asks_for_very_many_loses_their_own_and_nobody_elses() {
        let (tickets, now) = (Tickets::default(), Timestamp(1));
        let other = tickets.issue(&holder(2), now);
        let mine: Vec<_> = (0..10_005)
            .map(|_| tickets.issue(&holder(1), now))
            .collect();
        assert_eq!(tickets.take(&other, now), Some(holder(2)));
        assert_eq!(tickets.take(&other, now), None, "once");
        let left = mine.iter().filter_map(|ticket| tickets.take(ticket, now));
        assert_eq!(left.count(), MAX_OF_PERSON);
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let tickets = Tickets::default();
        let at = |ms: u64| Timestamp(i64::try_from(ms).unwrap());
        let first = tickets.issue(&holder(1), at(1));
        assert_eq!(tickets.take(&first, at(1 + LIFE_MS)), None);
        for person in 2..100 {
            tickets.issue(&holder(person), at(10 + LIFE_MS));
        }
        tickets.issue(&holder(1), at(20 + 2 * LIFE_MS));
        let open = tickets.open.lock().unwrap();
        assert_eq!((open.tickets.len(), open.of_person.len()), (1, 1));
    }
}
