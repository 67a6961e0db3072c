//! Manages the Redis channels to which a gateway subscribes.

use std::collections::HashSet;

use redis::aio::ConnectionManager;
use tokio::sync::{mpsc, oneshot};

use super::keys::{EVERYBODY, Keys, gateway};
use super::link::punctual;
use crate::Error;
use sepal_core::domain::{GatewayId, SessionKey};

/// The most channels in one command.
const CHANNELS: usize = 500;

/// A change of the subscriptions.
pub(super) enum Change {
    /// Subscribes to the channels that every gateway needs, if that has not succeeded yet.
    Begin,
    /// True if other gateways are alive.
    Company(bool),
    /// Follows a session, and reports whether that succeeded.
    Follow(SessionKey, oneshot::Sender<Result<(), Error>>),
    Unfollow(SessionKey),
}

/// A session to follow, with the channel for the result.
type FollowRequest = (SessionKey, oneshot::Sender<Result<(), Error>>);

/// Subscribes and unsubscribes in the order of the changes, so that the last one wins.
pub(super) struct Ears {
    manager: ConnectionManager,
    own: GatewayId,
    /// True once the channels that every gateway needs are subscribed.
    has_own: bool,
    /// True if the channels of followed sessions are subscribed. While no other gateway is alive they are
    /// not, because Redis would only return each message to its sender.
    has_company: bool,
    followed: HashSet<SessionKey>,
}

impl Ears {
    /// Creates the task's state. The first [`Change`] causes the first subscription.
    pub(super) fn new(manager: ConnectionManager, own: GatewayId) -> Self {
        Self {
            manager,
            own,
            has_own: false,
            has_company: false,
            followed: HashSet::new(),
        }
    }

    /// Applies changes for ever. Calls `reconnected` when subscriptions of sessions that were followed
    /// before take effect.
    pub(super) async fn listen(
        mut self,
        mut changes: mpsc::UnboundedReceiver<Change>,
        reconnected: impl Fn() + Send + Sync,
    ) {
        let mut waiting = Vec::new();
        while changes.recv_many(&mut waiting, CHANNELS).await > 0 {
            if !self.has_own {
                let own = [EVERYBODY.to_owned(), gateway(&self.own)];
                self.has_own = punctual(self.manager.subscribe(&own)).await.is_ok();
            }
            let mut wanted = Vec::new();
            for change in waiting.drain(..) {
                if let Change::Follow(key, reply) = change {
                    wanted.push((key, reply));
                } else {
                    self.follow(std::mem::take(&mut wanted)).await;
                    self.take_in(change, &reconnected).await;
                }
            }
            self.follow(wanted).await;
        }
    }

    async fn take_in(&mut self, change: Change, reconnected: impl Fn() + Send + Sync) {
        match change {
            Change::Company(true) if !self.has_company => {
                // If this fails, the next `Company(true)` tries again.
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
            Change::Follow(key, reply) => self.follow(vec![(key, reply)]).await,
            Change::Unfollow(key) => {
                if self.followed.remove(&key) && self.has_company {
                    self.unsubscribe(std::iter::once(key)).await;
                }
            }
        }
    }

    /// Subscribes to all sessions with one command, so that while Redis is unavailable each waits for only
    /// one time-out.
    async fn follow(&mut self, wanted: Vec<FollowRequest>) {
        let unheard = wanted.iter().map(|(key, _)| key);
        let unheard = unheard.filter(|key| !self.followed.contains(key));
        let channels: Vec<String> = unheard.map(|key| Keys::of(key).wake).collect();
        let done = if self.has_company && !channels.is_empty() {
            punctual(self.manager.subscribe(channels)).await
        } else {
            Ok(())
        };
        for (key, reply) in wanted {
            if done.is_ok() {
                self.followed.insert(key);
            }
            // The caller may be gone.
            let _ = reply.send(done.clone());
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use futures::future::join_all;
    use redis::aio::{ConnectionManager, ConnectionManagerConfig};
    use tokio::net::TcpListener;
    use tokio::sync::{mpsc, oneshot};

    use super::{Change, Ears};
    use crate::live::redis::link::TRIP;
    use sepal_core::domain::{GatewayId, SessionId, SessionKey, TenantId};

    #[tokio::test]
    async fn many_that_come_together_wait_no_longer_than_one() {
        // The server accepts connections and never answers.
        let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("redis://{}/", silent.local_addr().unwrap());
        let manager = ConnectionManager::new_lazy_with_config(
            redis::Client::open(url).unwrap(),
            ConnectionManagerConfig::new().set_number_of_retries(usize::MAX),
        );
        let mut ears = Ears::new(manager.unwrap(), GatewayId::from("one"));
        (ears.has_own, ears.has_company) = (true, true);
        let (changes, queue) = mpsc::unbounded_channel();
        let answers = (0..20).map(|number| {
            let key = SessionKey {
                tenant: TenantId::from_bits(1),
                session: SessionId::from_bits(number),
            };
            let (reply, answer) = oneshot::channel();
            assert!(changes.send(Change::Follow(key, reply)).is_ok());
            answer
        });
        let answers: Vec<_> = answers.collect();
        let began = Instant::now();
        let answered = async {
            tokio::select! {
                () = ears.listen(queue, || {}) => panic!("it listens for ever"),
                answers = join_all(answers) => answers,
            }
        };
        let answers = tokio::time::timeout(Duration::from_mins(1), answered).await;
        assert!(answers.unwrap().into_iter().all(|it| it.unwrap().is_err()));
        assert!(
            began.elapsed() < 5 * TRIP,
            "they waited one after the other"
        );
    }
}
