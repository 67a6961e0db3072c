//! Folds events into state, for live sessions, replays and restarts alike.

mod context;
mod elicitation;
mod network;
mod queue;
mod turn;

use std::sync::Arc;

use self::context::{NEW_WORKSPACE, workspace_note};
use super::assistant::SessionAssistant;
use super::call::{Call, CallStatus, Consent};
use super::event::{Commit, Event};
use super::model::ModelChoice;
use super::policy::{GivenRule, Rule};
use super::review::Reviewing;
use super::state::{Control, Ending, Phase, SessionState, WaitingMessage};
use crate::domain::{
    Actor, BlobId, CallId, Digest, EngineId, ForkOrigin, GatewayId, ModelRequestId, Timestamp,
    Totals, WorkspaceCopy,
};

/// Maximum number of client message ids that are remembered to detect repeats.
const REMEMBERED_MESSAGES: usize = 256;

impl SessionState {
    /// Folds the commit that follows this state.
    pub fn apply(&mut self, commit: &Commit) {
        let totals = self.control.usage.totals;
        for event in &commit.events {
            self.evolve_entries(event, commit.at);
            self.control.evolve(event, commit.at);
        }
        self.control.close(commit, totals);
    }

    /// Folds the commit that follows this state, and remembers its link.
    pub fn apply_linked(&mut self, commit: &Commit, link: Digest) {
        self.apply(commit);
        self.link = Some(link);
    }
}

impl Control {
    /// Folds the commit that follows this state.
    pub fn apply(&mut self, commit: &Commit) {
        let totals = self.usage.totals;
        for event in &commit.events {
            self.evolve(event, commit.at);
        }
        self.close(commit, totals);
    }

    /// Ends a commit whose events are folded; `totals` is the usage before it.
    fn close(&mut self, commit: &Commit, totals: Totals) {
        if commit.is_inherited {
            self.usage.totals = totals;
        }
        self.version = commit.version;
        self.at = commit.at;
    }

    /// Folds one event that happened at `at`.
    #[expect(clippy::too_many_lines, reason = "one flat match over all events")]
    pub(super) fn evolve(&mut self, event: &Event, at: Timestamp) {
        if event.is_shown() {
            self.seq = self.seq.saturating_add(1);
        }
        match event {
            Event::Created {
                journal,
                owner,
                sandbox,
                model,
                assistant,
                servers,
            } => {
                self.journal = Some(journal.clone());
                self.owner = Some(owner.clone());
                self.sandbox = Some(sandbox.clone());
                self.model = Some(model.clone());
                self.created_at = at;
                self.servers.clone_from(servers);
                if let Some(assistant) = assistant {
                    self.use_assistant(assistant);
                }
            }
            Event::OwnerChanged { runner, engine } => self.hand_over(runner, engine.as_ref(), at),
            Event::Queued { calls } => self.enqueue(calls),
            Event::WantsChanged { call, wants } => {
                self.change(call, |call| call.wants = wants.clone());
            }
            Event::Consented {
                call,
                by,
                role,
                edited,
                gesture,
                ..
            } => {
                let consent = Consent {
                    by: by.clone(),
                    role: *role,
                    at,
                    gesture: *gesture,
                };
                self.consented(call, edited.as_ref(), consent);
            }
            Event::ConsentWithdrawn { call, by } => self.consent_withdrawn(call, by, at),
            Event::Spent { usage, cost, .. } => self.usage.totals += (*usage, *cost),
            Event::StopRequested { limit_ms, .. } => turn::stop_requested(self, *limit_ms),
            Event::CallStopRequested { call } => self.call_stop_requested(call),
            Event::TaskCreated { call, task } => {
                self.change(call, |call| call.task = Some(task.clone()));
            }
            Event::TitlingMoved { to } => self.title.titling = *to,
            Event::ReviewAsked { call } => self.review_asked(call),
            Event::Reviewed { call, review } => self.reviewed(call, review),
            Event::DryRunMoved { call, to, .. } => {
                self.change(call, |call| call.dry_run.clone_from(to));
            }
            Event::UserMessage {
                text,
                client_message_id,
                effort,
                attachments,
                ..
            } => self.receive(WaitingMessage {
                seq: self.seq,
                text: text.clone(),
                client_message_id: client_message_id.clone(),
                effort: *effort,
                attachments: attachments.clone(),
            }),
            Event::Thinking {
                turn,
                iteration,
                took,
                ..
            } => {
                let request = ModelRequestId {
                    turn: *turn,
                    iteration: *iteration,
                };
                turn::thinking(self, request, took, at);
            }
            Event::Said {
                text,
                usage,
                cost,
                request,
                ..
            } => {
                turn::count(self, *usage, *cost, request.as_ref());
                turn::said(self, text, at);
            }
            Event::Answered {
                usage,
                cost,
                request,
                ..
            } => {
                turn::count(self, *usage, *cost, request.as_ref());
                turn::end_turn(self, Ending::Answered);
            }
            Event::ViewCalled { call, .. } => self.called_by_view(call, at),
            Event::ApprovalAsked { call, .. } => self.change(&call.id, |call| {
                call.status = CallStatus::Pending { asked: true };
            }),
            Event::Decided { .. } => self.evolve_decision(event, at),
            Event::Started { call, .. } => self.started(call, at),
            Event::Ended { call, outcome, .. } => {
                self.ended(call, outcome);
                elicitation::drop_elicitations(self, call);
            }
            Event::Settled {
                call,
                name,
                happened,
                by,
            } => self.settle(call, name, *happened, by),
            Event::TurnFailed { .. } => turn::end_turn(self, Ending::Failed),
            Event::Cancelled { .. } => turn::end_turn(self, Ending::Cancelled),
            Event::Withdrawn { message_seq, .. } => {
                self.waiting.retain(|message| message.seq != *message_seq);
            }
            Event::TitleSet { title, source } => {
                self.title.text = Some(title.clone());
                self.title.source = *source;
            }
            Event::AssistantUpdated { assistant, .. } => self.use_assistant(assistant),
            Event::ModelChosen { model } => self.choose_model(model),
            Event::WindowChosen { whole } => {
                self.context.reads_whole = *whole;
                self.context.max_tokens = None;
            }
            Event::ContextReset => self.reset(),
            Event::ContextCut {
                strategy,
                max_tokens,
                ..
            } => turn::cut(self, strategy, *max_tokens),
            Event::Forked { origin, has_files } => self.fork(origin, *has_files, at),
            Event::WorkspaceCopied { outcome } => self.settle_workspace(*outcome),
            Event::AttachmentPlaced { id, path, .. } => self.keep_place(id, path),
            Event::ContextCompacted(it) => {
                self.context.has_short_results |= it.compaction.short_before > 0;
                self.context.compaction = Some(it.compaction.clone());
            }
            Event::CompactedByVendor(it) => self.usage.compacting = it.usage,
            Event::CompactionChosen { strategies } => {
                self.context.strategies.clone_from(strategies);
            }
            Event::RuleGiven { rule, by } => self.give_rule(rule, by, at),
            Event::RuleTakenBack { id, by } => {
                network::taken_back(self, id, by);
                self.rules = Arc::new(self.rules.without(id));
            }
            Event::HostRefused(refusal) => network::refused(self, refusal),
            Event::ElicitationAsked(asked) => elicitation::asked(self, asked),
            Event::ElicitationOpened { id, call, .. } => elicitation::opened(self, id, call),
            Event::ElicitationResolved {
                id, call, answer, ..
            } => {
                elicitation::resolved(self, id, call, answer);
                self.attend(at);
            }
            Event::SamplingMoved { id, call, to } => {
                elicitation::sampling_moved(self, id, call, to);
                self.attend(at);
            }
            Event::ResultsShortened { .. } => turn::results_shortened(self),
        }
    }

    fn settle(&mut self, call: &CallId, name: &str, happened: bool, by: &Actor) {
        self.unknown.remove(call);
        // The model does not know of a view's calls.
        if !self.views.unknown.remove(call) {
            self.notes.push(settled(call, name, happened, by));
        }
    }

    fn give_rule(&mut self, rule: &Rule, by: &Actor, at: Timestamp) {
        network::given(self, rule, by);
        let (rule, by) = (rule.clone(), by.clone());
        self.rules = Arc::new(self.rules.with(GivenRule { rule, by, at }));
    }

    /// Applies a version of an assistant: its rules hold for every call, and the next message brings those of
    /// its files that no message brought before.
    fn use_assistant(&mut self, assistant: &Arc<SessionAssistant>) {
        let known = self.assistant.iter();
        let known = known.flat_map(|known| &known.definition.files);
        let mut shown: Vec<BlobId> = known.map(|file| file.id.clone()).collect();
        shown.retain(|id| self.due_files.iter().all(|due| due.id != *id));
        let files = assistant.definition.files.iter();
        self.due_files = files
            .filter(|file| !shown.contains(&file.id))
            .cloned()
            .collect();
        self.rules = Arc::new(self.rules.with_assistant(&assistant.definition.rules));
        self.assistant = Some(Arc::clone(assistant));
    }

    fn choose_model(&mut self, model: &ModelChoice) {
        let named = |it: &ModelChoice| (it.provider.clone(), it.model.clone());
        // The lowered limit belongs to the model, whatever its effort.
        if self.model.as_ref().map(named) != Some(named(model)) {
            self.context.max_tokens = None;
        }
        self.model = Some(model.clone());
    }

    fn hand_over(&mut self, runner: &GatewayId, engine: Option<&EngineId>, at: Timestamp) {
        self.runner.gateway = Some(runner.clone());
        self.runner.engine = engine.cloned();
        self.runner.epoch = self.runner.epoch.saturating_add(1);
        self.forget_dry_runs();
        if let Some(turn) = &mut self.turn {
            // The turn did not run while it had no runner.
            turn.attended = Some(at);
        }
        if let Some(turn) = self
            .turn
            .as_mut()
            .filter(|turn| turn.phase == Phase::Asking)
        {
            turn.restarts = turn.restarts.saturating_add(1);
        }
    }

    /// Resets what belongs to the other session: the fork has another workspace, so earlier effects of
    /// tools do not apply here.
    fn fork(&mut self, origin: &ForkOrigin, has_files: Option<bool>, at: Timestamp) {
        self.awaits_workspace = has_files == Some(true);
        if !self.used_tools.is_empty() && !self.awaits_workspace {
            self.notes.push(NEW_WORKSPACE.to_owned());
        }
        self.used_tools.clear();
        self.unknown.clear();
        self.views.unknown.clear();
        self.engine = None;
        self.created_at = at;
        self.placed.clear();
        // The rules belong to the other session.
        network::left_behind(self);
        self.rules = Arc::new(self.rules.of_assistant_only());
        self.reviewing = Reviewing::default();
        self.forked_from = Some(origin.clone());
    }

    /// Ends the wait for the workspace. If it was copied, the runner's engine now holds it.
    fn settle_workspace(&mut self, outcome: WorkspaceCopy) {
        self.awaits_workspace = false;
        if matches!(outcome, WorkspaceCopy::Copied { .. }) {
            self.engine.clone_from(&self.runner.engine);
        }
        if self.turn.is_none() {
            self.notes.push(workspace_note(outcome).to_owned());
        }
    }

    /// Records the path of an attachment in the workspace, which the runner's engine now holds.
    fn keep_place(&mut self, id: &BlobId, path: &str) {
        self.placed.insert(id.clone(), path.into());
        if self.engine.is_none() {
            self.engine.clone_from(&self.runner.engine);
        }
    }

    fn reset(&mut self) {
        self.notes.clear();
        self.context.compaction = None;
        self.context.has_short_results = false;
        self.last_ending = None;
    }

    fn receive(&mut self, message: WaitingMessage) {
        self.refused_hosts.clear();
        self.due_files
            .retain(|due| message.attachments.iter().all(|sent| sent.id != due.id));
        if let Some(id) = &message.client_message_id {
            if self.remembered.len() == REMEMBERED_MESSAGES {
                self.remembered.pop_front();
            }
            self.remembered.push_back((id.clone(), message.seq));
        }
        self.waiting.push(message);
    }

    /// Adds a view's call and drops ended ones. People's decisions about these may be sent again, so they
    /// are remembered. Later events of these calls fold like those of a turn's calls.
    fn called_by_view(&mut self, call: &Arc<Call>, at: Timestamp) {
        let calls = self.views.calls.clone();
        for ended in calls.iter().filter(|call| call.is_ended()) {
            self.keep_decision(ended);
        }
        self.views.take(call, at);
        self.keep_stamp(call);
    }
}

/// The note to the model about a call whose outcome a person settled.
fn settled(call: &CallId, name: &str, happened: bool, by: &Actor) -> String {
    let (who, fate) = (&by.name, if happened { "did" } else { "did not" });
    format!("{who} says: the call of `{name}` ({call}) whose outcome was unknown {fate} happen.")
}
