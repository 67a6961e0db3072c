//! Holds one gateway's copy of a session: the folded journal, and the state derived from it here.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::agent::assistants;
use crate::agent::attachments;
use crate::agent::cluster::Cluster;
use crate::agent::effects::session_agent::{AgentFactory, SessionAgent};
use crate::agent::effects::tool_call::ToolNarrowing;
use crate::agent::feed::{Feed, FeedItem};
use crate::agent::journal::Journal;
use crate::agent::journal::projection::Projection;
use crate::domain::{Actor, CallId, CountedEntry, SessionKey};
use crate::history::{self, Past};
use crate::llm::tokens::{self, Counter};
use crate::session::{Command, Genesis, ModelChoice, Refusal, SessionAssistant, SessionState};

/// The reason the copy no longer matches the stored journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum StaleReason {
    /// The session was deleted.
    Deleted,
    /// The store lost commits that it had acknowledged.
    Rewound,
    /// The journal cannot be read or continued.
    Damaged,
}

/// A session as this gateway has it: a copy that follows the journal.
pub(in crate::agent) struct Replica {
    pub(in crate::agent) key: SessionKey,
    pub(in crate::agent) journal: Journal,
    pub(in crate::agent) state: SessionState,
    /// The limits to which its entries were cut since the journal was folded.
    pub(in crate::agent) cut_to: history::Limits,
    /// The initial values of the session while it is not stored.
    pub(in crate::agent) genesis: Genesis,
    pub(in crate::agent) feed: Arc<Feed>,
    pub(in crate::agent) agent: SessionAgent,
    /// Builds the agent again if another gateway creates the session.
    pub(in crate::agent) factory: AgentFactory,
    pub(in crate::agent) projection: Projection,
    pub(in crate::agent) cluster: Arc<Cluster>,
    /// Runs the writing of snapshots.
    pub(in crate::agent) snapshots: TaskTracker,
    /// The time of the next snapshot; `None` = it is up to date, or only this program reads it.
    pub(in crate::agent) snapshot_at: Option<Instant>,
    /// The time of the next check of a commit that may or may not have been stored. Until that is settled
    /// nothing new is started, because the commit may have cancelled it.
    pub(in crate::agent) unsettled: Option<Instant>,
    /// The reason the session's task has to end.
    pub(in crate::agent) lost: Option<StaleReason>,
}

impl Replica {
    /// The owner of the session, or its future owner while it is not stored.
    pub(super) fn owner(&self) -> &Actor {
        let owner = self.state.control.owner.as_ref();
        owner.unwrap_or(&self.genesis.owner)
    }

    /// The model for the next model request.
    pub(super) fn choice(&self) -> &ModelChoice {
        let chosen = self.state.control.model.as_ref();
        chosen.unwrap_or(&self.genesis.model)
    }

    /// Returns true if this gateway runs the session's effects.
    pub(super) fn is_run_here(&self) -> bool {
        self.state.control.is_run_by(&self.cluster.gateway)
    }

    pub(super) fn is_executing(&self, id: &CallId) -> bool {
        let call = self.state.control.call(id);
        call.is_some_and(|call| call.is_executing())
    }

    /// Returns true if calls are pending, or are approved and wait for others.
    pub(super) fn has_open_calls(&self) -> bool {
        let mut calls = self.state.control.calls();
        calls.any(|call| call.is_pending() || call.is_approved())
    }

    /// The kind of the provider that answers the running request.
    pub(super) fn provider_kind(&self) -> &'static str {
        let choice = self.state.control.asked().unwrap_or(&self.genesis.model);
        let found = self
            .agent
            .parts
            .providers
            .find(&self.key.tenant, &choice.provider);
        found.map_or("gone", |offer| offer.kind().as_str())
    }

    /// Updates watchers that were here before this task, and the session list, which may be behind if a
    /// gateway ended between a commit and its row.
    pub(super) fn show_all(&self) {
        self.follow_journal();
        self.projection.update(&self.key, &self.state.control);
        if self.feed.is_watched() && self.state.control.version > 0 {
            self.feed.show(FeedItem::Moved(self.state.control.seq));
            self.feed.show(FeedItem::Queue(self.queue()));
            self.feed.show(FeedItem::Usage(self.usage()));
        }
    }

    /// The assistant of the session, or its future one while it is not stored.
    pub(super) fn assistant(&self) -> Option<&Arc<SessionAssistant>> {
        let control = &self.state.control;
        match control.version {
            0 => self.genesis.assistant.as_ref(),
            _ => control.assistant.as_ref(),
        }
    }

    /// The only servers whose tools the session may use; `None` = those of its owner.
    pub(super) fn servers(&self) -> Option<&Arc<BTreeSet<String>>> {
        let control = &self.state.control;
        match control.version {
            0 => self.genesis.servers.as_ref(),
            _ => control.servers.as_ref(),
        }
    }

    /// Checks that a turn may begin with the session's assistant, and attaches the files that the next message
    /// brings along.
    pub(super) async fn admit_turn(&self) -> Result<(), Refusal> {
        let Some(assistant) = self.assistant() else {
            return Ok(());
        };
        let control = &self.state.control;
        let due = match control.version {
            0 => &assistant.definition.files,
            _ => &control.due_files,
        };
        let records = &self.agent.parts.place.records;
        assistants::admit_turn(records, &self.key, &self.owner().id, assistant, due).await
    }

    /// Returns the command that takes the newest version of the assistant into use.
    pub(super) async fn update_assistant(&self, by: &Actor) -> Result<Command, Refusal> {
        let assistant = self.assistant().ok_or_else(assistants::no_assistant)?;
        let records = &self.agent.parts.place.records;
        let newest = assistants::newest(records, &self.key, &self.owner().id, assistant).await?;
        Ok(Command::UpdateAssistant {
            assistant: newest,
            by: by.clone(),
        })
    }

    /// Updates what the agent has from the journal: the hosts that the session's sandbox may reach, and what
    /// narrows its tools.
    pub(super) fn follow_journal(&self) {
        self.agent.tools.narrow(ToolNarrowing {
            assistant: self.assistant().cloned(),
            servers: self.servers().cloned(),
        });
        self.agent.tools.reach.follow(&self.state.control);
    }

    /// Drops entries that the model can no longer be shown, from memory and the snapshot: the journal has
    /// them (S2.9). The newest turn stays whole. A retry removes its answer, so right after it the window may
    /// be one answer short.
    pub(super) fn forget_unread(&mut self) {
        let limits = self.agent.limits(&self.state.control);
        if !self.has_all_within(limits) {
            return;
        }
        self.cut_to = limits;
        let past = Past::of(&self.state);
        let placed = &self.state.control.placed;
        let count = |entry: &CountedEntry| {
            let counter = Counter::default();
            // An attachment in the workspace may be replaced by a short text.
            let elsewhere = attachments::placed(entry, placed);
            let elsewhere = elsewhere.map(tokens::of_attachment).sum();
            counter.of_entry(entry).saturating_sub(elsewhere)
        };
        let kept = history::retain(past, limits, count);
        if let Some(kept) = kept {
            self.state.retain(kept.entries, kept.gaps);
        }
    }

    /// Returns true if the entries in memory are all that these limits admit.
    fn has_all_within(&self, limits: history::Limits) -> bool {
        limits.are_within(self.cut_to)
    }

    /// Reads dropped entries again if wider limits now admit them. Returns true if it did. While the store is
    /// away the session continues with what it has, and the next look tries again.
    pub(super) async fn widen(&mut self) -> bool {
        if self.has_all_within(self.agent.limits(&self.state.control)) {
            return false;
        }
        match Box::pin(self.journal.whole(self.state.control.version)).await {
            Ok(whole) if whole.control.version == self.state.control.version => {
                self.state.entries = whole.entries;
                self.state.left_out = whole.left_out;
                self.state.gaps = whole.gaps;
                self.cut_to = history::Limits::default();
                true
            }
            Ok(_) => false,
            Err(error) => {
                tracing::warn!(session.id = %self.key.session, ?error, "What the model may read again is not read yet");
                false
            }
        }
    }
}
