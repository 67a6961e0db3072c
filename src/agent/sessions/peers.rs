//! Handles messages and heartbeats of the other gateways on the same store, and takes over the sessions of
//! those that are gone.

use std::collections::HashSet;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::error::TrySendError;

use super::registry::SessionRegistry;
use crate::agent::cluster::message::{ClusterMessage, SessionUpdate};
use crate::agent::feed::What;
use crate::agent::journal::{Journal, JournalError};
use crate::agent::mailbox::Message;
use crate::domain::{GatewayId, SessionKey};
use crate::session::Control;
use crate::store::Error;
use crate::store::live::cluster_bus::{Address, News};

/// The most unfinished sessions checked concurrently.
const LOOKS: usize = 16;

impl SessionRegistry {
    /// Runs a round of heartbeats. Returns true if another gateway is gone.
    pub(super) async fn hear_heartbeats(self: &Arc<Self>) -> Result<bool, Error> {
        self.cluster.membership.round().await?;
        let found = self.cluster.membership.take_found();
        if found.was_away {
            // Others may have declared this gateway dead and taken over its sessions.
            self.look_at_all();
        }
        let behind = self.cluster.membership.take_behind();
        self.look_at_each(behind.into_iter().collect());
        Ok(found.is_somebody_gone)
    }

    /// Takes over sessions whose runner is gone.
    async fn go_on(self: &Arc<Self>, is_somebody_gone: bool) {
        if let Err(error) = self.scan().await {
            tracing::warn!(?error, "Unfinished sessions cannot be looked at");
        }
        if is_somebody_gone {
            // The gateway may have died between storing its last commit and announcing it, and the session
            // may be idle since.
            self.look_at_all();
        }
    }

    async fn read(self: &Arc<Self>, to: &Address, message: ClusterMessage) {
        match (message, to) {
            (ClusterMessage::Updates { from, updates }, Address::Session(key)) => {
                if from != self.cluster.gateway {
                    self.cluster.membership.saw(&from);
                    self.pass_on(key, updates);
                }
            }
            (ClusterMessage::Look { key }, _) => self.look_at(&key),
            (ClusterMessage::Came { gateway }, _) => self.cluster.membership.saw(&gateway),
            (ClusterMessage::Left { gateway }, _) => {
                self.cluster.membership.forget(&gateway);
                if let Err(error) = self.scan().await {
                    tracing::warn!(?error, "Unfinished sessions cannot be looked at");
                }
            }
            (ClusterMessage::Removed { key, sandbox }, _) => {
                let place = Arc::clone(&self.factory.parts.place);
                self.tasks
                    .spawn(async move { place.remove(&key, &sandbox).await });
            }
            (ClusterMessage::Server { from, update }, _) => {
                if from != self.cluster.gateway {
                    self.factory.parts.servers.hear(update);
                }
            }
            (ClusterMessage::Providers { from }, _) => {
                if from != self.cluster.gateway {
                    let providers = self.factory.parts.providers.clone();
                    self.tasks.spawn(async move {
                        if let Err(error) = providers.reload().await {
                            // They are read again within half a minute.
                            tracing::warn!(?error, "The providers were not read again");
                        }
                    });
                }
            }
            (ClusterMessage::Rows { from, rows }, _) => {
                if from != self.cluster.gateway {
                    self.lists.hear(rows);
                }
            }
            (ClusterMessage::Updates { .. }, Address::Gateway(_) | Address::Everybody) => {}
        }
    }

    /// Passes updates to the session's task, which is started if somebody watches.
    fn pass_on(self: &Arc<Self>, key: &SessionKey, updates: Vec<SessionUpdate>) {
        let is_deleted = updates
            .iter()
            .any(|update| matches!(update, SessionUpdate::Deleted));
        let slots = self.slots();
        let Some(slot) = slots.get(key) else { return };
        let is_watched = slot.feed.is_watched();
        let mailbox = slot.mailbox.clone().filter(|mailbox| !mailbox.is_closed());
        drop(slots);
        if is_deleted && let Some(feed) = self.forget(key) {
            feed.show(What::Deleted);
        }
        match mailbox {
            Some(mailbox) => {
                if let Err(TrySendError::Full(_)) = mailbox.try_send(Message::Updates(updates)) {
                    // A task with a full mailbox is busy: ask it to look at the journal later.
                    self.tasks
                        .spawn(async move { drop(mailbox.send(Message::Look).await) });
                }
            }
            None if is_watched && !is_deleted => self.wake(key),
            None => {}
        }
    }

    /// Makes the session's task look at the journal, starting it if necessary.
    fn look_at(self: &Arc<Self>, key: &SessionKey) {
        let mailbox = self.slots().get(key).and_then(|slot| slot.mailbox.clone());
        match mailbox.filter(|mailbox| !mailbox.is_closed()) {
            Some(mailbox) => drop(mailbox.try_send(Message::Look)),
            None => self.wake(key),
        }
    }

    /// Looks at all sessions in memory or watched, because each may have missed something.
    fn look_at_all(self: &Arc<Self>) {
        let slots = self.slots();
        let keys: Vec<SessionKey> = slots
            .iter()
            .filter(|(_, slot)| slot.is_live() || slot.feed.is_watched())
            .map(|(key, _)| key.clone())
            .collect();
        drop(slots);
        self.look_at_each(keys);
    }

    /// Makes sessions in memory look at their journals. Others are woken only if the journal has more than
    /// was shown: waking thousands of watched sessions at once would take a hundred MiB for nothing.
    fn look_at_each(self: &Arc<Self>, mut keys: Vec<SessionKey>) {
        let slots = self.slots();
        keys.retain(|key| {
            let slot = slots.get(key).filter(|slot| slot.is_live());
            match slot.and_then(|slot| slot.mailbox.as_ref()) {
                Some(mailbox) => {
                    drop(mailbox.try_send(Message::Look));
                    false
                }
                None => true,
            }
        });
        drop(slots);
        if keys.is_empty() {
            return;
        }
        let (inner, stop) = (Arc::clone(self), self.stop.clone());
        self.tasks.spawn(async move {
            let looks = stream::iter(keys);
            let looks =
                looks.for_each_concurrent(LOOKS, |key| Arc::clone(&inner).wake_if_behind(key));
            stop.run_until_cancelled(looks).await;
        });
    }

    /// Wakes a session at rest if its journal has more than was shown.
    async fn wake_if_behind(self: Arc<Self>, key: SessionKey) {
        // Read this before the journal: if more is shown meanwhile, that costs a look too many, not one too
        // few.
        let shown = self.slots().get(&key).and_then(|slot| slot.rested_at);
        match self.store.version(&key).await {
            Ok(version) if Some(version) == shown => {}
            // The task of a damaged session tells its watchers.
            Ok(_) => self.look_at(&key),
            Err(error) if error.is_damage() => self.look_at(&key),
            Err(_) => self.cluster.membership.fall_behind(&key),
        }
    }

    /// Sends the whole answers that stream here again, because a request for one may have been lost.
    fn tell_answers(&self) {
        for slot in self.slots().values() {
            if let Some(mailbox) = &slot.mailbox {
                // A full mailbox means that the task is busy: the next piece of the answer reveals the gap.
                let _ = mailbox.try_send(Message::Updates(vec![SessionUpdate::TellAnswer]));
            }
        }
    }

    /// Checks every unfinished session and takes over those whose runner is gone. Returns their number.
    pub(super) async fn scan(self: &Arc<Self>) -> Result<usize, Error> {
        let active = self.store.active().await?;
        self.seen().retain(|key, _| active.contains(key));
        self.damaged().retain(|key| active.contains(key));
        let looks = stream::iter(active).map(|key| self.check(key));
        let woken: Vec<bool> = looks.buffer_unordered(LOOKS).collect().await;
        Ok(woken.into_iter().filter(|is_woken| *is_woken).count())
    }

    /// Repairs rows of the session list that a gateway left behind their journals: wakes each session whose
    /// row seems busy but which is not unfinished, and whose opening then updates the row.
    pub(super) async fn mend_list(self: &Arc<Self>) {
        let rows = self.factory.parts.place.records.sessions();
        match tokio::try_join!(rows.busy(), self.store.active()) {
            Ok((busy, active)) => {
                let behind = busy.iter().filter(|key| !active.contains(key));
                behind.for_each(|key| self.wake(key));
            }
            Err(error) => {
                tracing::warn!(?error, "The list of sessions cannot be brought up to date");
            }
        }
    }

    /// Checks an unfinished session. Returns true if it was woken here.
    async fn check(self: &Arc<Self>, key: SessionKey) -> bool {
        let is_live = self
            .slots()
            .get(&key)
            .is_some_and(super::registry::Slot::is_live);
        if is_live {
            self.look_at(&key);
            return false;
        }
        if !self.cluster.is_shared() {
            self.look_at(&key);
            return true;
        }
        match self.runner(&key).await {
            Ok((runner, is_news)) => {
                let runner = runner.filter(|runner| self.cluster.membership.is_alive(runner));
                let is_mine = runner.as_ref() == Some(&self.cluster.gateway);
                let has_work = runner.is_none() || (is_mine && is_news);
                if has_work {
                    self.look_at(&key);
                }
                has_work
            }
            Err(error) => {
                self.pass_over(&key, &error);
                false
            }
        }
    }

    /// Makes an unfinished session review its waiting calls by the current rules, unless another living
    /// gateway runs it, which learns of the rules too.
    pub(super) async fn review_one(self: &Arc<Self>, key: &SessionKey) {
        let slot = self.slots().get(key).and_then(|slot| slot.mailbox.clone());
        let mailbox = slot.filter(|mailbox| !mailbox.is_closed());
        if mailbox.is_none() && self.cluster.is_shared() {
            match self.runner(key).await {
                Ok((runner, _)) => {
                    let mut runner = runner.iter();
                    let own = &self.cluster.gateway;
                    if runner
                        .any(|runner| runner != own && self.cluster.membership.is_alive(runner))
                    {
                        return;
                    }
                }
                Err(error) => return self.pass_over(key, &error),
            }
        }
        match mailbox {
            Some(mailbox) => {
                if let Err(TrySendError::Full(look)) = mailbox.try_send(Message::Look) {
                    // A task with a full mailbox is busy: ask it to look later.
                    self.tasks
                        .spawn(async move { drop(mailbox.send(look).await) });
                }
            }
            None => self.wake(key),
        }
    }

    /// Skips an unfinished session that cannot be read, so that it does not hold up the others. A damaged one
    /// is logged once.
    fn pass_over(&self, key: &SessionKey, error: &JournalError) {
        if !error.is_damage() {
            tracing::warn!(session.id = %key.session, ?error, "An unfinished session cannot be read");
            return;
        }
        if self.damaged().insert(key.clone()) {
            tracing::error!(session.id = %key.session, tenant.id = %key.tenant, ?error,
                "An unfinished session is passed over: what is stored of it is damaged");
        }
    }

    /// Returns the runner of an unfinished session, and true if the session changed since the last check. Its
    /// journal is read only in that case.
    async fn runner(&self, key: &SessionKey) -> Result<(Option<GatewayId>, bool), JournalError> {
        let head = self.store.head(key).await?;
        let version = head.map_or(0, |head| head.version);
        let seen = self.seen().get(key).cloned();
        if let Some((_, runner)) = seen.filter(|(seen, _)| *seen == version) {
            return Ok((runner, false));
        }
        let journal = Journal::new(Arc::clone(&self.store), key.clone());
        let Control {
            version, runner, ..
        } = journal
            .fold(&self.factory.context_rules(&key.tenant))
            .await?
            .control;
        let runner = runner.gateway;
        self.seen().insert(key.clone(), (version, runner.clone()));
        Ok((runner, true))
    }

    fn damaged(&self) -> MutexGuard<'_, HashSet<SessionKey>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> MutexGuard<'_, super::registry::Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pause between two heartbeats.
const BEAT_EVERY: Duration = Duration::from_millis(750);
/// The pause between two scans of all unfinished sessions; up to half of it is added, so that gateways do not
/// scan at the same time.
const SCAN_EVERY: Duration = Duration::from_secs(10);

/// Handles messages of the other gateways, until the registry stops.
pub(super) async fn listen(inner: Weak<SessionRegistry>) {
    let Some(own) = inner
        .upgrade()
        .map(|inner| ClusterMessage::prefix_of(&inner.cluster.gateway))
    else {
        return;
    };
    while let Some(inner) = inner.upgrade() {
        let bus = Arc::clone(&inner.cluster.bus);
        let stop = inner.stop.clone();
        let news = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            news = bus.next() => news,
        };
        match news {
            News::Message { payload, .. } if payload.starts_with(&own) => {}
            News::Message { to, payload } => match serde_json::from_slice(&payload) {
                Ok(message) => inner.read(&to, message).await,
                Err(error) => {
                    // A newer release may send messages that this one does not know.
                    tracing::debug!(%error, "A message of another gateway cannot be read");
                }
            },
            News::Reconnected => {
                inner.factory.parts.servers.look_again();
                inner.look_at_all();
                inner.tell_answers();
            }
        }
    }
}

/// Tells the other gateways about changes of MCP servers and model providers here, until the registry stops.
pub(super) async fn pass_news(inner: Weak<SessionRegistry>) {
    let Some(registry) = inner.upgrade() else {
        return;
    };
    let (mut news, stop) = (
        registry.factory.parts.servers.updates(),
        registry.stop.clone(),
    );
    let mut changes = registry.factory.parts.providers.changes();
    let cluster = Arc::clone(&registry.cluster);
    drop(registry);
    loop {
        let update = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            Ok(()) = changes.changed() => {
                let from = cluster.gateway.clone();
                cluster.broadcaster.tell_everybody(ClusterMessage::Providers { from });
                continue;
            }
            update = news.recv() => update,
        };
        match update {
            Ok(update) => {
                let from = cluster.gateway.clone();
                let message = ClusterMessage::Server { from, update };
                cluster.broadcaster.tell_everybody(message);
            }
            // The other gateways read the records again within seconds.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Sends heartbeats and takes over the sessions of dead gateways, until the registry stops.
pub(super) async fn beat(inner: Weak<SessionRegistry>) {
    let jitter = rand::random::<f64>();
    let scan_every = SCAN_EVERY.mul_f64(1.0 + jitter / 2.0);
    let mut ticks = tokio::time::interval(BEAT_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut scanned = tokio::time::Instant::now();
    while let Some(inner) = inner.upgrade() {
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        match inner.hear_heartbeats().await {
            Ok(is_somebody_gone) => {
                if is_somebody_gone || scanned.elapsed() > scan_every {
                    scanned = tokio::time::Instant::now();
                    inner.go_on(is_somebody_gone).await;
                }
            }
            Err(error) => tracing::debug!(?error, "No heartbeat could be given"),
        }
    }
}
