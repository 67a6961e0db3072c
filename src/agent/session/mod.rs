//! The task that owns a live session: one command after the other, decide, append, show, act.

mod commit;
mod context;
mod counting;
pub(super) mod creation_limit;
mod follow;
mod outcome;
mod rest;
mod traces;
mod view;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::creation_limit::CreationLimit;
use super::cluster::broadcaster::Broadcaster;
use super::cluster::membership::Membership;
use super::cluster::presence::Presence;
use super::effects::session_agent::{AgentFactory, SessionAgent};
use super::effects::{Running, Wanted};
use super::feed::running_answer::RunningAnswer;
use super::feed::{Feed, What};
use super::journal::Journal;
use super::journal::projection::Projection;
use super::mailbox::{Accepted, Message, SessionRequest, damaged, deleted, stopping, store_away};
use crate::domain::{Code, SandboxId, SessionKey, UserId};
use crate::history;
use crate::session::{Command, Edit, Genesis, ModelChoice, Refusal, Rules, SessionState};
use crate::telemetry::instruments;

/// The journal is not what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The session was deleted.
    Deleted,
    /// The store came back with less than it had acknowledged.
    Rewound,
    /// The journal cannot be read or continued.
    Damaged,
}

/// What a session's task is made of.
pub(super) struct LiveSession {
    pub(super) key: SessionKey,
    pub(super) journal: Journal,
    pub(super) feed: Arc<Feed>,
    pub(super) agent: SessionAgent,
    pub(super) genesis: Genesis,
    pub(super) projection: Projection,
    /// Builds the agent again, should another gateway create the session.
    pub(super) factory: AgentFactory,
    /// Names this process's life (DESIGN section 3).
    pub(super) life: Arc<str>,
    /// Who else lives.
    pub(super) membership: Arc<Membership>,
    /// Tells the other gateways.
    pub(super) broadcaster: Broadcaster,
    /// How fast sessions may be created.
    pub(super) creation_limit: Arc<CreationLimit>,
    /// Tells people and other tools what is in use.
    pub(super) presence: Arc<Presence>,
    /// When the whole of an answer that is said elsewhere was asked for.
    pub(super) asked: Option<Instant>,
    /// When to look again what became of a commit that may or may not have arrived. Until that is
    /// known nothing new is started: it may have stopped what would be.
    pub(super) unsettled: Option<Instant>,
    /// The rules that what waits was last decided by.
    pub(super) reviewed: Option<Arc<Rules>>,
    /// Why the task has to end: what it knows is not what is stored.
    pub(super) lost: Option<Lost>,
    pub(super) mailbox: mpsc::Receiver<Message>,
    /// Taken from the mailbox, and next.
    pub(super) set_aside: Option<Message>,
    pub(super) running: Running,
    /// The folded journal.
    pub(super) state: SessionState,
    /// What its entries were cut to, if they were since it was folded.
    pub(super) cut_to: history::Limits,
    pub(super) idle_after: Duration,
    pub(super) stop: CancellationToken,
}

impl LiveSession {
    /// Looks at what there is to do once more; whether that changed anything.
    async fn look_again(&mut self) -> bool {
        let version = self.state.control.version;
        Box::pin(self.handle(Message::Look)).await;
        self.state.control.version != version
    }

    /// Takes over what a life that is over left, and serves until nobody needs it: nothing came for a
    /// while, and `may_leave` says of its mailbox that nothing can come any more.
    pub(super) async fn run(
        mut self: Box<Self>,
        may_leave: impl Fn(&mpsc::Receiver<Message>, u64) -> bool,
    ) {
        // The session list may lag behind a life that ended between a commit and its row.
        let _live = instruments().session_opened();
        self.projection.tell(&self.key, &self.state.control);
        self.show_all();
        // What is needed for a moment only lies in boxes: this task waits with thousands of its kind.
        Box::pin(self.recover()).await;
        Box::pin(self.look()).await;
        let mut idle_since = Instant::now();
        while self.lost.is_none() {
            self.tell_presence();
            let idle_at = idle_since + self.idle_after();
            let wake_at = self.unsettled.or_else(|| self.overdue_at());
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
                        if may_leave(&self.mailbox, self.state.control.version) {
                            break;
                        }
                        // Somebody is about to tell it something.
                        idle_since = Instant::now();
                        continue;
                    }
                };
            }
            match next {
                Some(Message::Leave { by, reply }) => match self.admit(&by) {
                    Ok(()) => return Box::pin(self.vanish(Some(reply))).await,
                    Err(refusal) => drop(reply.send(Err(refusal))),
                },
                Some(Message::Rest) => {
                    if self.can_rest() && may_leave(&self.mailbox, self.state.control.version) {
                        break;
                    }
                    continue;
                }
                Some(Message::Updates(notes)) => {
                    Box::pin(self.hear(notes)).await;
                    if !self.is_needed() {
                        continue;
                    }
                }
                Some(Message::Look) => {
                    // Unfinished sessions are looked at every few seconds: that alone keeps none
                    // in memory, or a card that nobody answers would stay for ever.
                    if !Box::pin(self.look_again()).await {
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

    /// Gives everything back; who watches is told if what was shown does not hold.
    async fn end(self: Box<Self>) {
        let Some(lost) = self.lost else {
            return self.leave().await;
        };
        let feed = Arc::clone(&self.feed);
        self.vanish(None).await;
        match lost {
            Lost::Deleted => {}
            Lost::Rewound => feed.show(What::Rewound),
            Lost::Damaged => feed.show(What::Damaged),
        }
    }

    fn tell_presence(&self) {
        let is_owner = self.state.control.is_run_by(&self.life);
        self.presence.note(&self.key, &self.agent.tools, is_owner);
    }

    /// Whether somebody here watches the session, or it runs here.
    fn is_needed(&self) -> bool {
        self.feed.is_watched() || self.state.control.is_run_by(&self.life)
    }

    /// Leaves without a trace of its own: the journal is gone, or about to go.
    async fn vanish(
        mut self: Box<Self>,
        reply: Option<oneshot::Sender<Result<Option<SandboxId>, Refusal>>>,
    ) {
        self.mailbox.close();
        self.running.stop_all();
        // A row that was told here may have come onto the list after it was taken off elsewhere. Not
        // only once the tools are closed: that may take a while.
        if self.lost == Some(Lost::Deleted) {
            // Its name may have been given again. If that is not known the row goes: the next commit
            // of such a session brings it back.
            let version = self.journal.version().await;
            if version.is_ok_and(|version| version > 0) {
                tracing::info!(session.id = %self.key.session, "A deleted session was begun again");
            } else {
                self.projection.forget(&self.key, &self.owner().id);
            }
        }
        self.agent.tools.close().await;
        self.presence.leave(&self.key, &self.agent.tools);
        let refusal = match self.lost {
            Some(Lost::Rewound) => store_away(),
            Some(Lost::Damaged) => damaged(),
            Some(Lost::Deleted) | None => deleted(),
        };
        if let Some(message) = self.set_aside.take() {
            message.refuse(&refusal);
        }
        while let Ok(message) = self.mailbox.try_recv() {
            message.refuse(&refusal);
        }
        if let Some(reply) = reply {
            let _ = reply.send(Ok(self.state.control.sandbox.take()));
        }
    }

    /// Gives everything back. Only the server's end finds messages here: who leaves because nothing
    /// came has made sure that nothing can.
    async fn leave(mut self: Box<Self>) {
        self.mailbox.close();
        while let Ok(message) = self.mailbox.try_recv() {
            message.refuse(&stopping());
        }
        self.running.stop_all();
        self.agent.tools.close().await;
        self.presence.leave(&self.key, &self.agent.tools);
        if self.state.control.version > 0 {
            self.forget_unread();
            let limits = self.cut_to;
            self.journal
                .keep_snapshot(std::mem::take(&mut self.state), limits)
                .await;
        }
    }

    async fn handle(&mut self, message: Message) {
        match message {
            Message::Tell { ask, by, reply } => {
                let answer = match self.admit(&by) {
                    Ok(()) => Box::pin(self.tell(*ask)).await,
                    Err(refusal) => Err(refusal),
                };
                // The door may be gone; what was decided stays decided.
                let _ = reply.send(answer);
            }
            Message::Join { by, reply } => {
                let _ = reply.send(self.admit(&by).map(|()| self.joined()));
            }
            Message::Outcome { command, epoch } => self.outcomes(*command, epoch).await,
            Message::Look => {
                Box::pin(self.catch_up()).await;
                if self.has_open_calls() {
                    self.agent.tools.refresh().await;
                }
            }
            // Answered in the loop, where the task can end.
            Message::Leave { reply, .. } => drop(reply.send(Err(stopping()))),
            Message::Updates(_) | Message::Rest => {}
        }
        self.look().await;
    }

    /// A refusal holds only if nothing was written elsewhere meanwhile: people at this gateway may have
    /// been shown more than this task has read.
    async fn tell(&mut self, ask: SessionRequest) -> Result<Accepted, Refusal> {
        let first = self.try_to_tell(ask.clone()).await;
        let version = self.state.control.version;
        let is_final = match &first {
            Ok(_) => true,
            // A store that is away is not waited for twice.
            Err(refusal) => refusal.code == Code::StoreUnavailable || self.membership.is_alone(),
        };
        if is_final {
            return first;
        }
        self.catch_up().await;
        if self.lost.is_some() || self.state.control.version == version {
            return first;
        }
        self.try_to_tell(ask).await
    }

    async fn try_to_tell(&mut self, ask: SessionRequest) -> Result<Accepted, Refusal> {
        if ask.approves() {
            // By the rules of now: a tool may have been denied while its call waited.
            self.agent.tools.refresh().await;
        }
        let command = self.prepare(ask)?;
        self.may_be_created()?;
        self.command(command).await
    }

    /// A session is its owner's; to anybody else it does not exist.
    fn admit(&self, by: &UserId) -> Result<(), Refusal> {
        if self.owner().id == *by {
            return Ok(());
        }
        Err(Refusal::new(
            Code::SessionNotFound,
            "there is no such session",
        ))
    }

    /// Fills in what only the session knows, and refuses what only it can refuse.
    fn prepare(&mut self, ask: SessionRequest) -> Result<Command, Refusal> {
        let command = match ask {
            SessionRequest::Choose(wanted) => {
                let providers = &self.agent.providers;
                let current = Some(self.choice());
                let whose = (&self.key.tenant, &self.owner().id);
                let model = providers.choose(whose, &wanted, current)?;
                Command::ChooseModel { model }
            }
            SessionRequest::Decide { mut decision, args } => {
                let turn = self.state.control.turn.as_ref();
                let call = turn.and_then(|turn| turn.call(&decision.call));
                let is_repeat = call.zip(args.as_ref()).is_some_and(|(call, args)| {
                    !call.is_pending() && call.original_args.is_some() && call.args == *args
                });
                if is_repeat {
                    // It names what it changed; a call that was taken back is shown anew.
                    decision.digest = None;
                }
                decision.edit = args.and_then(|args| match call {
                    Some(call) => (call.args != args).then(|| self.agent.tools.edit(call, args)),
                    None => self
                        .state
                        .control
                        .past_decision(&decision.call)
                        .map(|past| Edit::of_past(past, args)),
                });
                Command::Decide(decision)
            }
            SessionRequest::Command(Command::Stop { turn, .. }) => {
                let running = self.state.control.turn.as_ref();
                let is_this =
                    running.is_some_and(|running| turn.is_none_or(|turn| turn == running.id));
                // At another gateway than the model's: what was said is what people here have seen.
                let mut said = self.feed.running_answer().filter(|_| is_this);
                if is_this && self.running.has_model() {
                    // Nothing of the answer may be shown after the event that ends the turn.
                    self.running.stop_model();
                    said = self.feed.end_answer();
                }
                let (said_so_far, thought_so_far) =
                    said.map_or((None, None), RunningAnswer::into_parts);
                Command::Stop {
                    turn,
                    said_so_far,
                    thought_so_far,
                }
            }
            SessionRequest::Command(command) => command,
        };
        self.can_be_answered(&command)?;
        Ok(command)
    }

    /// What answers the next model request.
    fn choice(&self) -> &ModelChoice {
        let chosen = self.state.control.model.as_ref();
        chosen.unwrap_or(&self.genesis.model)
    }

    /// A turn that nobody can answer is not begun; a running one keeps what it has.
    fn can_be_answered(&self, command: &Command) -> Result<(), Refusal> {
        let begins = matches!(command, Command::Say { .. } | Command::Retry);
        if !begins || self.state.control.is_active() {
            return Ok(());
        }
        let providers = &self.agent.providers;
        let missing = providers.missing_key(&self.key.tenant, self.choice());
        missing.map_or(Ok(()), Err)
    }

    /// Brings what runs in line with what has to run here.
    fn reconcile(&mut self) {
        if self.unsettled.is_some() {
            return;
        }
        let (control, genesis) = (&self.state.control, &self.genesis);
        if !control.is_run_by(&self.life) {
            return self.stand_back();
        }
        self.running.reconcile(&Wanted {
            control,
            entries: &self.state.entries,
            choice: control.asked().unwrap_or(&genesis.model),
            shared: self.broadcaster.is_shared().then_some(&self.journal),
            feed: &self.feed,
            agent: &self.agent,
        });
    }
}
