//! Tickets: what stands in an address for a cookie or key, once and for a minute.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use secrecy::SecretString;

use super::credential::Authenticated;
use super::secret;
use crate::domain::Timestamp;
use crate::store::records::SecretHash;

const LIFE_MS: u64 = 60_000;

/// More than this at once means that something asks without using them; the oldest go.
const MAX_TICKETS: usize = 10_000;

/// The tickets of this process.
#[derive(Default)]
pub(super) struct Tickets {
    /// Never held across an await.
    open: Mutex<HashMap<SecretHash, (Authenticated, Timestamp)>>,
}

impl Tickets {
    /// A ticket for who is signed in.
    pub(super) fn issue(&self, holder: &Authenticated, now: Timestamp) -> SecretString {
        let ticket = secret::random();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MAX_TICKETS {
            open.retain(|_, (_, since)| now.since_ms(*since) < LIFE_MS);
        }
        if open.len() >= MAX_TICKETS {
            open.clear();
        }
        open.insert(secret::hash(&ticket), (holder.clone(), now));
        ticket
    }

    /// Uses a ticket up.
    pub(super) fn take(&self, ticket: &SecretString, now: Timestamp) -> Option<Authenticated> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (holder, since) = open.remove(&secret::hash(ticket))?;
        (now.since_ms(since) < LIFE_MS).then_some(holder)
    }
}
