//! A connected client's place: who it is, which session, what it may still send.

pub(super) mod inbound;
pub(super) mod send;
pub(super) mod waiting;

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::Notify;

use self::inbound::Inbound;
use self::waiting::{Noted, Waiting};
use super::SocketSettings;
use crate::agent::{Frame, limit_reached};
use crate::domain::{Code, Holder, JournalId, Resource, SessionKey, Share, Shares};
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
pub(super) enum ConnectionTask {
    /// Answer a command.
    Answer(Box<Inbound>),
    /// Say that commands were dropped.
    Refuse(Box<Refusal>),
    /// Pass news of the tenant on.
    Tell(Arc<Frame>),
}

/// What a socket is told of.
pub(super) enum Shows {
    /// A session.
    Session(SessionKey),
    /// The person's list of sessions.
    List,
}

/// One connected socket.
pub(super) struct Connection {
    /// Who sits here.
    pub(super) entered: Authenticated,
    /// What they are told of.
    pub(super) shows: Shows,
    /// What the client has already, if it says so.
    pub(super) has: Option<ResumePoint>,
    /// The first one ends it.
    pub(super) ends: Inbox<End>,
    /// Commands that have no answer yet.
    pub(super) unanswered: AtomicUsize,
    /// Those of them that count against the limit.
    pub(super) counted: AtomicUsize,
    /// Bytes of all of them.
    waiting: AtomicUsize,
    /// Whether it waits to be said that commands were dropped: once for any number of them.
    is_refusing: AtomicBool,
    /// What waits, including commands that came before `system:ready`.
    pub(super) queued: Inbox<ConnectionTask>,
    /// Where the client asked to go on from.
    resumes: Mutex<Option<ResumePoint>>,
    place: ConnectionPermit,
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

    fn len(&self) -> usize {
        self.waiting().len()
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

/// More than one socket may have waiting.
fn too_many(what: &str) -> Refusal {
    instruments().limit_reached("commands", "socket");
    let message = format!("too many {what} without an answer; wait for the earlier ones");
    Refusal::new(Code::TooManyRequests, message)
}

impl Connection {
    pub(super) fn new(
        entered: Authenticated,
        shows: Shows,
        has: Option<ResumePoint>,
        place: ConnectionPermit,
    ) -> Self {
        Self {
            entered,
            shows,
            has,
            ends: Inbox::default(),
            unanswered: AtomicUsize::new(0),
            counted: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            is_refusing: AtomicBool::new(false),
            queued: Inbox::default(),
            resumes: Mutex::default(),
            place,
        }
    }

    /// Takes note of a command of so many bytes, or says why it is one too many.
    pub(super) fn begin(&self, is_counted: bool, bytes: usize) -> Result<Waiting, Refusal> {
        let connections = &self.place.connections;
        let unanswered = self.unanswered.fetch_add(1, Ordering::Relaxed);
        let counted = self
            .counted
            .fetch_add(usize::from(is_counted), Ordering::Relaxed);
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let noted = Noted { is_counted, bytes };
        let is_over = |most: Option<usize>, with| most.is_some_and(|most| with > most);
        let refusal =
            if unanswered >= INBOX || is_counted && is_over(connections.commands, counted + 1) {
                too_many("commands")
            } else if unanswered > 0
                && is_over(connections.bytes_per_socket, before.saturating_add(bytes))
            {
                too_many("bytes of commands")
            } else {
                // One more turn of the lock for each command, none for each token.
                let holder = self.entered.caller.holder();
                match connections.waiting.take(holder, bytes as u64) {
                    Ok(share) => {
                        return Ok(Waiting {
                            noted,
                            _share: share,
                        });
                    }
                    Err(reached) => limit_reached(&WAITING, reached),
                }
            };
        self.forget(noted);
        Err(refusal)
    }

    /// Has it said that a command without an acknowledgement was dropped.
    pub(super) fn refuse(&self, refusal: Refusal) {
        if !self.is_refusing.swap(true, Ordering::Relaxed) {
            self.queued.push(ConnectionTask::Refuse(Box::new(refusal)));
        }
    }

    /// It is being said: the next one is news again.
    pub(super) fn refused(&self) {
        self.is_refusing.store(false, Ordering::Relaxed);
    }

    /// A command was answered.
    pub(super) fn end(&self, waiting: &Waiting) {
        self.forget(waiting.noted);
    }

    fn forget(&self, Noted { is_counted, bytes }: Noted) {
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        self.counted
            .fetch_sub(usize::from(is_counted), Ordering::Relaxed);
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Has news told, or ends a client that takes none: what waits for it may not grow for ever.
    pub(super) fn tell(&self, news: Arc<Frame>) {
        if self.queued.len() < INBOX {
            return self.queued.push(ConnectionTask::Tell(news));
        }
        let message = "the client takes no news any more; connect again";
        let refusal = Refusal::new(Code::TooManyRequests, message);
        self.ends.push(End::Told(refusal));
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

/// Open sockets.
const SOCKETS: Resource = Resource {
    name: "sockets",
    plural: "open connections",
    remedy: "close some tabs",
    total: "runtime.limits.sockets",
    setting: "runtime.limits.sockets",
};

/// Commands that wait, by their size.
const WAITING: Resource = Resource {
    name: "waiting_bytes",
    plural: "bytes of commands at most that wait for an answer",
    remedy: "wait for the earlier ones",
    total: "runtime.limits.waiting_bytes",
    setting: "runtime.limits.waiting_bytes",
};

/// All seats, counted.
pub(super) struct Connections {
    numbers: AtomicUsize,
    /// Never held across an await.
    taken: Mutex<Taken>,
    sockets: Arc<Shares>,
    /// Commands that one socket may have waiting.
    commands: Option<usize>,
    bytes_per_socket: Option<usize>,
    /// Bytes of commands that wait.
    waiting: Arc<Shares>,
    failures: Option<DefaultKeyedRateLimiter<IpAddr>>,
}

/// Who sits where.
#[derive(Default)]
struct Taken {
    by_number: HashMap<usize, Weak<Connection>>,
    /// Those that show a person's list, by whose it is.
    lists: HashMap<Holder, HashMap<usize, Weak<Connection>>>,
    /// What whoever sits down from now on is told at once.
    farewell: Option<Refusal>,
}

/// A counted place, given back when dropped.
pub(super) struct ConnectionPermit {
    connections: Arc<Connections>,
    number: usize,
    _share: Share,
    _counted: Present,
}

impl Connections {
    pub(super) fn new(settings: &SocketSettings) -> Self {
        let per_minute = settings.connects_per_minute.and_then(NonZeroU32::new);
        Self {
            numbers: AtomicUsize::new(0),
            taken: Mutex::default(),
            sockets: Shares::new(settings.sockets),
            commands: settings.commands_per_socket,
            bytes_per_socket: settings.waiting_bytes_per_socket,
            waiting: Shares::new(settings.waiting_bytes),
            failures: per_minute.map(|most| RateLimiter::keyed(Quota::per_minute(most))),
        }
    }

    /// Takes a place, or says which limit is reached.
    pub(super) fn take(self: &Arc<Self>, holder: Holder) -> Result<ConnectionPermit, Refusal> {
        let share = self.sockets.take(holder, 1);
        let share = share.map_err(|reached| limit_reached(&SOCKETS, reached))?;
        Ok(ConnectionPermit {
            connections: Arc::clone(self),
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            _share: share,
            _counted: instruments().socket_opened(),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the seat is found.
    pub(super) fn sit(&self, connection: &Arc<Connection>) {
        let mut taken = self.taken();
        if let Some(farewell) = &taken.farewell {
            connection.ends.push(End::Told(farewell.clone()));
        }
        let number = connection.place.number;
        if let Shows::List = connection.shows {
            let lists = taken.lists.entry(connection.entered.caller.holder());
            lists
                .or_default()
                .insert(number, Arc::downgrade(connection));
        }
        taken.by_number.insert(number, Arc::downgrade(connection));
    }

    /// Those that show the list of that person.
    pub(super) fn lists_of(&self, holder: &Holder) -> Vec<Arc<Connection>> {
        let taken = self.taken();
        let lists = taken.lists.get(holder).into_iter().flatten();
        lists
            .filter_map(|(_, connection)| connection.upgrade())
            .collect()
    }

    /// Those that show anybody's list.
    pub(super) fn all_lists(&self) -> Vec<Arc<Connection>> {
        let taken = self.taken();
        let lists = taken.lists.values().flatten();
        lists
            .filter_map(|(_, connection)| connection.upgrade())
            .collect()
    }

    /// Those that `is_wanted` by their number. None is let go of while the lock is held: the last
    /// one to do so takes it.
    pub(super) fn all(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<Arc<Connection>> {
        let taken = self.taken();
        let wanted = taken.by_number.iter();
        let wanted = wanted.filter(|(number, _)| is_wanted(**number));
        wanted
            .filter_map(|(_, connection)| connection.upgrade())
            .collect()
    }

    /// Ends everybody, now and from here on.
    pub(super) fn dismiss(&self, farewell: &Refusal) {
        self.taken().farewell = Some(farewell.clone());
        for connection in self.all(|_| true) {
            connection.ends.push(End::Told(farewell.clone()));
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

impl Drop for Connection {
    fn drop(&mut self) {
        if let Shows::List = self.shows {
            let holder = self.entered.caller.holder();
            let mut taken = self.place.connections.taken();
            let is_last = taken.lists.get_mut(&holder).is_some_and(|lists| {
                lists.remove(&self.place.number);
                lists.is_empty()
            });
            if is_last {
                taken.lists.remove(&holder);
            }
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.taken().by_number.remove(&self.number);
    }
}
