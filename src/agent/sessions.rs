//! The registry of live sessions: open, tell, watch, read, claim what a crash left, stop all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::effects::Running;
use super::factory::AgentFactory;
use super::feed::{Feed, Joined, ShownEvent, What};
use super::journal::{Journal, JournalError};
use super::live::{Accepted, Ask, LiveSession, Message, stopping, store_away};
use super::projection::Projection;
use crate::domain::{
    Actor, Caller, Code, JournalId, SandboxId, SessionId, SessionKey, UserId,
};
use crate::session::{Command, Genesis, Refusal};
use crate::store::{LiveStore, Records};

/// Commands that may wait for one session.
const MAILBOX: usize = 256;

/// How sessions are kept.
#[derive(Debug, Clone, Copy)]
pub struct SessionsSettings {
    /// How long a session without work stays in memory.
    pub idle_after: Duration,
}

impl Default for SessionsSettings {
    fn default() -> Self {
        Self { idle_after: Duration::from_secs(60) }
    }
}

/// A part of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// What came after that `seq`.
    After(u64),
    /// What came just before that `seq`.
    Before(u64),
}

/// The one corridor to sessions. Cheap to clone.
#[derive(Clone)]
pub struct Sessions(Arc<Inner>);

struct Inner {
    store: Arc<dyn LiveStore>,
    records: Records,
    factory: AgentFactory,
    settings: SessionsSettings,
    projection: Projection,
    life: Arc<str>,
    /// Never held across an await.
    slots: Mutex<HashMap<SessionKey, Slot>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A session that is in memory or watched.
struct Slot {
    feed: Arc<Feed>,
    genesis: Genesis,
    /// May be created by its first command.
    is_new: bool,
    mailbox: Option<mpsc::Sender<Message>>,
}

impl Sessions {
    /// Starts the registry; its tasks run on `tasks` until `stop`.
    pub fn start(
        store: Arc<dyn LiveStore>,
        records: Records,
        factory: AgentFactory,
        settings: SessionsSettings,
        (tasks, stop): (TaskTracker, CancellationToken),
    ) -> Self {
        let (projection, writing) = Projection::start(records.clone(), stop.clone());
        tasks.spawn(writing);
        let life: u128 = rand::random();
        Self(Arc::new(Inner {
            store,
            records,
            factory,
            settings,
            projection,
            life: format!("{life:032x}").into(),
            slots: Mutex::new(HashMap::new()),
            tasks,
            stop,
        }))
    }

    /// A new session of the caller. It is stored at its first command; until then it lives as
    /// long as somebody watches it.
    pub fn new_session(&self, caller: &Caller) -> SessionKey {
        let session = SessionId::from_bits(rand::random());
        let key = SessionKey { tenant: caller.tenant.id.clone(), session };
        self.0.reserve(&key, caller);
        key
    }

    /// The caller's own session of that name, created on first use. The id is derived from tenant,
    /// user and name, so no other user's name leads to it.
    pub fn named_session(&self, caller: &Caller, name: &str) -> SessionKey {
        let mut hash = Sha256::new();
        for part in [caller.tenant.id.as_str(), caller.user.id.as_str(), name] {
            hash.update(part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
        let hash = hash.finalize();
        let bits = hash.iter().take(16).fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
        let session = SessionId::from_bits(bits);
        let key = SessionKey { tenant: caller.tenant.id.clone(), session };
        self.0.reserve(&key, caller);
        key
    }

    /// Stores a new session right away, so that it can be listed.
    pub async fn create(
        &self,
        caller: &Caller,
        title: Option<String>,
    ) -> Result<SessionKey, Refusal> {
        let key = self.new_session(caller);
        self.tell(&key, caller, Ask::Command(Command::Open { title })).await?;
        Ok(key)
    }

    /// Tells a session. The answer means that what it changed is durable.
    pub async fn tell(
        &self,
        key: &SessionKey,
        caller: &Caller,
        ask: Ask,
    ) -> Result<Accepted, Refusal> {
        if !caller.user.role.may_act() {
            return Err(Refusal::new(Code::NotAllowed, "a viewer may read, not act"));
        }
        let by = caller.user.id.clone();
        self.request(key, caller, |reply| Message::Tell { ask, by, reply }).await
    }

    /// The session as it is, and everything that comes after.
    pub async fn join(&self, key: &SessionKey, caller: &Caller) -> Result<Joined, Refusal> {
        let by = caller.user.id.clone();
        self.request(key, caller, |reply| Message::Join { by, reply }).await
    }

    /// Part of the transcript, oldest first. The caller has joined or is checked here.
    pub async fn events(
        &self,
        key: &SessionKey,
        caller: &Caller,
        page: Page,
        limit: usize,
    ) -> Result<Vec<ShownEvent>, Refusal> {
        self.join(key, caller).await?;
        self.page(key, page, limit).await
    }

    /// Part of the transcript for somebody who has joined.
    pub async fn page(
        &self,
        key: &SessionKey,
        page: Page,
        limit: usize,
    ) -> Result<Vec<ShownEvent>, Refusal> {
        let journal = Journal::new(Arc::clone(&self.0.store), key.clone());
        let events = match page {
            Page::After(seq) => journal.events_after(seq, limit).await,
            Page::Before(seq) => journal.events_before(seq, limit).await,
        };
        events.map_err(|error| unreadable(key, &error))
    }

    /// Deletes a session with its journal and workspace.
    pub async fn delete(&self, key: &SessionKey, caller: &Caller) -> Result<(), Refusal> {
        self.join(key, caller).await?;
        let state = Journal::new(Arc::clone(&self.0.store), key.clone()).fold().await;
        let state = state.map_err(|error| unreadable(key, &error))?;
        let ask = Ask::Command(Command::Stop { turn: None, said_so_far: None });
        self.tell(key, caller, ask).await?;
        let feed = self.0.forget(key);
        let removed = self.0.store.remove(key).await;
        removed.map_err(|error| unreadable(key, &JournalError::Store(error)))?;
        if let Err(error) = self.0.records.sessions().delete(key).await {
            tracing::warn!(session.id = %key.session, %error, "The row of a deleted session is left");
        }
        if let Some(sandbox) = &state.control.sandbox {
            self.0.factory.place.remove(sandbox).await;
        }
        if let Some(feed) = feed {
            feed.show(What::Deleted);
        }
        Ok(())
    }

    /// What a watcher that fell behind reads.
    pub fn feed(&self, key: &SessionKey) -> Option<Arc<Feed>> {
        self.0.slots().get(key).map(|slot| Arc::clone(&slot.feed))
    }

    /// Goes on with everything that an earlier life left unfinished. How many sessions that is.
    pub async fn claim_unfinished(&self) -> Result<usize, crate::store::Error> {
        let unfinished = self.0.store.active().await?;
        for key in &unfinished {
            // Opening is enough: the session's task takes over what it finds.
            self.0.wake(key);
        }
        Ok(unfinished.len())
    }

    /// Forgets sessions that nobody watches and nobody needs; called now and then.
    pub fn sweep(&self) {
        let gone = |slot: &Slot| {
            let is_live = slot.mailbox.as_ref().is_some_and(|mailbox| !mailbox.is_closed());
            !is_live && !slot.feed.is_watched()
        };
        self.0.slots().retain(|_, slot| !gone(slot));
    }

    /// Sessions in memory, for `/metrics` and tests.
    pub fn live_count(&self) -> usize {
        let slots = self.0.slots();
        let is_live =
            |slot: &&Slot| slot.mailbox.as_ref().is_some_and(|mailbox| !mailbox.is_closed());
        slots.values().filter(is_live).count()
    }

    async fn request<T>(
        &self,
        key: &SessionKey,
        caller: &Caller,
        message: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Message,
    ) -> Result<T, Refusal> {
        if key.tenant != caller.tenant.id {
            return Err(not_found());
        }
        let (reply, answer) = oneshot::channel();
        let mut message = message(reply);
        loop {
            if self.0.stop.is_cancelled() {
                return Err(stopping());
            }
            let mailbox = self.0.open(key, caller).await?;
            match mailbox.send(message).await {
                Ok(()) => break,
                // It was leaving memory: open it again.
                Err(mpsc::error::SendError(back)) => message = back,
            }
        }
        answer.await.unwrap_or_else(|_| Err(stopping()))
    }
}

impl Inner {
    fn slots(&self) -> MutexGuard<'_, HashMap<SessionKey, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn genesis(&self, owner: Actor) -> Genesis {
        Genesis {
            journal: JournalId::from_bits(rand::random()),
            owner,
            sandbox: SandboxId::from_bits(rand::random()),
            model: self.factory.model_choice(),
        }
    }

    /// Makes room for a session that its caller may create.
    fn reserve(&self, key: &SessionKey, caller: &Caller) {
        self.slots().entry(key.clone()).or_insert_with(|| Slot {
            feed: Arc::default(),
            genesis: self.genesis(caller.actor()),
            is_new: true,
            mailbox: None,
        });
    }

    /// The mailbox of a session's task, started if need be.
    async fn open(
        self: &Arc<Self>,
        key: &SessionKey,
        caller: &Caller,
    ) -> Result<mpsc::Sender<Message>, Refusal> {
        let is_known = match self.slots().get(key) {
            Some(Slot { mailbox: Some(mailbox), .. }) if !mailbox.is_closed() => {
                return Ok(mailbox.clone());
            }
            Some(slot) => slot.is_new,
            None => false,
        };
        if !is_known {
            let head = self.store.head(key).await;
            let head = head.map_err(|error| unreadable(key, &JournalError::Store(error)))?;
            if head.is_none() {
                return Err(not_found());
            }
        }
        Ok(self.spawn(key, Some(caller)))
    }

    fn wake(self: &Arc<Self>, key: &SessionKey) {
        drop(self.spawn(key, None));
    }

    /// Starts the task unless it runs.
    fn spawn(self: &Arc<Self>, key: &SessionKey, caller: Option<&Caller>) -> mpsc::Sender<Message> {
        let nobody = || Actor { id: UserId::from_bits(0), name: String::new() };
        let mut slots = self.slots();
        let slot = slots.entry(key.clone()).or_insert_with(|| Slot {
            feed: Arc::default(),
            // A stored session has its own; this one is never used.
            genesis: self.genesis(caller.map_or_else(nobody, Caller::actor)),
            is_new: false,
            mailbox: None,
        });
        if let Some(mailbox) = slot.mailbox.as_ref().filter(|mailbox| !mailbox.is_closed()) {
            return mailbox.clone();
        }
        let (mailbox, messages) = mpsc::channel(MAILBOX);
        slot.mailbox = Some(mailbox.clone());
        let (feed, genesis) = (Arc::clone(&slot.feed), slot.genesis.clone());
        drop(slots);
        self.tasks.spawn(Arc::clone(self).serve(key.clone(), feed, genesis, (mailbox.downgrade(), messages)));
        mailbox
    }

    async fn serve(
        self: Arc<Self>,
        key: SessionKey,
        feed: Arc<Feed>,
        genesis: Genesis,
        (outcomes, messages): (mpsc::WeakSender<Message>, mpsc::Receiver<Message>),
    ) {
        let journal = Journal::new(Arc::clone(&self.store), key.clone());
        let state = match journal.fold().await {
            Ok(state) => state,
            Err(error) => return refuse_all(messages, &unreadable(&key, &error)).await,
        };
        let sandbox = state.control.sandbox.as_ref().unwrap_or(&genesis.sandbox);
        let parts = match self.factory.create_agent(sandbox) {
            Ok(parts) => parts,
            Err(error) => {
                tracing::error!(session.id = %key.session, %error, "The agent cannot be built");
                return refuse_all(messages, &internal()).await;
            }
        };
        let session = LiveSession {
            running: Running::new(outcomes, self.tasks.clone()),
            mailbox: messages,
            projection: self.projection.clone(),
            life: Arc::clone(&self.life),
            idle_after: self.settings.idle_after,
            stop: self.stop.clone(),
            key: key.clone(),
            state,
            journal,
            feed,
            parts,
            genesis,
        };
        let weak: Weak<Self> = Arc::downgrade(&self);
        drop(self);
        session.run().await;
        if let Some(inner) = weak.upgrade() {
            inner.left(&key);
        }
    }

    /// A task has ended: its slot stays only while somebody watches.
    fn left(&self, key: &SessionKey) {
        let mut slots = self.slots();
        let is_gone = slots.get(key).is_some_and(|slot| {
            let is_live = slot.mailbox.as_ref().is_some_and(|mailbox| !mailbox.is_closed());
            !is_live && !slot.feed.is_watched()
        });
        if is_gone {
            slots.remove(key);
        }
    }

    /// Takes a deleted session out; its task ends as nobody can reach it.
    fn forget(&self, key: &SessionKey) -> Option<Arc<Feed>> {
        self.slots().remove(key).map(|slot| slot.feed)
    }
}

/// Answers everything that was sent to a session that cannot be opened.
async fn refuse_all(mut messages: mpsc::Receiver<Message>, refusal: &Refusal) {
    messages.close();
    while let Some(message) = messages.recv().await {
        message.refuse(refusal);
    }
}

fn unreadable(key: &SessionKey, error: &JournalError) -> Refusal {
    match error {
        JournalError::Store(error) => {
            tracing::warn!(session.id = %key.session, ?error, "The store is away");
            store_away()
        }
        JournalError::Commit(error) => {
            tracing::error!(session.id = %key.session, ?error, "The journal cannot be read");
            internal()
        }
    }
}

fn internal() -> Refusal {
    Refusal::new(Code::Internal, "internal error")
}

fn not_found() -> Refusal {
    Refusal::new(Code::SessionNotFound, "there is no such session")
}
