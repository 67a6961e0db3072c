//! Models one tool call in the approval queue.

mod dry_run;
mod elicitation;
mod outcome;
mod past;
mod requirement;
mod sampling;
mod view;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::{
    Actor, CallId, Digest, FileFacts, GestureMeans, Memo, MicroUsd, ModelCall, RunsIn, Schema,
    Timestamp, ToolAnnotations, ToolRef, USE_TOOL, UserId,
};

pub(in crate::session) use dry_run::is_zero;
pub use dry_run::{
    DryRun, DryRunChange, DryRunFile, DryRunReport, DryRunStatus, NoDiff, NoDryRun, NoResult,
    Unseen,
};
pub use elicitation::{
    Elicitation, ElicitationAction, ElicitationAnswer, ElicitationEnd, ElicitationReply,
    elicitations_wait_since,
};
pub use outcome::{Outcome, Output};
pub use past::{PastDecision, RepeatedCalls};
pub use requirement::{ApprovalRequirement, Consent};
pub use sampling::{
    Completion, Sampling, SamplingMessage, SamplingProblem, SamplingReply, SamplingRole,
    SamplingStage,
};
pub use view::{ViewCall, ViewCalls, ViewOrigin};

use super::review::CallReview;

/// Facts about a call's tool at the moment the call was requested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFacts {
    pub tool: ToolRef,
    /// The tool's display name.
    pub title: Option<String>,
    pub description: String,
    /// JSON Schema of its arguments, shared by all calls of the tool.
    pub schema: Arc<Schema>,
    /// Annotations that the server gave.
    pub annotations: ToolAnnotations,
    /// True if the operator trusts those annotations.
    pub is_trusted: bool,
    pub runs_in: RunsIn,
    /// True if the tool runs here but cannot see the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_without_workspace: bool,
    /// Hash of the tool's definition, which rules may name. Journals of earlier releases lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
    /// The time since which the tool differs from the one that its tenant approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Timestamp>,
    /// The file that the call would write, if it was known before asking for approval. Only for display:
    /// rules and digest ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileFacts>,
    /// The `ui://…` address of the tool's view at its server, if it has one. Only for display: rules and
    /// digest ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// Hash of what would run: server, definition, arguments, sandbox image.
    pub digest: Digest,
    /// Hash of server, tool and arguments only, to recognize equal calls.
    pub equal: Digest,
    /// A door's wire form of these facts, computed on first use, because every change of the call is sent
    /// again.
    #[serde(skip)]
    pub card: Memo<Box<[u8]>>,
}

impl ToolFacts {
    /// Returns true if a trusted server calls the tool read-only. Such a call may run again after a crash
    /// instead of becoming `unknown`. An idempotent write may not: a repeat would overwrite the effects of
    /// later calls.
    pub fn may_run_again(&self) -> bool {
        self.is_trusted && self.annotations.read_only_hint == Some(true)
    }
}

/// The decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call may run.
    Approved,
    /// The call may not run.
    Rejected,
    /// An approval was taken back: the call waits again.
    TakenBack,
}

/// A call as the model asked for it, looked up and validated by the shell.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub provider_id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them.
    pub args: Value,
    /// True if the model asked through `use_tool`; `name` and `args` are still those of the tool itself.
    pub is_indirect: bool,
    /// The result of the look-up.
    pub resolution: Resolution,
}

/// The result of looking up a proposed call.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// Known tool, valid arguments.
    Ready(Arc<ToolFacts>),
    /// The call cannot be valid; the model reads the error, and no approval is asked.
    Invalid(String),
    /// The call has an answer already: nothing runs, and no approval is asked.
    Answered(String),
}

/// The names of a rule in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleName {
    pub id: String,
    /// The name for people.
    pub name: String,
}

/// The person, rule or model that decided a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decider {
    /// A person.
    Person(Actor),
    /// A rule of the policy.
    Rule {
        name: String,
        /// The rule's id; `None` = no rule covers the call, or an earlier release wrote the journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// A model, if administrators allow it (docs/rules.md, "The reviewer").
    Reviewer {
        /// The model's name at its provider.
        model: String,
        /// One line for people.
        reason: String,
        /// The cost of the review; `None` = unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<MicroUsd>,
    },
    /// The system itself, for example after a restart.
    System,
}

/// The state of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum CallStatus {
    /// Waits for a decision.
    Pending {
        /// True if `tool:approval_required` was sent for the call.
        asked: bool,
    },
    /// Approved; starts once no call is pending.
    Approved { by: Decider, at: Timestamp },
    /// Running.
    Executing {
        /// The approver.
        by: Decider,
        at: Timestamp,
        /// True if the call was asked to stop.
        is_stopping: bool,
    },
    /// Ended with a result.
    Ended {
        /// The `status` of its outcome.
        status: String,
        /// The decider, if the call was decided.
        by: Option<Decider>,
    },
}

/// A call of a turn's queue, or one that a view requested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own in journals"
)]
pub struct Call {
    pub id: CallId,
    pub provider_id: String,
    /// The view that requested the call; `None` = the model requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ViewOrigin>,
    /// The name that the model used.
    pub name: String,
    /// The arguments that would run.
    pub args: Value,
    /// True if the model asked through `use_tool`, because it was not sent the tool's definition.
    #[serde(
        default,
        alias = "is_found",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_indirect: bool,
    /// The arguments as the model wrote them, if a person edited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_args: Option<Value>,
    /// The person who last edited the arguments. Snapshots of earlier releases lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<Actor>,
    /// The facts about the tool; `None` if the call cannot be valid. Shared, because schemas are long and a
    /// call is sent again with every change of its queue.
    pub facts: Option<Arc<ToolFacts>>,
    /// The reason the call needs approval.
    pub why: String,
    /// The rule that asks for approval; `None` = no rule covers the call, the call needs approval for another
    /// reason, or an earlier release wrote the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking_rule: Option<RuleName>,
    /// The approval requirements.
    #[serde(default, skip_serializing_if = "ApprovalRequirement::is_plain")]
    pub wants: ApprovalRequirement,
    /// The approvals so far, one per person; empty if the owner's approval suffices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consents: Vec<Consent>,
    /// True if this session uses the tool for the first time.
    pub is_first_use: bool,
    /// True if a person took their approval back: from then on no rule approves the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_person: bool,
    /// The fresh gesture that came with the approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gesture: Option<GestureMeans>,
    /// The progress of the review by a model; `None` = no model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<CallReview>,
    /// The dry run of the call; `None` = there was none, or it was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<Arc<DryRun>>,
    /// Digest of the dry-run result that replaces running the call, as approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_result: Option<Digest>,
    /// True if the call was rejected because nobody decided it in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_expired: bool,
    /// The time at which the call was requested.
    pub since: Timestamp,
    pub status: CallStatus,
    /// The task that its server created; `None` = the call runs as a plain request, or does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<CallTask>,
    /// The beginning of the result or error text, once the call has ended (S2.28). The event of its end has
    /// the whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Hash of the whole result, once the call has ended, to recognize repeated results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<Digest>,
    /// A door's wire form of the call, computed on first use, because a queue is sent again with every
    /// change of one of its calls.
    #[serde(skip)]
    pub card: Memo<Box<[u8]>>,
}

impl Call {
    /// Returns true if the call waits for a decision.
    pub fn is_pending(&self) -> bool {
        matches!(self.status, CallStatus::Pending { .. })
    }

    /// Returns true if the call still waits for a decision although it has expired.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.is_pending() && self.wants.expires_at.is_some_and(|at| at <= now)
    }

    /// Returns true if the call is running.
    pub fn is_executing(&self) -> bool {
        matches!(self.status, CallStatus::Executing { .. })
    }

    /// Returns true if the call is approved and has not started.
    pub fn is_approved(&self) -> bool {
        matches!(self.status, CallStatus::Approved { .. })
    }

    /// Returns true if the call has ended.
    pub fn is_ended(&self) -> bool {
        matches!(self.status, CallStatus::Ended { .. })
    }

    /// The server's name; empty for a tool that does not exist.
    pub fn server(&self) -> &str {
        self.facts.as_ref().map_or("", |facts| &facts.tool.server)
    }

    /// Returns true if the call waits for a decision and its dry run is running.
    pub fn is_dry_running(&self) -> bool {
        let runs = |dry_run: &Arc<DryRun>| dry_run.report.is_none();
        self.is_pending() && self.dry_run.as_ref().is_some_and(runs)
    }

    /// Digest of its dry run's result, if the dry run has ended and the result was stored.
    pub fn dry_run_result(&self) -> Option<&Digest> {
        self.dry_run.as_ref()?.report.as_ref()?.result.as_ref()
    }

    /// Hash of what would run; `None` for a tool that does not exist.
    pub fn digest(&self) -> Option<&Digest> {
        self.facts.as_ref().map(|facts| &facts.digest)
    }

    /// Returns true if the current arguments differ from the proposed ones.
    pub fn is_edited(&self) -> bool {
        let first = self.original_args.as_ref();
        first.is_some_and(|first| *first != self.args)
    }

    /// Returns true if the current arguments differ from the proposed ones and the session's owner has not
    /// approved them.
    pub fn lacks_owner(&self, owner: Option<&UserId>) -> bool {
        let mut consents = self.consents.iter();
        self.is_edited() && !consents.any(|it| Some(&it.by.id) == owner)
    }

    /// Returns true if somebody other than the session's owner edited the arguments, or if the editor is
    /// unknown.
    pub fn is_edited_by_other(&self, owner: Option<&UserId>) -> bool {
        let editor = self.edited_by.as_ref().map(|editor| &editor.id);
        self.is_edited() && (owner.is_none() || editor != owner)
    }

    /// The call as the model wrote it, for the context.
    pub fn as_model_call(&self) -> ModelCall {
        let args = self.original_args.as_ref().unwrap_or(&self.args);
        ModelCall {
            id: self.id.clone(),
            provider_id: self.provider_id.clone(),
            name: self.model_name().to_owned(),
            args: if self.is_indirect {
                json!({ "tool": self.name, "arguments": args })
            } else {
                args.clone()
            },
        }
    }

    /// The name of the tool that the model called.
    pub fn model_name(&self) -> &str {
        if self.is_indirect {
            USE_TOOL
        } else {
            &self.name
        }
    }
}

/// Time of the oldest pending call; `None` = no call is pending.
pub fn waiting_since<'c>(calls: impl IntoIterator<Item = &'c Arc<Call>>) -> Option<Timestamp> {
    let pending = calls.into_iter().filter(|call| call.is_pending());
    pending.map(|call| call.since).min()
}

/// A call as `agent:message` lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SaidCall {
    pub id: CallId,
    pub name: String,
    pub server: String,
    /// The arguments as the model wrote them.
    pub args: Value,
}

impl SaidCall {
    /// Describes a call with its current arguments.
    pub fn of(call: &Call) -> Self {
        Self {
            id: call.id.clone(),
            name: call.name.clone(),
            server: call.server().to_owned(),
            args: call.args.clone(),
        }
    }
}

/// A call that its server runs as a task. The gateway polls the task by its id and never sends the call
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTask {
    /// The server's own task id.
    pub id: String,
    /// Digest of the server that took the call; a different server of the same name is not polled.
    pub server: Digest,
    /// Time that the server keeps the task, in milliseconds from its creation; `None` = not stated, or
    /// unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The time at which the session learned of the task.
    pub since: Timestamp,
}
