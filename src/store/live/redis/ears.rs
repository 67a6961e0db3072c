//! What a gateway listens to on the channels of Redis.

use std::collections::HashSet;

use redis::aio::ConnectionManager;
use tokio::sync::{mpsc, oneshot};

use super::keys::{EVERYBODY, Keys, gateway};
use super::link::punctual;
use crate::domain::SessionKey;
use crate::store::Error;

/// Channels that one command subscribes to.
const CHANNELS: usize = 500;

/// What to listen to.
pub(super) enum Change {
    /// Only what every gateway listens to.
    Begin,
    /// Others live, or do not.
    Company(bool),
    Follow(SessionKey, oneshot::Sender<Result<(), Error>>),
    Unfollow(SessionKey),
}

/// Subscribes and unsubscribes one after the other, so that the last word counts.
pub(super) struct Ears {
    manager: ConnectionManager,
    life: String,
    /// What every gateway listens to is subscribed to.
    has_own: bool,
    /// What is followed is subscribed to. Where nobody else lives it is not: Redis would hand every
    /// message back to its writer.
    has_company: bool,
    followed: HashSet<SessionKey>,
}

impl Ears {
    /// Nothing is subscribed to before the first [`Change`].
    pub(super) fn new(manager: ConnectionManager, life: String) -> Self {
        Self {
            manager,
            life,
            has_own: false,
            has_company: false,
            followed: HashSet::new(),
        }
    }

    /// Takes in changes for ever. `reconnected` is called when messages that were not listened for
    /// before come in.
    pub(super) async fn listen(
        mut self,
        mut changes: mpsc::UnboundedReceiver<Change>,
        reconnected: impl Fn() + Send,
    ) {
        while let Some(change) = changes.recv().await {
            if !self.has_own {
                let own = [EVERYBODY.to_owned(), gateway(&self.life)];
                self.has_own = punctual(self.manager.subscribe(&own)).await.is_ok();
            }
            match change {
                Change::Company(true) if !self.has_company => {
                    // If that fails, it is said again.
                    self.has_company = self.subscribe_all().await.is_ok();
                    if self.has_company {
                        reconnected();
                    }
                }
                Change::Company(false) if self.has_company => {
                    self.has_company = false;
                    self.unsubscribe(self.followed.clone().into_iter()).await;
                }
                Change::Begin | Change::Company(_) => {}
                Change::Follow(key, reply) => {
                    let done = if self.has_company && !self.followed.contains(&key) {
                        punctual(self.manager.subscribe(Keys::of(&key).wake)).await
                    } else {
                        Ok(())
                    };
                    if done.is_ok() {
                        self.followed.insert(key);
                    }
                    // Who asked may be gone.
                    let _ = reply.send(done);
                }
                Change::Unfollow(key) => {
                    if self.followed.remove(&key) && self.has_company {
                        self.unsubscribe(std::iter::once(key)).await;
                    }
                }
            }
        }
    }

    async fn subscribe_all(&mut self) -> Result<(), Error> {
        let channels: Vec<String> = self.followed.iter().map(|key| Keys::of(key).wake).collect();
        for channels in channels.chunks(CHANNELS) {
            punctual(self.manager.subscribe(channels)).await?;
        }
        Ok(())
    }

    async fn unsubscribe(&mut self, keys: impl Iterator<Item = SessionKey>) {
        let channels: Vec<String> = keys.map(|key| Keys::of(&key).wake).collect();
        for channels in channels.chunks(CHANNELS) {
            if let Err(error) = punctual(self.manager.unsubscribe(channels)).await {
                tracing::debug!(?error, "Still told of sessions that nobody asks for");
            }
        }
    }
}
