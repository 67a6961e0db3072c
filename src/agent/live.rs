//! The task that owns a live session: one command after the other, decide, append, show, act.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::effects::Running;
use super::factory::AgentParts;
use super::feed::{Feed, Joined, QueueState, SessionView, ShownEvent, TurnView, UsageState, What};
use super::journal::{Journal, JournalError, Settled};
use super::projection::Projection;
use crate::domain::{Code, CommitId, SessionKey, Timestamp, UserId};
use crate::session::{
    Activity, Command, Commit, Decision, Event, Genesis, Inputs, Phase, Refusal, SCHEMA,
    SessionState, decide,
};

/// Commits after which the state is kept as a snapshot.
const SNAPSHOT_EVERY: u64 = 64;
/// Pauses between two attempts to append an outcome while the store is away.
const STORE_RETRY: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// What a door asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// A command as it is.
    Command(Command),
    /// A decision whose changed arguments still have to be looked up and validated.
    Decide {
        /// The decision; its `edit` is filled in here.
        decision: Decision,
        /// The changed arguments.
        args: Option<Value>,
    },
}

/// A command was decided, and what it changed is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// `seq` of the first event that it caused; of the earlier one for a repeat; else of the head.
    pub seq: u64,
}

/// What the session's task is told.
pub(super) enum Message {
    Tell { ask: Ask, by: UserId, reply: oneshot::Sender<Result<Accepted, Refusal>> },
    Join { by: UserId, reply: oneshot::Sender<Result<Joined, Refusal>> },
    /// An effect ended.
    Outcome(Command),
}

/// What a session's task is made of.
pub(super) struct LiveSession {
    pub(super) key: SessionKey,
    pub(super) journal: Journal,
    pub(super) feed: Arc<Feed>,
    pub(super) parts: AgentParts,
    pub(super) genesis: Genesis,
    pub(super) projection: Projection,
    /// Names this process's life (DESIGN section 3).
    pub(super) life: Arc<str>,
    pub(super) mailbox: mpsc::Receiver<Message>,
    pub(super) running: Running,
    /// The folded journal.
    pub(super) state: SessionState,
    pub(super) idle_after: Duration,
    pub(super) stop: CancellationToken,
}

impl LiveSession {
    /// Takes over what an earlier life left, and serves until nobody needs it.
    pub(super) async fn run(mut self) {
        // The session list may lag behind a life that ended between a commit and its row.
        self.projection.tell(&self.key, &self.state.control);
        if self.state.control.is_active() {
            let owner = self.life.to_string();
            self.outcome(Command::TakeOver { owner }).await;
        }
        self.reconcile();
        let mut idle_since = Instant::now();
        loop {
            let idle_at = idle_since + self.idle_after();
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                message = self.mailbox.recv() => match message {
                    Some(message) => self.handle(message).await,
                    None => break,
                },
                () = tokio::time::sleep_until(idle_at), if self.running.is_empty() => break,
            }
            idle_since = Instant::now();
        }
        self.leave().await;
    }

    /// A live sandbox is kept longer than a mere state.
    fn idle_after(&self) -> Duration {
        self.parts.tools.idle_limit().unwrap_or(self.idle_after)
    }

    /// Answers what was sent in the last moment, then gives everything back.
    async fn leave(mut self) {
        self.mailbox.close();
        while let Ok(message) = self.mailbox.try_recv() {
            match message {
                message @ (Message::Tell { .. } | Message::Join { .. })
                    if !self.stop.is_cancelled() =>
                {
                    self.handle(message).await;
                }
                message => message.refuse(&stopping()),
            }
        }
        self.running.stop_all();
        self.parts.tools.close().await;
        if self.state.control.version > 0 {
            self.journal.keep_snapshot(std::mem::take(&mut self.state)).await;
        }
    }

    async fn handle(&mut self, message: Message) {
        match message {
            Message::Tell { ask, by, reply } => {
                let answer = match self.admit(&by) {
                    Ok(()) => {
                        let command = self.prepare(ask);
                        self.command(command).await
                    }
                    Err(refusal) => Err(refusal),
                };
                // The door may be gone; what was decided stays decided.
                let _ = reply.send(answer);
            }
            Message::Join { by, reply } => {
                let _ = reply.send(self.admit(&by).map(|()| self.joined()));
            }
            Message::Outcome(command) => self.outcome(command).await,
        }
        self.reconcile();
    }

    /// A session is its owner's; to anybody else it does not exist.
    fn admit(&self, by: &UserId) -> Result<(), Refusal> {
        let owner = self.state.control.owner.as_ref().unwrap_or(&self.genesis.owner);
        if owner.id == *by {
            return Ok(());
        }
        Err(Refusal::new(Code::SessionNotFound, "there is no such session"))
    }

    /// Fills in what only the session knows.
    fn prepare(&mut self, ask: Ask) -> Command {
        match ask {
            Ask::Decide { mut decision, args } => {
                let turn = self.state.control.turn.as_ref();
                let call = turn.and_then(|turn| turn.call(&decision.call));
                decision.edit = args
                    .zip(call)
                    .filter(|(args, call)| call.args != *args)
                    .map(|(args, call)| self.parts.tools.edit(call, args));
                Command::Decide(decision)
            }
            Ask::Command(Command::Stop { turn, .. }) => {
                let running = self.state.control.turn.as_ref();
                let is_this =
                    running.is_some_and(|running| turn.is_none_or(|turn| turn == running.id));
                if is_this {
                    // Nothing of the answer may be shown after the event that ends the turn.
                    self.running.stop_model();
                }
                let said = is_this.then(|| self.feed.end_answer()).flatten();
                Command::Stop { turn, said_so_far: said.map(|answer| answer.text) }
            }
            Ask::Command(command) => command,
        }
    }

    /// A new command: refused while the store is away.
    async fn command(&mut self, command: Command) -> Result<Accepted, Refusal> {
        self.commit(&command).await.map_err(|failure| match failure {
            Failure::Refused(refusal) => refusal,
            Failure::Away(error) => {
                tracing::warn!(session.id = %self.key.session, error = ?error, "The store is away");
                store_away()
            }
        })
    }

    /// An outcome: it happened, so it is kept until the store is back; meanwhile commands are
    /// refused.
    async fn outcome(&mut self, command: Command) {
        let mut pauses = STORE_RETRY.iter().copied().chain(std::iter::repeat(Duration::from_secs(5)));
        loop {
            let error = match self.commit(&command).await {
                Ok(_) => return,
                Err(Failure::Refused(refusal)) => {
                    tracing::debug!(session.id = %self.key.session, %refusal, "An outcome came too late");
                    return;
                }
                Err(Failure::Away(error)) => error,
            };
            tracing::warn!(session.id = %self.key.session, ?error, "The store is away; an outcome waits");
            let until = Instant::now() + pauses.next().unwrap_or_default();
            if !self.refuse_until(until).await {
                return;
            }
        }
    }

    /// Refuses commands until then; whether to go on.
    async fn refuse_until(&mut self, until: Instant) -> bool {
        let mut later = Vec::new();
        let goes_on = loop {
            tokio::select! {
                () = self.stop.cancelled() => break false,
                () = tokio::time::sleep_until(until) => break true,
                message = self.mailbox.recv() => match message {
                    Some(Message::Outcome(command)) => later.push(command),
                    Some(message) => message.refuse(&store_away()),
                    None => break false,
                },
            }
        };
        for command in later {
            // They wait for the same store: one loop for all would lose their order.
            Box::pin(self.outcome(command)).await;
        }
        goes_on
    }

    /// Decide, append, fold, show. Again from the start when somebody else wrote meanwhile.
    async fn commit(&mut self, command: &Command) -> Result<Accepted, Failure> {
        loop {
            let now = now();
            let inputs = Inputs { rules: &self.parts.rules, now, genesis: &self.genesis };
            let control = &self.state.control;
            let events = decide(control, command, inputs).map_err(Failure::Refused)?;
            if events.is_empty() {
                return Ok(Accepted { seq: self.seq_of_repeat(command) });
            }
            let commit = Commit {
                version: control.version + 1,
                commit_id: CommitId::from_bits(rand::random()),
                schema: SCHEMA,
                at: now.max(control.at),
                seq: control.seq,
                events,
            };
            let is_active = activity_after(&commit, control.is_active());
            match self.journal.append(&commit, is_active).await {
                Settled::Stored => {
                    self.state.apply(&commit);
                    self.show(&commit);
                    return Ok(Accepted { seq: commit.last_seq().min(commit.seq + 1) });
                }
                Settled::Conflict => self.read_on().await?,
                Settled::Away(error) => return Err(Failure::Away(error)),
            }
        }
    }

    fn seq_of_repeat(&self, command: &Command) -> u64 {
        let control = &self.state.control;
        let id = match command {
            Command::Say { client_message_id, .. } => client_message_id.as_deref(),
            _ => None,
        };
        id.and_then(|id| control.seq_of_message(id)).unwrap_or(control.seq)
    }

    async fn read_on(&mut self) -> Result<(), Failure> {
        let mut commits = Vec::new();
        let read = self.journal.catch_up(&mut self.state, |commit| commits.push(commit.clone()));
        let read = read.await;
        for commit in &commits {
            self.show(commit);
        }
        match read {
            Ok(_) => Ok(()),
            Err(JournalError::Store(error)) => Err(Failure::Away(error)),
            Err(JournalError::Commit(error)) => {
                tracing::error!(session.id = %self.key.session, %error, "The journal cannot be read");
                Err(Failure::Refused(Refusal::new(Code::Internal, "internal error")))
            }
        }
    }

    /// Shows what a commit changed, in the order in which it happened.
    fn show(&mut self, commit: &Commit) {
        for (seq, event) in commit.shown() {
            if matches!(
                event,
                Event::Said { .. }
                    | Event::Answered { .. }
                    | Event::TurnFailed { .. }
                    | Event::Cancelled { .. }
            ) {
                self.feed.end_answer();
            }
            let event = ShownEvent { seq, at: commit.at, event: event.clone() };
            self.feed.show(What::Event(event));
        }
        if commit.events.iter().any(changes_queue) {
            self.feed.show(What::Queue(self.queue()));
        }
        if commit.events.iter().any(changes_usage) {
            self.feed.show(What::Usage(self.usage()));
        }
        self.projection.tell(&self.key, &self.state.control);
        if commit.version.is_multiple_of(SNAPSHOT_EVERY) {
            let (journal, state) = (self.journal.clone(), self.state.clone());
            self.running.tracker().spawn(async move { journal.keep_snapshot(state).await });
        }
    }

    fn queue(&self) -> QueueState {
        let control = &self.state.control;
        let (calls, said) = match &control.turn {
            Some(turn) => (turn.queue.clone(), turn.said.clone()),
            None => (Vec::new(), String::new()),
        };
        QueueState { calls, said, seq: control.seq }
    }

    fn usage(&self) -> UsageState {
        let control = &self.state.control;
        UsageState {
            totals: control.totals,
            context_tokens: control.last_usage.total(),
            window: self.parts.limits.window,
            seq: control.seq,
        }
    }

    fn joined(&self) -> Joined {
        let (signals, answer) = self.feed.watch();
        let control = &self.state.control;
        let view = SessionView {
            journal: control.journal.clone().unwrap_or_else(|| self.genesis.journal.clone()),
            seq: control.seq,
            title: control.title.clone(),
            model: control.model.clone().unwrap_or_else(|| self.genesis.model.clone()),
            is_stored: control.version > 0,
            queue: self.queue(),
            usage: self.usage(),
            turn: control.turn.as_ref().map(|turn| TurnView {
                id: turn.id,
                iteration: turn.iteration,
                phase: match (turn.phase, control.activity()) {
                    (Phase::Asking, _) => "model",
                    (Phase::Calling, Activity::Waiting(_)) => "waiting",
                    (Phase::Calling, _) => "calls",
                },
                since: turn.phase_since,
            }),
            answer,
            waiting: control.waiting.clone(),
        };
        Joined { signals, view }
    }

    fn reconcile(&mut self) {
        let running = std::mem::take(&mut self.running);
        self.running = running.reconcile(self);
    }
}

enum Failure {
    Refused(Refusal),
    Away(crate::store::Error),
}

/// Whether the session is unfinished after a commit: turns begin and end by these events only.
fn activity_after(commit: &Commit, was_active: bool) -> bool {
    commit.events.iter().fold(was_active, |is_active, event| match event {
        Event::Thinking { .. } => true,
        Event::Answered { .. } | Event::TurnFailed { .. } | Event::Cancelled { .. } => false,
        _ => is_active,
    })
}

fn changes_queue(event: &Event) -> bool {
    matches!(
        event,
        Event::Queued { .. }
            | Event::ApprovalAsked { .. }
            | Event::Decided { .. }
            | Event::Started { .. }
            | Event::Ended { .. }
            | Event::Thinking { .. }
            | Event::Cancelled { .. }
    )
}

fn changes_usage(event: &Event) -> bool {
    matches!(event, Event::Said { .. } | Event::Answered { .. })
}

impl Message {
    pub(super) fn refuse(self, refusal: &Refusal) {
        match self {
            Self::Tell { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Join { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Outcome(_) => {}
        }
    }
}

pub(super) fn store_away() -> Refusal {
    Refusal::new(Code::StoreUnavailable, "not saved: the database does not answer; try again")
}

pub(super) fn stopping() -> Refusal {
    Refusal::new(Code::ServerStopping, "the server is stopping; connect again in a moment")
}

/// The one clock of the session layer's inputs.
pub(super) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ms = since.map_or(0, |since| since.as_millis());
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}
