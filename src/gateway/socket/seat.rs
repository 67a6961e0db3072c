//! A connected client's place: who it is, which session, what it may still send.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::Notify;

use super::SocketSettings;
use super::inbound::Inbound;
use crate::agent::Frame;
use crate::domain::{JournalId, SessionKey, UserId};
use crate::session::Refusal;
use crate::telemetry::{Present, instruments};
use crate::tenancy::{Authenticated, Tenancy, network};

/// Commands that may wait for one socket, counted or not.
const INBOX: usize = 1_000;

/// Where a client goes on from: the `seq` it has, and the journal it has it from.
pub(super) type ResumePoint = (u64, Option<JournalId>);

/// Why a socket ends.
pub(super) enum End {
    /// The client is gone.
    Gone,
    /// The client is told why, then disconnected.
    Told(Refusal),
}

/// What a socket's task has to do beside showing its session.
pub(super) enum Errand {
    /// Answer a command.
    Answer(Box<Inbound>),
    /// Say that commands were dropped.
    Refuse(Box<Refusal>),
    /// Pass news of the tenant on.
    Tell(Arc<Frame>),
}

/// One connected socket.
pub(super) struct Seat {
    /// Who sits here.
    pub(super) entered: Authenticated,
    /// In which session.
    pub(super) key: SessionKey,
    /// What the client has already, if it says so.
    pub(super) has: Option<ResumePoint>,
    /// The first one ends it.
    pub(super) ends: Inbox<End>,
    /// Commands that have no answer yet.
    pub(super) unanswered: AtomicUsize,
    /// Those of them that count against the limit.
    pub(super) counted: AtomicUsize,
    /// Whether it waits to be said that commands were dropped: once for any number of them.
    is_refusing: AtomicBool,
    /// What waits, including commands that came before `system:ready`.
    pub(super) errands: Inbox<Errand>,
    /// Where the client asked to go on from.
    resumes: Mutex<Option<ResumePoint>>,
    place: Place,
}

/// What waits for a socket's task. A channel of the usual kind would take more than half a KiB of
/// memory for each of thousands of sockets that say nothing.
pub(super) struct Inbox<T> {
    waiting: Mutex<VecDeque<T>>,
    came: Notify,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            came: Notify::new(),
        }
    }
}

impl<T> Inbox<T> {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, item: T) {
        self.waiting().push_back(item);
        self.came.notify_one();
    }

    /// The next one. One task waits at a time; giving up loses nothing.
    pub(super) async fn next(&self) -> T {
        loop {
            if let Some(item) = self.waiting().pop_front() {
                return item;
            }
            self.came.notified().await;
        }
    }
}

impl Seat {
    pub(super) fn new(
        entered: Authenticated,
        key: SessionKey,
        has: Option<ResumePoint>,
        place: Place,
    ) -> Self {
        Self {
            entered,
            key,
            has,
            ends: Inbox::default(),
            unanswered: AtomicUsize::new(0),
            counted: AtomicUsize::new(0),
            is_refusing: AtomicBool::new(false),
            errands: Inbox::default(),
            resumes: Mutex::default(),
            place,
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

    /// Has it said that a command without an acknowledgement was dropped.
    pub(super) fn refuse(&self, refusal: Refusal) {
        if !self.is_refusing.swap(true, Ordering::Relaxed) {
            self.errands.push(Errand::Refuse(Box::new(refusal)));
        }
    }

    /// It is being said: the next one is news again.
    pub(super) fn refused(&self) {
        self.is_refusing.store(false, Ordering::Relaxed);
    }

    /// A command was answered.
    pub(super) fn end(&self, is_counted: bool) {
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        self.counted
            .fetch_sub(usize::from(is_counted), Ordering::Relaxed);
    }

    /// The client asks to go on from there; only the last time counts.
    pub(super) fn resume_from(&self, point: ResumePoint) {
        *self.resumes() = Some(point);
    }

    /// Where it asked to go on from. Wakes nobody: a socket's task looks at its commands before it
    /// looks here.
    pub(super) async fn resumed(&self) -> ResumePoint {
        poll_fn(|_| match self.resumes().take() {
            Some(point) => Poll::Ready(point),
            None => Poll::Pending,
        })
        .await
    }

    fn resumes(&self) -> MutexGuard<'_, Option<ResumePoint>> {
        self.resumes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the person may still be here. A store that is away does not throw anybody out.
    pub(super) async fn is_still_valid(&self, tenancy: &Tenancy) -> bool {
        tenancy.is_still_valid(&self.entered).await.unwrap_or(true)
    }
}

/// All seats, counted.
pub(super) struct Seats {
    total: AtomicUsize,
    numbers: AtomicUsize,
    /// Never held across an await.
    taken: Mutex<Taken>,
    /// Never held across an await.
    by_user: Mutex<HashMap<UserId, usize>>,
    most: Option<usize>,
    most_by_user: Option<usize>,
    failures: Option<DefaultKeyedRateLimiter<IpAddr>>,
}

/// Who sits where.
#[derive(Default)]
struct Taken {
    by_number: HashMap<usize, Weak<Seat>>,
    /// What whoever sits down from now on is told at once.
    farewell: Option<Refusal>,
}

/// A counted place, given back when dropped.
pub(super) struct Place {
    seats: Arc<Seats>,
    number: usize,
    user: UserId,
    _counted: Present,
}

impl Seats {
    pub(super) fn new(settings: &SocketSettings) -> Self {
        let per_minute = settings.connects_per_minute.and_then(NonZeroU32::new);
        Self {
            total: AtomicUsize::new(0),
            numbers: AtomicUsize::new(0),
            taken: Mutex::default(),
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
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            user: user.clone(),
            _counted: instruments().socket_opened(),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the seat is found.
    pub(super) fn sit(&self, seat: &Arc<Seat>) {
        let mut taken = self.taken();
        if let Some(farewell) = &taken.farewell {
            seat.ends.push(End::Told(farewell.clone()));
        }
        taken
            .by_number
            .insert(seat.place.number, Arc::downgrade(seat));
    }

    /// Those that `is_wanted` by their number. None is let go of while the lock is held: the last
    /// one to do so takes it.
    pub(super) fn all(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<Arc<Seat>> {
        let taken = self.taken();
        let wanted = taken.by_number.iter();
        let wanted = wanted.filter(|(number, _)| is_wanted(**number));
        wanted.filter_map(|(_, seat)| seat.upgrade()).collect()
    }

    /// Ends everybody, now and from here on.
    pub(super) fn dismiss(&self, farewell: &Refusal) {
        self.taken().farewell = Some(farewell.clone());
        for seat in self.all(|_| true) {
            seat.ends.push(End::Told(farewell.clone()));
        }
    }

    /// Counts a failed handshake; whether this address has failed too often.
    pub(super) fn count_failure(&self, peer: IpAddr) -> bool {
        let Some(failures) = &self.failures else {
            return false;
        };
        if failures.len() > 10_000 {
            failures.retain_recent();
        }
        failures.check_key(&network(peer)).is_err()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.seats.taken().by_number.remove(&self.number);
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
