//! Runs the task that owns a live session: takes one command after the other, decides, appends, shows, and
//! starts effects.

mod command;
mod commit;
pub(super) mod creation_limit;
mod follow;
mod replica;
mod telemetry;
mod view;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::commit::Failure;
use self::creation_limit::CreationLimit;
use super::effects::model_request::meter::seen;
use super::effects::{Running, WantedEffects};
use super::feed::FeedItem;
use super::feed::running_answer::RunningAnswer;
use super::mailbox::{Acknowledgement, Message, damaged, deleted, stopping, store_away};
use super::request::{SessionAction, Submission};
use crate::domain::{CallId, Code, Holder, SandboxId};
use crate::session::{AttemptUsage, Command, Outcome, Output, Refusal, Rules, Titling};
use crate::store::clock::now;
use crate::telemetry::instruments;

pub(super) use self::replica::{Replica, StaleReason};

/// The time for which a session without any command stays in memory: long enough for a first message that
/// comes at once.
const UNTOLD_FOR: Duration = Duration::from_millis(50);

/// The task of a live session: its mailbox, its running effects, and its replica.
pub(super) struct LiveSession {
    pub(super) replica: Replica,
    /// Limits how fast sessions are created.
    pub(super) creation_limit: Arc<CreationLimit>,
    /// The time at which the whole answer was requested from another gateway.
    pub(super) answer_asked: Option<Instant>,
    /// The rules by which the waiting calls were last reviewed.
    pub(super) reviewed: Option<Arc<Rules>>,
    pub(super) mailbox: mpsc::Receiver<Message>,
    /// The next message, which was already taken from the mailbox.
    pub(super) set_aside: Option<Message>,
    pub(super) running: Running,
    pub(super) idle_after: Duration,
    pub(super) stop: CancellationToken,
}

impl LiveSession {
    /// Looks at the session again. Returns true if that changed anything.
    async fn refresh(&mut self) -> bool {
        let version = self.replica.state.control.version;
        Box::pin(self.handle(Message::Refresh)).await;
        self.replica.state.control.version != version
    }

    /// Takes over from a gateway that is gone, and serves until nobody needs the session: no message came for
    /// a while, and `may_leave` confirms that no more can come.
    #[expect(
        clippy::cognitive_complexity,
        reason = "one loop over what a session may hear"
    )]
    pub(super) async fn run(
        mut self: Box<Self>,
        may_leave: impl Fn(&mpsc::Receiver<Message>, u64) -> bool,
    ) {
        let _live = instruments().session_opened();
        self.replica.show_all();
        // Futures that are needed only briefly are boxed to keep this task small, because thousands of its
        // kind wait in memory.
        Box::pin(self.recover()).await;
        if Box::pin(self.is_barred()).await {
            Box::pin(self.end_turns()).await;
        }
        Box::pin(self.advance()).await;
        let mut idle_since = Instant::now();
        while self.replica.lost.is_none() {
            self.publish_presence();
            let idle_at = idle_since + self.idle_after();
            let wake_at = self.replica.unsettled.or_else(|| self.due_at());
            let mut next = self.set_aside.take();
            if next.is_none() {
                next = tokio::select! {
                    biased;
                    () = self.stop.cancelled() => break,
                    () = tokio::time::sleep_until(wake_at.unwrap_or(idle_at)), if wake_at.is_some() => {
                        Box::pin(self.wake()).await;
                        continue;
                    }
                    message = self.mailbox.recv() => message,
                    () = tokio::time::sleep_until(idle_at), if self.running.is_empty() => {
                        if self.can_leave(&may_leave) {
                            break;
                        }
                        // A sender is about to send a message.
                        idle_since = Instant::now();
                        continue;
                    }
                };
            }
            match next {
                Some(Message::Delete { by, reply }) => match self.replica.admit(&by) {
                    Ok(()) => return Box::pin(self.vanish(Some(reply))).await,
                    Err(refusal) => drop(reply.send(Err(refusal))),
                },
                Some(Message::Evict) => {
                    if self.can_be_evicted() && self.can_leave(&may_leave) {
                        break;
                    }
                    continue;
                }
                Some(Message::Updates(updates)) => {
                    Box::pin(self.hear(updates)).await;
                    if !self.is_needed() {
                        continue;
                    }
                }
                Some(Message::Refresh) => {
                    // Unfinished sessions are looked at every few seconds. That alone must not keep one in
                    // memory, or a card that nobody answers would keep it for ever.
                    if !Box::pin(self.refresh()).await {
                        continue;
                    }
                }
                Some(message) => Box::pin(self.handle(message)).await,
                None => break,
            }
            idle_since = Instant::now();
        }
        Box::pin(self.end()).await;
    }

    /// The time at which the running turn reaches its limit of time without a person (S0.58); `None` if
    /// another gateway runs it.
    fn overdue_at(&self) -> Option<Instant> {
        let limit = self.replica.agent.parts.turn_limit?;
        let turn = self.replica.state.control.turn.as_ref();
        let turn = turn.filter(|_| self.replica.is_run_here())?;
        let alone = Duration::from_millis(now().since_ms(turn.alone_since()?));
        Instant::now().checked_add(limit.saturating_sub(alone))
    }

    /// Carries out the timed action that is due: settles a commit, rejects expired calls, writes the snapshot,
    /// or ends an overdue turn.
    async fn wake(&mut self) {
        if self.replica.unsettled.is_some() {
            return self.settle().await;
        }
        if self.expires_at().is_some_and(|at| at <= Instant::now()) {
            return self.expire().await;
        }
        if self
            .replica
            .snapshot_at
            .is_some_and(|at| at <= Instant::now())
        {
            return self.replica.keep_snapshot();
        }
        let turn = self.replica.state.control.turn.as_ref();
        let turn = turn.map(|turn| turn.id);
        let is_due = self.overdue_at().is_some_and(|at| at <= Instant::now());
        let (Some(turn), Some(limit), true) = (turn, self.replica.agent.parts.turn_limit, is_due)
        else {
            return;
        };
        tracing::warn!(session.id = %self.replica.key.session, %turn, limit_s = limit.as_secs_f64(), "A turn took too long and is stopped");
        let spent = self.stop_asking();
        let over = Command::TimeOut { turn, limit, spent };
        self.outcome(over, None).await;
        self.advance().await;
    }

    /// Stops the model request that runs here, if any, and returns its usage.
    fn stop_asking(&mut self) -> Vec<AttemptUsage> {
        let Some(meter) = self.running.stop_model() else {
            return Vec::new();
        };
        // Nothing of the answer may be shown after the event that ends the turn.
        let said = self.replica.feed.end_answer();
        let (said, thought) = said.map_or((None, None), RunningAnswer::into_parts);
        let seen = seen(said.as_deref(), thought.as_ref());
        self.replica.spent(Some(&meter), &seen)
    }

    /// Finds out whether an unsettled commit was stored, and continues from there.
    async fn settle(&mut self) {
        self.replica.expect_settled();
        self.replica.catch_up().await;
        self.advance().await;
    }

    /// Ends the task. Watchers are told if the shown state is no longer valid.
    async fn end(self: Box<Self>) {
        let Some(lost) = self.replica.lost else {
            return self.leave().await;
        };
        let feed = Arc::clone(&self.replica.feed);
        self.vanish(None).await;
        match lost {
            StaleReason::Deleted => {}
            StaleReason::Rewound => feed.show(FeedItem::Rewound),
            StaleReason::Damaged => feed.show(FeedItem::Damaged),
        }
    }

    fn publish_presence(&self) {
        let is_owner = self.replica.is_run_here();
        self.replica
            .cluster
            .presence
            .note(&self.replica.key, &self.replica.agent.tools, is_owner);
    }

    /// Returns true if somebody here watches the session, or it runs here.
    fn is_needed(&self) -> bool {
        self.replica.feed.is_watched() || self.replica.is_run_here()
    }

    /// Ends the task without writing anything, because the journal is gone or about to go.
    async fn vanish(
        mut self: Box<Self>,
        reply: Option<oneshot::Sender<Result<Option<SandboxId>, Refusal>>>,
    ) {
        self.mailbox.close();
        self.end_running(reply.is_some()).await;
        // A row of this gateway may have been written after another one removed the session from the list.
        // Remove it before the tools are closed, which may take a while.
        if self.replica.lost == Some(StaleReason::Deleted) {
            // The session may have been created again. If that cannot be found out, remove the row: the next
            // commit of such a session brings it back.
            let version = self.replica.journal.version().await;
            if version.is_ok_and(|version| version > 0) {
                tracing::info!(session.id = %self.replica.key.session, "A deleted session was begun again");
            } else {
                self.replica
                    .projection
                    .forget(&self.replica.key, &self.replica.owner().id);
            }
        }
        self.replica.agent.tools.close().await;
        self.replica
            .cluster
            .presence
            .leave(&self.replica.key, &self.replica.agent.tools);
        let refusal = match self.replica.lost {
            Some(StaleReason::Rewound) => store_away(),
            Some(StaleReason::Damaged) => damaged(),
            Some(StaleReason::Deleted) | None => deleted(),
        };
        if let Some(message) = self.set_aside.take() {
            message.refuse(&refusal);
        }
        while let Ok(message) = self.mailbox.try_recv() {
            message.refuse(&refusal);
        }
        if let Some(reply) = reply {
            let _ = reply.send(Ok(self.replica.state.control.sandbox.take()));
        }
    }

    /// Ends the task in order. Only at a shutdown does it find messages: a task that leaves for idleness has
    /// made sure that none can come.
    async fn leave(mut self: Box<Self>) {
        self.mailbox.close();
        while let Ok(message) = self.mailbox.try_recv() {
            message.refuse(&stopping());
        }
        self.running.stop_all();
        self.replica.agent.tools.close().await;
        self.replica
            .cluster
            .presence
            .leave(&self.replica.key, &self.replica.agent.tools);
        if self.replica.state.control.version > 0 {
            self.replica.forget_unread();
            let limits = self.replica.cut_to;
            self.replica
                .journal
                .keep_snapshot(std::mem::take(&mut self.replica.state), limits)
                .await;
        }
    }

    async fn handle(&mut self, message: Message) {
        let is_checked = match &message {
            // Outcomes are checked when all that came together are known, and the others decide nothing.
            Message::Outcome { .. } | Message::Join { .. } | Message::Tools { .. } => false,
            Message::Submit { submission, .. } => !self.leaves_others_pending(&submission.action),
            Message::Files { .. }
            | Message::Queue { .. }
            | Message::Refresh
            | Message::EndTurn
            | Message::Delete { .. }
            | Message::Updates(_)
            | Message::Evict => true,
        };
        let is_barred = is_checked && self.is_barred().await;
        if is_barred {
            Box::pin(self.end_turns()).await;
        }
        match message {
            Message::Submit { submission, reply } => {
                let answer = match Box::pin(self.replica.admit_request(&submission)).await {
                    Ok(()) => Box::pin(self.tell(*submission)).await,
                    Err(refusal) => Err(refusal),
                };
                // The door may be gone; the decision stands.
                let _ = reply.send(answer);
            }
            Message::Join { by, reply } => {
                let _ = reply.send(self.replica.admit(&by).map(|()| self.replica.joined()));
            }
            Message::Files { by, reply } => {
                drop(reply.send(Box::pin(self.open_files(&by)).await));
            }
            Message::Queue {
                version,
                by,
                role,
                reply,
            } => {
                if self.replica.state.control.version < version {
                    Box::pin(self.replica.catch_up()).await;
                }
                let _ = reply.send(Ok(self.replica.queue_for((&by, role))));
            }
            Message::Tools { by, reply } => {
                let _ = reply.send(Box::pin(self.open_servers(&by)).await);
            }
            Message::Outcome { command, epoch } => self.outcomes(*command, epoch).await,
            Message::Refresh => {
                Box::pin(self.replica.catch_up()).await;
                if self.replica.has_open_calls() {
                    self.replica.agent.tools.refresh().await;
                }
            }
            Message::EndTurn => {
                Box::pin(self.replica.catch_up()).await;
                self.end_turns().await;
            }
            // Handled in the loop, where the task can end.
            Message::Delete { reply, .. } => drop(reply.send(Err(stopping()))),
            Message::Updates(_) | Message::Evict => {}
        }
        if is_barred {
            // A waiting message may have begun another turn.
            Box::pin(self.end_turns()).await;
        }
        self.advance().await;
    }

    /// Returns true if the action decides one call of an answer while others wait for a person too: then it
    /// starts nothing, because calls start with the last decision.
    fn leaves_others_pending(&self, action: &SessionAction) -> bool {
        let SessionAction::Decide { decision, .. } = action else {
            return false;
        };
        let turn = self.replica.state.control.turn.iter();
        let (mut is_own, mut is_other) = (false, false);
        for call in turn
            .flat_map(|turn| &turn.queue)
            .filter(|call| call.is_pending())
        {
            *if call.id == decision.call {
                &mut is_own
            } else {
                &mut is_other
            } = true;
        }
        is_own && is_other
    }

    /// Returns true if work goes on for a person who may no longer act: then no rule decides, and nothing
    /// starts. Read from the database, because any gateway may have changed it.
    async fn is_barred(&self) -> bool {
        if !self.replica.state.control.is_unfinished() {
            return false;
        }
        let users = self.replica.factory.parts.place.records.users();
        let owner = &self.replica.owner().id;
        let barred = users.is_barred(&self.replica.key.tenant, owner).await;
        // A store that is away takes no commit either, so nothing starts.
        barred.unwrap_or(false)
    }

    /// Ends the turn, the messages that wait behind it, and the open calls of views.
    async fn end_turns(&mut self) {
        let control = &self.replica.state.control;
        let calls: Vec<CallId> = control.views.open().map(|call| call.id.clone()).collect();
        let stops = calls.into_iter().map(|call| Command::StopCall { call });
        let stop = Command::Stop {
            turn: None,
            said_so_far: None,
            thought_so_far: None,
            spent: Vec::new(),
        };
        // Stop twice: messages that wait for the turn begin another one, which reads all of them.
        for command in stops.chain([stop.clone(), stop]) {
            let stop = SessionAction::Command(command);
            let stopped = match command::of_action(stop, &self.replica, &mut self.running) {
                Ok(command) => self.replica.command(command).await.map(drop),
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = stopped {
                tracing::debug!(session.id = %self.replica.key.session, %refusal, "A turn is not ended yet");
            }
        }
    }

    /// Carries out a request. A refusal, or an answer that nothing had to be done, is only final if no other
    /// gateway wrote meanwhile: people at this gateway may have been shown more than this task has read.
    async fn tell(&mut self, submission: Submission) -> Result<Acknowledgement, Refusal> {
        let before = self.replica.state.control.version;
        let first = self.try_to_tell(submission.clone()).await;
        let version = self.replica.state.control.version;
        let is_final = match &first {
            Ok(_) => version > before,
            // Do not wait twice for a store that is away.
            Err(refusal) => refusal.code == Code::StoreUnavailable,
        };
        if is_final || self.replica.cluster.membership.is_alone() {
            return first;
        }
        self.replica.catch_up().await;
        if self.replica.lost.is_some() || self.replica.state.control.version == version {
            return first;
        }
        self.try_to_tell(submission).await
    }

    async fn try_to_tell(
        &mut self,
        mut submission: Submission,
    ) -> Result<Acknowledgement, Refusal> {
        if submission.begins_turn() {
            Box::pin(self.replica.admit_turn()).await?;
        }
        if let SessionAction::UpdateAssistant { by } = &submission.action {
            let update = Box::pin(self.replica.update_assistant(by)).await?;
            submission.action = SessionAction::Command(update);
        }
        if submission.action.approves() {
            // Load the current rules: the tool may have been denied while its call waited.
            self.replica.agent.tools.refresh().await;
        }
        let command = command::of_submission(submission, &self.replica, &mut self.running)?;
        self.may_be_created()?;
        self.replica.command(command).await
    }

    /// Counts a session against the limit of creations with its first command, which stores it for good.
    fn may_be_created(&self) -> Result<(), Refusal> {
        if self.replica.state.control.version > 0 {
            return Ok(());
        }
        self.creation_limit.count(&Holder {
            tenant: self.replica.key.tenant.clone(),
            user: self.replica.owner().id.clone(),
        })
    }

    /// Returns true if nobody uses the session's files, and no message can come.
    fn can_leave(&self, may_leave: &impl Fn(&mpsc::Receiver<Message>, u64) -> bool) -> bool {
        !self.running.has_guests() && may_leave(&self.mailbox, self.replica.state.control.version)
    }

    /// Returns true if no effect runs, and no server connections are kept that take time to start again.
    fn can_be_evicted(&self) -> bool {
        let has_servers = self.replica.agent.tools.idle_limit().is_some();
        self.running.is_empty() && self.replica.unsettled.is_none() && !has_servers
    }

    /// Returns the time after which an idle session is unloaded: longest with a live sandbox, and very short
    /// before the first command, when clients that joined only need its feed.
    fn idle_after(&self) -> Duration {
        let state = match self.replica.state.control.version {
            0 => self.idle_after.min(UNTOLD_FOR),
            _ => self.idle_after,
        };
        self.replica.agent.tools.idle_limit().unwrap_or(state)
    }

    /// Starts and stops effects, so that those run that have to run here.
    fn reconcile(&mut self) {
        if self.replica.unsettled.is_some() {
            return;
        }
        let (control, genesis) = (&self.replica.state.control, &self.replica.genesis);
        if !self.replica.is_run_here() {
            return self.stand_back();
        }
        self.running.reconcile(&WantedEffects {
            gaps: &self.replica.state.gaps,
            control,
            entries: &self.replica.state.entries,
            choice: control.asked().unwrap_or(&genesis.model),
            journal: &self.replica.journal,
            is_shared: self.replica.cluster.is_shared(),
            feed: &self.replica.feed,
            agent: &self.replica.agent,
        });
    }
}

/// The most outcomes in one commit.
const MOST_OUTCOMES: usize = 16;
/// The backoff between attempts to append an outcome while the store is away.
const STORE_RETRY: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

impl LiveSession {
    /// Stores an outcome together with those right behind it: calls that ran concurrently tend to end
    /// together, and one commit is cheaper than several.
    async fn outcomes(&mut self, first: Command, epoch: u64) {
        let mut all = vec![first];
        while self.take_outcomes(&mut all, epoch) && all.len() < self.running.calls() {
            // Yield once, so that outcomes that are ready reach the mailbox. Do not wait for others.
            let before = all.len();
            tokio::task::yield_now().await;
            if !self.take_outcomes(&mut all, epoch) || all.len() == before {
                break;
            }
        }
        let is_barred = self.may_begin_work(&all) && self.is_barred().await;
        if is_barred {
            Box::pin(self.end_turns()).await;
        }
        self.store(all, epoch).await;
        if is_barred {
            // A waiting message may have begun another turn.
            Box::pin(self.end_turns()).await;
        }
    }

    /// Returns true if something may start because of these outcomes. Those of a plain answer, and of calls
    /// beside others that still run, begin nothing.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "of most outcomes it is not known"
    )]
    fn may_begin_work(&self, outcomes: &[Command]) -> bool {
        let control = &self.replica.state.control;
        let rules = self.replica.agent.tools.rules(&self.replica.owner().id);
        let may_ask_for_title = rules.has_titles_made && control.title.titling == Titling::Unasked;
        let may_follow = !control.waiting.is_empty() || may_ask_for_title;
        let queue = || control.turn.iter().flat_map(|turn| &turn.queue);
        let running = queue().filter(|call| call.is_executing()).count();
        let all_run = queue().all(|call| call.is_executing() || call.is_ended());
        outcomes.iter().any(|outcome| match outcome {
            Command::Answered { answer, .. } => may_follow || !answer.calls.is_empty(),
            Command::CallEnded { .. } => !all_run || running <= outcomes.len(),
            _ => true,
        })
    }

    /// Stores outcomes of one epoch.
    async fn store(&mut self, all: Vec<Command>, epoch: u64) {
        let approves = |command: &Command| matches!(command, Command::Reviewed { .. });
        if all.iter().any(approves) {
            // Load the current rules, as for a person's approval.
            self.replica.agent.tools.refresh().await;
        }
        if all.len() > 1 {
            let together: Vec<&Command> = all.iter().collect();
            if self.replica.commit(&together, Some(epoch)).await.is_ok() {
                return;
            }
            // Store them one by one, so that one that is too large or too late does not hold up the others.
        }
        for command in all {
            self.outcome(command, Some(epoch)).await;
        }
    }

    /// Takes outcomes from the mailbox. Returns true if more of them may come.
    fn take_outcomes(&mut self, all: &mut Vec<Command>, epoch: u64) -> bool {
        while all.len() < MOST_OUTCOMES && self.set_aside.is_none() {
            match self.mailbox.try_recv() {
                Ok(Message::Outcome {
                    command,
                    epoch: its,
                }) if its == epoch => all.push(*command),
                Ok(other) => self.set_aside = Some(other),
                Err(_) => return true,
            }
        }
        false
    }

    /// Stores an outcome, retrying until the store is back; meanwhile commands are refused. An outcome that
    /// can never be stored is replaced by a failure; a damaged journal ends the task.
    async fn outcome(&mut self, mut command: Command, epoch: Option<u64>) {
        let mut pauses = STORE_RETRY
            .iter()
            .copied()
            .chain(std::iter::repeat(Duration::from_secs(5)));
        while let Some(error) = self.try_outcome(&mut command, epoch).await {
            tracing::warn!(session.id = %self.replica.key.session, ?error, "The store is away; an outcome waits");
            let until = Instant::now() + pauses.next().unwrap_or_default();
            if !Box::pin(self.refuse_until(until)).await {
                return;
            }
        }
    }

    /// Tries once. Returns the error if the store is away; `None` if the outcome needs no further attempt.
    async fn try_outcome(
        &mut self,
        command: &mut Command,
        epoch: Option<u64>,
    ) -> Option<crate::store::Error> {
        let failure = match self.replica.commit(&[command], epoch).await {
            Err(Failure::Unfit(refusal)) => {
                tracing::error!(session.id = %self.replica.key.session, %refusal, "An outcome cannot be stored");
                *command = unstorable(command, &refusal)?;
                self.replica.commit(&[command], epoch).await.err()?
            }
            answer => answer.err()?,
        };
        match failure {
            Failure::Refused(refusal) | Failure::Unfit(refusal) => {
                tracing::debug!(session.id = %self.replica.key.session, %refusal, "An outcome came too late");
                None
            }
            Failure::Damaged => None,
            Failure::Away(error) => Some(error),
        }
    }

    /// Refuses commands until then. Returns true if the task goes on.
    async fn refuse_until(&mut self, until: Instant) -> bool {
        let mut later = Vec::new();
        let goes_on = loop {
            // A message may have come between the outcomes that were taken together.
            let mut next = self.set_aside.take();
            if next.is_none() {
                next = tokio::select! {
                    () = self.stop.cancelled() => break false,
                    () = tokio::time::sleep_until(until) => break true,
                    message = self.mailbox.recv() => message,
                };
            }
            match next {
                Some(Message::Outcome { command, epoch }) => later.push((command, epoch)),
                Some(message) => message.refuse(&store_away()),
                None => break false,
            }
        };
        for (command, epoch) in later {
            // These outcomes need the same store. Handle them one after the other, to keep their order.
            Box::pin(self.outcome(*command, Some(epoch))).await;
        }
        goes_on
    }
}

/// Returns the outcome to store instead of one that cannot be stored.
fn unstorable(outcome: &Command, refusal: &Refusal) -> Option<Command> {
    let text = format!("the result cannot be stored: {}", refusal.message);
    let code = refusal.code;
    if let Command::Answered { request, answer } = outcome {
        let request = *request;
        // The request was paid for in any case.
        let own = AttemptUsage {
            usage: answer.usage,
            cost: answer.cost,
            request: answer.request.clone(),
        };
        let spent = answer.spent.iter().cloned().chain([own]).collect();
        let failure = crate::session::Failure {
            code,
            text,
            is_retryable: true,
            spent,
        };
        return Some(Command::ModelFailed { request, failure });
    }
    if let Command::CallEnded {
        call, duration_ms, ..
    } = outcome
    {
        let output = Output {
            text,
            ..Output::default()
        };
        return Some(Command::CallEnded {
            call: call.clone(),
            outcome: Outcome::Failed { code, output },
            duration_ms: *duration_ms,
        });
    }
    None
}
