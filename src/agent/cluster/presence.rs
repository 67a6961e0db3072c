//! Publishes in Redis which sessions are in use here and where they run (S2.7). This is information for
//! people and other tools: records and journal are authoritative, and no code of ours reads it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::domain::SessionKey;
use crate::store::live::cluster_bus::{ClusterBus, PresenceSign, SessionUse, Site};

/// The interval at which the entry of a session in use is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// Tells where a session's tools run now.
pub(in crate::agent) trait HasSite: Send + Sync {
    /// The engine that keeps the files, and the running container.
    fn site(&self) -> Site;
}

/// The sessions in this gateway's memory.
pub(in crate::agent) struct Presence {
    cluster_bus: Arc<dyn ClusterBus>,
    /// Never held across an await.
    known: Mutex<Known>,
    /// Notified when an entry differs from what was published.
    bell: Notify,
}

#[derive(Default)]
struct Known {
    in_use: HashMap<SessionKey, SessionInUse>,
    /// Published sessions that are no longer in memory here.
    left: Vec<SessionKey>,
}

struct SessionInUse {
    tools: Arc<dyn HasSite>,
    is_owner: bool,
    /// The last published value.
    told: Option<SessionUse>,
}

impl SessionInUse {
    fn now(&self) -> SessionUse {
        if self.is_owner {
            SessionUse::Owner(self.tools.site())
        } else {
            SessionUse::Guest
        }
    }
}

impl Presence {
    pub(in crate::agent) fn new(cluster_bus: Arc<dyn ClusterBus>) -> Self {
        Self {
            cluster_bus,
            known: Mutex::default(),
            bell: Notify::new(),
        }
    }

    /// Records that a session is in memory, and whether this gateway runs it. Published at once if that or
    /// its sandbox changed.
    pub(in crate::agent) fn note<T: HasSite + 'static>(
        &self,
        key: &SessionKey,
        tools: &Arc<T>,
        is_owner: bool,
    ) {
        if !self.cluster_bus.is_shared() {
            return;
        }
        let mut known = self.known();
        let entry = known
            .in_use
            .entry(key.clone())
            .or_insert_with(|| SessionInUse {
                tools: Arc::<T>::clone(tools),
                is_owner,
                told: None,
            });
        (entry.tools, entry.is_owner) = (Arc::<T>::clone(tools), is_owner);
        let is_news = entry.told.as_ref() != Some(&entry.now());
        drop(known);
        if is_news {
            self.bell.notify_one();
        }
    }

    /// Records that a session left memory, unless another task has it by now.
    pub(in crate::agent) fn leave<T: HasSite>(&self, key: &SessionKey, tools: &Arc<T>) {
        let mut known = self.known();
        let entry = known.in_use.get(key);
        if entry
            .is_some_and(|entry| std::ptr::addr_eq(Arc::as_ptr(&entry.tools), Arc::as_ptr(tools)))
        {
            known.in_use.remove(key);
            known.left.push(key.clone());
            drop(known);
            self.bell.notify_one();
        }
    }

    /// Publishes changes, and regularly everything, until `stop`.
    pub(in crate::agent) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(RENEW_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let renews = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = ticks.tick() => true,
                () = self.bell.notified() => false,
            };
            self.tell(renews).await;
        }
    }

    /// Publishes changes; with `renews`, also the unchanged entries.
    pub(in crate::agent) async fn tell(&self, renews: bool) {
        let signs = self.collect(renews);
        if signs.is_empty() {
            return;
        }
        let told = self.cluster_bus.show(&signs).await;
        let mut known = self.known();
        match told {
            Ok(()) => {
                for PresenceSign { key, is_in } in signs {
                    if let Some(entry) = known.in_use.get_mut(&key) {
                        entry.told = Some(is_in);
                    }
                }
            }
            Err(error) => {
                tracing::debug!(?error, "Nobody was told which sessions are in use");
                let gone = signs
                    .into_iter()
                    .filter(|sign| sign.is_in == SessionUse::Left);
                known.left.extend(gone.map(|sign| sign.key));
            }
        }
    }

    fn collect(&self, renews: bool) -> Vec<PresenceSign> {
        let mut known = self.known();
        let left = std::mem::take(&mut known.left);
        let left = left.into_iter().map(|key| (key, SessionUse::Left));
        // A session that came back is published by its new entry.
        let left: Vec<_> = left
            .filter(|(key, _)| !known.in_use.contains_key(key))
            .collect();
        let in_use = known.in_use.iter().map(|(key, entry)| {
            let now = entry.now();
            (renews || entry.told.as_ref() != Some(&now)).then(|| (key.clone(), now))
        });
        let signs = left.into_iter().chain(in_use.flatten());
        signs
            .map(|(key, is_in)| PresenceSign { key, is_in })
            .collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
