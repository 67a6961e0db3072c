//! Which sessions are in use here and on what they run, told to whoever reads Redis (S2.7). A
//! sign for people and other tools: records and journal are the truth, and nothing of ours asks it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::agent::effects::tool_call::SessionTools;
use crate::domain::SessionKey;
use crate::store::live::cluster_bus::{ClusterBus, PresenceSign, SessionUse};

/// Between two signs of a session that is in use.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// The sessions that are in memory here.
pub(in crate::agent) struct Presence {
    cluster_bus: Arc<dyn ClusterBus>,
    /// Never held across an await.
    known: Mutex<Known>,
    /// Rung when something is another than was told.
    bell: Notify,
}

#[derive(Default)]
struct Known {
    in_use: HashMap<SessionKey, SessionInUse>,
    /// What was told and is no longer here.
    left: Vec<SessionKey>,
}

struct SessionInUse {
    tools: Arc<SessionTools>,
    is_owner: bool,
    /// What was told last.
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

    /// The session is in memory, and this gateway runs it or does not. Told at once if that or its
    /// sandbox is another than before.
    pub(in crate::agent) fn note(
        &self,
        key: &SessionKey,
        tools: &Arc<SessionTools>,
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
                tools: Arc::clone(tools),
                is_owner,
                told: None,
            });
        (entry.tools, entry.is_owner) = (Arc::clone(tools), is_owner);
        let is_news = entry.told.as_ref() != Some(&entry.now());
        drop(known);
        if is_news {
            self.bell.notify_one();
        }
    }

    /// The session is not in memory any more, unless another task has it by now.
    pub(in crate::agent) fn leave(&self, key: &SessionKey, tools: &Arc<SessionTools>) {
        let mut known = self.known();
        let entry = known.in_use.get(key);
        if entry.is_some_and(|entry| Arc::ptr_eq(&entry.tools, tools)) {
            known.in_use.remove(key);
            known.left.push(key.clone());
            drop(known);
            self.bell.notify_one();
        }
    }

    /// Tells what is new, and now and then everything, until `stop`.
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

    /// Tells what is new; with `renews`, also that the rest is as it was.
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
        // Who came back meanwhile is told by its seat.
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
