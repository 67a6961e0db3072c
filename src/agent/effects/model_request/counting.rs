//! Attributes the tokens of a request to their sources, and reports the usage of its attempts.

use std::sync::Arc;

use super::meter::{Subject, estimated};
use crate::agent::effects::session_agent::{RequestBase, SessionAgent};
use crate::domain::{
    Entry, READ_MORE, READ_SKILL_FILE, RequestParts, RequestPurpose, TokenUsage, USE_SKILL, Weighed,
};
use crate::llm;
use crate::llm::tokens::Counter;
use crate::session::{Control, ModelChoice, Phase, RequestFacts, Spent};

/// The reported server of the tool search tools; no real server can have such a name.
const TOOL_SEARCH: &str = "(tool search)";
/// The reported server of the tool that reads shortened results.
const READING_ON: &str = "(shortened results)";
/// The reported server of the tools that read skills.
const SKILLS: &str = "(skills)";

impl SessionAgent {
    /// Returns the composition of a request's tokens, before the provider's report scales them. `question` is
    /// the `seq` of the message that began the turn.
    pub(in crate::agent) fn parts(
        &self,
        base: &RequestBase,
        (entries, question): (&[Arc<Weighed>], Option<u64>),
        counter: Counter,
    ) -> RequestParts {
        let mut parts = RequestParts {
            system: base.weights.system,
            context: base.system.sources(counter),
            ..RequestParts::default()
        };
        for (tool, tokens) in base.tools.iter().zip(&base.weights.tools) {
            let server = self.tools.server_of(&tool.name);
            let ours = || match tool.name.as_str() {
                READ_MORE => READING_ON,
                READ_SKILL_FILE | USE_SKILL => SKILLS,
                _ => TOOL_SEARCH,
            };
            let server = server.unwrap_or_else(|| ours().to_owned());
            *parts.tools.entry(server).or_default() += tokens;
        }
        let mut is_asked = false;
        for entry in entries {
            is_asked |= matches!(&***entry, Entry::User { seq, .. } if question.is_some_and(|first| *seq >= first));
            add(&mut parts, (entry, is_asked), counter);
        }
        parts
    }

    /// Returns the facts about an attempt besides its usage.
    pub(in crate::agent) fn facts(
        &self,
        subject: Subject<'_>,
        usage: &TokenUsage,
    ) -> Arc<RequestFacts> {
        let Subject {
            choice,
            parts,
            purpose,
        } = subject;
        let model = self.describe(choice);
        let version = model.price_version();
        let is_unpriced = model.price(usage).is_none();
        Arc::new(RequestFacts {
            charged: self.parts.budgets.charge().filter(|_| is_unpriced),
            provider: choice.provider.clone(),
            model: choice.model.clone(),
            price_version: version.map(ToOwned::to_owned),
            parts: parts.clone().scaled_to(usage.input_tokens),
            purpose,
        })
    }

    /// Returns the usage of an attempt, at the price of its model.
    pub(in crate::agent) fn spent(&self, subject: Subject<'_>, usage: TokenUsage) -> Spent {
        Spent {
            usage,
            cost: self.describe(subject.choice).price(&usage),
            request: Some(self.facts(subject, &usage)),
        }
    }

    /// Estimates the usage of a request that runs at another gateway: its input tokens, once for each gateway
    /// that sent it.
    pub(in crate::agent) fn spent_elsewhere(
        &self,
        control: &Control,
        (choice, tokens, parts): (&ModelChoice, u64, &RequestParts),
        so_far: &llm::Answer,
    ) -> Vec<Spent> {
        let turn = control.turn.as_ref();
        let Some(turn) = turn.filter(|turn| turn.phase == Phase::Asking) else {
            return Vec::new();
        };
        let nothing = llm::Answer::default();
        let lost = std::iter::repeat_n(&nothing, turn.restarts as usize);
        let attempts = lost.chain(std::iter::once(so_far));
        let subject = Subject {
            choice,
            parts,
            purpose: RequestPurpose::Turn,
        };
        let spent = attempts.map(|answer| self.spent(subject, estimated(tokens, answer)));
        spent.collect()
    }
}

/// Adds an entry; `is_asked` = the running turn began with this entry or an earlier one.
pub(super) fn add(parts: &mut RequestParts, (entry, is_asked): (&Weighed, bool), counter: Counter) {
    let beside = Counter::beside_text(entry);
    parts.attachments += beside.attachments;
    parts.reasoning += beside.native;
    let text = counter.counted(entry);
    let text = text.saturating_sub(beside.attachments + beside.native);
    let part = match &**entry {
        Entry::ToolResult { .. } => &mut parts.results,
        Entry::User { .. } | Entry::Note { .. } if is_asked => &mut parts.message,
        Entry::User { .. } | Entry::Note { .. } | Entry::Assistant { .. } => &mut parts.history,
    };
    *part += text;
}
