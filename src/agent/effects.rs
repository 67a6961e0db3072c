//! What runs for a session now, brought in line with what has to run.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::factory::AgentParts;
use super::feed::{Feed, What};
use super::message::Message;
use super::model::Asking;
use crate::domain::{CallId, Entry};
use crate::session::{Command, Control, Effect, ModelChoice, effects};

/// Cancels its effect when it is dropped.
struct Stopper(CancellationToken);

impl Drop for Stopper {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// What has to run, and what it is made of.
pub(super) struct Wanted<'a> {
    pub(super) control: &'a Control,
    pub(super) entries: &'a [Arc<Entry>],
    pub(super) choice: &'a ModelChoice,
    pub(super) feed: &'a Arc<Feed>,
    pub(super) parts: &'a AgentParts,
}

/// The running effects of one session.
#[derive(Default)]
pub(super) struct Running {
    model: Option<((u64, u32), Stopper)>,
    calls: BTreeMap<CallId, Stopper>,
    outcomes: Option<mpsc::WeakSender<Message>>,
    tracker: TaskTracker,
}

impl Running {
    pub(super) fn new(outcomes: mpsc::WeakSender<Message>, tracker: TaskTracker) -> Self {
        Self {
            model: None,
            calls: BTreeMap::new(),
            outcomes: Some(outcomes),
            tracker,
        }
    }

    pub(super) fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    pub(super) fn is_empty(&self) -> bool {
        self.model.is_none() && self.calls.is_empty()
    }

    pub(super) fn stop_model(&mut self) {
        self.model = None;
    }

    pub(super) fn stop_all(&mut self) {
        self.model = None;
        self.calls.clear();
    }

    /// Starts what is missing and stops what is no longer wanted.
    pub(super) fn reconcile(&mut self, wanted: &Wanted<'_>) {
        let effects = effects(wanted.control);
        let asks = effects.iter().find_map(|effect| match effect {
            Effect::AskModel { turn, iteration } => Some((*turn, *iteration)),
            Effect::RunCall { .. } => None,
        });
        if self.model.as_ref().map(|(request, _)| *request) != asks {
            self.model = asks.map(|request| (request, self.ask_model(wanted, request)));
        }
        let mut calls = BTreeMap::new();
        for effect in effects {
            let Effect::RunCall { call, is_stopping } = effect else {
                continue;
            };
            let stopper = match self.calls.remove(&call) {
                Some(stopper) => Some(stopper),
                None => self.run_call(wanted, &call),
            };
            if let Some(stopper) = stopper {
                if is_stopping {
                    stopper.0.cancel();
                }
                calls.insert(call, stopper);
            }
        }
        self.calls = calls;
    }

    fn ask_model(&self, wanted: &Wanted<'_>, request: (u64, u32)) -> Stopper {
        let cancel = CancellationToken::new();
        let asked = Asking {
            feed: Arc::clone(wanted.feed),
            parts: wanted.parts.clone(),
            choice: wanted.choice.clone(),
            entries: wanted.entries.to_vec(),
            turn: request.0,
            iteration: request.1,
        };
        wanted.feed.begin_answer(request.0, request.1);
        let (outcomes, stop) = (self.outcomes.clone(), cancel.clone());
        self.tracker.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                outcome = asked.run() => report(outcomes.as_ref(), outcome).await,
            }
        });
        Stopper(cancel)
    }

    fn run_call(&self, wanted: &Wanted<'_>, id: &CallId) -> Option<Stopper> {
        let call = wanted.control.turn.as_ref()?.call(id)?.clone();
        let cancel = CancellationToken::new();
        let (outcomes, stop) = (self.outcomes.clone(), cancel.clone());
        let (feed, tools) = (Arc::clone(wanted.feed), Arc::clone(&wanted.parts.tools));
        let id = id.clone();
        self.tracker.spawn(async move {
            let started = tokio::time::Instant::now();
            let news = |progress| feed.show(What::Progress(id.clone(), progress));
            let outcome = tools.run(&call, &stop, news).await;
            let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            report(
                outcomes.as_ref(),
                Command::CallEnded {
                    call: call.id,
                    outcome,
                    duration_ms,
                },
            )
            .await;
        });
        Some(Stopper(cancel))
    }
}

/// Tells the session's task. If that is gone, so is the outcome: the next life calls it unknown.
async fn report(outcomes: Option<&mpsc::WeakSender<Message>>, command: Command) {
    if let Some(sender) = outcomes.and_then(mpsc::WeakSender::upgrade) {
        let _ = sender.send(Message::Outcome(command)).await;
    }
}
