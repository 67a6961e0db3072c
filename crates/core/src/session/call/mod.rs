//! One tool call in the approval queue.

mod dry_run;
mod elicitation;
mod outcome;
mod past;
mod repeated;
mod sampling;
mod task;
mod view;
mod wants;

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
pub use past::PastDecision;
pub use repeated::RepeatedCalls;
pub use sampling::{
    Completion, Sampling, SamplingMessage, SamplingProblem, SamplingReply, SamplingRole,
    SamplingStage,
};
pub use task::CallTask;
pub use view::{ViewCall, ViewCalls, ViewOrigin};
pub use wants::{Consent, Wants};

use super::review::CallReview;

/// What is known about the tool of a call at the moment it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFacts {
    pub tool: ToolRef,
    /// The tool's name for people.
    pub title: Option<String>,
    pub description: String,
    /// JSON Schema of its arguments, shared by all calls of the tool.
    pub schema: Arc<Schema>,
    /// Hints of its server.
    pub annotations: ToolAnnotations,
    /// Whether the operator trusts those hints.
    pub is_trusted: bool,
    pub runs_in: RunsIn,
    /// Whether it runs here and sees nothing of the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_without_workspace: bool,
    /// Hash of the tool's definition, which rules may name. Journals of earlier releases do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
    /// Since when the tool is another than the one that its tenant said yes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Timestamp>,
    /// The file that it would write, where that was known before anybody was asked. Only for people
    /// to read: neither rules nor the digest know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileFacts>,
    /// The address of the tool's view at its server, `ui://…`, if it has one. Only for people to see:
    /// neither rules nor the digest know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// Hash of what would run: server, definition, arguments, sandbox image.
    pub digest: Digest,
    /// Hash of server, tool and arguments only: "the same call again".
    pub equal: Digest,
    /// A door's wire form of it, made by whoever needs it first: each change of its call is told.
    #[serde(skip)]
    pub card: Memo<Box<[u8]>>,
}

impl ToolFacts {
    /// Whether the tool only reads, by the word of a server that is trusted: such a call may run once
    /// more after a crash, and nobody has to ask what became of it. An idempotent write may not:
    /// repeated, it would replace what a later call did.
    pub fn may_run_again(&self) -> bool {
        self.is_trusted && self.annotations.read_only_hint == Some(true)
    }
}

/// How a call was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Approved,
    /// It may not.
    Rejected,
    /// An approval was taken back: it waits again.
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
    /// Whether the model asked through `use_tool`: name and arguments are those of the tool itself.
    pub is_indirect: bool,
    /// What became of the look-up.
    pub resolution: Resolution,
}

/// Whether a proposed call can be asked about at all.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// Known tool, valid arguments.
    Ready(Arc<ToolFacts>),
    /// Cannot be valid; the model reads why, and nobody is asked.
    Invalid(String),
    /// Answered already, without anything that could be decided about: nothing runs, and nobody is
    /// asked.
    Answered(String),
}

/// Who or what decided a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decider {
    /// A person.
    Person(Actor),
    /// A rule of the policy.
    Rule {
        name: String,
        /// Which; none = that no rule is about the call, or a journal of an earlier release.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// A model, where administrators let it (docs/rules.md, "The reviewer").
    Reviewer {
        /// Its name at its provider.
        model: String,
        /// In one line, for people.
        reason: String,
        /// What the review cost; none = nobody knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<MicroUsd>,
    },
    /// The system itself, for example after a restart.
    System,
}

/// Where a call stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum CallStatus {
    /// Waits for a decision.
    Pending {
        /// Whether `tool:approval_required` went out for it.
        asked: bool,
    },
    /// Runs when nothing is pending any more.
    Approved { by: Decider, at: Timestamp },
    /// Runs.
    Executing {
        /// By whom it was approved.
        by: Decider,
        at: Timestamp,
        /// Whether it was asked to stop.
        is_stopping: bool,
    },
    /// Has its result.
    Ended {
        /// The `status` of its outcome.
        status: String,
        /// Who decided it, if anybody did.
        by: Option<Decider>,
    },
}

/// A call in the queue of a turn, or one that a view asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own in journals"
)]
pub struct Call {
    pub id: CallId,
    pub provider_id: String,
    /// Which view asked for it; none = the model did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ViewOrigin>,
    /// The name that the model used.
    pub name: String,
    /// The arguments that would run.
    pub args: Value,
    /// Whether the model asked through `use_tool`, because it was not sent the tool's definition.
    #[serde(
        default,
        alias = "is_found",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_indirect: bool,
    /// The arguments as the model wrote them, if a person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_args: Option<Value>,
    /// The person who changed them last. Snapshots of earlier releases do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<Actor>,
    /// The tool; `None` for a call that could not be valid. Shared: schemas are long, and a call is
    /// told with every change of its queue.
    pub facts: Option<Arc<ToolFacts>>,
    /// Why it is asked.
    pub why: String,
    /// What must be there before it may start.
    #[serde(default, skip_serializing_if = "Wants::is_plain")]
    pub wants: Wants,
    /// Who said yes so far, each person once; none where the owner's yes suffices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consents: Vec<Consent>,
    /// Whether this session uses the tool for the first time.
    pub is_first_use: bool,
    /// Whether a person took their yes back: from then on no rule approves it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_person: bool,
    /// The fresh gesture that came with the yes to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gesture: Option<GestureMeans>,
    /// How far a model is that reviews it; none = no model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<CallReview>,
    /// How it was tried in a copy of the workspace; none = it was not, or that was put away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<Arc<DryRun>>,
    /// The result of a dry run that it has instead of running, since it was approved so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_result: Option<Digest>,
    /// Whether it was rejected because nobody decided it in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_expired: bool,
    /// When the model asked for it.
    pub since: Timestamp,
    pub status: CallStatus,
    /// What its server made of it; none = it runs as a plain request, or does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<CallTask>,
    /// The beginning of what it gave, or of why it gave nothing, once it has ended (S2.28). The whole
    /// of it is in the event of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Hash of all that it gave, once it has ended: by it a result is known that comes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<Digest>,
    /// A door's wire form of it, made by whoever needs it first: a queue is told with every change of
    /// one of its calls.
    #[serde(skip)]
    pub card: Memo<Box<[u8]>>,
}

impl Call {
    /// Waits for a decision.
    pub fn is_pending(&self) -> bool {
        matches!(self.status, CallStatus::Pending { .. })
    }

    /// Waits for a decision, for which it is too late.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.is_pending() && self.wants.expires_at.is_some_and(|at| at <= now)
    }

    /// Runs.
    pub fn is_executing(&self) -> bool {
        matches!(self.status, CallStatus::Executing { .. })
    }

    /// Approved and not yet started.
    pub fn is_approved(&self) -> bool {
        matches!(self.status, CallStatus::Approved { .. })
    }

    /// Has its result.
    pub fn is_ended(&self) -> bool {
        matches!(self.status, CallStatus::Ended { .. })
    }

    /// The server's name, empty for a tool that does not exist.
    pub fn server(&self) -> &str {
        self.facts.as_ref().map_or("", |facts| &facts.tool.server)
    }

    /// Waits for a decision while a dry run of it is under way.
    pub fn is_dry_running(&self) -> bool {
        let runs = |dry_run: &Arc<DryRun>| dry_run.report.is_none();
        self.is_pending() && self.dry_run.as_ref().is_some_and(runs)
    }

    /// The result of its dry run, while that is shown and kept.
    pub fn dry_run_result(&self) -> Option<&Digest> {
        self.dry_run.as_ref()?.report.as_ref()?.result.as_ref()
    }

    /// Hash of what would run; none for a tool that does not exist.
    pub fn digest(&self) -> Option<&Digest> {
        self.facts.as_ref().map(|facts| &facts.digest)
    }

    /// Whether other arguments would run than those that were proposed.
    pub fn is_edited(&self) -> bool {
        let first = self.original_args.as_ref();
        first.is_some_and(|first| *first != self.args)
    }

    /// Whether other arguments would run than those that were proposed, and the owner of the session has
    /// not said yes to them, or took that back.
    pub fn lacks_owner(&self, owner: Option<&UserId>) -> bool {
        let mut consents = self.consents.iter();
        self.is_edited() && !consents.any(|it| Some(&it.by.id) == owner)
    }

    /// Whether somebody else than the owner of the session changed the arguments, or nobody knows who.
    pub fn is_edited_by_other(&self, owner: Option<&UserId>) -> bool {
        let editor = self.edited_by.as_ref().map(|editor| &editor.id);
        self.is_edited() && (owner.is_none() || editor != owner)
    }

    /// The call as it stands in the context: as the model wrote it.
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

/// When the oldest of those calls that wait for a decision was asked for; none = none waits.
pub fn waiting_since<'c>(calls: impl IntoIterator<Item = &'c Arc<Call>>) -> Option<Timestamp> {
    let pending = calls.into_iter().filter(|call| call.is_pending());
    pending.map(|call| call.since).min()
}

/// A call as `agent:message` names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SaidCall {
    pub id: CallId,
    pub name: String,
    pub server: String,
    /// The arguments as the model wrote them.
    pub args: Value,
}

impl SaidCall {
    /// As it stands.
    pub fn of(call: &Call) -> Self {
        Self {
            id: call.id.clone(),
            name: call.name.clone(),
            server: call.server().to_owned(),
            args: call.args.clone(),
        }
    }
}
