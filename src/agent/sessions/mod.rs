//! Keeps the registry of live sessions: opens, watches, reads and stops them, passes requests to them, and
//! claims those that a crash left.

pub(super) mod approvals;
pub(super) mod archive;
pub(super) mod attach;
mod begun_turns;
mod complete;
pub(super) mod decisions;
pub(super) mod files;
pub(super) mod fork;
pub(super) mod import;
pub(super) mod list;
pub(super) mod offers;
mod peers;
pub(super) mod readings;
mod refusal;
mod registry;
pub(super) mod removal;
mod room;
mod rules;
pub(super) mod shared;
mod standing;
pub(super) mod transfers;

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::approvals::Approvals;
use self::archive::Archive;
use self::begun_turns::BegunTurns;
use self::readings::Readings;
use self::refusal::{not_found, unreadable};
use self::registry::SessionRegistry;
use self::shared::Sharing;
use self::transfers::Transfers;
use super::assistants::{Assistants, SessionStart};
use super::budget::Budgets;
use super::cluster::Cluster;
use super::cluster::list_broadcast::{ListBroadcast, ListWatch};
use super::cluster::message::ClusterMessage;
use super::effects::session_agent::AgentFactory;
use super::feed::list_update::ListUpdate;
use super::feed::{Feed, SessionSubscription, ShownEvent};
use super::journal::Journal;
use super::journal::projection::{Bells, Projection};
use super::key_limits;
use super::mailbox::{Acknowledgement, Message, stopping};
use super::request::SessionRequest;
use super::search::indexing::Indexing;
use super::session::creation_limit::CreationLimit;
use super::usage::completion::keep_complete;
use crate::domain::{Caller, Code, GatewayId, Most, SessionId, SessionKey, Shares, StrategyName};
use crate::jobs::Pool;
use crate::session::{AssistantBudget, Command, Refusal};
use crate::store::live::cluster_bus::ClusterBus;
use crate::store::{LiveStore, Records};

/// The most concurrent imports.
const IMPORTS: usize = 2;

/// The settings of sessions.
#[derive(Debug, Clone, Copy)]
pub struct SessionsSettings {
    /// The time for which a session without work stays in memory.
    pub idle_after: Duration,
    /// The most sessions in memory: in all, of one tenant, of one user.
    pub live: Most,
    /// The most sessions that one user creates in a minute, and one tenant; `None` = no limit.
    pub new_per_minute: (Option<NonZeroU32>, Option<NonZeroU32>),
}

impl Default for SessionsSettings {
    fn default() -> Self {
        Self {
            idle_after: Duration::from_mins(1),
            live: Most::default(),
            new_per_minute: (None, None),
        }
    }
}

/// A part of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// The events after that `seq`.
    After(u64),
    /// The events just before that `seq`.
    Before(u64),
}

/// The only way to sessions. Cheap to clone.
#[derive(Clone)]
pub struct Sessions(Arc<SessionRegistry>);

impl Sessions {
    /// Starts the registry; its tasks run on `tasks` until `stop`.
    pub fn start(
        (store, cluster_bus): (Arc<dyn LiveStore>, Arc<dyn ClusterBus>),
        records: Records,
        factory: AgentFactory,
        settings: SessionsSettings,
        (tasks, stop): (TaskTracker, CancellationToken),
    ) -> Self {
        let cluster = Arc::new(Cluster::start(cluster_bus, &tasks, &stop));
        let lists = ListBroadcast::new(Arc::clone(&cluster));
        let indexing = Indexing::new(Arc::clone(&store), records.clone());
        let incomplete = Arc::<Notify>::default();
        let bells = Bells {
            written: indexing.bell(),
            incomplete: Arc::clone(&incomplete),
            waiting: Arc::default(),
        };
        let on_waiting = Arc::clone(&bells.waiting);
        let (projection, writing) =
            Projection::start(records.clone(), lists.clone(), bells, stop.clone());
        factory.parts.attachments.await_rows_of(projection.clone());
        tasks.spawn(writing);
        tasks.spawn(indexing.clone().run(stop.clone()));
        let stores = (Arc::clone(&store), records);
        tasks.spawn(keep_complete(stores, incomplete, stop.clone()));
        let registry = Arc::new(SessionRegistry {
            store,
            factory,
            live: Shares::new(settings.live),
            creation_limit: Arc::new(CreationLimit::new(settings.new_per_minute)),
            imports: Pool::new("imports", IMPORTS),
            settings,
            projection,
            indexing,
            waiting: on_waiting,
            given_up: Notify::new(),
            deleted: Notify::new(),
            lists,
            cluster,
            slots: Mutex::default(),
            seen: Mutex::default(),
            damaged: Mutex::default(),
            begun: BegunTurns::default(),
            tasks,
            stop,
        });
        registry
            .tasks
            .spawn(rules::heed_rules(Arc::downgrade(&registry)));
        registry
            .tasks
            .spawn(standing::heed_standing(Arc::downgrade(&registry)));
        registry
            .tasks
            .spawn(standing::delete_given_up(Arc::downgrade(&registry)));
        approvals::expiry::start(&registry);
        if registry.cluster.is_shared() {
            registry
                .tasks
                .spawn(peers::listen(Arc::downgrade(&registry)));
            registry
                .tasks
                .spawn(peers::pass_news(Arc::downgrade(&registry)));
        }
        let sessions = Self(registry);
        let deleting = removal::delete_given_up(Arc::clone(&sessions.0));
        sessions.0.tasks.spawn(deleting);
        let erasing = removal::erase_deleted(Arc::clone(&sessions.0));
        sessions.0.tasks.spawn(erasing);
        sessions
    }

    /// The bell that is notified when the waiting calls may have changed; only one listener is woken.
    pub fn waiting_bell(&self) -> Arc<Notify> {
        Arc::clone(&self.0.waiting)
    }

    /// The strategies that the settings choose to compact contexts.
    pub fn settings_strategies(&self) -> &[StrategyName] {
        &self.0.factory.parts.history.strategies
    }

    /// Reserves a new session of the caller, with the tenant's default model unless another is chosen. It is
    /// stored at its first command; until then it lives as long as somebody watches it.
    pub fn new_session(&self, caller: &Caller, start: SessionStart) -> Result<SessionKey, Refusal> {
        key_limits::check_begins(caller)?;
        let session = SessionId::from_bits(rand::random());
        let key = SessionKey {
            tenant: caller.tenant.id.clone(),
            session,
        };
        self.0.reserve(&key, caller, start, true);
        Ok(key)
    }

    /// Returns the caller's own session of that name, created on first use with `start`. The id is derived
    /// from tenant, user and name, so no other user's name leads to it.
    pub fn named_session(
        &self,
        caller: &Caller,
        name: &str,
        start: SessionStart,
    ) -> Result<SessionKey, Refusal> {
        let (tenant, user) = (caller.tenant.id.as_str(), caller.user.id.as_str());
        let key = SessionKey {
            tenant: caller.tenant.id.clone(),
            session: SessionId::derived(&[tenant, user, name]),
        };
        if !caller.reaches(&key.session) {
            return Err(not_found());
        }
        self.0.reserve(&key, caller, start, false);
        Ok(key)
    }

    /// Stores a new session at once, so that it can be listed.
    pub async fn create(
        &self,
        caller: &Caller,
        title: Option<String>,
        start: SessionStart,
    ) -> Result<SessionKey, Refusal> {
        let key = self.new_session(caller, start)?;
        self.submit(&key, caller, Command::Open { title }.into())
            .await?;
        self.0.projection.written().await;
        Ok(key)
    }

    /// Stores the caller's own session of that name at once, unless it is stored. Returns true if it is new.
    pub async fn create_named(
        &self,
        caller: &Caller,
        name: &str,
        title: Option<String>,
        start: SessionStart,
    ) -> Result<(SessionKey, bool), Refusal> {
        let key = self.named_session(caller, name, start)?;
        let is_new = !self.join(&key, caller).await?.view.is_stored;
        if is_new {
            let open = Command::Open { title };
            self.submit(&key, caller, open.into()).await?;
            self.0.projection.written().await;
        }
        Ok((key, is_new))
    }

    /// Sends a request to a session. Once it is answered, its changes are durable.
    pub async fn submit(
        &self,
        key: &SessionKey,
        caller: &Caller,
        request: SessionRequest,
    ) -> Result<Acknowledgement, Refusal> {
        let submission = Box::new(self.complete(key, caller, request).await?);
        let begins = submission.begins_turn();
        let told = self.request(key, caller, |reply| Message::Submit { submission, reply });
        let accepted = told.await?;
        if begins {
            self.0.begun.note(key, caller);
        }
        Ok(accepted)
    }

    /// Returns the session's current state, and all signals that follow.
    pub async fn join(
        &self,
        key: &SessionKey,
        caller: &Caller,
    ) -> Result<SessionSubscription, Refusal> {
        let by = caller.user.id.clone();
        let joined = self.request(key, caller, |reply| Message::Join { by, reply });
        let joined = joined.await?;
        self.0.has_admitted(key, caller);
        Ok(joined)
    }

    /// Returns the budget that the assistant of a session gives it.
    pub async fn assistant_budget(
        &self,
        key: &SessionKey,
        caller: &Caller,
    ) -> Result<Option<AssistantBudget>, Refusal> {
        let view = self.join(key, caller).await?.view;
        let assistant = view.assistant;
        Ok(assistant.and_then(|assistant| assistant.definition.budget))
    }

    /// Returns a part of the transcript, oldest first.
    pub async fn page(
        &self,
        key: &SessionKey,
        caller: &Caller,
        page: Page,
        limit: usize,
    ) -> Result<Vec<ShownEvent>, Refusal> {
        self.admit(key, caller).await?;
        let journal = Journal::new(Arc::clone(&self.0.store), key.clone());
        let events = match page {
            Page::After(seq) => journal.events_after(seq, limit).await,
            Page::Before(seq) => journal.events_before(seq, limit).await,
        };
        events.map_err(|error| unreadable(key, &error))
    }

    /// Returns the part of the transcript after that `seq`, oldest first, not yet parsed. It is empty at the
    /// end.
    pub async fn transcript_part(
        &self,
        key: &SessionKey,
        caller: &Caller,
        after: u64,
        limit: usize,
    ) -> Result<shared::TranscriptPart, Refusal> {
        self.admit(key, caller).await?;
        let journal = Journal::new(Arc::clone(&self.0.store), key.clone());
        shared::TranscriptPart::stored(journal, after, u64::MAX, limit).await
    }

    /// Succeeds if the caller may see the session.
    pub async fn admit(&self, key: &SessionKey, caller: &Caller) -> Result<(), Refusal> {
        if self.0.lists.is_hidden(key) {
            return Err(not_found());
        }
        if !self.0.has_joined(key, caller) {
            self.join(key, caller).await?;
        }
        Ok(())
    }

    /// The calls that wait for a decision in any session.
    pub fn approvals(&self) -> Approvals<'_> {
        Approvals(self)
    }

    /// The assistants that sessions can be started with.
    pub fn assistants(&self) -> Assistants<'_> {
        let parts = &self.0.factory.parts;
        Assistants::new(self.0.records(), &parts.providers, &parts.attachments)
    }

    /// The access to shared sessions.
    pub fn sharing(&self) -> Sharing<'_> {
        Sharing(self)
    }

    /// The access to sessions of other people.
    pub fn readings(&self) -> Readings<'_> {
        Readings(self)
    }

    /// The access to all sessions of one person.
    pub fn archive(&self) -> Archive<'_> {
        Archive(self)
    }

    /// The access to sessions of people whose access has ended.
    pub fn transfers(&self) -> Transfers<'_> {
        Transfers(self)
    }

    /// Deletes a session with its journal and workspace. A deletion that was interrupted, by the store or by
    /// the end of its gateway, is finished by the next attempt.
    pub async fn delete(&self, key: &SessionKey, caller: &Caller) -> Result<(), Refusal> {
        may_act(caller)?;
        let by = caller.user.id.clone();
        let left = self.request(key, caller, |reply| Message::Delete { by, reply });
        let left = left.await;
        removal::remove(&self.0, key, &caller.user.id, left).await
    }

    /// Waits until the session list shows everything that was acknowledged so far.
    pub async fn listed(&self) {
        self.0.projection.written().await;
    }

    /// Subscribes to changes of everybody's session lists. [`ListUpdate::holder`] says whose list a change
    /// belongs to. Somebody who shows a list also needs [`Self::watch_lists`].
    pub fn rows(&self) -> broadcast::Receiver<ListUpdate> {
        self.0.lists.listen()
    }

    /// Says that somebody watches a list from now on, and is to be shown complete rows soon. Call this before
    /// the list is read.
    pub fn watch_lists(&self) -> ListWatch {
        self.0.lists.watch()
    }

    /// Returns the feed, for a watcher that fell behind; `None` for a caller who has not joined.
    pub fn feed(&self, key: &SessionKey, caller: &Caller) -> Option<Arc<Feed>> {
        let has_joined = self.0.has_joined(key, caller);
        let slots = self.0.slots();
        let slot = slots.get(key).filter(|_| has_joined);
        slot.map(|slot| Arc::clone(&slot.feed))
    }

    /// Claims the unfinished sessions of gateways that are gone, now and from here on, by watching the other
    /// gateways. Returns the number claimed now.
    pub async fn claim_unfinished(&self) -> Result<usize, crate::store::Error> {
        self.0.hear_heartbeats().await?;
        self.say(|gateway| ClusterMessage::Came { gateway }).await;
        let claimed = self.0.scan().await?;
        self.0.mend_list().await;
        if self.0.cluster.is_shared() {
            self.0.tasks.spawn(peers::beat(Arc::downgrade(&self.0)));
        }
        Ok(claimed)
    }

    /// Tells the other gateways that this one has ended, so that they take over its sessions at once. Call it
    /// only after its tasks have ended.
    pub async fn hand_over(&self) {
        let cluster = &self.0.cluster;
        cluster.presence.publish(false).await;
        cluster.bus.leave().await;
        self.say(|gateway| ClusterMessage::Left { gateway }).await;
    }

    /// Sends a message about this gateway to the others. They would notice it in their next round of
    /// heartbeats, but until then this gateway would miss signals that are sent only once, such as a call's
    /// progress.
    async fn say(&self, message: impl FnOnce(GatewayId) -> ClusterMessage) {
        let cluster = &self.0.cluster;
        if cluster.is_shared() {
            let message = message(cluster.gateway.clone());
            cluster.bus.publish(message.to_everybody()).await;
        }
    }

    /// Drops slots that nobody watches or needs; called regularly.
    pub fn sweep(&self) {
        self.0.slots().retain(|_, slot| !slot.is_forgotten());
    }

    /// The budgets of sessions.
    pub fn budgets(&self) -> &Budgets {
        &self.0.factory.parts.budgets
    }

    /// The number of sessions in memory, for `/metrics` and tests.
    pub fn live_count(&self) -> usize {
        let slots = self.0.slots();
        slots.values().filter(|slot| slot.is_live()).count()
    }

    async fn request<T>(
        &self,
        key: &SessionKey,
        caller: &Caller,
        message: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Message,
    ) -> Result<T, Refusal> {
        match self.send(key, caller, message).await {
            Ok(answer) => Ok(answer),
            Err(refusal) => Err(self.0.for_owner(key, &caller.user.id, refusal).await),
        }
    }

    async fn send<T>(
        &self,
        key: &SessionKey,
        caller: &Caller,
        message: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Message,
    ) -> Result<T, Refusal> {
        let may_exist = key.tenant == caller.tenant.id && caller.reaches(&key.session);
        if !may_exist || self.0.lists.is_hidden(key) {
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
                // The task was leaving memory: open the session again.
                Err(mpsc::error::SendError(back)) => message = back,
            }
        }
        answer.await.unwrap_or_else(|_| Err(stopping()))
    }
}

pub(super) fn may_act(caller: &Caller) -> Result<(), Refusal> {
    let may = caller.user.role.may_act();
    may.then_some(())
        .ok_or_else(|| Refusal::new(Code::NotAllowed, "a viewer may read, not act"))
}

/// Checks that the caller's role may decide calls. Whose calls these are, the session checks.
pub(super) fn may_decide(caller: &Caller) -> Result<(), Refusal> {
    let may = caller.user.role.may_decide();
    may.then_some(())
        .ok_or_else(|| Refusal::new(Code::NotAllowed, "a viewer may read, not act"))
}
