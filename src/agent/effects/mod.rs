//! Reconciles the effects that run for a session with those that have to run.

mod assistant;
mod background;
mod dry_runs;
pub(super) mod model_request;
mod running_call;
pub(super) mod session_agent;
pub(super) mod skills;
pub(super) mod tool_call;
pub(super) mod trace;
mod watch;
mod workspace;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::mpsc;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use self::background::Asker;
use self::background::review::ReviewRequest;
use self::background::sampling::Samples;
use self::background::title::TitleRequest;
use self::dry_runs::DryRuns;
use self::model_request::meter::Meter;
use self::model_request::{HistoryScope, ModelRequest, RequestScope};
use self::running_call::{CreatedTasks, Elicitations, Stopper};
use self::session_agent::SessionAgent;
use super::feed::Feed;
use super::journal::Journal;
use super::mailbox::Message;
use crate::domain::{CallId, CountedEntry, Iteration, ModelRequestId, TurnId};
use crate::history::Limits;
use crate::session::{Command, Control, Effect, Gaps, ModelChoice, RunningReview, effects};

/// The range of attempt numbers reserved for one gateway at one request.
const ATTEMPTS: u32 = 1_000;

/// The time to wait for servers to stop the calls of a deleted session.
const END_GRACE: Duration = Duration::from_secs(3);

/// A running model request. It is not polled from here while the answer streams.
struct RunningRequest {
    _task: AbortOnDropHandle<()>,
    meter: Arc<Meter>,
}

/// Sends the outcomes of effects to the session's task.
#[derive(Clone)]
pub(super) struct Outcomes {
    session: Option<mpsc::WeakSender<Message>>,
    /// The epoch in which the effects were started.
    epoch: u64,
}

impl Outcomes {
    /// Sends an outcome to the session's task. If the task is gone, the outcome is lost, and the next runner
    /// marks the call as unknown.
    async fn submit(&self, command: Command) {
        let session = self.session.as_ref();
        if let Some(sender) = session.and_then(mpsc::WeakSender::upgrade) {
            let (command, epoch) = (Box::new(command), self.epoch);
            let _ = sender.send(Message::Outcome { command, epoch }).await;
        }
    }

    /// Sends an outcome that can be sent again later, without waiting; fails if the mailbox is full.
    fn try_tell(&self, command: Command) -> bool {
        let session = self.session.as_ref();
        let sender = session.and_then(mpsc::WeakSender::upgrade);
        let (command, epoch) = (Box::new(command), self.epoch);
        sender.is_some_and(|sender| sender.try_send(Message::Outcome { command, epoch }).is_ok())
    }
}

/// The effects that have to run, with their inputs.
pub(super) struct WantedEffects<'a> {
    pub(super) control: &'a Control,
    pub(super) entries: &'a [Arc<CountedEntry>],
    /// The places among the entries where some are missing.
    pub(super) gaps: &'a Gaps,
    pub(super) choice: &'a ModelChoice,
    pub(super) journal: &'a Journal,
    /// True if other gateways may take over the session, as the journal would tell.
    pub(super) is_shared: bool,
    pub(super) feed: &'a Arc<Feed>,
    pub(super) agent: &'a SessionAgent,
}

/// The running effects of one session.
#[derive(Default)]
pub(super) struct Running {
    model: Option<(ModelRequestId, RunningRequest)>,
    calls: BTreeMap<CallId, Stopper>,
    /// The elicitations of the running calls.
    asked: Elicitations,
    /// Tasks of the running calls that the journal does not have yet.
    created: CreatedTasks,
    title: Option<AbortOnDropHandle<()>>,
    review: Option<(CallId, AbortOnDropHandle<()>)>,
    workspace: Option<AbortOnDropHandle<()>>,
    dry_runs: DryRuns,
    samples: Samples,
    /// The epoch in which all of them were started.
    epoch: u64,
    outcomes: Option<mpsc::WeakSender<Message>>,
    tracker: TaskTracker,
    /// Counts the users of the session's files.
    guests: Arc<()>,
}

impl Running {
    pub(super) fn new(outcomes: mpsc::WeakSender<Message>, tracker: TaskTracker) -> Self {
        Self {
            model: None,
            calls: BTreeMap::new(),
            asked: Elicitations::default(),
            created: CreatedTasks::default(),
            title: None,
            review: None,
            workspace: None,
            dry_runs: DryRuns::default(),
            samples: Samples::default(),
            epoch: 0,
            outcomes: Some(outcomes),
            tracker,
            guests: Arc::default(),
        }
    }

    /// Returns a guard that keeps the session in memory.
    pub(super) fn guest(&self) -> Arc<()> {
        Arc::clone(&self.guests)
    }

    pub(super) fn has_guests(&self) -> bool {
        Arc::strong_count(&self.guests) > 1
    }

    pub(super) fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    pub(super) fn is_empty(&self) -> bool {
        self.model.is_none()
            && self.calls.is_empty()
            && self.title.is_none()
            && self.review.is_none()
            && self.workspace.is_none()
            && self.dry_runs.is_empty()
            && self.samples.is_empty()
    }

    /// Returns true if an answer streams here.
    pub(super) fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// Returns true if no call runs here.
    pub(super) fn has_no_calls(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the number of calls that run here, including ended ones whose outcome is not committed yet.
    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Stops the model request, and returns its meter.
    pub(super) fn stop_model(&mut self) -> Option<Arc<Meter>> {
        let (_, request) = self.model.take()?;
        Some(Arc::clone(&request.meter))
    }

    /// Ends the running calls for good, and waits briefly until their servers have stopped them.
    pub(super) async fn end_calls(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        calls.values().for_each(Stopper::stop);
        let ended = calls.values().map(Stopper::ended);
        // Servers that have not answered by then may go on.
        let _ = tokio::time::timeout(END_GRACE, join_all(ended)).await;
    }

    /// Stops all effects. Calls that run as tasks continue at their servers, and the session's next runner
    /// resumes them.
    pub(super) fn stop_all(&mut self) {
        self.model = None;
        self.calls.clear();
        self.asked.retain(|_| false);
        self.created.retain(|_| false);
        self.title = None;
        self.review = None;
        self.workspace = None;
        self.dry_runs.clear();
        self.samples.clear();
    }

    /// Starts missing effects and stops those that are no longer wanted.
    pub(super) fn reconcile(&mut self, wanted: &WantedEffects<'_>) {
        if self.epoch != wanted.control.runner.epoch {
            // Another gateway ran the session meanwhile, so the effects that still run here are obsolete.
            self.stop_all();
            self.epoch = wanted.control.runner.epoch;
        }
        let effects = effects(wanted.control);
        let asks = effects.iter().find_map(|effect| match effect {
            Effect::AskModel(request) => Some(*request),
            Effect::RunCall { .. }
            | Effect::MakeTitle
            | Effect::Review(_)
            | Effect::DryRun(_)
            | Effect::Sample(_)
            | Effect::CopyWorkspace => None,
        });
        if self.model.as_ref().map(|(request, _)| *request) != asks {
            self.model = asks.map(|request| (request, self.ask_model(wanted, request)));
        }
        if !effects.contains(&Effect::MakeTitle) {
            self.title = None;
        } else if self.title.is_none() {
            self.title = Some(self.make_title(wanted));
        }
        let running = wanted.control.reviewing.running.as_ref();
        if self.review.as_ref().map(|(call, _)| call) != running.map(|running| &running.call) {
            self.review = running.map(|running| self.review(wanted, running));
        }
        if !effects.contains(&Effect::CopyWorkspace) {
            self.workspace = None;
        } else if self.workspace.is_none() {
            self.workspace = workspace::copy(self, wanted);
        }
        dry_runs::reconcile(self, wanted, &effects);
        background::sampling::reconcile(self, wanted, &effects);
        // Before calls are stopped, so that a server that gets both receives the answer first.
        self.asked.pass_on(wanted.control);
        self.created.pass_on(wanted.control);
        let mut calls = BTreeMap::new();
        for effect in effects {
            let Effect::RunCall { call, is_stopping } = effect else {
                continue;
            };
            let stopper = match self.calls.remove(&call) {
                Some(stopper) => Some(stopper),
                None => running_call::run(self, wanted, &call),
            };
            if let Some(stopper) = stopper {
                if is_stopping {
                    stopper.stop();
                }
                calls.insert(call, stopper);
            }
        }
        self.calls = calls;
        self.asked.retain(|call| self.calls.contains_key(call));
        self.created.retain(|call| self.calls.contains_key(call));
    }

    fn outcomes(&self) -> Outcomes {
        Outcomes {
            session: self.outcomes.clone(),
            epoch: self.epoch,
        }
    }

    fn ask_model(&self, wanted: &WantedEffects<'_>, request: ModelRequestId) -> RunningRequest {
        wanted.agent.tools.connect_ahead(&self.tracker);
        let attempt = first_attempt(wanted.control);
        let meter = Arc::new(Meter::default());
        let turn = wanted.control.turn.as_ref();
        let (agent, control) = (wanted.agent, wanted.control);
        let scope = RequestScope {
            feed: Arc::clone(wanted.feed),
            ticket: wanted.feed.begin_answer(request, attempt),
            agent: agent.clone(),
            choice: wanted.choice.clone(),
            effort: turn.and_then(|turn| turn.effort),
            outcomes: self.outcomes(),
            journal: wanted.journal.clone(),
            version: control.version,
            is_unused: control.used_tools.is_empty(),
            trace: turn.and_then(|turn| agent.trace(turn.id, turn.started)),
            request,
            payer: agent.payer(control, request),
            meter: Arc::clone(&meter),
        };
        let asked = ModelRequest {
            scope,
            entries: wanted.entries.to_vec(),
            history: HistoryScope {
                question: control.context.question,
                gaps: wanted.gaps.clone(),
                compaction: control.context.compaction.clone(),
                limits: agent.turn_limits(control),
                vendor_limits: Limits::default().lowered(control),
                is_limit_lowered: turn.is_some_and(|turn| turn.is_limit_lowered),
                has_short_results: control.context.has_short_results,
                strategies: agent.strategies(control),
            },
            placed: control.placed.clone(),
            files_at: control.engine.clone(),
            restarts: turn.map_or(0, |turn| turn.restarts),
        };
        let outcomes = self.outcomes();
        let asking = self.tracker.spawn(async move {
            outcomes.submit(Box::pin(asked.run()).await).await;
        });
        RunningRequest {
            _task: AbortOnDropHandle::new(asking),
            meter,
        }
    }

    /// Makes an asker for a request beside a turn. Its usage row has iteration 0.
    fn asker(wanted: &WantedEffects<'_>, turn: TurnId) -> Asker {
        let request = ModelRequestId {
            turn,
            iteration: Iteration(0),
        };
        let payer = wanted.agent.payer(wanted.control, request);
        Asker::new(wanted.agent.clone(), payer, Arc::clone(wanted.feed))
    }

    fn make_title(&self, wanted: &WantedEffects<'_>) -> AbortOnDropHandle<()> {
        let turn = wanted.control.title.titling.turn().unwrap_or_default();
        let choice = wanted.choice.clone();
        let asked = TitleRequest::new(Self::asker(wanted, turn), choice, wanted.entries);
        let outcomes = self.outcomes();
        let asking = self.tracker.spawn(async move {
            outcomes.submit(asked.run().await).await;
        });
        AbortOnDropHandle::new(asking)
    }

    /// Starts a review. It continues if the person decides first: it is paid for in any case, and its usage
    /// is counted.
    fn review(
        &self,
        wanted: &WantedEffects<'_>,
        running: &RunningReview,
    ) -> (CallId, AbortOnDropHandle<()>) {
        let call = wanted.control.call(&running.call).cloned();
        let id = running.call.clone();
        let asked = call.map(|call| ReviewRequest {
            asker: Self::asker(wanted, running.turn),
            reviewer: wanted.agent.parts.reviewer.clone(),
            call,
            said: wanted.entries.to_vec(),
        });
        let (outcomes, gone) = (self.outcomes(), background::review::of_gone_call(&id));
        let asking = self.tracker.spawn(async move {
            let said = match asked {
                Some(asked) => asked.run().await,
                None => gone,
            };
            outcomes.submit(said).await;
        });
        (id, AbortOnDropHandle::new(asking))
    }
}

/// Returns the first attempt of the running request, above all that were shown before a take-over.
pub(super) fn first_attempt(control: &Control) -> u32 {
    let restarts = control.turn.as_ref().map_or(0, |turn| turn.restarts);
    restarts.saturating_mul(ATTEMPTS).saturating_add(1)
}
