//! What the doors of a session watch: committed events, and signals that are shown but not kept.
//!
//! The ring is bounded. A watcher that falls behind reads the journal and the running answer
//! instead, so it loses no event and gets its deltas merged.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::broadcast;

use crate::domain::{CallId, Code, Timestamp};
use crate::mcp::ToolProgress;
use crate::session::{Call, Event, ModelChoice, WaitingMessage};

/// Signals that a slow watcher may be behind before it has to catch up from the journal.
const RING: usize = 1024;

/// What is watched.
pub struct Feed {
    ring: broadcast::Sender<Arc<Signal>>,
    /// Never held across an await. Sends happen under it, so that text and ring agree.
    running: Mutex<Option<RunningAnswer>>,
}

/// One thing to show.
pub struct Signal {
    /// What it is.
    pub what: What,
    /// A door's wire form of it, made by whoever needs it first and shared by all its sockets.
    pub frames: OnceLock<Vec<Frame>>,
}

/// One message on the wire: a name and its serialized arguments.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The event's name.
    pub name: &'static str,
    /// Its arguments, in order.
    pub args: Vec<Box<RawValue>>,
}

/// The kinds of signals.
#[derive(Debug, Clone)]
pub enum What {
    /// A committed event that is shown.
    Event(ShownEvent),
    /// More of the running answer.
    Delta(Delta),
    /// News of a running call.
    Progress(CallId, ToolProgress),
    /// The calls of the turn, after a change.
    Queue(QueueState),
    /// The totals, after a change.
    Usage(UsageState),
    /// A remark that is shown once.
    Notice(Notice),
    /// The session was deleted.
    Deleted,
}

/// A shown event with its place.
#[derive(Debug, Clone)]
pub struct ShownEvent {
    /// Dense per session.
    pub seq: u64,
    /// When it was decided.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// Which part of an answer a delta belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaKind {
    /// What the model says.
    Text,
    /// What it thinks aloud.
    Reasoning,
}

/// A piece of the running answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The turn.
    pub turn: u64,
    /// The request of the turn.
    pub iteration: u32,
    /// From 1; a higher one replaces what the one before said.
    pub attempt: u32,
    /// Where the piece begins, in UTF-16 code units of its kind (as browsers count).
    pub offset: usize,
    /// Text or reasoning.
    pub kind: DeltaKind,
    /// The piece.
    pub text: String,
}

/// The answer that is being streamed.
#[derive(Debug, Clone, Default)]
pub struct RunningAnswer {
    /// The turn.
    pub turn: u64,
    /// The request of the turn.
    pub iteration: u32,
    /// From 1.
    pub attempt: u32,
    /// The text so far.
    pub text: String,
    /// The reasoning so far.
    pub reasoning: String,
    text_units: usize,
    reasoning_units: usize,
}

/// The calls of the running turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueState {
    /// All calls of the last answer.
    pub calls: Vec<Call>,
    /// What the model said with them.
    pub said: String,
    /// The `seq` that this reflects.
    pub seq: u64,
}

/// What the session has used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UsageState {
    /// Since the session began.
    pub totals: crate::domain::Totals,
    /// Tokens that the last model request read.
    pub context_tokens: u64,
    /// Tokens that the model can read, if known.
    pub window: Option<u64>,
    /// What of the conversation the model no longer reads.
    pub left_out: LeftOut,
    /// The `seq` that this reflects.
    pub seq: u64,
}

/// What fell out of the working context; the transcript has it all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// How many entries.
    pub messages: u64,
    /// `seq` of the oldest message of a person that the model still reads.
    pub from_seq: Option<u64>,
}

/// A remark that is shown once and kept nowhere.
#[derive(Debug, Clone)]
pub struct Notice {
    /// For people.
    pub text: String,
    /// `model_retry`, ….
    pub code: &'static str,
    /// The turn it is about.
    pub turn: u64,
    /// For a retry: the coming attempt, the last one, and the wait before it.
    pub retry: Option<(u32, u32, Duration, Code)>,
}

/// What somebody who joins is told first.
pub struct Joined {
    /// Everything that comes after this view.
    pub signals: broadcast::Receiver<Arc<Signal>>,
    /// The session at that moment.
    pub view: SessionView,
}

/// A session at one moment.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Names the journal; a session that is not stored yet has one already.
    pub journal: crate::domain::JournalId,
    /// `seq` of the last shown event.
    pub seq: u64,
    /// The title.
    pub title: Option<String>,
    /// What answers.
    pub model: ModelChoice,
    /// Whether the session is stored.
    pub is_stored: bool,
    /// The calls of the running turn.
    pub queue: QueueState,
    /// The totals.
    pub usage: UsageState,
    /// The running turn.
    pub turn: Option<TurnView>,
    /// The answer that is being streamed.
    pub answer: Option<RunningAnswer>,
    /// Messages that wait for the next model request.
    pub waiting: Vec<WaitingMessage>,
}

/// Where a running turn stands.
#[derive(Debug, Clone)]
pub struct TurnView {
    /// Its number.
    pub id: u64,
    /// The request it is at.
    pub iteration: u32,
    /// `model`, `waiting` (for a person) or `calls`.
    pub phase: &'static str,
    /// Since when.
    pub since: Timestamp,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            ring: broadcast::Sender::new(RING),
            running: Mutex::new(None),
        }
    }
}

impl Feed {
    /// Everything from now on, and the answer so far, as one moment.
    pub fn watch(&self) -> (broadcast::Receiver<Arc<Signal>>, Option<RunningAnswer>) {
        let running = self.running();
        (self.ring.subscribe(), running.clone())
    }

    /// The answer so far, for a watcher that fell behind.
    pub fn running_answer(&self) -> Option<RunningAnswer> {
        self.running().clone()
    }

    /// Whether anybody watches.
    pub fn is_watched(&self) -> bool {
        self.ring.receiver_count() > 0
    }

    pub(super) fn show(&self, what: What) {
        let _guard = self.running();
        self.send(what);
    }

    /// A model request begins.
    pub(super) fn begin_answer(&self, turn: u64, iteration: u32) {
        *self.running() = Some(RunningAnswer {
            turn,
            iteration,
            attempt: 1,
            ..RunningAnswer::default()
        });
    }

    /// Another attempt of the running request begins at offset 0.
    pub(super) fn restart_answer(&self, attempt: u32) {
        if let Some(answer) = self.running().as_mut() {
            let (turn, iteration) = (answer.turn, answer.iteration);
            *answer = RunningAnswer {
                turn,
                iteration,
                attempt,
                ..RunningAnswer::default()
            };
        }
    }

    /// More of the answer to exactly that request; a late piece of another one is dropped.
    pub(super) fn say(&self, (turn, iteration): (u64, u32), kind: DeltaKind, piece: String) {
        let mut running = self.running();
        let Some(answer) = running.as_mut() else {
            return;
        };
        if (answer.turn, answer.iteration) != (turn, iteration) || piece.is_empty() {
            return;
        }
        let units = piece.encode_utf16().count();
        let (text, length) = match kind {
            DeltaKind::Text => (&mut answer.text, &mut answer.text_units),
            DeltaKind::Reasoning => (&mut answer.reasoning, &mut answer.reasoning_units),
        };
        let offset = *length;
        *length += units;
        text.push_str(&piece);
        let attempt = answer.attempt;
        self.send(What::Delta(Delta {
            turn,
            iteration,
            attempt,
            offset,
            kind,
            text: piece,
        }));
    }

    /// The request is over; what was said so far.
    pub(super) fn end_answer(&self) -> Option<RunningAnswer> {
        self.running().take()
    }

    fn send(&self, what: What) {
        // An error only says that nobody watches.
        let _ = self.ring.send(Arc::new(Signal {
            what,
            frames: OnceLock::new(),
        }));
    }

    fn running(&self) -> MutexGuard<'_, Option<RunningAnswer>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningAnswer {
    /// What a watcher that has seen `text` and `reasoning` code units is missing.
    pub fn missing(&self, text: usize, reasoning: usize) -> Vec<Delta> {
        let kinds = [
            (DeltaKind::Reasoning, &self.reasoning, reasoning),
            (DeltaKind::Text, &self.text, text),
        ];
        let piece = |(kind, whole, offset): (DeltaKind, &String, usize)| {
            let rest: Vec<u16> = whole.encode_utf16().skip(offset).collect();
            (!rest.is_empty()).then(|| Delta {
                turn: self.turn,
                iteration: self.iteration,
                attempt: self.attempt,
                offset,
                kind,
                text: String::from_utf16_lossy(&rest),
            })
        };
        kinds.into_iter().filter_map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{DeltaKind, Feed, What};

    #[test]
    fn offsets_count_as_browsers_do_and_a_late_watcher_gets_the_rest_in_one_piece() {
        let feed = Feed::default();
        let (mut signals, running) = feed.watch();
        assert!(running.is_none());
        feed.begin_answer(1, 1);
        for piece in ["a", "😀", "b"] {
            feed.say((1, 1), DeltaKind::Text, piece.into());
        }
        feed.say((1, 2), DeltaKind::Text, "late".into());
        let mut offsets = Vec::new();
        while let Ok(signal) = signals.try_recv() {
            let What::Delta(delta) = &signal.what else {
                panic!("no delta")
            };
            offsets.push(delta.offset);
        }
        assert_eq!(offsets, [0, 1, 3]);
        let missing = feed.running_answer().unwrap().missing(1, 0);
        assert_eq!((missing[0].offset, missing[0].text.as_str()), (1, "😀b"));
    }

    #[test]
    fn another_attempt_begins_at_offset_zero() {
        let feed = Feed::default();
        feed.begin_answer(1, 1);
        feed.say((1, 1), DeltaKind::Text, "cut".into());
        feed.restart_answer(2);
        feed.say((1, 1), DeltaKind::Text, "whole".into());
        let answer = feed.end_answer().unwrap();
        assert_eq!((answer.attempt, answer.text.as_str()), (2, "whole"));
        feed.say((1, 1), DeltaKind::Text, "late".into());
        assert!(feed.running_answer().is_none());
    }
}
