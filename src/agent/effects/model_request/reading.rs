//! Prepares a session's context for a model: gathers it, puts attachments that the model cannot read itself
//! into the workspace, and counts the tokens, calibrated by the provider's reports.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::ModelRequest;
use crate::agent::effects::skills::ReadSkill;
use crate::agent::effects::tool_call::workspace::Workspace;
use crate::agent::feed::{Notice, What};
use crate::context::ContextSession;
use crate::domain::{Attachment, CompactionStrategy, Entry};
use crate::jobs::Pool;
use crate::llm;
use crate::llm::tokens::Counter;
use crate::providers::Candidate;
use crate::session::{Command, Gap, ModelChoice, Proposal, Refusal};

/// The most sessions whose entries are counted at the same time.
static COUNTERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("token counts of sessions", 4));

impl ModelRequest {
    /// Gathers contexts from the session's providers. If one fails, the turn goes on without its context, and
    /// people are told.
    pub(super) async fn gather(&mut self) {
        let key = self.agent.key();
        let session = ContextSession::of(&key, &self.said, self.request.turn);
        let session = session.with_files(self.files_at.is_some());
        let gathered = self.agent.context.gather(&session).await;
        for (provider, error) in &gathered.failures {
            tracing::warn!(context.provider = %provider, %error, "A context provider failed");
            self.feed.announce(What::Notice(Notice {
                text: format!("Not read for this turn: {provider}: {error}"),
                code: "context_unavailable".into(),
                turn: self.request.turn,
                retry: None,
            }));
        }
        self.arranged = gathered.arranged(&session);
        self.said = self.arranged.history().to_vec();
        if !self.arranged.is_whole() {
            // The session's gap and compaction refer to its whole history, not to a part of it.
            (self.gap, self.compaction) = (Gap::default(), None);
            let is_summary = |it: &CompactionStrategy| *it == CompactionStrategy::PartialSummary;
            self.strategies.retain(|strategy| !is_summary(strategy));
        }
    }

    /// Looks up the current skills; people are told about skills that cannot be read.
    pub(super) async fn refresh_skills(&self) {
        let (skills, turn) = (&self.agent.skills, self.request.turn);
        let trouble = skills.refresh(turn, self.files_at.is_some()).await;
        if let Some(why) = trouble {
            tracing::warn!(why, "Skills cannot be read");
            self.feed.announce(What::Notice(Notice {
                text: format!("Not read for this turn: skills: {why}"),
                code: "context_unavailable".into(),
                turn,
                retry: None,
            }));
        }
    }

    /// Answers a call that reads a skill. If its files were put into the workspace, the session is told
    /// first, and the mailbox keeps the order: the journal has them before the answer.
    pub(super) async fn read_skill(
        &self,
        provider_id: String,
        name: &str,
        args: &Value,
    ) -> Proposal {
        let ReadSkill { resolution, placed } = self.agent.skills.read(name, args).await;
        if let Some((id, name, path)) = placed {
            let command = Command::AttachmentPlaced {
                request: self.request,
                id,
                name,
                path,
            };
            self.outcomes.tell(command).await;
        }
        Proposal {
            provider_id,
            name: name.to_owned(),
            args: args.clone(),
            is_indirect: false,
            resolution,
        }
    }

    /// Prepares the entries for that model, and returns the counter of its tokens.
    pub(super) async fn read_as(&mut self, candidate: &Candidate) -> Counter {
        let reader = self
            .agent
            .reader(&candidate.choice, self.by_vendor.limits(self.limits));
        let missing = reader.missing(&self.said, &self.placed);
        if !missing.is_empty() {
            let tools = Arc::clone(&self.agent.tools);
            if let Some(workspace) = Workspace::of(&tools) {
                for attachment in &missing {
                    self.place(attachment, workspace).await;
                }
            }
        }
        self.entries = reader.entries(&self.said, &self.placed);
        self.weigh(&candidate.choice).await
    }

    /// Puts one file into the workspace, and tells the session. If that fails, the model reads that there is
    /// an attachment that it cannot read.
    async fn place(&mut self, attachment: &Attachment, workspace: Workspace<'_>) {
        let turn = self.request.turn;
        if workspace.is_unplaced(turn, attachment) {
            return;
        }
        let content = self.content(attachment).await;
        let placed = match content {
            Ok(Some(content)) => workspace.put(attachment, &content).await,
            Ok(None) => Err("its content is gone".to_owned()),
            Err(refusal) => Err(refusal.message),
        };
        let path = match placed {
            Ok(path) => path,
            Err(error) => {
                tracing::warn!(attachment.id = %attachment.id, error, "An attachment cannot be put into the workspace");
                workspace.note_unplaced(turn, attachment);
                return;
            }
        };
        self.placed
            .insert(attachment.id.clone(), path.as_str().into());
        // The mailbox keeps the order: the journal has this before the answer, and so before any call.
        let command = Command::AttachmentPlaced {
            request: self.request,
            id: attachment.id.clone(),
            name: attachment.name.clone(),
            path,
        };
        self.outcomes.tell(command).await;
    }

    async fn content(&self, attachment: &Attachment) -> Result<Option<Vec<u8>>, Refusal> {
        let agent = &self.agent;
        let read = agent.parts.attachments.read(&agent.key(), &attachment.id).await?;
        Ok(read.map(|(_, content)| content))
    }

    /// Counts entries that were never counted; off the async threads if that takes a while.
    async fn weigh(&self, choice: &ModelChoice) -> Counter {
        let counter = self.agent.counter(choice);
        let all = || self.entries.iter().chain(self.arranged.beside());
        if counter.is_quick(all().map(|entry| &**entry)) {
            return counter;
        }
        let entries: Vec<_> = all().cloned().collect();
        let weighed = COUNTERS.run(move || {
            for entry in &entries {
                counter.of_entry(entry);
            }
        });
        if weighed.await.is_err() {
            return Counter::default();
        }
        counter
    }

    /// Calibrates the counter with the provider's count.
    pub(super) fn calibrate(&self, choice: &ModelChoice, answer: &llm::Answer, counted: u64) {
        let agent = &self.agent;
        let offer = agent.parts.providers.find(&agent.tenant, &choice.provider);
        // The tokens of pictures are estimated, and would distort the calibration for texts.
        let has_attachments = self.entries.iter().any(|entry| match &***entry {
            Entry::User { attachments, .. } | Entry::ToolResult { attachments, .. } => {
                !attachments.is_empty()
            }
            Entry::Assistant { .. } | Entry::Note { .. } => false,
        });
        if let (Some(offer), Some(usage)) = (offer, &answer.usage)
            && !usage.is_estimated
            && !has_attachments
            // After a compaction, the provider did not read what was counted here.
            && answer.compacted.is_none()
        {
            offer.calibrate(&choice.model, counted, usage.input_tokens);
        }
    }
}
