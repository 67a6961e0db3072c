//! Folds events into state, for live sessions, replays and restarts alike.

mod context;
mod elicitation;
mod network;
mod queue;
mod turn;
mod view;

use std::sync::Arc;

use self::context::{NEW_WORKSPACE, workspace_note};
use super::event::{Commit, Event};
use super::model::ModelChoice;
use super::policy::GivenRule;
use super::review::Reviewing;
use super::state::{Control, Phase, SessionState, WaitingMessage};
use crate::domain::{
    Actor, Attachment, BlobId, CallId, Effort, EngineId, ForkOrigin, GatewayId, Timestamp,
    WorkspaceCopy,
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
        if commit.is_inherited {
            self.control.usage.totals = totals;
        }
        self.control.version = commit.version;
        self.control.at = commit.at;
    }
}

impl Control {
    /// Folds one event that happened at `at`.
    pub(super) fn evolve(&mut self, event: &Event, at: Timestamp) {
        if event.is_shown() {
            self.seq = self.seq.saturating_add(1);
        }
        match event {
            Event::Created { .. } => self.create(event, at),
            Event::OwnerChanged { runner, engine } => self.hand_over((runner, engine.as_ref()), at),
            Event::TitleSet { .. } | Event::TitlingMoved { .. } => self.evolve_title(event),
            Event::ModelChosen { .. }
            | Event::WindowChosen { .. }
            | Event::CompactionChosen { .. }
            | Event::ContextCompacted(_)
            | Event::ContextReset => self.evolve_reading(event),
            Event::Forked { origin, has_files } => self.fork(origin, *has_files, at),
            Event::WorkspaceCopied { outcome } => self.settle_workspace(*outcome),
            Event::UserMessage {
                text,
                client_message_id,
                effort,
                attachments,
                ..
            } => self.receive((text, attachments), client_message_id.as_deref(), *effort),
            Event::Withdrawn { message_seq, .. } => {
                self.waiting.retain(|message| message.seq != *message_seq);
            }
            Event::AttachmentPlaced { id, path, .. } => self.keep_place(id, path),
            Event::RuleGiven { .. } | Event::RuleTakenBack { .. } => self.evolve_rules(event, at),
            Event::HostRefused(refusal) => network::refused(self, refusal),
            Event::Settled { .. } => self.settle(event),
            Event::Thinking { .. }
            | Event::Said { .. }
            | Event::Spent { .. }
            | Event::Answered { .. }
            | Event::TurnFailed { .. }
            | Event::Cancelled { .. }
            | Event::ContextCut { .. }
            | Event::CompactedByVendor(_)
            | Event::ResultsShortened { .. }
            | Event::StopRequested { .. } => turn::evolve_turn(self, event, at),
            Event::ElicitationAsked(_)
            | Event::ElicitationOpened { .. }
            | Event::ElicitationResolved { .. }
            | Event::SamplingMoved { .. } => {
                elicitation::evolve_elicitation(self, event, at);
            }
            Event::ViewCalled { call, .. } => view::called(self, call, at),
            Event::Queued { .. }
            | Event::WantsChanged { .. }
            | Event::Consented { .. }
            | Event::ConsentWithdrawn { .. }
            | Event::ApprovalAsked { .. }
            | Event::Decided { .. }
            | Event::Started { .. }
            | Event::Ended { .. }
            | Event::CallStopRequested { .. }
            | Event::TaskCreated { .. }
            | Event::ReviewAsked { .. }
            | Event::Reviewed { .. }
            | Event::DryRunMoved { .. } => self.evolve_queue(event, at),
        }
    }

    fn create(&mut self, event: &Event, at: Timestamp) {
        if let Event::Created {
            journal,
            owner,
            sandbox,
            model,
        } = event
        {
            self.journal = Some(journal.clone());
            self.owner = Some(owner.clone());
            self.sandbox = Some(sandbox.clone());
            self.model = Some(model.clone());
            self.created_at = at;
        }
    }

    fn settle(&mut self, event: &Event) {
        if let Event::Settled {
            call,
            name,
            happened,
            by,
        } = event
        {
            self.unknown.remove(call);
            // The model does not know of a view's calls.
            if !self.views.unknown.remove(call) {
                self.notes.push(settled(call, name, *happened, by));
            }
        }
    }

    fn evolve_rules(&mut self, event: &Event, at: Timestamp) {
        if let Event::RuleGiven { rule, by } = event {
            network::given(self, rule, by);
            let (rule, by) = ((**rule).clone(), by.clone());
            self.rules = Arc::new(self.rules.with(GivenRule { rule, by, at }));
        } else if let Event::RuleTakenBack { id, by } = event {
            network::taken_back(self, id, by);
            self.rules = Arc::new(self.rules.without(id));
        }
    }

    /// Folds the events that change the model, or how much of the past it reads.
    fn evolve_reading(&mut self, event: &Event) {
        if let Event::ModelChosen { model } = event {
            let named = |it: &ModelChoice| (it.provider.clone(), it.model.clone());
            // The lowered limit belongs to the model, whatever its effort.
            if self.model.as_ref().map(named) != Some(named(model)) {
                self.context.max_tokens = None;
            }
            self.model = Some(model.clone());
        } else if let Event::WindowChosen { whole } = event {
            self.context.reads_whole = *whole;
            self.context.max_tokens = None;
        } else if let Event::CompactionChosen { strategies } = event {
            self.context.strategies.clone_from(strategies);
        } else if let Event::ContextCompacted(it) = event {
            self.context.has_short_results |= it.compaction.short_before > 0;
            self.context.compaction = Some(it.compaction.clone());
        } else if matches!(event, Event::ContextReset) {
            self.reset();
        }
    }

    fn evolve_title(&mut self, event: &Event) {
        if let Event::TitleSet { title, source } = event {
            self.title.text = Some(title.clone());
            self.title.source = *source;
        } else if let Event::TitlingMoved { to } = event {
            self.title.titling = *to;
        }
    }

    fn hand_over(&mut self, (runner, engine): (&GatewayId, Option<&EngineId>), at: Timestamp) {
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
        self.rules = Arc::default();
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

    fn receive(
        &mut self,
        (text, attached): (&str, &[Attachment]),
        client_message_id: Option<&str>,
        effort: Option<Effort>,
    ) {
        self.refused_hosts.clear();
        self.waiting.push(WaitingMessage {
            seq: self.seq,
            text: text.to_owned(),
            client_message_id: client_message_id.map(ToOwned::to_owned),
            effort,
            attachments: attached.to_vec(),
        });
        if let Some(id) = client_message_id {
            if self.remembered.len() == REMEMBERED_MESSAGES {
                self.remembered.pop_front();
            }
            self.remembered.push_back((id.to_owned(), self.seq));
        }
    }
}

/// The note to the model about a call whose outcome a person settled.
fn settled(call: &CallId, name: &str, happened: bool, by: &Actor) -> String {
    let (who, fate) = (&by.name, if happened { "did" } else { "did not" });
    format!("{who} says: the call of `{name}` ({call}) whose outcome was unknown {fate} happen.")
}
