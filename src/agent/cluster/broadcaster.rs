//! What gateways on one store tell each other about sessions, as it happens. Lost is lost: every
//! reader knows how to find out from the journal or by asking.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::membership::Membership;
use crate::agent::feed::list_update::ListUpdate;
use crate::agent::feed::running_answer::{Delta, RunningAnswer};
use crate::agent::feed::{Notice, Outlet, What};
use crate::domain::{CallId, SandboxId, SessionKey};
use crate::mcp::ToolProgress;
use crate::servers::ServerUpdate;
use crate::session::Commit;
use crate::store::live::cluster_bus::{Address, ClusterBus};

/// Notes that may wait; more are dropped while the line hangs.
const QUEUE: usize = 8_192;
/// Notes that go out in one trip.
const BATCH: usize = 1_024;
/// A larger commit is not sent along; who needs it reads the journal.
const MOST_BYTES: usize = 128 * 1024;

/// One piece of news of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::agent) enum SessionUpdate {
    /// It was appended.
    Commit(Arc<Commit>),
    /// A commit of this version was appended that is too long to be sent along.
    Moved(u64),
    /// More of the answer that streams here.
    Delta(Delta),
    /// News of a call that runs here.
    Progress(CallId, ToolProgress),
    /// A remark on what runs here.
    Notice(Notice),
    /// Whoever streams the answer: tell the whole of it.
    TellAnswer,
    /// The whole of it.
    Answer(RunningAnswer),
    /// The session is gone.
    Deleted,
}

/// What goes over the line.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::agent) enum ClusterMessage {
    /// To those who follow the session.
    Updates {
        /// The life that writes.
        from: Arc<str>,
        /// In the order in which they happened.
        notes: Vec<SessionUpdate>,
    },
    /// To one gateway: a session that it runs has work.
    Look {
        /// Which.
        key: SessionKey,
    },
    /// To all: that life has begun.
    Came {
        /// Which.
        life: Arc<str>,
    },
    /// To all: that life is over.
    Left {
        /// Which.
        life: Arc<str>,
    },
    /// To all: something happened to an MCP server.
    Server {
        /// The life that writes.
        from: Arc<str>,
        /// What.
        told: ServerUpdate,
    },
    /// To all: model providers, or what new sessions begin with, were changed in the records.
    Providers {
        /// The life that writes.
        from: Arc<str>,
    },
    /// To all: rows of lists of sessions were written.
    Rows {
        /// The life that writes.
        from: Arc<str>,
        /// Which.
        rows: Vec<ListUpdate>,
    },
    /// To all: a session was deleted; its workspace goes where its engine is.
    Removed {
        /// Which.
        key: SessionKey,
        /// Its sandbox, by the journal.
        sandbox: SandboxId,
    },
}

impl ClusterMessage {
    /// The beginning of every letter of notes from that life. Redis hands them back to their writer,
    /// who need not read them.
    pub(in crate::agent) fn notes_from(life: &str) -> Bytes {
        let from = serde_json::to_string(life).unwrap_or_default();
        Bytes::from(format!(r#"{{"Notes":{{"from":{from},"#))
    }

    /// Says that a commit of that version was appended, to whoever follows the session by then. For an
    /// append that carries it, where nobody else is known to live: that costs no trip of its own, and
    /// nobody who has just begun misses it.
    pub(in crate::agent) fn moved(life: &str, version: u64) -> Option<Bytes> {
        let letter = Self::Updates {
            from: life.into(),
            notes: vec![SessionUpdate::Moved(version)],
        };
        serde_json::to_vec(&letter).map(Bytes::from).ok()
    }

    /// As it goes to all gateways, without the queue of a [`Broadcaster`].
    pub(in crate::agent) fn to_everybody(&self) -> Vec<(Address, Bytes)> {
        let bytes = serde_json::to_vec(self).map(Bytes::from);
        let message = bytes.map(|bytes| (Address::Everybody, bytes));
        message.into_iter().collect()
    }
}

enum Outgoing {
    SessionUpdate(SessionKey, SessionUpdate),
    ClusterMessage(Address, ClusterMessage),
}

/// Tells the other gateways; never waits. Cheap to clone.
#[derive(Clone)]
pub(in crate::agent) struct Broadcaster {
    queue: mpsc::Sender<Outgoing>,
    life: Arc<str>,
    is_shared: bool,
}

impl Broadcaster {
    /// The sender, and the task's work until `stop`.
    pub(in crate::agent) fn start(
        cluster_bus: Arc<dyn ClusterBus>,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, outgoing) = mpsc::channel(QUEUE);
        let broadcaster = Self {
            queue,
            life: cluster_bus.life().into(),
            is_shared: cluster_bus.is_shared(),
        };
        (broadcaster, publish(cluster_bus, outgoing, stop))
    }

    /// The life that tells.
    pub(in crate::agent) fn life(&self) -> Arc<str> {
        Arc::clone(&self.life)
    }

    /// Whether there may be other gateways at all.
    pub(in crate::agent) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Tells those who follow a session.
    pub(in crate::agent) fn tell(&self, key: &SessionKey, note: impl FnOnce() -> SessionUpdate) {
        if self.is_shared {
            self.send(Outgoing::SessionUpdate(key.clone(), note()));
        }
    }

    /// Tells that a commit was appended; who is not told what stands in it reads it from the journal.
    pub(in crate::agent) fn tell_commit(&self, key: &SessionKey, commit: &Commit, bytes: usize) {
        self.tell(key, || {
            if bytes > MOST_BYTES {
                SessionUpdate::Moved(commit.version)
            } else {
                SessionUpdate::Commit(Arc::new(commit.clone()))
            }
        });
    }

    /// Makes the gateway that runs a session look at it.
    pub(in crate::agent) fn nudge(&self, runner: &str, key: &SessionKey) {
        let letter = ClusterMessage::Look { key: key.clone() };
        self.write(Address::Gateway(runner.into()), letter);
    }

    /// Tells all gateways.
    pub(in crate::agent) fn tell_everybody(&self, letter: ClusterMessage) {
        self.write(Address::Everybody, letter);
    }

    fn write(&self, to: Address, letter: ClusterMessage) {
        if self.is_shared {
            self.send(Outgoing::ClusterMessage(to, letter));
        }
    }

    fn send(&self, outgoing: Outgoing) {
        if self.queue.try_send(outgoing).is_err() {
            tracing::debug!("The line to the other gateways hangs; a note was dropped");
        }
    }
}

/// What the feed of one session tells the other gateways.
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

    fn broadcaster(&self, what: &What) {
        // Whoever begins meanwhile asks for the whole answer.
        if self.membership.is_alone() {
            return;
        }
        let tell = |note: &dyn Fn() -> SessionUpdate| self.broadcaster.tell(&self.key, note);
        match what {
            What::Delta(delta) => tell(&|| SessionUpdate::Delta(delta.clone())),
            What::Progress(call, news) => {
                tell(&|| SessionUpdate::Progress(call.clone(), news.clone()))
            }
            What::Notice(notice) => tell(&|| SessionUpdate::Notice(notice.clone())),
            What::Event(_)
            | What::Queue(_)
            | What::Usage(_)
            | What::Moved(_)
            | What::Rewound
            | What::Deleted
            | What::Damaged => {}
        }
    }

    fn relay_answer(&self, answer: &RunningAnswer) {
        self.broadcaster
            .tell(&self.key, || SessionUpdate::Answer(answer.clone()));
    }
}

async fn publish(
    cluster_bus: Arc<dyn ClusterBus>,
    mut outgoing: mpsc::Receiver<Outgoing>,
    stop: CancellationToken,
) {
    let life: Arc<str> = cluster_bus.life().into();
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
        // What comes while this trip lasts goes with the next one, merged.
        cluster_bus.publish(pack(&life, batch.drain(..))).await;
    }
}

/// One letter for each session, its deltas merged.
fn pack(life: &Arc<str>, outgoing: impl Iterator<Item = Outgoing>) -> Vec<(Address, Bytes)> {
    let mut letters: Vec<(Address, ClusterMessage)> = Vec::new();
    let mut at: HashMap<SessionKey, usize> = HashMap::new();
    for outgoing in outgoing {
        let (key, note) = match outgoing {
            Outgoing::SessionUpdate(key, note) => (key, note),
            Outgoing::ClusterMessage(to, letter) => {
                letters.push((to, letter));
                continue;
            }
        };
        let known = at.get(&key).and_then(|at| letters.get_mut(*at));
        if let Some((_, ClusterMessage::Updates { notes, .. })) = known {
            add(notes, note);
        } else {
            at.insert(key.clone(), letters.len());
            let (from, notes) = (Arc::clone(life), vec![note]);
            letters.push((
                Address::Session(key),
                ClusterMessage::Updates { from, notes },
            ));
        }
    }
    let packed = letters.into_iter().filter_map(|(to, letter)| {
        let bytes = serde_json::to_vec(&letter);
        let bytes =
            bytes.inspect_err(|error| tracing::error!(%error, "A letter does not serialize"));
        Some((to, Bytes::from(bytes.ok()?)))
    });
    packed.collect()
}

fn add(notes: &mut Vec<SessionUpdate>, note: SessionUpdate) {
    if let (Some(SessionUpdate::Delta(last)), SessionUpdate::Delta(next)) =
        (notes.last_mut(), &note)
    {
        let is_same = (last.turn, last.iteration, last.attempt, last.kind)
            == (next.turn, next.iteration, next.attempt, next.kind);
        if is_same && last.offset + last.units() == next.offset {
            last.text.push_str(&next.text);
            return;
        }
    }
    notes.push(note);
}

#[cfg(test)]
mod tests {
    use super::{ClusterMessage, Outgoing, SessionUpdate, pack};
    use crate::agent::feed::running_answer::{DeltaKind, RunningAnswer};
    use crate::domain::{SessionId, SessionKey, TenantId};

    #[test]
    fn deltas_of_one_wake_up_are_one_piece_and_stay_in_order_with_the_rest() {
        let key = SessionKey {
            tenant: TenantId::from_bits(1),
            session: SessionId::from_bits(1),
        };
        let mut answer = RunningAnswer::begin((1, 1), 1);
        let mut say = |piece: &str| {
            let delta = answer.say(DeltaKind::Text, piece.into());
            Outgoing::SessionUpdate(key.clone(), SessionUpdate::Delta(delta))
        };
        let queue = vec![
            say("a"),
            say("b"),
            Outgoing::SessionUpdate(key.clone(), SessionUpdate::Moved(7)),
            say("c"),
        ];
        let packed = pack(&"life".into(), queue.into_iter());
        assert_eq!(packed.len(), 1);
        assert!(packed[0].1.starts_with(&ClusterMessage::notes_from("life")));
        assert!(!packed[0].1.starts_with(&ClusterMessage::notes_from("li")));
        let letter: ClusterMessage = serde_json::from_slice(&packed[0].1).unwrap();
        let ClusterMessage::Updates { notes, .. } = letter else {
            panic!("{letter:?}")
        };
        let [
            SessionUpdate::Delta(first),
            SessionUpdate::Moved(7),
            SessionUpdate::Delta(last),
        ] = &notes[..]
        else {
            panic!("{notes:?}")
        };
        assert_eq!((first.offset, first.text.as_str()), (0, "ab"));
        assert_eq!((last.offset, last.text.as_str()), (2, "c"));
    }
}
