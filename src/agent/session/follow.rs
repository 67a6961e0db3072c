//! Follows a session that other gateways work on too, and takes over when its runner is gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{LiveSession, StaleReason};
use crate::agent::cluster::message::{AppendedCommit, SessionUpdate};
use crate::agent::effects::first_attempt;
use crate::agent::effects::tool_call::workspace::OwnersDoor;
use crate::agent::feed::FeedItem;
use crate::agent::feed::running_answer::MergeResult;
use crate::agent::mailbox::{ServerDoor, ToolsNow, WorkspaceDoor};
use crate::domain::{Code, ModelRequestId, UserId};
use crate::session::{Command, Effect, Refusal, Turn, effects};
use crate::store::clock::now;

/// The time to wait for the whole of a running answer before asking again.
const ASK_AGAIN: Duration = Duration::from_millis(100);

impl LiveSession {
    /// Applies updates from other gateways, in the order in which they were sent.
    pub(super) async fn hear(&mut self, updates: Vec<SessionUpdate>) {
        for update in updates {
            self.hear_one(update).await;
        }
        self.advance().await;
    }

    async fn hear_one(&mut self, update: SessionUpdate) {
        match update {
            SessionUpdate::Commit(appended) => {
                let AppendedCommit { commit, link } = appended;
                self.replica.follow(&commit, link).await;
                self.reconcile();
            }
            SessionUpdate::Moved(version) => {
                if version > self.replica.state.control.version {
                    self.replica.catch_up().await;
                    self.reconcile();
                }
            }
            // This gateway has taken the session over, so drop what an earlier runner still sends.
            SessionUpdate::Delta(_)
            | SessionUpdate::Answer(_)
            | SessionUpdate::Progress(..)
            | SessionUpdate::Copying(_)
            | SessionUpdate::Notice(_)
                if self.replica.is_run_here() => {}
            SessionUpdate::Delta(delta) => {
                if self.replica.feed.merge(&delta) == MergeResult::Gap {
                    self.fill(delta.request()).await;
                }
            }
            SessionUpdate::Answer(answer) => self.replica.feed.adopt(&answer),
            SessionUpdate::Progress(call, news) => {
                if self.replica.is_executing(&call) {
                    self.replica.feed.show(FeedItem::Progress(call, news));
                }
            }
            SessionUpdate::Copying(bytes) => self.replica.feed.show(FeedItem::Copying(bytes)),
            SessionUpdate::ResourceChanged(resource) => {
                self.replica.feed.show(FeedItem::ResourceChanged(resource));
            }
            SessionUpdate::Notice(notice) => self.replica.feed.show(FeedItem::Notice(notice)),
            SessionUpdate::TellAnswer => {
                if self.running.has_model() {
                    self.replica.feed.send_answer();
                }
            }
            SessionUpdate::Deleted => self.replica.lost = Some(StaleReason::Deleted),
        }
    }

    /// Reacts to a piece of an answer whose beginning is missing here.
    async fn fill(&mut self, request: ModelRequestId) {
        let control = &self.replica.state.control;
        let running = control.turn.as_ref().map(Turn::request);
        if running == Some(request) {
            self.ask_for_answer();
        } else if request.turn.0 > control.turns || running.is_some_and(|running| running < request)
        {
            self.replica.catch_up().await;
            self.reconcile();
        }
    }

    /// Looks for the first time at a session that was not in memory. If this gateway is its runner, calls
    /// that the journal shows as running ran in an earlier task of this gateway that ended without their
    /// outcome.
    pub(super) async fn recover(&mut self) {
        let control = &self.replica.state.control;
        let is_lost = control.calls().any(|call| call.is_executing());
        if is_lost && self.replica.is_run_here() && self.running.has_no_calls() {
            self.take_over().await;
        }
    }

    /// Takes over if the session's runner is gone, and reconciles the running effects.
    pub(super) async fn advance(&mut self) {
        let control = &self.replica.state.control;
        if control.is_unfinished() && self.replica.lost.is_none() {
            let is_over = match &control.runner.gateway {
                Some(runner) => self.replica.cluster.membership.is_over(runner).await,
                None => true,
            };
            if is_over {
                self.take_over().await;
            }
        }
        self.review().await;
        if self.replica.widen().await {
            self.replica
                .feed
                .show(FeedItem::Usage(self.replica.usage()));
        }
        self.reconcile();
    }

    /// Makes this gateway the one that runs the session, so that its servers stay connected here. Returns false
    /// if another gateway is at work in it.
    async fn run_here(&mut self) -> Result<bool, Refusal> {
        let control = &self.replica.state.control;
        if self.replica.is_run_here() {
            return Ok(true);
        }
        let from = control.runner.gateway.clone();
        let is_at_work = control.is_unfinished()
            && (from.as_ref())
                .is_some_and(|runner| self.replica.cluster.membership.is_alive(runner));
        if is_at_work {
            return Ok(false);
        }
        self.replica.command(Command::TakeOver { from }).await?;
        Ok(true)
    }

    /// Gives the owner access to the session's servers. This gateway runs the session from then on, unless
    /// another one works in it; then the servers stay connected here for the request alone.
    pub(super) async fn open_servers(&mut self, by: &UserId) -> Result<ToolsNow, Refusal> {
        self.replica.admit(by)?;
        self.run_here().await?;
        let control = &self.replica.state.control;
        Ok(ToolsNow {
            tools: Arc::clone(&self.replica.agent.tools) as Arc<dyn ServerDoor>,
            rules: Arc::clone(&control.rules),
            cost: control.usage.totals.cost,
            feed: Arc::clone(&self.replica.feed),
            guest: self.running.guest(),
        })
    }

    /// Gives the owner access to the session's files. This gateway runs the session from then on, unless
    /// another one works in it.
    pub(super) async fn open_files(
        &mut self,
        by: &UserId,
    ) -> Result<Box<dyn WorkspaceDoor>, Refusal> {
        self.replica.admit(by)?;
        if !self.replica.is_run_here() {
            self.replica.catch_up().await;
        }
        let control = &self.replica.state.control;
        let away = |text: &str| Refusal::new(Code::SandboxUnavailable, text);
        if control.version == 0 {
            return Err(Refusal::new(
                Code::SessionNotFound,
                "there is no such session",
            ));
        }
        if control.awaits_workspace {
            return Err(away(
                "the files of this session are still being copied; try again in a moment",
            ));
        }
        let tools = Arc::clone(&self.replica.agent.tools);
        let keeps = control.engine.as_ref();
        if tools.engine().is_some() && keeps.is_some_and(|keeps| Some(keeps) != tools.engine()) {
            return Err(away(
                "the files of this session are kept by another engine than this gateway uses",
            ));
        }
        if !self.run_here().await? {
            return Err(away(
                "another gateway is at work in this session; try again when its turn has ended",
            ));
        }
        Ok(Box::new(OwnersDoor {
            tools,
            _guest: self.running.guest(),
        }))
    }

    /// Decides the waiting calls by the current rules, if these changed since the last look.
    async fn review(&mut self) {
        let rules = self.replica.agent.tools.rules(&self.replica.owner().id);
        let is_known = self
            .reviewed
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, &rules));
        if is_known || self.replica.lost.is_some() || self.replica.unsettled.is_some() {
            return;
        }
        if self.replica.has_open_calls()
            && self
                .replica
                .commit(&[&Command::ReviewCalls], None)
                .await
                .is_err()
        {
            // The store is away, or the session is gone: try again at the next look.
            return;
        }
        self.reviewed = Some(rules);
    }

    /// The time at which the next waiting call expires; `None` if another gateway runs the session.
    pub(super) fn expires_at(&self) -> Option<Instant> {
        let control = &self.replica.state.control;
        let at = control
            .expires_at()
            .filter(|_| self.replica.is_run_here())?;
        Instant::now().checked_add(Duration::from_millis(at.since_ms(now())))
    }

    /// The time of the next action that no message triggers.
    pub(super) fn due_at(&self) -> Option<Instant> {
        // A turn that waits for a person is not overdue, but it may be if only a view's call waits beside it.
        let due = self.expires_at().into_iter().chain(self.overdue_at());
        due.chain(self.replica.snapshot_at).min()
    }

    /// Rejects the calls that expired, and goes on.
    pub(super) async fn expire(&mut self) {
        self.outcome(Command::ReviewCalls, None).await;
        self.advance().await;
    }

    async fn take_over(&mut self) {
        let from = self.replica.state.control.runner.gateway.clone();
        tracing::info!(session.id = %self.replica.key.session, ?from, "Go on where another gateway ended");
        self.outcome(Command::TakeOver { from }, None).await;
    }

    /// Stops all effects, because the session ends here. If it is deleted, the tasks of its calls end too:
    /// nobody resumes them.
    pub(super) async fn end_running(&mut self, is_deleted: bool) {
        let mut calls = self.replica.state.control.calls();
        let has_tasks = calls.any(|call| call.is_executing() && call.task.is_some());
        if has_tasks && (is_deleted || self.replica.lost == Some(StaleReason::Deleted)) {
            self.running.end_calls().await;
        }
        self.running.stop_all();
    }

    /// Stops all effects because another gateway runs the session, and follows its answer.
    pub(super) fn stand_back(&mut self) {
        self.running.stop_all();
        // Who asks a server something from here ends with an answer; the next look closes the connection.
        if !self.running.has_guests() && self.replica.agent.tools.idle_limit().is_some() {
            let tools = Arc::clone(&self.replica.agent.tools);
            self.running
                .tracker()
                .spawn(async move { tools.close().await });
        }
        let control = &self.replica.state.control;
        let asked = effects(control)
            .into_iter()
            .find_map(|effect| match effect {
                Effect::AskModel(request) => Some(request),
                Effect::RunCall { .. }
                | Effect::MakeTitle
                | Effect::Review(_)
                | Effect::DryRun(_)
                | Effect::Sample(_)
                | Effect::CopyWorkspace => None,
            });
        if let Some(request) = asked {
            if self
                .replica
                .feed
                .follow_answer(request, first_attempt(control))
            {
                self.ask_for_answer();
            }
        } else {
            self.replica.feed.end_answer();
        }
    }

    /// Asks for the whole answer, but not again for every piece of a gap while the answer is under way.
    fn ask_for_answer(&mut self) {
        let now = Instant::now();
        if self
            .answer_asked
            .is_some_and(|asked| now < asked + ASK_AGAIN)
        {
            return;
        }
        self.answer_asked = Some(now);
        self.replica
            .cluster
            .broadcaster
            .publish(&self.replica.key, || SessionUpdate::TellAnswer);
    }
}
