//! A connected client's place: who it is, which session, what it may still send.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::SocketSettings;
use super::inbound::Inbound;
use crate::domain::{JournalId, SessionKey, UserId};
use crate::telemetry::{Present, instruments};
use crate::tenancy::{Authenticated, Tenancy};

/// Commands that may wait for one socket, counted or not.
const INBOX: usize = 1_000;

/// Where a client goes on from: the `seq` it has, and the journal it has it from.
pub(super) type ResumePoint = (u64, Option<JournalId>);

/// One connected socket.
pub(super) struct Seat {
    /// Who sits here.
    pub(super) entered: Authenticated,
    /// In which session.
    pub(super) key: SessionKey,
    /// What the client has already, if it says so.
    pub(super) has: Option<ResumePoint>,
    /// Cancelled when the client is gone.
    pub(super) gone: CancellationToken,
    /// Commands that have no answer yet.
    pub(super) unanswered: AtomicUsize,
    /// Those of them that count against the limit.
    pub(super) counted: AtomicUsize,
    /// Commands lie in boxes, because a channel has room for many from its beginning.
    inbox: Mutex<Option<mpsc::UnboundedReceiver<Box<Inbound>>>>,
    _place: Place,
}

impl Seat {
    pub(super) fn new(
        entered: Authenticated,
        key: SessionKey,
        has: Option<ResumePoint>,
        inbox: mpsc::UnboundedReceiver<Box<Inbound>>,
        place: Place,
    ) -> Self {
        Self {
            entered,
            key,
            has,
            gone: CancellationToken::new(),
            unanswered: AtomicUsize::new(0),
            counted: AtomicUsize::new(0),
            inbox: Mutex::new(Some(inbox)),
            _place: place,
        }
    }

    /// Takes note of a command; whether it is one too many.
    pub(super) fn begin(&self, is_counted: bool, most: Option<usize>) -> bool {
        let counted = usize::from(is_counted);
        let unanswered = self.unanswered.fetch_add(1, Ordering::Relaxed);
        let before = self.counted.fetch_add(counted, Ordering::Relaxed);
        let is_too_many =
            unanswered >= INBOX || is_counted && most.is_some_and(|most| before >= most);
        if is_too_many {
            self.end(is_counted);
        }
        is_too_many
    }

    /// A command was answered.
    pub(super) fn end(&self, is_counted: bool) {
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        self.counted
            .fetch_sub(usize::from(is_counted), Ordering::Relaxed);
    }

    /// The commands, including those that came before `system:ready`.
    pub(super) fn take_inbox(&self) -> Option<mpsc::UnboundedReceiver<Box<Inbound>>> {
        self.inbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Whether the person may still be here. A store that is away does not throw anybody out.
    pub(super) async fn is_still_valid(&self, tenancy: &Tenancy) -> bool {
        tenancy.is_still_valid(&self.entered).await.unwrap_or(true)
    }
}

/// All seats, counted.
pub(super) struct Seats {
    total: AtomicUsize,
    /// Never held across an await.
    by_user: Mutex<HashMap<UserId, usize>>,
    most: Option<usize>,
    most_by_user: Option<usize>,
    failures: Option<DefaultKeyedRateLimiter<IpAddr>>,
}

/// A counted place, given back when dropped.
pub(super) struct Place {
    seats: Arc<Seats>,
    user: UserId,
    _counted: Present,
}

impl Seats {
    pub(super) fn new(settings: &SocketSettings) -> Self {
        let per_minute = settings.connects_per_minute.and_then(NonZeroU32::new);
        Self {
            total: AtomicUsize::new(0),
            by_user: Mutex::default(),
            most: settings.sockets,
            most_by_user: settings.sockets_per_user,
            failures: per_minute.map(|most| RateLimiter::keyed(Quota::per_minute(most))),
        }
    }

    /// Takes a place, or says which limit is reached.
    pub(super) fn take(self: &Arc<Self>, user: &UserId) -> Result<Place, &'static str> {
        let mut by_user = self.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        let own = by_user.get(user).copied().unwrap_or(0);
        if self.most_by_user.is_some_and(|most| own >= most) {
            return Err("you have too many open connections; close some tabs");
        }
        if self
            .most
            .is_some_and(|most| self.total.load(Ordering::Relaxed) >= most)
        {
            return Err("the server has too many open connections; try again later");
        }
        by_user.insert(user.clone(), own + 1);
        self.total.fetch_add(1, Ordering::Relaxed);
        Ok(Place {
            seats: Arc::clone(self),
            user: user.clone(),
            _counted: instruments().socket_opened(),
        })
    }

    /// Counts a failed handshake; whether this address has failed too often.
    pub(super) fn count_failure(&self, peer: IpAddr) -> bool {
        let Some(failures) = &self.failures else {
            return false;
        };
        if failures.len() > 10_000 {
            failures.retain_recent();
        }
        failures.check_key(&peer).is_err()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_user = self
            .seats
            .by_user
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = by_user.get_mut(&self.user) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                by_user.remove(&self.user);
            }
        }
        self.seats.total.fetch_sub(1, Ordering::Relaxed);
    }
}
