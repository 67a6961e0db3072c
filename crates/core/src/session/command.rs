//! Commands to a session, from people and from the outcomes of effects.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::assistant::SessionAssistant;
use super::call::{
    CallTask, Completion, DryRunReport, Elicitation, ElicitationReply, Outcome, PastDecision,
    Proposal, SamplingProblem, ViewCall,
};
use super::event::compaction::{CompactedByVendor, CompactionReport, ContextSize, CutKind};
use super::model::{AnsweredBy, AttemptUsage, ModelChoice, RequestFacts};
use super::policy::Rule;
use super::reasoning::Reasoning;
use super::review::Review;
use crate::domain::{
    Actor, Attachment, BlobId, CallId, Code, Digest, Effort, ElicitationId, GatewayId, Gesture,
    HostRefusal, JournalId, MicroUsd, ModelRequestId, Native, Role, SandboxId, StrategyName,
    TokenUsage, TurnId, WorkspaceCopy,
};

/// The properties that a session's first command creates it with.
#[derive(Debug, Clone, PartialEq)]
pub struct Genesis {
    pub journal: JournalId,
    /// The owner of the session.
    pub owner: Actor,
    pub sandbox: SandboxId,
    /// The session's model.
    pub model: ModelChoice,
    /// The assistant that the session is started with.
    pub assistant: Option<Arc<SessionAssistant>>,
    /// The only MCP servers whose tools the session may use, because the key that began it is limited to them;
    /// `None` = those of its owner.
    pub servers: Option<Arc<BTreeSet<String>>>,
}

/// A command to a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Stores the session without a message.
    Open {
        /// A title, if the person gave one.
        title: Option<String>,
    },
    /// A person sends a message.
    Say {
        text: String,
        /// The attached files, looked up by the shell.
        attachments: Vec<Attachment>,
        author: Actor,
        /// The client's own message id; a repeated id changes nothing.
        client_message_id: Option<String>,
        /// The effort that the model may spend on thinking in the turn that reads the message; `None` = the
        /// session's setting.
        effort: Option<Effort>,
    },
    /// A person decides one call.
    Decide(Decision),
    /// A person decides several calls at once.
    DecideAll {
        /// The calls to decide; `None` = all pending calls, for a rejection only.
        call_ids: Option<Vec<CallId>>,
        /// True if the calls may run.
        approved: bool,
        reason: Option<String>,
        by: Actor,
        /// The person's role, as the door knows it; `None` = the decision counts only if the person owns
        /// the session.
        role: Option<Role>,
    },
    /// A decision with a fresh gesture of the deciding person.
    WithGesture {
        gesture: Gesture,
        /// The decision, about one call or several.
        decision: Box<Command>,
    },
    /// A person starts a dry run of a waiting call.
    DryRun {
        call: CallId,
        /// The digest on the card that the person was shown.
        digest: Option<Digest>,
        by: Actor,
        role: Option<Role>,
    },
    /// A person stops a dry run or discards its result.
    DropDryRun {
        call: CallId,
        by: Actor,
        role: Option<Role>,
    },
    /// A dry run has ended.
    DryRunEnded {
        call: CallId,
        report: Box<DryRunReport>,
    },
    /// Stops one running call.
    StopCall { call: CallId },
    /// A person states whether a call with an unknown outcome happened.
    ResolveUnknown {
        call: CallId,
        happened: bool,
        by: Actor,
    },
    /// Stops the turn.
    Stop {
        /// The turn to stop; changes nothing if another turn is running. `None` = the running turn.
        turn: Option<TurnId>,
        /// The text that the model has streamed so far.
        said_so_far: Option<String>,
        /// The reasoning that the model has streamed so far.
        thought_so_far: Option<Reasoning>,
        /// The usage of the running model request so far, if one is running.
        spent: Vec<AttemptUsage>,
    },
    /// Ends a turn that ran for too long without a person, unless a person has acted meanwhile.
    TimeOut {
        turn: TurnId,
        /// The time limit of the turn.
        limit: Duration,
        /// The usage of the running model request so far, if one is running.
        spent: Vec<AttemptUsage>,
    },
    /// Repeats the request for the last answer.
    Retry,
    /// Takes a waiting message back.
    Withdraw {
        /// The client's own id of the message.
        client_message_id: String,
    },
    /// Starts with an empty context.
    ResetContext,
    /// Renames the session.
    Rename { title: String },
    /// Chooses the model for later model requests.
    ChooseModel {
        /// The new model; the shell has checked that the provider exists.
        model: ModelChoice,
    },
    /// Takes another version of the session's assistant into use.
    UpdateAssistant {
        /// The new version; the shell has checked that the person may use it.
        assistant: Arc<SessionAssistant>,
        by: Actor,
    },
    /// Sets how much of the past the model reads: its whole window, or the configured amount.
    ChooseWindow {
        /// True if the model reads as much as its window holds.
        whole: bool,
    },
    /// Chooses how to compact earlier turns that do not fit the context.
    ChooseCompaction {
        /// The strategies to try, in order, until one suffices; `None` = the configured strategies.
        strategies: Option<Vec<StrategyName>>,
    },
    /// The model answered.
    Answered {
        /// The model request that was answered.
        request: ModelRequestId,
        answer: Answer,
    },
    /// The model request failed, and no attempt is left.
    ModelFailed {
        /// The model request that failed.
        request: ModelRequestId,
        failure: Failure,
    },
    /// The request exceeded the model's window; a smaller context may fit.
    Overflowed {
        /// The model request that was too long.
        request: ModelRequestId,
        /// The smaller context.
        cut: Cut,
        /// The usage of the failed attempts.
        spent: Vec<AttemptUsage>,
    },
    /// An attachment was put into the workspace because the model cannot read it directly.
    AttachmentPlaced {
        /// The model request that needs the attachment.
        request: ModelRequestId,
        id: BlobId,
        /// The file name for people.
        name: String,
        /// The path as the session's tools see it.
        path: String,
    },
    /// A title request succeeded or failed.
    Titled {
        /// The cleaned title; `None` = the model gave no title.
        title: Option<String>,
        /// The usage of its attempts.
        spent: Vec<AttemptUsage>,
    },
    /// A review of a call succeeded or failed.
    Reviewed {
        call: CallId,
        review: Review,
        /// The usage of its attempts.
        spent: Vec<AttemptUsage>,
    },
    /// The initial workspace of a fork is ready.
    WorkspaceCopied { outcome: WorkspaceCopy },
    /// A call ended.
    CallEnded {
        call: CallId,
        outcome: Outcome,
        /// The time that the call ran.
        duration_ms: u64,
    },
    /// A view requests a call.
    CallByView(Box<ViewCall>),
    /// A view was closed, or stopped waiting for a request: its calls that have not started are
    /// cancelled.
    CloseView {
        /// The page's own id of this showing of the view.
        view: String,
        /// The request to cancel; `None` = all of them, because the view is closed.
        request: Option<String>,
    },
    /// The server turned a running call into a task.
    TaskCreated { call: CallId, task: CallTask },
    /// A server asks the person something during one of its calls.
    Elicit(Arc<Elicitation>),
    /// A person answers an elicitation.
    AnswerElicitation(ElicitationReply),
    /// A person opens the page of an elicitation.
    OpenElicitation { id: ElicitationId, by: Actor },
    /// The server reports that the person is done at its page.
    CompleteElicitation { id: ElicitationId },
    /// The server withdraws its elicitation.
    WithdrawElicitation { id: ElicitationId },
    /// A completion that a server requested succeeded or failed.
    Sampled {
        id: ElicitationId,
        /// The turn that pays for the completion.
        turn: TurnId,
        result: Result<Completion, SamplingProblem>,
        /// The usage of its attempts.
        spent: Vec<AttemptUsage>,
    },
    /// Adds a rule for this session only; the rule also decides waiting calls. A rule with an existing id
    /// changes nothing.
    GiveRule {
        /// The rule, checked by the shell.
        rule: Box<Rule>,
        by: Actor,
    },
    /// Removes a rule of this session.
    TakeRuleBack { id: String, by: Actor },
    /// A command in the sandbox was refused access to a host.
    HostRefused(Box<HostRefusal>),
    /// Applies the current rules again: pending calls that they deny no longer wait, and approved calls
    /// that they deny do not start.
    ReviewCalls,
    /// The deciding gateway takes over the effects of a session whose runner is gone.
    TakeOver {
        /// The runner that is gone; the command changes nothing if another gateway has taken over
        /// meanwhile.
        from: Option<GatewayId>,
    },
}

/// A person's decision about one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub call: CallId,
    /// True if the call may run; `false` without a reason takes the approval of an approved call back.
    pub approved: bool,
    /// True if the decision may only take an approval back, so that a repeat does not reject the call that
    /// waits again.
    pub take_back: bool,
    /// The person's reason; the model reads it.
    pub reason: Option<String>,
    pub edit: Option<Edit>,
    /// The dry-run result that replaces running the call; `None` = the call runs.
    pub dry_run: Option<Digest>,
    /// The digest on the card that the person was shown.
    pub digest: Option<Digest>,
    pub by: Actor,
    /// The person's role, as the door knows it; `None` = the decision counts only if the person owns the
    /// session.
    pub role: Option<Role>,
}

/// Changed arguments, looked up and validated by the shell.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    pub args: Value,
    /// Digest of the unedited arguments against the current tool; `None` if the tool is gone. The edit
    /// changed nothing but arguments only if this digest still equals the one on the card.
    pub unedited: Option<Digest>,
    /// Digest of what would run.
    pub digest: Digest,
    /// Hash of server, tool and new arguments.
    pub equal: Digest,
    /// The validation error, naming the field.
    pub invalid: Option<String>,
}

impl Edit {
    /// An edit of a call whose queue is gone: only used to check whether it repeats the earlier edit.
    pub fn of_past(past: &PastDecision, args: Value) -> Self {
        Self {
            unedited: None,
            digest: Digest::from_wire(""),
            equal: Digest::of_equal_calls(&past.tool, &args),
            args,
            invalid: None,
        }
    }
}

/// A complete answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub text: String,
    /// The reasoning before the answer.
    pub reasoning: Option<Reasoning>,
    /// The calls, looked up and validated.
    pub calls: Vec<Proposal>,
    /// Number of requested calls that were dropped, because a provider's filter stopped the answer or
    /// because they name no tool.
    pub dropped_calls: u64,
    /// The shortening of the request that this answers.
    pub shortened: Option<RequestShortening>,
    /// The compaction of earlier turns that began with the request that this answers.
    pub compacted: Option<Box<CompactionReport>>,
    /// The vendor's own compaction before this answer.
    pub compacted_by_vendor: Option<Box<CompactedByVendor>>,
    pub native: Option<Native>,
    /// The usage of the request.
    pub usage: TokenUsage,
    /// The cost, if the price is known.
    pub cost: Option<MicroUsd>,
    /// The provider, model and purpose of the request.
    pub request: Option<Arc<RequestFacts>>,
    /// Time from the start of the request to its first piece; `None` = not measured.
    pub first_token_ms: Option<u64>,
    pub finish: String,
    /// The vendor's own stop reason, if it gave one.
    pub stop_detail: Option<String>,
    /// The model that answered instead of the requested one.
    pub answered_by: Option<Box<AnsweredBy>>,
    /// The usage of the earlier, failed attempts.
    pub spent: Vec<AttemptUsage>,
}

/// The part of the context that the turn goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Number of newest entries to keep.
    pub kept: usize,
    /// The kind of reduction.
    pub kind: CutKind,
    /// Tokens of history that the rest of the turn may read.
    pub max_tokens: u64,
    /// The context that did not fit.
    pub before: ContextSize,
    /// The smaller context.
    pub after: ContextSize,
}

/// The shortening of a request: results that the model had already read are cut so that the request fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestShortening {
    /// Number of shortened results of the running turn.
    pub results: u64,
    /// The context with every result whole.
    pub before: ContextSize,
    /// The context that was sent.
    pub after: ContextSize,
}

/// The error that ends a turn without an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub code: Code,
    pub text: String,
    /// True if a retry may help.
    pub is_retryable: bool,
    /// The usage of the failed attempts.
    pub spent: Vec<AttemptUsage>,
}
