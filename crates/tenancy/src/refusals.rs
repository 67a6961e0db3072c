//! Records attempts that were refused, so few that a stranger cannot fill the disk: the first of a kind from an
//! address in each minute, and at its end how many more there were.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use super::{Tenancy, network};
use sepal_core::domain::{Scope, TenantId, Timestamp, UserId};
use sepal_store::audit::ActName;
use sepal_store::audit::acting::{self, Door};
use sepal_store::records::Note;

/// The time for which equal attempts are counted.
const WINDOW_MS: u64 = 60_000;

/// The kinds of attempts that are counted at once; others are counted together.
const MAX_WINDOWS: usize = 200;

/// A request that the role of a signed-in person does not allow.
#[derive(Debug, Clone)]
pub struct RefusedRequest {
    pub person: (TenantId, UserId),
    /// Method and path.
    pub asked: String,
}

/// What equal attempts have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Attempt {
    pub(super) name: ActName,
    pub(super) chain: Scope,
    pub(super) kind: &'static str,
    pub(super) subject: String,
    /// The network of the client; `None` = not told apart by it.
    pub(super) peer: Option<IpAddr>,
}

impl Attempt {
    pub(super) fn from(mut self, peer: IpAddr) -> Self {
        self.peer = Some(network(peer));
        self
    }

    fn note(&self) -> Note {
        Note::new(self.name, &self.chain, self.kind, &self.subject)
    }
}

/// Attempts of the current minute.
#[derive(Debug)]
struct Window {
    since: Timestamp,
    /// Those that have no record yet.
    more: u64,
}

/// Counts refused attempts.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Never held across an await.
    windows: Mutex<HashMap<Attempt, Window>>,
}

impl Refusals {
    /// Counts an attempt. Returns true if it is the first of its window, which is recorded at once.
    fn count(&self, attempt: &mut Attempt, now: Timestamp) -> bool {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MAX_WINDOWS && !windows.contains_key(attempt) {
            // Whatever else is tried meanwhile is told as one.
            attempt.subject.clear();
            attempt.peer = None;
        }
        let mut is_first = false;
        let window = windows.entry(attempt.clone()).or_insert_with(|| {
            is_first = true;
            Window {
                since: now,
                more: 0,
            }
        });
        if !is_first {
            window.more = window.more.saturating_add(1);
        }
        is_first
    }

    /// Ends the windows that began before `before`, and returns what they counted.
    fn end(&self, before: Timestamp) -> Vec<(Attempt, u64)> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = windows.extract_if(|_, window| window.since <= before);
        ended
            .map(|(attempt, window)| (attempt, window.more))
            .collect()
    }
}

impl Tenancy {
    /// Records a request that a role does not allow.
    pub async fn note_refused_request(&self, refused: RefusedRequest) {
        let (tenant, user) = refused.person;
        let attempt = Attempt {
            name: ActName::Refused,
            chain: Scope::Tenant(tenant),
            kind: "request",
            subject: refused.asked,
            peer: None,
        };
        // Told apart by person: the subject of a record is what was asked.
        self.note_attempt(attempt, Some(&user)).await;
    }

    /// Records a refused attempt, or counts it with equal ones. Nobody waits in vain for it: what cannot be
    /// recorded is logged.
    pub(super) async fn note_attempt(&self, mut attempt: Attempt, user: Option<&UserId>) {
        self.note_ended_attempts().await;
        let mut counted = attempt.clone();
        if let Some(user) = user {
            counted.subject = format!("{user} {}", attempt.subject);
        }
        if self.parts.refusals.count(&mut counted, self.now()) {
            if counted.subject.is_empty() {
                attempt.subject.clear();
            }
            self.keep(attempt.note()).await;
        }
    }

    /// Records how many more attempts the minutes that are over had; for the janitor.
    pub async fn note_ended_attempts(&self) {
        let before = Timestamp(self.now().0.saturating_sub_unsigned(WINDOW_MS));
        self.note_until(before).await;
    }

    /// Records every attempt that has no record yet; at a shutdown.
    pub async fn note_all_attempts(&self) {
        self.note_until(Timestamp(i64::MAX)).await;
    }

    async fn note_until(&self, before: Timestamp) {
        let ended = self.parts.refusals.end(before);
        // Other people made these attempts, not whoever comes by now.
        let noting = acting::through(Door::Gateway, None, async {
            for (attempt, more) in ended.into_iter().filter(|(_, more)| *more > 0) {
                let address = attempt.peer.map(|peer| peer.to_string());
                let note = attempt.note().detail("more", more).detail("from", address);
                self.keep(note).await;
            }
        });
        // Boxed: every refusal passes here, and few minutes end with it.
        Box::pin(noting).await;
    }

    async fn keep(&self, note: Note) {
        if let Err(error) = self.records().audit().note(note).await {
            tracing::warn!(%error, "A refused attempt is not in the audit");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Attempt, MAX_WINDOWS, Refusals};
    use sepal_core::domain::{Scope, Timestamp};
    use sepal_store::audit::ActName;

    fn attempt(subject: usize) -> Attempt {
        Attempt {
            name: ActName::SignInFailed,
            chain: Scope::Installation,
            kind: "user",
            subject: subject.to_string(),
            peer: None,
        }
    }

    #[test]
    fn equal_attempts_of_a_minute_are_counted_and_told_at_its_end() {
        let refusals = Refusals::default();
        assert!(refusals.count(&mut attempt(1), Timestamp(1)));
        assert!(!refusals.count(&mut attempt(1), Timestamp(2)));
        assert!(!refusals.count(&mut attempt(1), Timestamp(3)));
        assert!(refusals.count(&mut attempt(2), Timestamp(9)));
        assert_eq!(refusals.end(Timestamp(0)), []);
        assert_eq!(refusals.end(Timestamp(5)), [(attempt(1), 2)]);
        assert!(refusals.count(&mut attempt(1), Timestamp(10)));
    }

    #[test]
    fn a_stranger_makes_few_records_whatever_they_try() {
        let refusals = Refusals::default();
        let firsts = (0..10_000).filter(|n| refusals.count(&mut attempt(*n), Timestamp(1)));
        assert_eq!(firsts.count(), MAX_WINDOWS + 1);
        let rest: u64 = refusals
            .end(Timestamp(1))
            .iter()
            .map(|(_, more)| more)
            .sum();
        assert_eq!(rest, 10_000 - MAX_WINDOWS as u64 - 1);
    }
}
