//! A connected client: who it is, which session it shows, what it may still send.

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
use self::waiting::{Noted, Waiting};
use crate::agent::limit_reached;
use crate::domain::{Code, JournalId, Resource, SessionKey};
use crate::gateway::wire::Frame;
use crate::session::Refusal;
use crate::telemetry::instruments;
use crate::tenancy::{Authenticated, Tenancy};

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
        tenancy
            .check_still_valid(&self.entered)
            .await
            .unwrap_or(true)
    }
}

/// Commands that wait, by their size.
const WAITING: Resource = Resource {
    name: "waiting_bytes",
    plural: "bytes of commands at most that wait for an answer",
    remedy: "wait for the earlier ones",
    total: "runtime.limits.waiting_bytes",
    setting: "runtime.limits.waiting_bytes",
};

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
