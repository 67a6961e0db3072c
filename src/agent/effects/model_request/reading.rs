//! What a model reads of the session: before the first request that needs it, what the model cannot read
//! itself is put into the workspace. And how many tokens that is: what counts them, and what the
//! provider's report teaches.

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

/// Sessions whose entries are counted at the same time.
static COUNTERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("token counts of sessions", 4));

impl ModelRequest {
    /// Asks the session's providers what the model may read. One that fails costs the turn what it
    /// would have given, and people are told.
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
            // What the session says of its history is not about a part of it.
            (self.gap, self.compaction) = (Gap::default(), None);
            let is_summary = |it: &CompactionStrategy| *it == CompactionStrategy::PartialSummary;
            self.strategies.retain(|strategy| !is_summary(strategy));
        }
    }

    /// Looks up which skills there are now; people are told what cannot be read.
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

    /// A call that reads a skill, answered. What was put into the workspace for it is told to the session
    /// first, which the mailbox keeps in order: it is in the journal before the answer.
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

    /// Makes the entries what that model reads; what counts their tokens.
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

    /// Puts one file into the workspace, and tells the session of it. Where that does not work, the model
    /// reads that there is something which it cannot read.
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
        // The mailbox keeps the order: it is in the journal before the answer, and so before any call.
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
        let read = agent.attachments.read(&agent.key(), &attachment.id).await?;
        Ok(read.map(|(_, content)| content))
    }

    /// Counts what was never counted, beside the async threads where that takes a while.
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

    /// Learns from what the provider counted.
    pub(super) fn calibrate(&self, choice: &ModelChoice, answer: &llm::Answer, counted: u64) {
        let agent = &self.agent;
        let offer = agent.providers.find(&agent.tenant, &choice.provider);
        // What pictures cost is a guess, and would make texts look dearer or cheaper than they are.
        let has_attachments = self.entries.iter().any(|entry| match &***entry {
            Entry::User { attachments, .. } | Entry::ToolResult { attachments, .. } => {
                !attachments.is_empty()
            }
            Entry::Assistant { .. } | Entry::Note { .. } => false,
        });
        if let (Some(offer), Some(usage)) = (offer, &answer.usage)
            && !usage.is_estimated
            && !has_attachments
            // What was counted is not what was read then.
            && answer.compacted.is_none()
        {
            offer.calibrate(&choice.model, counted, usage.input_tokens);
        }
    }
}
