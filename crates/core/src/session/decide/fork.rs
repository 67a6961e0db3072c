//! Builds the journal of a fork from another session's commits. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Draft;
use crate::domain::{CommitId, ForkOrigin, Timestamp, WorkspaceCopy};
use crate::session::assistant::SessionAssistant;
use crate::session::call::Outcome;
use crate::session::command::Genesis;
use crate::session::event::{Commit, Event, SCHEMA};
use crate::session::model::ModelChoice;
use crate::session::state::SessionState;

/// Builder of a forked session. It takes the other session's commits in order, up to a place.
#[derive(Debug)]
pub struct Fork {
    origin: ForkOrigin,
    genesis: Genesis,
    has_files: Option<bool>,
    state: SessionState,
    commits: Vec<Commit>,
}

impl Fork {
    /// Starts a fork that shares the events up to and including `origin.seq`.
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

    /// Sets whether the other session has a workspace. If so, the fork waits for a copy.
    #[must_use]
    pub fn with_files(self, has_files: bool) -> Self {
        Self {
            has_files: Some(has_files),
            ..self
        }
    }

    /// Takes the next commit of the other session; returns false once everything is taken.
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
            self.push(id, commit.at, events, true);
        }
        !is_over
    }

    /// The fork's version of an event; `None` = the event concerns only the other session.
    fn adopt(&self, event: &Event) -> Option<Event> {
        if let Event::Created {
            model,
            assistant,
            servers,
            ..
        } = event
        {
            return Some(self.created(model, assistant.clone(), servers.clone()));
        }
        event.facts().is_inherited.then(|| event.clone())
    }

    fn created(
        &self,
        model: &ModelChoice,
        assistant: Option<Arc<SessionAssistant>>,
        servers: Option<Arc<BTreeSet<String>>>,
    ) -> Event {
        let genesis = &self.genesis;
        Event::Created {
            journal: genesis.journal.clone(),
            owner: genesis.owner.clone(),
            sandbox: genesis.sandbox.clone(),
            model: model.clone(),
            assistant,
            servers,
        }
    }

    /// The whole journal and its state. A turn that is still running in the other session is cancelled
    /// here.
    #[must_use]
    pub fn finish(mut self, id: CommitId, now: Timestamp) -> (Vec<Commit>, SessionState) {
        let mut events = Vec::new();
        // The other session is still empty.
        if self.state.control.journal.is_none() {
            let Genesis {
                model,
                assistant,
                servers,
                ..
            } = &self.genesis;
            events.push(self.created(model, assistant.clone(), servers.clone()));
        }
        let unpaired = self.state.control.calls();
        let unpaired = unpaired.filter(|call| call.result.is_none());
        events.extend(unpaired.map(|call| Event::Ended {
            call: call.id.clone(),
            name: call.name.clone(),
            server: call.server().to_owned(),
            // A rejection is recorded before its result.
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
        self.push(id, at, events, false);
        (self.commits, self.state)
    }

    fn push(&mut self, id: CommitId, at: Timestamp, events: Vec<Event>, is_inherited: bool) {
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

/// Records that the initial workspace of the fork is ready, once: a repeated copy changes nothing.
pub(super) fn workspace_copied(draft: &mut Draft<'_>, outcome: WorkspaceCopy) {
    if draft.control.awaits_workspace {
        draft.push(Event::WorkspaceCopied { outcome });
    }
}
