//! Which sessions are in use here and on what they run, told to whoever reads Redis (S2.7). A
//! sign for people and other tools: records and journal are the truth, and nothing of ours asks it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::agent::effects::tool_call::SessionTools;
use crate::domain::SessionKey;
use crate::store::live::cluster_bus::{Sign, Use, Wakes};

/// Between two signs of a session that is in use.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// The sessions that are in memory here.
pub(in crate::agent) struct Presence {
    wakes: Arc<dyn Wakes>,
    /// Never held across an await.
    known: Mutex<Known>,
    /// Rung when something is another than was told.
    bell: Notify,
}

#[derive(Default)]
struct Known {
    seats: HashMap<SessionKey, Seat>,
    /// What was told and is no longer here.
    left: Vec<SessionKey>,
}

struct Seat {
    tools: Arc<SessionTools>,
    is_owner: bool,
    /// What was told last.
    told: Option<Use>,
}

impl Seat {
    fn now(&self) -> Use {
        if self.is_owner {
            Use::Owner(self.tools.site())
        } else {
            Use::Guest
        }
    }
}

impl Presence {
    pub(in crate::agent) fn new(wakes: Arc<dyn Wakes>) -> Self {
        Self {
            wakes,
            known: Mutex::default(),
            bell: Notify::new(),
        }
    }

    /// The session is in memory, and this gateway runs it or does not. Told at once if that or its
    /// sandbox is another than before.
    pub(in crate::agent) fn note(&self, key: &SessionKey, tools: &Arc<SessionTools>, is_owner: bool) {
        if !self.wakes.is_shared() {
            return;
        }
        let mut known = self.known();
        let seat = known.seats.entry(key.clone()).or_insert_with(|| Seat {
            tools: Arc::clone(tools),
            is_owner,
            told: None,
        });
        (seat.tools, seat.is_owner) = (Arc::clone(tools), is_owner);
        let is_news = seat.told.as_ref() != Some(&seat.now());
        drop(known);
        if is_news {
            self.bell.notify_one();
        }
    }

    /// The session is not in memory any more, unless another task has it by now.
    pub(in crate::agent) fn leave(&self, key: &SessionKey, tools: &Arc<SessionTools>) {
        let mut known = self.known();
        let seat = known.seats.get(key);
        if seat.is_some_and(|seat| Arc::ptr_eq(&seat.tools, tools)) {
            known.seats.remove(key);
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
        let told = self.wakes.show(&signs).await;
        let mut known = self.known();
        match told {
            Ok(()) => {
                for Sign { key, is_in } in signs {
                    if let Some(seat) = known.seats.get_mut(&key) {
                        seat.told = Some(is_in);
                    }
                }
            }
            Err(error) => {
                tracing::debug!(?error, "Nobody was told which sessions are in use");
                let gone = signs.into_iter().filter(|sign| sign.is_in == Use::Left);
                known.left.extend(gone.map(|sign| sign.key));
            }
        }
    }

    fn collect(&self, renews: bool) -> Vec<Sign> {
        let mut known = self.known();
        let left = std::mem::take(&mut known.left);
        let left = left.into_iter().map(|key| (key, Use::Left));
        // Who came back meanwhile is told by its seat.
        let left: Vec<_> = left
            .filter(|(key, _)| !known.seats.contains_key(key))
            .collect();
        let seats = known.seats.iter().map(|(key, seat)| {
            let now = seat.now();
            (renews || seat.told.as_ref() != Some(&now)).then(|| (key.clone(), now))
        });
        let signs = left.into_iter().chain(seats.flatten());
        signs.map(|(key, is_in)| Sign { key, is_in }).collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
