//! What the doors of a session watch: committed events, and signals that are shown but not kept.
//!
//! The ring is bounded. A watcher that falls behind reads the journal and the running answer
//! instead, so it loses no event and gets its deltas merged.

pub(super) mod list_update;
mod names;
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
pub use self::usage::{GoingOn, LeftOut, UsageState};

use self::running_answer::{Delta, DeltaKind, Merged, RunningAnswer};
use crate::domain::{
    CallId, Code, CompactionStrategy, Iteration, ModelRequestId, ResourceRef, Timestamp, TurnId,
};
use crate::mcp::ToolProgress;
use crate::session::{Event, ModelChoice, SessionRules, WaitingMessage};

/// Signals that a slow watcher may be behind before it has to catch up from the journal.
const RING: usize = 16;

/// What is watched.
pub struct Feed {
    ring: broadcast::Sender<Arc<Signal>>,
    /// Never held across an await. Sends happen under it, so that text and ring agree.
    running: Mutex<Running>,
    /// Tells the other gateways what runs here.
    outlet: Option<Box<dyn Outlet>>,
}

/// Who else is told what runs here.
pub(super) trait Outlet: Send + Sync {
    /// Whether what runs here may be shown now. What is held back is not lost: whoever watches
    /// finds the gap and is given the whole answer.
    fn may_speak(&self) -> bool;

    /// A signal of an effect; what follows from commits is told by the commits.
    fn relay(&self, what: &What);

    /// The whole answer, for somebody who joined late.
    fn relay_answer(&self, answer: &RunningAnswer);
}

/// Names one request of the model that this gateway made; what another one says is dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// The answer that is being streamed, here or elsewhere.
#[derive(Default)]
struct Running {
    answer: Option<RunningAnswer>,
    ticket: Ticket,
    /// The last request and attempt of which something may have been shown.
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

/// One thing to show.
pub struct Signal {
    pub what: What,
    /// What a door made of it, whatever that is.
    rendered: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Signal {
    /// Nobody has made anything of it yet.
    pub fn new(what: What) -> Self {
        Self {
            what,
            rendered: OnceLock::new(),
        }
    }

    /// What a door makes of the signal: made where it is needed first, shared by all who watch. One
    /// kind of door keeps its own; to another kind it is `None`.
    pub fn rendered<T: Any + Send + Sync>(&self, render: impl FnOnce(&What) -> T) -> Option<&T> {
        let rendered = self.rendered.get_or_init(|| Box::new(render(&self.what)));
        rendered.downcast_ref()
    }
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
    /// So many bytes of the workspace of a fork have been copied.
    Copying(u64),
    /// A resource that was read for the session is another now, says its server.
    ResourceChanged(ResourceRef),
    /// The calls of the turn, after a change.
    Queue(QueueState),
    /// The totals, after a change.
    Usage(UsageState),
    /// A remark that is shown once.
    Notice(Notice),
    /// The session is at this `seq`; what a watcher has not seen of it is in the journal.
    Moved(u64),
    /// The session is not what was shown of it: begin anew.
    Rewound,
    /// The session was deleted.
    Deleted,
    /// What is stored of the session cannot be read: nobody can go on with it.
    Damaged,
}

/// A shown event with its place.
#[derive(Debug, Clone)]
pub struct ShownEvent {
    pub seq: u64,
    /// When it was decided.
    pub at: Timestamp,
    pub event: Event,
}

/// A remark that is shown once and kept nowhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Notice {
    pub text: String,
    /// `model_retry`, ….
    pub code: Cow<'static, str>,
    /// The turn it is about.
    pub turn: TurnId,
    /// For a retry: the coming attempt, the last one, and the wait before it.
    pub retry: Option<(u32, u32, Duration, Code)>,
}

impl Notice {
    /// A budget is about to bite.
    pub(in crate::agent) fn of_budget(text: String, turn: TurnId) -> Self {
        Self {
            text,
            code: "budget_warning".into(),
            turn,
            retry: None,
        }
    }
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
    pub title: Option<String>,
    pub model: ModelChoice,
    /// What the session chose to leave its context; empty = what the settings say.
    pub strategies: Vec<CompactionStrategy>,
    /// Whether the session is stored.
    pub is_stored: bool,
    /// The calls of the running turn.
    pub queue: QueueState,
    pub usage: UsageState,
    pub turn: Option<TurnView>,
    /// The answer that is being streamed.
    pub answer: Option<RunningAnswer>,
    /// Messages that wait for the next model request.
    pub waiting: Vec<WaitingMessage>,
    /// Tokens of history that the settings let the model read; `None` = as many as its window holds.
    pub configured_max_tokens: Option<u64>,
    /// Rules that were given for this session alone.
    pub rules: Arc<SessionRules>,
    /// What the engine calls the session's container, while it runs here.
    pub container: Option<String>,
}

impl SessionView {
    /// The answer as far as this view tells it: that of the request at which the turn is. What another
    /// gateway says may be ahead of the journal as it was read here.
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

/// Where a running turn stands.
#[derive(Debug, Clone)]
pub struct TurnView {
    pub id: TurnId,
    /// The request it is at.
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
    /// A feed whose signals are told to the other gateways.
    pub(super) fn new(outlet: impl Outlet + 'static) -> Self {
        Self {
            outlet: Some(Box::new(outlet)),
            ..Self::default()
        }
    }

    /// Everything from now on, and the answer so far, as one moment.
    pub fn watch(&self) -> (broadcast::Receiver<Arc<Signal>>, Option<RunningAnswer>) {
        let running = self.running();
        (self.ring.subscribe(), running.answer.clone())
    }

    /// The answer so far, for a watcher that fell behind.
    pub fn running_answer(&self) -> Option<RunningAnswer> {
        self.running().answer.clone()
    }

    /// Whether anybody watches.
    pub fn is_watched(&self) -> bool {
        self.ring.receiver_count() > 0
    }

    pub(super) fn show(&self, what: What) {
        let _guard = self.running();
        self.send(what);
    }

    /// Shows news of a running effect here and to the other gateways.
    pub(super) fn announce(&self, what: What) {
        let _guard = self.running();
        self.speak(what);
    }

    /// Shows and relays what an effect that runs here says.
    fn speak(&self, what: What) {
        if let Some(outlet) = &self.outlet {
            if !outlet.may_speak() {
                return;
            }
            outlet.relay(&what);
        }
        self.send(what);
    }

    /// A model request begins here. The attempt is at least `attempt`, and above everything that
    /// was shown of this request.
    pub(super) fn begin_answer(&self, request: ModelRequestId, attempt: u32) -> Ticket {
        let mut running = self.running();
        let shown = running.last.filter(|(last, _)| *last == request);
        let attempt = shown.map_or(attempt, |(_, shown)| attempt.max(shown.saturating_add(1)));
        running.begin(request, attempt)
    }

    /// Another attempt of the running request begins at offset 0; watchers know that the last is void.
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

    /// More of the answer; a late piece of another request or attempt is dropped.
    pub(super) fn say(&self, ticket: Ticket, kind: DeltaKind, piece: String) {
        let mut running = self.running();
        if running.ticket != ticket || piece.is_empty() {
            return;
        }
        let Some(answer) = &mut running.answer else {
            return;
        };
        let what = What::Delta(answer.say(kind, piece));
        self.speak(what);
    }

    /// A model request runs at another gateway. Whether it was not followed before.
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

    /// A piece of an answer that is said elsewhere.
    pub(super) fn merge(&self, delta: &Delta) -> Merged {
        let mut running = self.running();
        let Some(answer) = running.answer_to(delta.request()) else {
            return Merged::Gap;
        };
        let (merged, told) = answer.merge(delta);
        let attempt = answer.attempt;
        running.last = Some((delta.request(), attempt));
        if let Some(told) = told {
            self.send(What::Delta(told));
        }
        merged
    }

    /// The whole of an answer that is said elsewhere.
    pub(super) fn adopt(&self, whole: &RunningAnswer) {
        let mut running = self.running();
        let Some(answer) = running.answer_to(whole.request()) else {
            return;
        };
        let told = answer.adopt(whole);
        let attempt = answer.attempt;
        running.last = Some((whole.request(), attempt));
        for delta in told {
            self.send(What::Delta(delta));
        }
    }

    /// Tells the other gateways the whole answer, in order with its pieces.
    pub(super) fn tell_answer(&self) {
        let running = self.running();
        if let (Some(outlet), Some(answer)) = (&self.outlet, &running.answer) {
            outlet.relay_answer(answer);
        }
    }

    /// The request is over; what was said so far.
    pub(super) fn end_answer(&self) -> Option<RunningAnswer> {
        self.running().answer.take()
    }

    fn send(&self, what: What) {
        // An error only says that nobody watches.
        let _ = self.ring.send(Arc::new(Signal::new(what)));
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
