//! Distributes a session's committed events, and signals that are shown but not stored, to the doors that
//! watch it.
//!
//! The ring is bounded. A watcher that falls behind reads the journal and the running answer instead, so it
//! loses no event and gets its deltas merged.

pub(super) mod list_update;
mod queue_state;
pub(super) mod running_answer;
mod usage;

use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

pub(in crate::agent) use self::queue_state::QueueView;
pub use self::queue_state::{OthersSession, QueueState};
pub use self::usage::{GoingOn, OmittedHistory, UsageState};

use self::running_answer::{Delta, DeltaKind, MergeResult, RunningAnswer};
use crate::domain::{
    CallId, Code, Iteration, ModelRequestId, ResourceRef, StrategyName, Timestamp, TurnId,
};
use crate::mcp::ToolProgress;
use crate::session::{Event, ModelChoice, SessionAssistant, SessionRules, WaitingMessage};

/// The most signals that a slow watcher may lag behind before it has to catch up from the journal.
const RING: usize = 16;

/// The feed of a session.
pub struct Feed {
    ring: broadcast::Sender<Arc<Signal>>,
    /// Never held across an await. Signals are sent while it is locked, so that answer and ring agree.
    running: Mutex<Running>,
    /// Forwards effects that run here to the other gateways.
    outlet: Option<Box<dyn Outlet>>,
}

/// Forwards the feed of effects that run here.
pub(super) trait Outlet: Send + Sync {
    /// Returns true if output of effects that run here may be shown now. Output that is withheld is not lost:
    /// a watcher finds the gap and gets the whole answer.
    fn may_speak(&self) -> bool;

    /// Forwards a signal of an effect. Signals that follow from commits need no forwarding.
    fn relay(&self, item: &FeedItem);

    /// Forwards the whole answer, for a gateway that joined late.
    fn relay_answer(&self, answer: &RunningAnswer);
}

/// Identifies one model request of this gateway; pieces with another ticket are dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// The answer that streams, here or at another gateway.
#[derive(Default)]
struct Running {
    answer: Option<RunningAnswer>,
    ticket: Ticket,
    /// The last request and attempt that may have been shown in part.
    last: Option<(ModelRequestId, u32)>,
}

impl Running {
    fn begin(&mut self, request: ModelRequestId, attempt: u32) -> Ticket {
        self.last = Some((request, attempt));
        let before = self.answer.take().filter(|it| it.request() == request);
        let first = || RunningAnswer::begin(request, attempt);
        self.answer = Some(before.map_or_else(first, |before| before.again(attempt)));
        self.ticket.0 += 1;
        self.ticket
    }

    fn answer_to(&mut self, request: ModelRequestId) -> Option<&mut RunningAnswer> {
        self.answer
            .as_mut()
            .filter(|answer| answer.request() == request)
    }
}

/// One item of the feed, with the form in which doors send it.
pub struct Signal {
    pub item: FeedItem,
    /// The form that a door rendered, of a type that the door chooses.
    rendered: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Signal {
    /// Makes a signal that is not rendered yet.
    pub fn new(item: FeedItem) -> Self {
        Self {
            item,
            rendered: OnceLock::new(),
        }
    }

    /// Returns the form that a door renders: computed at the first use, and shared by all watchers. Only one
    /// type is stored; a request for another type gets `None`.
    pub fn rendered<T: Any + Send + Sync>(
        &self,
        render: impl FnOnce(&FeedItem) -> T,
    ) -> Option<&T> {
        let rendered = self.rendered.get_or_init(|| Box::new(render(&self.item)));
        rendered.downcast_ref()
    }
}

/// The updates that the watchers of a session receive.
#[derive(Debug, Clone)]
pub enum FeedItem {
    /// A committed event that is shown.
    Event(ShownEvent),
    /// A piece of the running answer.
    Delta(Delta),
    /// Progress of a running call.
    Progress(CallId, ToolProgress),
    /// The number of bytes copied so far of a fork's workspace.
    Copying(u64),
    /// A server reports that a resource that was read for the session has changed.
    ResourceChanged(ResourceRef),
    /// The calls of the turn, after a change.
    Queue(QueueState),
    /// The usage, after a change.
    Usage(UsageState),
    /// A notice that is shown once.
    Notice(Notice),
    /// The session is at this `seq`; a watcher reads events that it has not seen from the journal.
    Moved(u64),
    /// The shown session no longer matches the journal: begin anew.
    Rewound,
    /// The session was deleted.
    Deleted,
    /// The stored session cannot be read, so nobody can go on with it.
    Damaged,
}

/// A shown event with its position.
#[derive(Debug, Clone)]
pub struct ShownEvent {
    pub seq: u64,
    /// The time of its decision.
    pub at: Timestamp,
    pub event: Event,
}

/// A notice that is shown once and not stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Notice {
    pub text: String,
    /// Such as `model_retry`.
    pub code: Cow<'static, str>,
    /// The turn that it concerns.
    pub turn: TurnId,
    /// For a retry: the next attempt, the last attempt, the wait before it, and the code of the error.
    pub retry: Option<(u32, u32, Duration, Code)>,
}

impl Notice {
    /// Warns that a budget is about to run out.
    pub(in crate::agent) fn of_budget(text: String, turn: TurnId) -> Self {
        Self {
            text,
            code: "budget_warning".into(),
            turn,
            retry: None,
        }
    }
}

/// The first data of a client that joins.
pub struct SessionSubscription {
    /// All signals after this view.
    pub signals: broadcast::Receiver<Arc<Signal>>,
    /// The session at that moment.
    pub view: SessionView,
}

/// A session at one moment.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// The journal's id; a session that is not stored yet already has one.
    pub journal: crate::domain::JournalId,
    /// `seq` of the last shown event.
    pub seq: u64,
    pub title: Option<String>,
    pub model: ModelChoice,
    /// The assistant of the session, in the version that is in use.
    pub assistant: Option<Arc<SessionAssistant>>,
    /// The strategies that the session chose to compact its context; empty = those of the settings.
    pub strategies: Vec<StrategyName>,
    /// True if the session is stored.
    pub is_stored: bool,
    /// The calls of the running turn.
    pub queue: QueueState,
    pub usage: UsageState,
    pub turn: Option<TurnView>,
    /// The answer that is being streamed.
    pub answer: Option<RunningAnswer>,
    /// Messages that wait for the next model request.
    pub waiting: Vec<WaitingMessage>,
    /// The token limit of the history that the settings set for the model; `None` = the model's window.
    pub configured_max_tokens: Option<u64>,
    /// Rules given for this session alone.
    pub rules: Arc<SessionRules>,
    /// The engine's name of the session's container, while it runs here.
    pub container: Option<String>,
}

impl SessionView {
    /// Returns the answer, if it belongs to the turn's current request. Another gateway's answer may be ahead
    /// of the journal as read here.
    pub fn told(&self) -> Option<&RunningAnswer> {
        let turn = self.turn.as_ref()?;
        let answer = self.answer.as_ref()?;
        let request = ModelRequestId {
            turn: turn.id,
            iteration: turn.iteration,
        };
        (answer.request() == request).then_some(answer)
    }
}

/// The state of a running turn.
#[derive(Debug, Clone)]
pub struct TurnView {
    pub id: TurnId,
    /// Its current request.
    pub iteration: Iteration,
    /// `model`, `waiting` (for a person) or `calls`.
    pub phase: &'static str,
    pub since: Timestamp,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            ring: broadcast::Sender::new(RING),
            running: Mutex::default(),
            outlet: None,
        }
    }
}

impl Feed {
    /// Makes a feed whose signals are forwarded through the outlet.
    pub(super) fn new(outlet: impl Outlet + 'static) -> Self {
        Self {
            outlet: Some(Box::new(outlet)),
            ..Self::default()
        }
    }

    /// Returns all signals from now on, and the answer so far, read atomically.
    pub fn watch(&self) -> (broadcast::Receiver<Arc<Signal>>, Option<RunningAnswer>) {
        let running = self.running();
        (self.ring.subscribe(), running.answer.clone())
    }

    /// The answer so far, for a watcher that fell behind.
    pub fn running_answer(&self) -> Option<RunningAnswer> {
        self.running().answer.clone()
    }

    /// Returns true if anybody watches.
    pub fn is_watched(&self) -> bool {
        self.ring.receiver_count() > 0
    }

    pub(super) fn show(&self, item: FeedItem) {
        let _guard = self.running();
        self.send(item);
    }

    /// Shows a signal of a running effect here, and forwards it to the other gateways.
    pub(super) fn announce(&self, item: FeedItem) {
        let _guard = self.running();
        self.speak(item);
    }

    /// Shows and forwards a signal of an effect that runs here.
    fn speak(&self, item: FeedItem) {
        if let Some(outlet) = &self.outlet {
            if !outlet.may_speak() {
                return;
            }
            outlet.relay(&item);
        }
        self.send(item);
    }

    /// Begins a model request here. Its attempt is at least `attempt`, and above every attempt of this
    /// request that was shown.
    pub(super) fn begin_answer(&self, request: ModelRequestId, attempt: u32) -> Ticket {
        let mut running = self.running();
        let shown = running.last.filter(|(last, _)| *last == request);
        let attempt = shown.map_or(attempt, |(_, shown)| attempt.max(shown.saturating_add(1)));
        running.begin(request, attempt)
    }

    /// Begins another attempt of the running request at offset 0; for watchers it replaces the last one.
    pub(super) fn restart_answer(&self, ticket: Ticket) {
        let mut running = self.running();
        if running.ticket != ticket {
            return;
        }
        if let Some(answer) = &mut running.answer {
            let (request, attempt) = (answer.request(), answer.attempt.saturating_add(1));
            *answer = RunningAnswer::begin(request, attempt);
            running.last = Some((request, attempt));
        }
    }

    /// Turns the text of the answer so far into reasoning. Watchers get it as a new attempt, which replaces the
    /// text that they were shown.
    pub(super) fn turn_text_into_reasoning(&self, ticket: Ticket) {
        let answer = self.running_answer();
        let Some(answer) = answer.filter(|answer| !answer.text.is_empty()) else {
            return;
        };
        self.restart_answer(ticket);
        self.say(
            ticket,
            DeltaKind::Reasoning,
            answer.reasoning + &answer.text,
        );
    }

    /// Appends a piece to the answer; a late piece of another request or attempt is dropped.
    pub(super) fn say(&self, ticket: Ticket, kind: DeltaKind, piece: String) {
        let mut running = self.running();
        if running.ticket != ticket || piece.is_empty() {
            return;
        }
        let Some(answer) = &mut running.answer else {
            return;
        };
        let item = FeedItem::Delta(answer.say(kind, piece));
        self.speak(item);
    }

    /// Follows a model request that runs at another gateway. Returns true if it was not followed before.
    pub(super) fn follow_answer(&self, request: ModelRequestId, attempt: u32) -> bool {
        let mut running = self.running();
        let is_followed = running
            .answer
            .as_ref()
            .is_some_and(|answer| answer.request() == request && answer.attempt >= attempt);
        if !is_followed {
            running.begin(request, attempt);
        }
        !is_followed
    }

    /// Merges a piece of an answer that streams elsewhere.
    pub(super) fn merge(&self, delta: &Delta) -> MergeResult {
        let mut running = self.running();
        let Some(answer) = running.answer_to(delta.request()) else {
            return MergeResult::Gap;
        };
        let (merged, told) = answer.merge(delta);
        let attempt = answer.attempt;
        running.last = Some((delta.request(), attempt));
        if let Some(told) = told {
            self.send(FeedItem::Delta(told));
        }
        merged
    }

    /// Adopts the whole of an answer that streams elsewhere.
    pub(super) fn adopt(&self, whole: &RunningAnswer) {
        let mut running = self.running();
        let Some(answer) = running.answer_to(whole.request()) else {
            return;
        };
        let told = answer.adopt(whole);
        let attempt = answer.attempt;
        running.last = Some((whole.request(), attempt));
        for delta in told {
            self.send(FeedItem::Delta(delta));
        }
    }

    /// Forwards the whole answer to the other gateways, in order with its pieces.
    pub(super) fn send_answer(&self) {
        let running = self.running();
        if let (Some(outlet), Some(answer)) = (&self.outlet, &running.answer) {
            outlet.relay_answer(answer);
        }
    }

    /// Ends the request, and returns the answer so far.
    pub(super) fn end_answer(&self) -> Option<RunningAnswer> {
        self.running().answer.take()
    }

    fn send(&self, item: FeedItem) {
        // An error only means that nobody watches.
        let _ = self.ring.send(Arc::new(Signal::new(item)));
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
