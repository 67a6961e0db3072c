//! The state of a session after its events: control state and working context.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::assistant::SessionAssistant;
use super::call::{
    Call, Elicitation, PastDecision, RepeatedCalls, ViewCalls, elicitations_wait_since,
    waiting_since,
};
use super::event::UnfinishedWork;
use super::event::compaction::{Compaction, Gaps};
use super::model::{ModelChoice, RequestFacts};
use super::policy::SessionRules;
use super::review::Reviewing;
use super::title::{TitleSource, Titling};
use crate::domain::{
    Actor, Attachment, BlobId, CallId, CountedEntry, Digest, Effort, EngineId, ForkOrigin,
    GatewayId, Iteration, JournalId, ModelRequestId, SandboxId, StrategyName, Timestamp,
    TokenUsage, ToolRef, Totals, TurnId,
};

/// The phase of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A model request is running.
    Asking,
    /// Calls wait or run.
    Calling,
}

/// A running turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The turn number, from 1.
    pub id: TurnId,
    /// The number of the current model request, from 1.
    pub iteration: Iteration,
    pub phase: Phase,
    pub started: Timestamp,
    /// When the phase started.
    pub phase_since: Timestamp,
    /// True if the turn has to stop.
    pub is_stopping: bool,
    /// Number of times another gateway has restarted this model request.
    #[serde(default)]
    pub restarts: u32,
    /// The calls of the last answer (S2.28).
    pub queue: Vec<Arc<Call>>,
    /// Elicitations by servers during calls of this turn; each stays until its call ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elicitations: Vec<Arc<Elicitation>>,
    /// The text that the model gave with the calls.
    pub said: String,
    /// Equality digests of the calls that were rejected in this turn; a repeated call is refused without
    /// asking.
    pub rejected: BTreeSet<Digest>,
    /// The model of the last request; a later choice applies from the next request on.
    #[serde(default)]
    pub asked: Option<ModelChoice>,
    /// Tokens of history that the turn may read, set after a request of it was too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// True if people were told that results of this turn are shortened.
    #[serde(default)]
    pub is_shortening_told: bool,
    /// True if a request of this turn was too long for its provider and lowered the history limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_limit_lowered: bool,
    /// The last time that a person attended to the turn (it read a message, one of its calls was decided or
    /// expired, or an elicitation moved on) or another runner took it over; `None` = not since `started`.
    #[serde(default)]
    pub attended: Option<Timestamp>,
    /// The effort that the model may spend on thinking in this turn, set by its newest message; `None` = the
    /// session's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The calls of the previous answer, if all of them were valid, and how often in a row they gave the
    /// same results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<RepeatedCalls>,
    /// The exceeded time limit, in milliseconds, for which the turn stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue_ms: Option<u64>,
}

impl Turn {
    /// The id of the current model request.
    pub fn request(&self) -> ModelRequestId {
        ModelRequestId {
            turn: self.id,
            iteration: self.iteration,
        }
    }

    /// The calls of the ended queue, counted together with equal calls before them.
    pub(super) fn repeated_calls(&self) -> Option<RepeatedCalls> {
        let mut calls = RepeatedCalls::of(&self.queue)?;
        let before = self
            .repeated
            .as_ref()
            .filter(|before| (&before.equal, &before.results) == (&calls.equal, &calls.results));
        calls.times = before.map_or(1, |before| before.times.saturating_add(1));
        Some(calls)
    }

    /// The time since which the turn runs without a person; `None` while it waits for a person or stops.
    pub fn alone_since(&self) -> Option<Timestamp> {
        let waits = self.is_stopping || self.waiting() > 0;
        (!waits).then(|| self.attended.unwrap_or(self.started))
    }

    /// Number of calls and elicitations that wait for a person.
    fn waiting(&self) -> usize {
        let calls = self.queue.iter().filter(|call| call.is_pending());
        let asked = self.elicitations.iter();
        let asked = asked.filter(|asked| asked.awaits_person());
        calls.count() + asked.count()
    }

    /// Finds a call of the queue by its id.
    pub fn call(&self, id: &CallId) -> Option<&Call> {
        self.queue
            .iter()
            .map(|call| &**call)
            .find(|call| call.id == *id)
    }
}

/// A message that waits for the running turn's next model request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitingMessage {
    /// The message's `seq`.
    pub seq: u64,
    pub text: String,
    /// The client's own id.
    pub client_message_id: Option<String>,
    /// The effort that the model may spend on thinking in the turn that reads the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// The end of the last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With an answer.
    Answered,
    /// With an error.
    Failed,
    /// Stopped by a person.
    Cancelled,
}

/// The activity that the session list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Nothing runs.
    Idle,
    /// The model or calls run.
    Running,
    /// Calls wait for a person.
    Waiting(usize),
    /// The last turn failed.
    Failed,
}

/// The part of the history that the model reads: the session's choices, and the limits that earlier requests
/// ran into.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContextState {
    /// True if the model reads as much of the past as its window holds instead of the configured amount
    /// (S2.9).
    #[serde(default)]
    pub reads_whole: bool,
    /// The strategies for compacting earlier turns that do not fit the context; `None` = the configured
    /// strategies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategies: Option<Vec<StrategyName>>,
    /// True if results have been shortened since the context began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_short_results: bool,
    /// Tokens of history that the model may read, set after its provider refused a longer request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The compaction by which the last model request shortened earlier entries, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    /// `seq` of the first message of the newest turn.
    #[serde(default)]
    pub question: Option<u64>,
}

/// The gateway that runs a session's effects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    /// The gateway; `None` = nothing has run yet.
    pub gateway: Option<GatewayId>,
    /// The engine that its sandboxes run on.
    pub engine: Option<EngineId>,
    /// Number of runners so far (a fencing token): an outcome of an effect that an earlier runner started
    /// is dropped.
    pub epoch: u64,
}

/// The title of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionTitle {
    pub text: Option<String>,
    /// The source of the title; `None` = there is no title, or the journal of an earlier release does not
    /// record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<TitleSource>,
    /// The state of the request to a model for a title.
    #[serde(default, skip_serializing_if = "Titling::is_unasked")]
    pub titling: Titling,
}

/// The tokens and the money that a session's model requests used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionUsage {
    /// Total usage so far; it only grows.
    pub totals: Totals,
    /// Usage of the last model request, without a vendor's compaction: the size of the context.
    pub last_usage: TokenUsage,
    /// Usage of the vendor's own compaction, until the answer is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacting: Option<TokenUsage>,
    /// Facts about the last model request; `None` = the journal does not record them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_request: Option<Arc<RequestFacts>>,
}

/// The state of the session without the context; small, so that `decide` can work on a copy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// Version of the last commit; 0 = nothing stored yet.
    pub version: u64,
    /// `seq` of the last shown event.
    pub seq: u64,
    /// When the last commit was decided.
    pub at: Timestamp,
    /// When the session was created.
    pub created_at: Timestamp,
    pub journal: Option<JournalId>,
    /// The owner of the session.
    pub owner: Option<Actor>,
    pub sandbox: Option<SandboxId>,
    pub model: Option<ModelChoice>,
    /// The assistant of the session, in the version that is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant: Option<Arc<SessionAssistant>>,
    /// The only MCP servers whose tools the session may use; `None` = those of its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Arc<BTreeSet<String>>>,
    /// Files of the assistant that the next message brings along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub due_files: Vec<Attachment>,
    /// The part of the history that the model reads.
    #[serde(default)]
    pub context: ContextState,
    /// The session that this one was forked from, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOrigin>,
    /// True while the workspace of the other session is being copied; no model request or call starts
    /// before it is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_workspace: bool,
    /// The gateway that runs the effects.
    #[serde(default)]
    pub runner: Runner,
    /// The engine that holds the workspace, set by the first call that may have used it.
    #[serde(default)]
    pub engine: Option<EngineId>,
    #[serde(default)]
    pub title: SessionTitle,
    pub turn: Option<Turn>,
    pub turns: u64,
    /// The end of the last turn.
    pub last_ending: Option<Ending>,
    /// The last time a person decided a call; `None` = never, or a snapshot of an earlier release does not
    /// record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// Messages for the next model request.
    pub waiting: Vec<WaitingMessage>,
    /// Notes to the model for the next model request.
    pub notes: Vec<String>,
    /// The tokens and the money that model requests used.
    #[serde(default)]
    pub usage: SessionUsage,
    /// Millisecond timestamp in the newest call ids.
    pub last_call_ms: i64,
    /// Tools that ran in this session.
    pub used_tools: BTreeSet<String>,
    /// Names of the calls with an unknown outcome that nobody has settled.
    pub unknown: BTreeMap<CallId, String>,
    /// Equality digests of calls with an unknown outcome; an equal call always needs approval.
    pub unknown_equals: BTreeSet<Digest>,
    /// The calls of views, outside of turns.
    #[serde(default, skip_serializing_if = "ViewCalls::is_unused")]
    pub views: ViewCalls,
    /// The `seq` of client message ids, oldest first.
    pub remembered: VecDeque<(String, u64)>,
    /// People's decisions about calls of earlier queues, oldest first.
    #[serde(default)]
    pub past: VecDeque<Arc<PastDecision>>,
    /// Rules for this session only.
    #[serde(default, skip_serializing_if = "is_without_rules")]
    pub rules: Arc<SessionRules>,
    /// Hosts and ports that commands were refused and people have not acted on yet, so that each is
    /// reported once.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub refused_hosts: BTreeSet<(String, u16)>,
    /// The state of the model that reviews calls.
    #[serde(default, skip_serializing_if = "Reviewing::is_unused")]
    pub reviewing: Reviewing,
    /// Paths of attachments in the workspace. The files stay there when the context is reset.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placed: BTreeMap<BlobId, Arc<str>>,
}

/// A session: control state and the entries that the model may read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// The state without the context.
    pub control: Control,
    /// The link of the last commit; `None` = nothing is stored yet, or the state was not folded from stored
    /// commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Digest>,
    /// The working context, oldest first.
    pub entries: Vec<Arc<CountedEntry>>,
    /// Number of earlier entries that were dropped from the context.
    #[serde(default)]
    pub left_out: u64,
    /// The places in `entries` where entries were removed from memory.
    #[serde(default)]
    pub gaps: Gaps,
}

impl Control {
    /// Returns true if that gateway runs the effects.
    pub fn is_run_by(&self, gateway: &GatewayId) -> bool {
        self.runner.gateway.as_ref() == Some(gateway)
    }

    /// Returns true if a turn is running.
    pub fn is_active(&self) -> bool {
        self.turn.is_some()
    }

    /// Returns true if another gateway has to continue the session should this one end (the `active`
    /// index).
    pub fn is_unfinished(&self) -> bool {
        self.is_active() || self.awaits_workspace || self.views.open().next().is_some()
    }

    /// The unfinished work of the session.
    pub fn unfinished(&self) -> UnfinishedWork {
        UnfinishedWork {
            has_turn: self.is_active(),
            awaits_workspace: self.awaits_workspace,
            view_calls: self.views.open().map(|call| call.id.clone()).collect(),
        }
    }

    /// The calls of the running turn and of views.
    pub fn calls(&self) -> impl Iterator<Item = &Arc<Call>> {
        let queue = self.turn.iter().flat_map(|turn| &turn.queue);
        queue.chain(&self.views.calls)
    }

    /// Finds a call of the running turn or of a view by its id.
    pub fn call(&self, id: &CallId) -> Option<&Arc<Call>> {
        self.calls().find(|call| call.id == *id)
    }

    /// The elicitations of the running turn and of views' calls.
    pub fn elicitations(&self) -> impl Iterator<Item = &Arc<Elicitation>> {
        let of_turn = self.turn.iter().flat_map(|turn| &turn.elicitations);
        of_turn.chain(&self.views.elicitations)
    }

    /// The activity that the session list shows.
    pub fn activity(&self) -> Activity {
        let asked = self.elicitations().filter(|asked| asked.awaits_person());
        let asked = asked.count();
        let waiting = asked + self.calls().filter(|call| call.is_pending()).count();
        match &self.turn {
            _ if waiting > 0 => Activity::Waiting(waiting),
            Some(_) => Activity::Running,
            None if self.views.open().next().is_some() => Activity::Running,
            None if self.last_ending == Some(Ending::Failed) => Activity::Failed,
            None => Activity::Idle,
        }
    }

    /// Time of the oldest call or elicitation that waits for a person.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        let asked = elicitations_wait_since(self.elicitations());
        waiting_since(self.calls()).into_iter().chain(asked).min()
    }

    /// Time of the first expiry among the calls that wait for a person; `None` = none expires.
    pub fn expires_at(&self) -> Option<Timestamp> {
        let pending = self.calls().filter(|call| call.is_pending());
        pending.filter_map(|call| call.wants.expires_at).min()
    }

    /// The model of the running model request, or of the next one if none is running.
    pub fn asked(&self) -> Option<&ModelChoice> {
        let turn = self.turn.as_ref().and_then(|turn| turn.asked.as_ref());
        turn.or(self.model.as_ref())
    }

    /// A person's decision about a call of an earlier queue.
    pub fn past_decision(&self, call: &CallId) -> Option<&PastDecision> {
        let past = self.past.iter().find(|past| past.call == *call);
        past.map(|past| &**past)
    }

    /// The `seq` that a repeated message got the first time.
    pub fn seq_of_message(&self, client_message_id: &str) -> Option<u64> {
        self.remembered
            .iter()
            .find(|(id, _)| id == client_message_id)
            .map(|(_, seq)| *seq)
    }
}

fn is_without_rules(rules: &Arc<SessionRules>) -> bool {
    rules.is_empty()
}

/// The key of a tool in [`Control::used_tools`].
pub(super) fn tool_key(tool: &ToolRef) -> String {
    format!("{}/{}", tool.server, tool.tool)
}
