//! A connected client: its user, the session that it shows, and its pending commands.

pub(super) mod inbound;
pub(super) mod registry;
pub(super) mod send;
pub(super) mod waiting;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::Notify;

use self::inbound::Inbound;
use self::registry::ConnectionPermit;
use self::waiting::{CommandCost, Waiting};
use crate::agent::{ListWatch, limit_reached};
use crate::domain::{Code, JournalId, Resource, SessionKey};
use crate::gateway::wire::Frame;
use crate::session::Refusal;
use crate::telemetry::instruments;
use crate::tenancy::{AuthenticatedCaller, Tenancy};

/// The maximum number of commands that may wait for one socket, including uncounted ones.
const INBOX: usize = 1_000;

/// The point from which a client resumes: its last `seq`, and the journal of that `seq`.
pub(super) type ResumePoint = (u64, Option<JournalId>);

/// The reason a socket ends.
pub(super) enum End {
    /// The client is gone.
    Gone,
    /// The client gets the refusal and is then disconnected.
    Told(Refusal),
}

/// A task of a socket beside showing its session.
pub(super) enum ConnectionTask {
    /// Answers a command.
    Answer(Box<Inbound>),
    /// Reports that commands were dropped.
    Refuse(Box<Refusal>),
    /// Passes on news of the tenant.
    Send(Arc<Frame>),
}

/// The subject that a socket follows.
pub(super) enum Shows {
    /// A session.
    Session(SessionKey),
    /// The user's list of sessions.
    List {
        /// Held while the list is shown.
        _watch: ListWatch,
    },
}

/// One connected socket.
pub(super) struct Connection {
    pub(super) entered: AuthenticatedCaller,
    /// The subject of its news.
    pub(super) shows: Shows,
    /// The client's resume point, if it sent one.
    pub(super) has: Option<ResumePoint>,
    /// The reasons to end the socket; the first one ends it.
    pub(super) ends: Inbox<End>,
    /// The number of commands without an answer.
    pub(super) unanswered: AtomicUsize,
    /// The number of them that count against the limit.
    pub(super) counted: AtomicUsize,
    /// The bytes of all of them.
    waiting: AtomicUsize,
    /// True while a report about dropped commands waits to be sent: one report covers any number of them.
    is_refusing: AtomicBool,
    /// The waiting tasks, including commands that came before `system:ready`.
    pub(super) queued: Inbox<ConnectionTask>,
    /// The point from which the client asked to resume.
    resumes: Mutex<Option<ResumePoint>>,
    place: ConnectionPermit,
}

/// The queue of a socket's task. A usual channel would take more than half a KiB of memory for each of
/// thousands of idle sockets.
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

    /// Returns the next item. Only one task may wait at a time; cancelling the wait loses nothing.
    pub(super) async fn next(&self) -> T {
        loop {
            if let Some(item) = self.waiting().pop_front() {
                return item;
            }
            self.came.notified().await;
        }
    }
}

/// Builds the refusal of commands beyond a socket's limits.
fn too_many(what: &str) -> Refusal {
    instruments().limit_reached("commands", "socket");
    let message = format!("too many {what} without an answer; wait for the earlier ones");
    Refusal::new(Code::TooManyRequests, message)
}

impl Connection {
    pub(super) fn new(
        entered: AuthenticatedCaller,
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

    /// Counts a command of `bytes` bytes, or returns the reason it exceeds a limit.
    pub(super) fn begin(&self, is_counted: bool, bytes: usize) -> Result<Waiting, Refusal> {
        let connections = &self.place.connections;
        let unanswered = self.unanswered.fetch_add(1, Ordering::Relaxed);
        let counted = self
            .counted
            .fetch_add(usize::from(is_counted), Ordering::Relaxed);
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let noted = CommandCost { is_counted, bytes };
        let is_over = |most: Option<usize>, with| most.is_some_and(|most| with > most);
        let refusal =
            if unanswered >= INBOX || is_counted && is_over(connections.commands, counted + 1) {
                too_many("commands")
            } else if unanswered > 0
                && is_over(connections.bytes_per_socket, before.saturating_add(bytes))
            {
                too_many("bytes of commands")
            } else {
                // Takes one more lock for each command, but none for each token.
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

    /// Queues a report that a command without an acknowledgement was dropped.
    pub(super) fn refuse(&self, refusal: Refusal) {
        if !self.is_refusing.swap(true, Ordering::Relaxed) {
            self.queued.push(ConnectionTask::Refuse(Box::new(refusal)));
        }
    }

    /// Called when the report is sent: the next dropped command is reported again.
    pub(super) fn refused(&self) {
        self.is_refusing.store(false, Ordering::Relaxed);
    }

    /// Releases the counts of an answered command.
    pub(super) fn end(&self, waiting: &Waiting) {
        self.forget(waiting.noted);
    }

    fn forget(&self, CommandCost { is_counted, bytes }: CommandCost) {
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        self.counted
            .fetch_sub(usize::from(is_counted), Ordering::Relaxed);
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Queues news, or ends a client that does not read: the queue must not grow without bound.
    pub(super) fn send(&self, news: Arc<Frame>) {
        if self.queued.len() < INBOX {
            return self.queued.push(ConnectionTask::Send(news));
        }
        let message = "the client takes no news any more; connect again";
        let refusal = Refusal::new(Code::TooManyRequests, message);
        self.ends.push(End::Told(refusal));
    }

    /// Sets the point from which the client asked to resume; only the latest request counts.
    pub(super) fn resume_from(&self, point: ResumePoint) {
        *self.resumes() = Some(point);
    }

    /// Returns the requested resume point. The future registers no waker: a socket's task polls its commands
    /// before this future.
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

    /// True if the session may exist for the user's key.
    pub(super) fn reaches(&self, key: &SessionKey) -> bool {
        self.entered.caller.reaches(&key.session)
    }

    /// True if the user still has access. If the store is unavailable, nobody is disconnected.
    pub(super) async fn is_still_valid(&self, tenancy: &Tenancy) -> bool {
        tenancy
            .check_still_valid(&self.entered)
            .await
            .unwrap_or(true)
    }
}

/// The limit on the bytes of waiting commands.
const WAITING: Resource = Resource {
    name: "waiting_bytes",
    plural: "bytes of commands at most that wait for an answer",
    remedy: "wait for the earlier ones",
    total: "runtime.limits.waiting_bytes",
    setting: "runtime.limits.waiting_bytes",
};

impl Drop for Connection {
    fn drop(&mut self) {
        if let Shows::List { .. } = self.shows {
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
