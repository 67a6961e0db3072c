//! Publishes what happens in sessions to the other gateways on the same store. Messages may be lost: every
//! reader can find out from the journal, or by asking.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::membership::Membership;
use super::message::{AppendedCommit, ClusterMessage, SessionUpdate};
use crate::agent::feed::running_answer::RunningAnswer;
use crate::agent::feed::{FeedItem, Outlet};
use crate::domain::{Digest, GatewayId, SessionKey};
use crate::session::Commit;
use crate::store::live::cluster_bus::{Address, ClusterBus};

/// The most messages that wait; while the bus hangs, further ones are dropped.
const QUEUE: usize = 8_192;
/// The most messages published in one round trip.
const BATCH: usize = 1_024;
/// A larger commit is only announced by its version; readers that need it read the journal.
const MOST_BYTES: usize = 128 * 1024;

enum Outgoing {
    Update(SessionKey, SessionUpdate),
    Message(Address, ClusterMessage),
}

/// Sends messages to the other gateways without waiting. Cheap to clone.
#[derive(Clone)]
pub(in crate::agent) struct Broadcaster {
    queue: mpsc::Sender<Outgoing>,
    is_shared: bool,
}

impl Broadcaster {
    /// Returns the broadcaster, and the task that publishes until `stop`.
    pub(in crate::agent) fn start(
        cluster_bus: Arc<dyn ClusterBus>,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, outgoing) = mpsc::channel(QUEUE);
        let broadcaster = Self {
            queue,
            is_shared: cluster_bus.is_shared(),
        };
        (broadcaster, publish(cluster_bus, outgoing, stop))
    }

    /// Sends an update to the followers of a session.
    pub(in crate::agent) fn publish(
        &self,
        key: &SessionKey,
        update: impl FnOnce() -> SessionUpdate,
    ) {
        if self.is_shared {
            self.send(Outgoing::Update(key.clone(), update()));
        }
    }

    /// Announces an appended commit. If the commit is too large to send, followers read it from the journal.
    pub(in crate::agent) fn publish_commit(
        &self,
        key: &SessionKey,
        (commit, link): (&Commit, &Option<Digest>),
        bytes: usize,
    ) {
        self.publish(key, || {
            if bytes > MOST_BYTES {
                SessionUpdate::Moved(commit.version)
            } else {
                SessionUpdate::Commit(AppendedCommit {
                    commit: Arc::new(commit.clone()),
                    link: link.clone(),
                })
            }
        });
    }

    /// Asks the gateway that runs a session to look at it.
    pub(in crate::agent) fn nudge(&self, runner: &GatewayId, key: &SessionKey) {
        let message = ClusterMessage::Refresh { key: key.clone() };
        self.write(Address::Gateway(runner.clone()), message);
    }

    /// Sends a message to all gateways.
    pub(in crate::agent) fn publish_to_all(&self, message: ClusterMessage) {
        self.write(Address::Everybody, message);
    }

    fn write(&self, to: Address, message: ClusterMessage) {
        if self.is_shared {
            self.send(Outgoing::Message(to, message));
        }
    }

    fn send(&self, outgoing: Outgoing) {
        if self.queue.try_send(outgoing).is_err() {
            tracing::debug!("The line to the other gateways hangs; an update was dropped");
        }
    }
}

/// Forwards the feed of one session to the other gateways.
#[derive(Clone)]
pub(in crate::agent) struct FeedBroadcaster {
    broadcaster: Broadcaster,
    membership: Arc<Membership>,
    key: SessionKey,
}

impl FeedBroadcaster {
    pub(in crate::agent) fn new(
        broadcaster: Broadcaster,
        membership: Arc<Membership>,
        key: SessionKey,
    ) -> Self {
        Self {
            broadcaster,
            membership,
            key,
        }
    }
}

impl Outlet for FeedBroadcaster {
    fn may_speak(&self) -> bool {
        self.membership.is_awake()
    }

    fn relay(&self, item: &FeedItem) {
        // A gateway that starts meanwhile asks for the whole answer.
        if self.membership.is_alone() {
            return;
        }
        let publish =
            |update: &dyn Fn() -> SessionUpdate| self.broadcaster.publish(&self.key, update);
        match item {
            FeedItem::Delta(delta) => publish(&|| SessionUpdate::Delta(delta.clone())),
            FeedItem::Progress(call, news) => {
                publish(&|| SessionUpdate::Progress(call.clone(), news.clone()));
            }
            FeedItem::Copying(bytes) => publish(&|| SessionUpdate::Copying(*bytes)),
            FeedItem::ResourceChanged(resource) => {
                publish(&|| SessionUpdate::ResourceChanged(resource.clone()));
            }
            FeedItem::Notice(notice) => publish(&|| SessionUpdate::Notice(notice.clone())),
            FeedItem::Event(_)
            | FeedItem::Queue(_)
            | FeedItem::Usage(_)
            | FeedItem::Moved(_)
            | FeedItem::Rewound
            | FeedItem::Deleted
            | FeedItem::Damaged => {}
        }
    }

    fn relay_answer(&self, answer: &RunningAnswer) {
        self.broadcaster
            .publish(&self.key, || SessionUpdate::Answer(answer.clone()));
    }
}

async fn publish(
    cluster_bus: Arc<dyn ClusterBus>,
    mut outgoing: mpsc::Receiver<Outgoing>,
    stop: CancellationToken,
) {
    let gateway = cluster_bus.gateway().clone();
    let mut batch = Vec::new();
    loop {
        let taken = tokio::select! {
            biased;
            taken = outgoing.recv_many(&mut batch, BATCH) => taken,
            () = stop.cancelled() => return,
        };
        if taken == 0 {
            return;
        }
        // Updates that arrive during this round trip are merged into the next one.
        cluster_bus.publish(pack(&gateway, batch.drain(..))).await;
    }
}

/// Packs the updates into one message per session, with deltas merged.
fn pack(gateway: &GatewayId, outgoing: impl Iterator<Item = Outgoing>) -> Vec<(Address, Bytes)> {
    let mut messages: Vec<(Address, ClusterMessage)> = Vec::new();
    let mut at: HashMap<SessionKey, usize> = HashMap::new();
    for outgoing in outgoing {
        let (key, update) = match outgoing {
            Outgoing::Update(key, update) => (key, update),
            Outgoing::Message(to, message) => {
                messages.push((to, message));
                continue;
            }
        };
        let known = at.get(&key).and_then(|at| messages.get_mut(*at));
        if let Some((_, ClusterMessage::Updates { updates, .. })) = known {
            add(updates, update);
        } else {
            at.insert(key.clone(), messages.len());
            let (from, updates) = (gateway.clone(), vec![update]);
            messages.push((
                Address::Session(key),
                ClusterMessage::Updates { from, updates },
            ));
        }
    }
    let packed = messages.into_iter().filter_map(|(to, message)| {
        let bytes = serde_json::to_vec(&message);
        let bytes = bytes.inspect_err(
            |error| tracing::error!(%error, "A message to other gateways does not serialize"),
        );
        Some((to, Bytes::from(bytes.ok()?)))
    });
    packed.collect()
}

fn add(updates: &mut Vec<SessionUpdate>, update: SessionUpdate) {
    if let (Some(SessionUpdate::Delta(last)), SessionUpdate::Delta(next)) =
        (updates.last_mut(), &update)
    {
        let is_same = (last.turn, last.iteration, last.attempt, last.kind)
            == (next.turn, next.iteration, next.attempt, next.kind);
        if is_same && last.offset + last.units() == next.offset {
            last.text.push_str(&next.text);
            return;
        }
    }
    updates.push(update);
}

#[cfg(test)]
mod tests {
    use super::{ClusterMessage, Outgoing, SessionUpdate, pack};
    use crate::agent::feed::running_answer::{DeltaKind, RunningAnswer};
    use crate::domain::{GatewayId, ModelRequestId, SessionId, SessionKey, TenantId};

    #[test]
    fn deltas_of_one_wake_up_are_one_piece_and_stay_in_order_with_the_rest() {
        let key = SessionKey {
            tenant: TenantId::from_bits(1),
            session: SessionId::from_bits(1),
        };
        let mut answer = RunningAnswer::begin(ModelRequestId::default(), 1);
        let mut say = |piece: &str| {
            let delta = answer.say(DeltaKind::Text, piece.into());
            Outgoing::Update(key.clone(), SessionUpdate::Delta(delta))
        };
        let queue = vec![
            say("a"),
            say("b"),
            Outgoing::Update(key.clone(), SessionUpdate::Moved(7)),
            say("c"),
        ];
        let own = GatewayId::from("one");
        let packed = pack(&own, queue.into_iter());
        assert_eq!(packed.len(), 1);
        assert!(packed[0].1.starts_with(&ClusterMessage::prefix_of(&own)));
        assert!(
            !packed[0]
                .1
                .starts_with(&ClusterMessage::prefix_of(&GatewayId::from("on")))
        );
        let message: ClusterMessage = serde_json::from_slice(&packed[0].1).unwrap();
        let ClusterMessage::Updates { updates, .. } = message else {
            panic!("{message:?}")
        };
        let [
            SessionUpdate::Delta(first),
            SessionUpdate::Moved(7),
            SessionUpdate::Delta(last),
        ] = &updates[..]
        else {
            panic!("{updates:?}")
        };
        assert_eq!((first.offset, first.text.as_str()), (0, "ab"));
        assert_eq!((last.offset, last.text.as_str()), (2, "c"));
    }
}
