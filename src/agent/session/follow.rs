//! A session that other gateways work on too: hear what happens there, take over when its runner
//! is gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{LiveSession, Lost};
use crate::agent::cluster::broadcaster::SessionUpdate;
use crate::agent::effects::first_attempt;
use crate::agent::feed::What;
use crate::agent::feed::running_answer::Merged;
use crate::domain::CallId;
use crate::session::{Call, Command, Effect, effects};

/// How long the whole of a running answer may be on its way.
const ASK_AGAIN: Duration = Duration::from_millis(100);

impl LiveSession {
    /// News from other gateways, in the order in which they were sent.
    pub(crate) async fn hear(&mut self, notes: Vec<SessionUpdate>) {
        for note in notes {
            self.hear_one(note).await;
        }
        self.look().await;
    }

    async fn hear_one(&mut self, note: SessionUpdate) {
        match note {
            SessionUpdate::Commit(commit) => {
                self.follow(&commit).await;
                self.reconcile();
            }
            SessionUpdate::Moved(version) => {
                if version > self.state.control.version {
                    self.catch_up().await;
                    self.reconcile();
                }
            }
            // What still speaks elsewhere about a session that runs here was taken over.
            SessionUpdate::Delta(_)
            | SessionUpdate::Answer(_)
            | SessionUpdate::Progress(..)
            | SessionUpdate::Notice(_)
                if self.is_mine() => {}
            SessionUpdate::Delta(delta) => {
                if self.feed.merge(&delta) == Merged::Gap {
                    self.fill(delta.turn, delta.iteration).await;
                }
            }
            SessionUpdate::Answer(answer) => self.feed.adopt(&answer),
            SessionUpdate::Progress(call, news) => {
                if self.is_executing(&call) {
                    self.feed.show(What::Progress(call, news));
                }
            }
            SessionUpdate::Notice(notice) => self.feed.show(What::Notice(notice)),
            SessionUpdate::TellAnswer => {
                if self.running.has_model() {
                    self.feed.tell_answer();
                }
            }
            SessionUpdate::Deleted => self.lost = Some(Lost::Deleted),
        }
    }

    /// A piece came that nothing here leads up to.
    async fn fill(&mut self, turn: u64, iteration: u32) {
        let control = &self.state.control;
        let running = control.turn.as_ref().map(|turn| (turn.id, turn.iteration));
        if running == Some((turn, iteration)) {
            self.ask_for_answer();
        } else if turn > control.turns || running.is_some_and(|running| running < (turn, iteration))
        {
            self.catch_up().await;
            self.reconcile();
        }
    }

    fn is_mine(&self) -> bool {
        self.state.control.is_run_by(&self.life)
    }

    fn is_executing(&self, id: &CallId) -> bool {
        let turn = self.state.control.turn.as_ref();
        turn.and_then(|turn| turn.call(id))
            .is_some_and(Call::is_executing)
    }

    /// The first look at a session that was not in memory. Calls that run by the journal ran in a
    /// task of this very life that ended without their outcome.
    pub(crate) async fn recover(&mut self) {
        let turn = self.state.control.turn.as_ref();
        let is_lost = turn.is_some_and(|turn| turn.queue.iter().any(|call| call.is_executing()));
        if is_lost && self.is_mine() && self.running.has_no_calls() {
            self.take_over().await;
        }
    }

    /// Goes on where nobody else does, and brings what runs in line.
    pub(crate) async fn look(&mut self) {
        let control = &self.state.control;
        if control.is_active() && self.lost.is_none() {
            let is_over = match &control.runner {
                Some(runner) => self.membership.is_over(runner).await,
                None => true,
            };
            if is_over {
                self.take_over().await;
            }
        }
        self.review().await;
        if self.widen().await {
            self.feed.show(What::Usage(self.usage()));
        }
        self.reconcile();
    }

    /// Whether calls wait, for a person or for those beside them.
    pub(crate) fn has_open_calls(&self) -> bool {
        let turn = self.state.control.turn.as_ref();
        let mut calls = turn.iter().flat_map(|turn| turn.queue.iter());
        calls.any(|call| call.is_pending() || call.is_approved())
    }

    /// Decides what waits by the rules of now, if they are others than at the last look.
    async fn review(&mut self) {
        let rules = self.agent.tools.rules();
        let is_known = self
            .reviewed
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, &rules));
        if is_known || self.lost.is_some() || self.unsettled.is_some() {
            return;
        }
        if self.has_open_calls() && self.commit(&[&Command::ReviewCalls], None).await.is_err() {
            // The store is away, or the session is gone: it is looked at again then.
            return;
        }
        self.reviewed = Some(rules);
    }

    async fn take_over(&mut self) {
        let from = self.state.control.runner.clone();
        tracing::info!(session.id = %self.key.session, ?from, "Go on where another life ended");
        self.outcome(Command::TakeOver { from }, None).await;
    }

    /// Another gateway runs the session: nothing of it runs here, and its answer is followed.
    pub(crate) fn stand_back(&mut self) {
        self.running.stop_all();
        if self.agent.tools.idle_limit().is_some() {
            let tools = Arc::clone(&self.agent.tools);
            self.running
                .tracker()
                .spawn(async move { tools.close().await });
        }
        let control = &self.state.control;
        let asked = effects(control)
            .into_iter()
            .find_map(|effect| match effect {
                Effect::AskModel { turn, iteration } => Some((turn, iteration)),
                Effect::RunCall { .. } => None,
            });
        if let Some(request) = asked {
            if self.feed.follow_answer(request, first_attempt(control)) {
                self.ask_for_answer();
            }
        } else {
            self.feed.end_answer();
        }
    }

    /// Not for every piece of a gap: the answer is on its way.
    fn ask_for_answer(&mut self) {
        let now = Instant::now();
        if self.asked.is_some_and(|asked| now < asked + ASK_AGAIN) {
            return;
        }
        self.asked = Some(now);
        self.broadcaster
            .tell(&self.key, || SessionUpdate::TellAnswer);
    }

    /// Brings watchers that were here before this task up to date.
    pub(crate) fn show_all(&self) {
        if self.feed.is_watched() && self.state.control.version > 0 {
            self.feed.show(What::Moved(self.state.control.seq));
            self.feed.show(What::Queue(self.queue()));
            self.feed.show(What::Usage(self.usage()));
        }
    }
}
