//! Holds the slots behind [`super::Sessions`]: the sessions in memory, and their tasks.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::SessionsSettings;
use super::begun_turns::BegunTurns;
use super::refusal::{not_found, refuse_all, unreadable};
use crate::agent::assistants::SessionStart;
use crate::agent::cluster::Cluster;
use crate::agent::cluster::list_broadcast::ListBroadcast;
use crate::agent::effects::Running;
use crate::agent::effects::session_agent::AgentFactory;
use crate::agent::effects::tool_call::ToolNarrowing;
use crate::agent::feed::{Feed, FeedItem};
use crate::agent::journal::projection::Projection;
use crate::agent::journal::{Journal, JournalError};
use crate::agent::mailbox::{Message, store_away};
use crate::agent::search::indexing::Indexing;
use crate::agent::session::creation_limit::CreationLimit;
use crate::agent::session::{LiveSession, Replica};
use crate::domain::{
    Actor, Caller, Code, GatewayId, JournalId, SandboxId, SessionKey, Share, Shares, TenantId,
    UserId,
};
use crate::jobs::Pool;
use crate::session::{Genesis, Refusal, SessionState};
use crate::store::live::cluster_bus::ClusterBus;
use crate::store::{LiveStore, Records};

/// The capacity of a session's mailbox.
const MAILBOX: usize = 256;

/// Version and runner of sessions at the last check.
pub(super) type CheckedSessions = HashMap<SessionKey, (u64, Option<GatewayId>)>;

pub(super) struct SessionRegistry {
    pub(super) store: Arc<dyn LiveStore>,
    pub(super) factory: AgentFactory,
    pub(super) settings: SessionsSettings,
    /// Counts the sessions in memory against the callers that opened them.
    pub(super) live: Arc<Shares>,
    pub(super) creation_limit: Arc<CreationLimit>,
    /// The pool of import places.
    pub(super) imports: Pool,
    pub(super) projection: Projection,
    pub(super) indexing: Indexing,
    pub(super) waiting: Arc<Notify>,
    /// Notified when a session is given up.
    pub(super) given_up: Notify,
    /// Notified when a session was deleted, so that its remains in the database are erased.
    pub(super) deleted: Notify,
    pub(super) lists: ListBroadcast,
    pub(super) cluster: Arc<Cluster>,
    /// Unfinished sessions that are not in memory: version and runner as of the last read.
    pub(super) seen: Mutex<CheckedSessions>,
    /// Unfinished sessions that were found damaged.
    pub(super) damaged: Mutex<HashSet<SessionKey>>,
    /// Never held across an await.
    pub(super) slots: Mutex<HashMap<SessionKey, Slot>>,
    pub(super) begun: BegunTurns,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

/// The input of a session's task.
struct Opening {
    feed: Arc<Feed>,
    genesis: Genesis,
    is_blank: bool,
}

impl SessionRegistry {
    pub(super) fn slots(&self) -> MutexGuard<'_, HashMap<SessionKey, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn records(&self) -> &Records {
        &self.factory.parts.place.records
    }

    /// Returns true if the session has admitted that caller since it has been in memory or watched here.
    pub(super) fn has_joined(&self, key: &SessionKey, caller: &Caller) -> bool {
        let slots = self.slots();
        let joined = slots.get(key).and_then(|slot| slot.joined.as_ref());
        let is_theirs = key.tenant == caller.tenant.id && caller.reaches(&key.session);
        is_theirs && joined == Some(&caller.user.id)
    }

    /// Records that the session has admitted that caller.
    pub(super) fn has_admitted(&self, key: &SessionKey, caller: &Caller) {
        if let Some(slot) = self.slots().get_mut(key) {
            slot.joined = Some(caller.user.id.clone());
        }
    }

    pub(super) fn genesis(&self, tenant: &TenantId, owner: Actor) -> Genesis {
        Genesis {
            journal: JournalId::from_bits(rand::random()),
            sandbox: SandboxId::from_bits(rand::random()),
            model: self.factory.model_choice((tenant, &owner.id)),
            assistant: None,
            servers: None,
            owner,
        }
    }

    /// Makes a slot for a session that its caller may create. `is_blank`: nobody else can know its id.
    pub(super) fn reserve(
        &self,
        key: &SessionKey,
        caller: &Caller,
        start: SessionStart,
        is_blank: bool,
    ) {
        self.slots().entry(key.clone()).or_insert_with(|| {
            let genesis = self.genesis(&key.tenant, caller.actor());
            let SessionStart { model, assistant } = start;
            let model = model.unwrap_or_else(|| genesis.model.clone());
            let genesis = Genesis {
                model,
                assistant,
                servers: caller.confined_servers().cloned(),
                ..genesis
            };
            let mut slot = Slot::new(&self.cluster, key, genesis, true);
            slot.is_blank = is_blank;
            slot
        });
    }

    /// Returns the mailbox of a session's task, starting it if necessary.
    pub(super) async fn open(
        self: &Arc<Self>,
        key: &SessionKey,
        caller: &Caller,
    ) -> Result<mpsc::Sender<Message>, Refusal> {
        let is_known = match self.slots().get(key) {
            Some(Slot {
                mailbox: Some(mailbox),
                ..
            }) if !mailbox.is_closed() => {
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
        let share = self.make_room(caller).await?;
        Ok(self.spawn(key, Some(caller), share))
    }

    /// Starts the task unless it runs.
    pub(super) fn spawn(
        self: &Arc<Self>,
        key: &SessionKey,
        caller: Option<&Caller>,
        share: Share,
    ) -> mpsc::Sender<Message> {
        let nobody = || Actor {
            id: UserId::from_bits(0),
            name: String::new(),
        };
        let mut slots = self.slots();
        let slot = slots.entry(key.clone()).or_insert_with(|| {
            // A stored session has its own genesis; this one is never used.
            let owner = caller.map_or_else(nobody, Caller::actor);
            Slot::new(&self.cluster, key, self.genesis(&key.tenant, owner), false)
        });
        if let Some(mailbox) = slot.mailbox.as_ref().filter(|mailbox| !mailbox.is_closed()) {
            return mailbox.clone();
        }
        let (mailbox, messages) = mpsc::channel(MAILBOX);
        slot.mailbox = Some(mailbox.clone());
        slot.rested_at = None;
        let opening = Opening {
            feed: Arc::clone(&slot.feed),
            genesis: slot.genesis.clone(),
            is_blank: std::mem::take(&mut slot.is_blank),
        };
        drop(slots);
        let mails = (mailbox.downgrade(), messages);
        let serving = Arc::clone(self).serve(key.clone(), opening, mails, share);
        self.tasks.spawn(serving);
        mailbox
    }

    async fn serve(
        self: Arc<Self>,
        key: SessionKey,
        opening: Opening,
        mailbox: (mpsc::WeakSender<Message>, mpsc::Receiver<Message>),
        share: Share,
    ) {
        let (weak, sender) = (Arc::downgrade(&self), mailbox.0.clone());
        // Boxed: opening needs far more room than waiting, which the task does from then on.
        let opened = Box::pin(self.load(&key, opening, mailbox)).await;
        let Some(session) = opened else { return };
        let may_leave = |mailbox: &mpsc::Receiver<Message>, version: u64| {
            let registry: Option<Arc<Self>> = weak.upgrade();
            registry.is_none_or(|registry| registry.may_leave(&key, &sender, mailbox, version))
        };
        session.run(may_leave).await;
        drop(share);
        if let Some(registry) = weak.upgrade() {
            registry.left(&key);
        }
    }

    /// Loads the session from the store. If it cannot be read, all waiting senders are refused.
    async fn load(
        self: Arc<Self>,
        key: &SessionKey,
        opening: Opening,
        (outcomes, messages): (mpsc::WeakSender<Message>, mpsc::Receiver<Message>),
    ) -> Option<Box<LiveSession>> {
        let Opening {
            feed,
            genesis,
            is_blank,
        } = opening;
        let journal = Journal::new(Arc::clone(&self.store), key.clone());
        // Subscribe first, then read, so that nothing is missed in between.
        let folded = match self.cluster.bus.follow(key).await {
            Ok(()) if is_blank => Ok(SessionState::default()),
            Ok(()) => journal.fold(&self.factory.context_rules(&key.tenant)).await,
            Err(error) => Err(JournalError::Store(error)),
        };
        let state = match folded {
            Ok(state) => state,
            Err(error) => {
                let refusal = unreadable(key, &error);
                if error.is_damage() {
                    feed.show(FeedItem::Damaged);
                } else if feed.is_watched() {
                    // No further update may come for it.
                    self.cluster.membership.fall_behind(key);
                }
                refuse_all(messages, &refusal).await;
                return None;
            }
        };
        let sandbox = state.control.sandbox.as_ref().unwrap_or(&genesis.sandbox);
        let owner = state.control.owner.as_ref().unwrap_or(&genesis.owner);
        let agent = self.factory.create_agent(key, &owner.id, sandbox);
        let (assistant, servers) = match state.control.version {
            0 => (&genesis.assistant, &genesis.servers),
            _ => (&state.control.assistant, &state.control.servers),
        };
        agent.tools.narrow(ToolNarrowing {
            assistant: assistant.clone(),
            servers: servers.clone(),
        });
        agent.tools.refresh().await;
        let tasks = self.tasks.clone();
        let replica = Replica {
            cut_to: agent.limits(&state.control),
            projection: self.projection.clone(),
            cluster: Arc::clone(&self.cluster),
            snapshots: tasks.clone(),
            snapshot_at: None,
            factory: self.factory.clone(),
            unsettled: None,
            lost: None,
            key: key.clone(),
            state,
            journal,
            feed,
            agent,
            genesis,
        };
        Some(Box::new(LiveSession {
            replica,
            running: Running::new(outcomes, tasks),
            mailbox: messages,
            set_aside: None,
            creation_limit: Arc::clone(&self.creation_limit),
            answer_asked: None,
            reviewed: None,
            idle_after: self.settings.idle_after,
            stop: self.stop.clone(),
        }))
    }

    /// Takes a session's mailbox out of its slot, so that the next message starts a new task. Refuses while a
    /// message is in it, or while anybody who may send one holds it: a task that is about to end must not
    /// receive a command.
    fn may_leave(
        &self,
        key: &SessionKey,
        mailbox: &mpsc::WeakSender<Message>,
        messages: &mpsc::Receiver<Message>,
        version: u64,
    ) -> bool {
        let mut slots = self.slots();
        let Some(mailbox) = mailbox.upgrade() else {
            return true;
        };
        let slot = slots.get_mut(key);
        let Some(slot) = slot.filter(|slot| {
            let held = slot.mailbox.as_ref();
            held.is_some_and(|held| held.same_channel(&mailbox))
        }) else {
            return false;
        };
        // One sender in the slot and one here. Senders send before they drop theirs, so check for messages
        // last.
        let can_go = mailbox.strong_count() == 2 && messages.is_empty();
        if can_go {
            slot.mailbox = None;
            slot.rested_at = Some(version);
            // If other gateways may write too, the journal has to be checked again.
            slot.is_blank = version == 0 && !self.cluster.is_shared();
        }
        can_go
    }

    /// Cleans up after a task has ended: its slot stays only while somebody watches.
    fn left(&self, key: &SessionKey) {
        let mut slots = self.slots();
        let Some(slot) = slots.get_mut(key) else {
            return;
        };
        if slot.is_forgotten() {
            slots.remove(key);
        } else if !slot.is_live() {
            slot.mailbox = None;
        }
    }

    /// Keeps the refusal for the owner of a damaged session, who is found in the session list because the
    /// journal cannot be read. To anybody else the session does not exist.
    pub(super) async fn for_owner(
        &self,
        key: &SessionKey,
        by: &UserId,
        refusal: Refusal,
    ) -> Refusal {
        if refusal.code != Code::SessionUnreadable {
            return refusal;
        }
        match self.factory.parts.place.records.sessions().find(key).await {
            Ok(Some(row)) if row.owner == *by => refusal,
            Ok(Some(_) | None) => not_found(),
            Err(error) => {
                tracing::warn!(session.id = %key.session, ?error, "The list of sessions cannot be read");
                store_away()
            }
        }
    }

    /// Removes a deleted session's slot; its task ends because nobody can reach it.
    pub(super) fn forget(&self, key: &SessionKey) -> Option<Arc<Feed>> {
        self.slots().remove(key).map(|slot| slot.feed)
    }
}

/// The time for which a new session waits for its first watcher or command.
const RESERVED_FOR: Duration = Duration::from_mins(1);

/// A session that is in memory or watched.
pub(super) struct Slot {
    pub(super) feed: Arc<Feed>,
    pub(super) genesis: Genesis,
    /// True if its first command may create the session.
    pub(super) is_new: bool,
    /// True if it certainly has no journal yet, so that none is looked for.
    is_blank: bool,
    pub(super) mailbox: Option<mpsc::Sender<Message>>,
    /// The version with which its task left memory: watchers have been shown everything up to it.
    pub(super) rested_at: Option<u64>,
    /// Unsubscribes when the slot is dropped.
    _following: Following,
    /// The time since which it is reserved for a caller who has not joined yet.
    reserved: Instant,
    /// The user who joined: the owner, since nobody else is admitted.
    joined: Option<UserId>,
}

/// A subscription to the session's messages, for as long as it lives.
struct Following {
    bus: Arc<dyn ClusterBus>,
    key: SessionKey,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.bus.unfollow(&self.key);
    }
}

impl Slot {
    fn new(cluster: &Cluster, key: &SessionKey, genesis: Genesis, is_new: bool) -> Self {
        Self {
            feed: Arc::new(Feed::new(cluster.feed_of(key))),
            genesis,
            is_new,
            is_blank: false,
            mailbox: None,
            rested_at: None,
            _following: Following {
                bus: Arc::clone(&cluster.bus),
                key: key.clone(),
            },
            reserved: Instant::now(),
            joined: None,
        }
    }

    /// Returns true if its task runs and takes commands.
    pub(super) fn is_live(&self) -> bool {
        self.mailbox
            .as_ref()
            .is_some_and(|mailbox| !mailbox.is_closed())
    }

    /// Returns true if nobody needs it.
    pub(super) fn is_forgotten(&self) -> bool {
        let is_awaited = self.is_new && self.reserved.elapsed() < RESERVED_FOR;
        !(self.is_live() || self.feed.is_watched() || is_awaited)
    }
}
