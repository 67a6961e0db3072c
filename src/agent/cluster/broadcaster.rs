//! What gateways on one store tell each other about sessions, as it happens. Lost is lost: every
//! reader knows how to find out from the journal or by asking.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::feed::running_answer::{Delta, RunningAnswer};
use crate::agent::feed::{Notice, Outlet, What};
use super::membership::Lives;
use crate::agent::feed::list_update::RowNews;
use crate::servers::Told;
use crate::domain::{CallId, SandboxId, SessionKey};
use crate::mcp::ToolProgress;
use crate::session::Commit;
use crate::store::live::cluster_bus::{Address, Wakes};

/// Notes that may wait; more are dropped while the line hangs.
const QUEUE: usize = 8_192;
/// Notes that go out in one trip.
const BATCH: usize = 1_024;
/// A larger commit is not sent along; who needs it reads the journal.
const MOST_BYTES: usize = 128 * 1024;

/// One piece of news of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::agent) enum Note {
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
pub(in crate::agent) enum Letter {
    /// To those who follow the session.
    Notes {
        /// The life that writes.
        from: Arc<str>,
        /// In the order in which they happened.
        notes: Vec<Note>,
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
        told: Told,
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
        rows: Vec<RowNews>,
    },
    /// To all: a session was deleted; its workspace goes where its engine is.
    Removed {
        /// Which.
        key: SessionKey,
        /// Its sandbox, by the journal.
        sandbox: SandboxId,
    },
}

impl Letter {
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
        let letter = Self::Notes {
            from: life.into(),
            notes: vec![Note::Moved(version)],
        };
        serde_json::to_vec(&letter).map(Bytes::from).ok()
    }

    /// As it goes to all gateways, without the queue of a [`Relay`].
    pub(in crate::agent) fn to_everybody(&self) -> Vec<(Address, Bytes)> {
        let bytes = serde_json::to_vec(self).map(Bytes::from);
        let message = bytes.map(|bytes| (Address::Everybody, bytes));
        message.into_iter().collect()
    }
}

enum Outgoing {
    Note(SessionKey, Note),
    Letter(Address, Letter),
}

/// Tells the other gateways; never waits. Cheap to clone.
#[derive(Clone)]
pub(in crate::agent) struct Relay {
    queue: mpsc::Sender<Outgoing>,
    life: Arc<str>,
    is_shared: bool,
}

impl Relay {
    /// The sender, and the task's work until `stop`.
    pub(in crate::agent) fn start(
        wakes: Arc<dyn Wakes>,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, outgoing) = mpsc::channel(QUEUE);
        let relay = Self {
            queue,
            life: wakes.life().into(),
            is_shared: wakes.is_shared(),
        };
        (relay, publish(wakes, outgoing, stop))
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
    pub(in crate::agent) fn tell(&self, key: &SessionKey, note: impl FnOnce() -> Note) {
        if self.is_shared {
            self.send(Outgoing::Note(key.clone(), note()));
        }
    }

    /// Tells that a commit was appended; who is not told what stands in it reads it from the journal.
    pub(in crate::agent) fn tell_commit(&self, key: &SessionKey, commit: &Commit, bytes: usize) {
        self.tell(key, || {
            if bytes > MOST_BYTES {
                Note::Moved(commit.version)
            } else {
                Note::Commit(Arc::new(commit.clone()))
            }
        });
    }

    /// Makes the gateway that runs a session look at it.
    pub(in crate::agent) fn nudge(&self, runner: &str, key: &SessionKey) {
        let letter = Letter::Look { key: key.clone() };
        self.write(Address::Gateway(runner.into()), letter);
    }

    /// Tells all gateways.
    pub(in crate::agent) fn tell_everybody(&self, letter: Letter) {
        self.write(Address::Everybody, letter);
    }

    fn write(&self, to: Address, letter: Letter) {
        if self.is_shared {
            self.send(Outgoing::Letter(to, letter));
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
pub(in crate::agent) struct Voice {
    relay: Relay,
    lives: Arc<Lives>,
    key: SessionKey,
}

impl Voice {
    pub(in crate::agent) fn new(relay: Relay, lives: Arc<Lives>, key: SessionKey) -> Self {
        Self { relay, lives, key }
    }
}

impl Outlet for Voice {
    fn may_speak(&self) -> bool {
        self.lives.is_awake()
    }

    fn relay(&self, what: &What) {
        // Whoever begins meanwhile asks for the whole answer.
        if self.lives.is_alone() {
            return;
        }
        let tell = |note: &dyn Fn() -> Note| self.relay.tell(&self.key, note);
        match what {
            What::Delta(delta) => tell(&|| Note::Delta(delta.clone())),
            What::Progress(call, news) => tell(&|| Note::Progress(call.clone(), news.clone())),
            What::Notice(notice) => tell(&|| Note::Notice(notice.clone())),
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
        self.relay.tell(&self.key, || Note::Answer(answer.clone()));
    }
}

async fn publish(
    wakes: Arc<dyn Wakes>,
    mut outgoing: mpsc::Receiver<Outgoing>,
    stop: CancellationToken,
) {
    let life: Arc<str> = wakes.life().into();
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
        wakes.publish(pack(&life, batch.drain(..))).await;
    }
}

/// One letter for each session, its deltas merged.
fn pack(life: &Arc<str>, outgoing: impl Iterator<Item = Outgoing>) -> Vec<(Address, Bytes)> {
    let mut letters: Vec<(Address, Letter)> = Vec::new();
    let mut at: HashMap<SessionKey, usize> = HashMap::new();
    for outgoing in outgoing {
        let (key, note) = match outgoing {
            Outgoing::Note(key, note) => (key, note),
            Outgoing::Letter(to, letter) => {
                letters.push((to, letter));
                continue;
            }
        };
        let known = at.get(&key).and_then(|at| letters.get_mut(*at));
        if let Some((_, Letter::Notes { notes, .. })) = known {
            add(notes, note);
        } else {
            at.insert(key.clone(), letters.len());
            let (from, notes) = (Arc::clone(life), vec![note]);
            letters.push((Address::Session(key), Letter::Notes { from, notes }));
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

fn add(notes: &mut Vec<Note>, note: Note) {
    if let (Some(Note::Delta(last)), Note::Delta(next)) = (notes.last_mut(), &note) {
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
    use super::{Letter, Note, Outgoing, pack};
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
            Outgoing::Note(key.clone(), Note::Delta(delta))
        };
        let queue = vec![
            say("a"),
            say("b"),
            Outgoing::Note(key.clone(), Note::Moved(7)),
            say("c"),
        ];
        let packed = pack(&"life".into(), queue.into_iter());
        assert_eq!(packed.len(), 1);
        assert!(packed[0].1.starts_with(&Letter::notes_from("life")));
        assert!(!packed[0].1.starts_with(&Letter::notes_from("li")));
        let letter: Letter = serde_json::from_slice(&packed[0].1).unwrap();
        let Letter::Notes { notes, .. } = letter else {
            panic!("{letter:?}")
        };
        let [Note::Delta(first), Note::Moved(7), Note::Delta(last)] = &notes[..] else {
            panic!("{notes:?}")
        };
        assert_eq!((first.offset, first.text.as_str()), (0, "ab"));
        assert_eq!((last.offset, last.text.as_str()), (2, "c"));
    }
}
