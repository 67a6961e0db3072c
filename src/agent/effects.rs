//! What runs for a session now, brought in line with what has to run.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::feed::What;
use super::live::{LiveSession, Message};
use super::model;
use crate::domain::CallId;
use crate::session::{Command, Effect, effects};

/// Cancels its effect when it is dropped.
struct Stopper(CancellationToken);

impl Drop for Stopper {
    fn drop(&mut self) {
        self.0.cancel();
    }
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
        Self { model: None, calls: BTreeMap::new(), outcomes: Some(outcomes), tracker }
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
    pub(super) fn reconcile(mut self, session: &LiveSession) -> Self {
        let wanted = effects(&session.state.control);
        let asks = wanted.iter().find_map(|effect| match effect {
            Effect::AskModel { turn, iteration } => Some((*turn, *iteration)),
            Effect::RunCall { .. } => None,
        });
        if self.model.as_ref().map(|(request, _)| *request) != asks {
            self.model = asks.map(|request| (request, self.ask_model(session, request)));
        }
        let mut calls = BTreeMap::new();
        for effect in wanted {
            let Effect::RunCall { call, is_stopping } = effect else { continue };
            let stopper = match self.calls.remove(&call) {
                Some(stopper) => Some(stopper),
                None => self.run_call(session, &call),
            };
            if let Some(stopper) = stopper {
                if is_stopping {
                    stopper.0.cancel();
                }
                calls.insert(call, stopper);
            }
        }
        self.calls = calls;
        self
    }

    fn ask_model(&self, session: &LiveSession, request: (u64, u32)) -> Stopper {
        let cancel = CancellationToken::new();
        let asked = model::Asking::new(session, request);
        session.feed.begin_answer(request.0, request.1);
        let (outcomes, stop) = (self.outcomes.clone(), cancel.clone());
        self.tracker.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                outcome = asked.run() => report(outcomes.as_ref(), outcome).await,
            }
        });
        Stopper(cancel)
    }

    fn run_call(&self, session: &LiveSession, id: &CallId) -> Option<Stopper> {
        let call = session.state.control.turn.as_ref()?.call(id)?.clone();
        let cancel = CancellationToken::new();
        let (outcomes, stop) = (self.outcomes.clone(), cancel.clone());
        let (feed, tools) = (Arc::clone(&session.feed), Arc::clone(&session.parts.tools));
        let id = id.clone();
        self.tracker.spawn(async move {
            let started = tokio::time::Instant::now();
            let news = |progress| feed.show(What::Progress(id.clone(), progress));
            let outcome = tools.run(&call, &stop, news).await;
            let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            report(outcomes.as_ref(), Command::CallEnded { call: call.id, outcome, duration_ms }).await;
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
