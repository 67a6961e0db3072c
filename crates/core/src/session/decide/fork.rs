//! A session that shares the past of another: which commits its journal begins with. Pure.

use super::Draft;
use crate::domain::{CommitId, ForkOrigin, Timestamp, WorkspaceCopy};
use crate::session::call::Outcome;
use crate::session::command::Genesis;
use crate::session::event::{Commit, Event, SCHEMA};
use crate::session::model::ModelChoice;
use crate::session::state::SessionState;

/// A new session in the making. It takes the commits of the other one in their order, up to a place.
#[derive(Debug)]
pub struct Fork {
    origin: ForkOrigin,
    genesis: Genesis,
    has_files: Option<bool>,
    state: SessionState,
    commits: Vec<Commit>,
}

impl Fork {
    /// Begins one that shares what stands at and before `origin.seq`.
    #[must_use]
    pub fn new(origin: ForkOrigin, genesis: Genesis) -> Self {
        Self {
            origin,
            genesis,
            has_files: None,
            state: SessionState::default(),
            commits: Vec::new(),
        }
    }

    /// Says whether the other session has a workspace. The new one then waits for its copy.
    #[must_use]
    pub fn with_files(self, has_files: bool) -> Self {
        Self {
            has_files: Some(has_files),
            ..self
        }
    }

    /// Takes the next commit of the other session; false = everything is taken.
    pub fn take(&mut self, commit: &Commit, id: CommitId) -> bool {
        let (mut seq, mut events, mut is_over) = (commit.seq, Vec::new(), false);
        for event in &commit.events {
            seq += u64::from(event.is_shown());
            if seq > self.origin.seq {
                is_over = true;
                break;
            }
            events.extend(self.adopt(event));
        }
        if !events.is_empty() {
            self.push((id, commit.at), events, true);
        }
        !is_over
    }

    /// What the new session has of an event; none = that was the other one's own.
    fn adopt(&self, event: &Event) -> Option<Event> {
        if let Event::Created { model, .. } = event {
            return Some(self.created(model));
        }
        let is_its_own = matches!(
            event,
            Event::OwnerChanged { .. }
                | Event::Spent { .. }
                | Event::TitlingMoved { .. }
                | Event::ReviewAsked { .. }
                | Event::Reviewed { .. }
                | Event::DryRunMoved { .. }
        );
        (!is_its_own).then(|| event.clone())
    }

    fn created(&self, model: &ModelChoice) -> Event {
        let genesis = &self.genesis;
        Event::Created {
            journal: genesis.journal.clone(),
            owner: genesis.owner.clone(),
            sandbox: genesis.sandbox.clone(),
            model: model.clone(),
        }
    }

    /// The whole journal, and the state that it leads to. A turn that the other session goes on with ends
    /// here.
    #[must_use]
    pub fn finish(mut self, id: CommitId, now: Timestamp) -> (Vec<Commit>, SessionState) {
        let mut events = Vec::new();
        // Nobody has told the other session anything yet.
        if self.state.control.journal.is_none() {
            events.push(self.created(&self.genesis.model));
        }
        let unpaired = self.state.control.calls();
        let unpaired = unpaired.filter(|call| call.result.is_none());
        events.extend(unpaired.map(|call| Event::Ended {
            call: call.id.clone(),
            name: call.name.clone(),
            server: call.server().to_owned(),
            // A rejection comes before its result.
            outcome: if call.is_ended() {
                Outcome::Rejected { reason: None }
            } else {
                Outcome::Cancelled
            },
            duration_ms: 0,
        }));
        if let Some(turn) = &self.state.control.turn {
            events.push(Event::Cancelled {
                turn: turn.id,
                text: None,
                reasoning: None,
            });
        }
        events.push(Event::Forked {
            origin: self.origin.clone(),
            has_files: self.has_files,
        });
        let at = now.max(self.state.control.at);
        self.push((id, at), events, false);
        (self.commits, self.state)
    }

    fn push(&mut self, (id, at): (CommitId, Timestamp), events: Vec<Event>, is_inherited: bool) {
        let control = &self.state.control;
        let commit = Commit {
            version: control.version.saturating_add(1),
            commit_id: id,
            schema: SCHEMA,
            at,
            seq: control.seq,
            events,
            is_inherited,
        };
        self.state.apply(&commit);
        self.commits.push(commit);
    }
}

/// The workspace has what it begins with. Told once: a copy that was begun again changes nothing.
pub(super) fn workspace_copied(draft: &mut Draft<'_>, outcome: WorkspaceCopy) {
    if draft.control.awaits_workspace {
        draft.push(Event::WorkspaceCopied { outcome });
    }
}
