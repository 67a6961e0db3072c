//! What a session is after its events: control state and the working context.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::call::{
    Call, Elicitation, PastDecision, RepeatedCalls, ViewCalls, elicitations_wait_since,
    waiting_since,
};
use super::event::Unfinished;
use super::event::compaction::{Compaction, Gap};
use super::model::{ModelChoice, RequestFacts};
use super::policy::SessionRules;
use super::review::Reviewing;
use super::title::{TitleSource, Titling};
use crate::domain::{
    Actor, Attachment, BlobId, CallId, CompactionStrategy, Digest, Effort, EngineId, ForkOrigin,
    GatewayId, Iteration, JournalId, ModelRequestId, SandboxId, Timestamp, TokenUsage, ToolRef,
    Totals, TurnId, Weighed,
};

/// Where a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The model is asked.
    Asking,
    /// Calls wait or run.
    Calling,
}

/// A running turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Its number, from 1.
    pub id: TurnId,
    /// The model request it is at, from 1.
    pub iteration: Iteration,
    pub phase: Phase,
    pub started: Timestamp,
    /// When the phase started.
    pub phase_since: Timestamp,
    /// Whether it is to stop.
    pub is_stopping: bool,
    /// How often another process has asked this request again.
    #[serde(default)]
    pub restarts: u32,
    /// The calls of the last answer (S2.28).
    pub queue: Vec<Arc<Call>>,
    /// What servers asked while calls of it run; the answers stay until their calls end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elicitations: Vec<Arc<Elicitation>>,
    /// What the model said with them.
    pub said: String,
    /// Calls (by equality) that were rejected in this turn; repeated, they are refused unasked.
    pub rejected: BTreeSet<Digest>,
    /// What the last model request asked; another choice since then counts from the next on.
    #[serde(default)]
    pub asked: Option<ModelChoice>,
    /// Tokens of history that it may read, since a request of it was found too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Whether people know that results of it are shown in a short form.
    #[serde(default)]
    pub is_shortening_told: bool,
    /// Whether a request of it was too long for its provider, so that the limit of the history is lower now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_limit_lowered: bool,
    /// When a person last said something that it took, or decided one of its calls or let it expire, or
    /// another runner took it over; without it, when it started.
    #[serde(default)]
    pub attended: Option<Timestamp>,
    /// How much the model may think in it, as its newest message says; none = what the session says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The calls of the answer before, if they were all run, and how often in a row they gave the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<RepeatedCalls>,
    /// The limit in milliseconds that it stops for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue_ms: Option<u64>,
}

impl Turn {
    /// The model request that the turn is at.
    pub fn request(&self) -> ModelRequestId {
        ModelRequestId {
            turn: self.id,
            iteration: self.iteration,
        }
    }

    /// The calls of its queue, which has ended, counted with those before.
    pub(super) fn repeated_calls(&self) -> Option<RepeatedCalls> {
        let mut calls = RepeatedCalls::of(&self.queue)?;
        let before = self
            .repeated
            .as_ref()
            .filter(|before| (&before.equal, &before.results) == (&calls.equal, &calls.results));
        calls.times = before.map_or(1, |before| before.times.saturating_add(1));
        Some(calls)
    }

    /// Since when it goes on without a person; `None` while it waits for one, or stops.
    pub fn alone_since(&self) -> Option<Timestamp> {
        let waits = self.is_stopping || self.waiting() > 0;
        (!waits).then(|| self.attended.unwrap_or(self.started))
    }

    /// How many calls and forms of servers wait for a person.
    fn waiting(&self) -> usize {
        let calls = self.queue.iter().filter(|call| call.is_pending());
        let asked = self.elicitations.iter();
        let asked = asked.filter(|asked| asked.awaits_person());
        calls.count() + asked.count()
    }

    /// The call with that id.
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
    /// Its `seq`.
    pub seq: u64,
    pub text: String,
    /// The client's own id.
    pub client_message_id: Option<String>,
    /// How much the model may think in the turn that takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// How the last turn ended.
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

/// What the session list shows.
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

/// Everything but the context; small, so that `decide` may work on a copy.
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
    /// Whose session it is.
    pub owner: Option<Actor>,
    pub sandbox: Option<SandboxId>,
    pub model: Option<ModelChoice>,
    /// Whether it reads as much of the past as its window holds, not what the settings say (S2.9).
    #[serde(default)]
    pub reads_whole: bool,
    /// What leaves the context where earlier turns do not fit; `None` = what the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategies: Option<Vec<CompactionStrategy>>,
    /// Whether results have been shown in a short form since the context began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_short_results: bool,
    /// Tokens of history that the model may read, since its provider found more too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// How the last model request showed earlier entries, if not all of them as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    /// `seq` of the message that the newest turn began with.
    #[serde(default)]
    pub question: Option<u64>,
    /// Where it was forked from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOrigin>,
    /// Whether a copy of the other session's workspace is being made, before which nothing is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_workspace: bool,
    /// The gateway that runs the effects.
    pub runner: Option<GatewayId>,
    /// The engine that its sandboxes run on.
    #[serde(default)]
    pub runner_engine: Option<EngineId>,
    /// How often the runner changed (a fencing token): the outcome of an effect that an earlier runner
    /// started is late. Snapshots of the first releases call it `reign`.
    #[serde(default, alias = "reign")]
    pub epoch: u64,
    /// The engine that holds the workspace, since the first call that may have used it.
    #[serde(default)]
    pub engine: Option<EngineId>,
    pub title: Option<String>,
    /// Who gave it; none = there is no title, or the journal of an earlier release does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title_source: Option<TitleSource>,
    #[serde(default, skip_serializing_if = "Titling::is_unasked")]
    pub titling: Titling,
    pub turn: Option<Turn>,
    pub turns: u64,
    /// How the last one ended.
    pub last_ending: Option<Ending>,
    /// When a person last decided a call; none = nobody has, or a snapshot of an earlier release does not
    /// say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// Messages for the next model request.
    pub waiting: Vec<WaitingMessage>,
    /// Remarks for the next model request.
    pub notes: Vec<String>,
    /// What was used so far; only grows.
    pub totals: Totals,
    /// What the last model request used: the size of the context.
    pub last_usage: TokenUsage,
    /// What its vendor's own compaction took, until the answer is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacting: Option<TokenUsage>,
    /// Who answered it, and what its tokens were for; none = its journal does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_request: Option<Arc<RequestFacts>>,
    /// Millisecond of the last batch of call ids.
    pub last_call_ms: i64,
    /// Tools that ran here before.
    pub used_tools: BTreeSet<String>,
    /// Calls of unknown fate that nobody has settled.
    pub unknown: BTreeMap<CallId, String>,
    /// Equality digests of calls of unknown fate; an equal call is always asked.
    pub unknown_equals: BTreeSet<Digest>,
    /// What views asked for, beside the turns.
    #[serde(default, skip_serializing_if = "ViewCalls::is_unused")]
    pub views: ViewCalls,
    /// Client message ids and the `seq` they got, oldest first.
    pub remembered: VecDeque<(String, u64)>,
    /// People's decisions about calls of earlier queues, oldest first.
    #[serde(default)]
    pub past: VecDeque<Arc<PastDecision>>,
    /// Rules that were given for this session alone.
    #[serde(default, skip_serializing_if = "is_without_rules")]
    pub rules: Arc<SessionRules>,
    /// Hosts and ports that commands were refused and nobody has answered, so that each is told once.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub refused_hosts: BTreeSet<(String, u16)>,
    /// How the session stands with the model that reviews calls.
    #[serde(default, skip_serializing_if = "Reviewing::is_unused")]
    pub reviewing: Reviewing,
    /// Where attachments are in the workspace. A context that begins anew leaves the files there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placed: BTreeMap<BlobId, Arc<str>>,
}

/// A session: control state and the entries that the model may read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// Everything but the context.
    pub control: Control,
    /// The working context, oldest first.
    pub entries: Vec<Arc<Weighed>>,
    /// Entries that stood before them and are no longer read.
    #[serde(default)]
    pub left_out: u64,
    /// Where entries are missing between them.
    #[serde(default)]
    pub gap: Gap,
}

impl Control {
    /// Whether that gateway runs the effects.
    pub fn is_run_by(&self, gateway: &GatewayId) -> bool {
        self.runner.as_ref() == Some(gateway)
    }

    /// Whether a turn runs.
    pub fn is_active(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether something has to go on should its gateway end (the `active` index).
    pub fn is_unfinished(&self) -> bool {
        self.is_active() || self.awaits_workspace || self.views.open().next().is_some()
    }

    /// What of it goes on.
    pub fn unfinished(&self) -> Unfinished {
        Unfinished {
            has_turn: self.is_active(),
            awaits_workspace: self.awaits_workspace,
            view_calls: self.views.open().map(|call| call.id.clone()).collect(),
        }
    }

    /// The calls of the running turn, and those that views asked for.
    pub fn calls(&self) -> impl Iterator<Item = &Arc<Call>> {
        let queue = self.turn.iter().flat_map(|turn| &turn.queue);
        queue.chain(&self.views.calls)
    }

    /// The one of them with that id.
    pub fn call(&self, id: &CallId) -> Option<&Arc<Call>> {
        self.calls().find(|call| call.id == *id)
    }

    /// What servers asked while calls of them run.
    pub fn elicitations(&self) -> impl Iterator<Item = &Arc<Elicitation>> {
        let of_turn = self.turn.iter().flat_map(|turn| &turn.elicitations);
        of_turn.chain(&self.views.elicitations)
    }

    /// What the session list shows.
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

    /// When the oldest of the calls that wait for a person was asked for.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        let asked = elicitations_wait_since(self.elicitations());
        waiting_since(self.calls()).into_iter().chain(asked).min()
    }

    /// When the first of the calls that wait for a person expires; `None` = none does.
    pub fn expires_at(&self) -> Option<Timestamp> {
        let pending = self.calls().filter(|call| call.is_pending());
        pending.filter_map(|call| call.wants.expires_at).min()
    }

    /// What answers the running model request; without one, what answers the next.
    pub fn asked(&self) -> Option<&ModelChoice> {
        let turn = self.turn.as_ref().and_then(|turn| turn.asked.as_ref());
        turn.or(self.model.as_ref())
    }

    /// What a person decided about a call of an earlier queue.
    pub fn past_decision(&self, call: &CallId) -> Option<&PastDecision> {
        let past = self.past.iter().find(|past| past.call == *call);
        past.map(|past| &**past)
    }

    /// `seq` that a repeated message got the first time.
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

/// How a tool is remembered as used.
pub(super) fn tool_key(tool: &ToolRef) -> String {
    format!("{}/{}", tool.server, tool.tool)
}
