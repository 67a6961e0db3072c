//! What may be asked of a session, by people and by the outcomes of effects.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::call::{
    CallTask, Completion, DryRunReport, Elicitation, ElicitationReply, Outcome, PastDecision,
    Proposal, SamplingProblem, ViewCall,
};
use super::event::compaction::{Compacted, CompactedByVendor, ContextSize, CutKind};
use super::model::{AnsweredBy, ModelChoice, RequestFacts, Spent};
use super::policy::Rule;
use super::reasoning::Reasoning;
use super::review::Review;
use crate::domain::{
    Actor, Attachment, BlobId, CallId, Code, CompactionStrategy, Digest, Effort, ElicitationId,
    GatewayId, Gesture, HostRefusal, JournalId, MicroUsd, ModelRequestId, Native, Role, SandboxId,
    TokenUsage, TurnId, WorkspaceCopy,
};

/// What a session is created with, at its first command.
#[derive(Debug, Clone, PartialEq)]
pub struct Genesis {
    pub journal: JournalId,
    /// Whose session it is.
    pub owner: Actor,
    pub sandbox: SandboxId,
    /// What answers in it.
    pub model: ModelChoice,
}

/// Everything that can happen to a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Stores the session without saying anything.
    Open {
        /// A title, if the person gave one.
        title: Option<String>,
    },
    /// A person says something.
    Say {
        text: String,
        /// What is attached, looked up by the shell.
        attachments: Vec<Attachment>,
        author: Actor,
        /// The client's own id; a repeat changes nothing.
        client_message_id: Option<String>,
        /// How much the model may think in the turn that takes it; none = what the session says.
        effort: Option<Effort>,
    },
    /// A person decides one call.
    Decide(Decision),
    /// A person decides several calls at once.
    DecideAll {
        /// Which; `None` = all pending, for a rejection only.
        call_ids: Option<Vec<CallId>>,
        /// Whether they may run.
        approved: bool,
        reason: Option<String>,
        by: Actor,
        /// Their role, as the door knows it; `None` = only what the owner may is theirs.
        role: Option<Role>,
    },
    /// A decision that comes with a fresh gesture of the person who decides.
    WithGesture {
        gesture: Gesture,
        /// A decision about one call or several.
        decision: Box<Command>,
    },
    /// A person has a waiting call run in a copy of the workspace.
    DryRun {
        call: CallId,
        /// What the person was shown.
        digest: Option<Digest>,
        by: Actor,
        role: Option<Role>,
    },
    /// A person ends a dry run, or puts its result away.
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
    /// Stop one running call.
    StopCall { call: CallId },
    /// Say whether an unknown call happened.
    ResolveUnknown {
        call: CallId,
        happened: bool,
        by: Actor,
    },
    /// Stop the turn.
    Stop {
        /// Which; another one than the running one changes nothing.
        turn: Option<TurnId>,
        /// What the model has said so far.
        said_so_far: Option<String>,
        /// What it has thought aloud so far.
        thought_so_far: Option<Reasoning>,
        /// What its request has used so far, should it be asked now.
        spent: Vec<Spent>,
    },
    /// The turn has gone on for so long without a person that it ends, unless one came meanwhile.
    TimeOut {
        turn: TurnId,
        /// How long it may go on.
        limit: Duration,
        /// What its request has used so far, should the model be asked now.
        spent: Vec<Spent>,
    },
    /// Ask again for the last answer.
    Retry,
    /// Take a waiting message back.
    Withdraw {
        /// The client's own id of the message.
        client_message_id: String,
    },
    /// Start with an empty context.
    ResetContext,
    /// Name the session.
    Rename { title: String },
    /// Let another model answer, from the next model request on.
    ChooseModel {
        /// Which; the shell has made sure that the provider exists.
        model: ModelChoice,
    },
    /// Let the model read as much of the past as its window holds, or what the settings say again.
    ChooseWindow {
        /// Whether the whole window counts.
        whole: bool,
    },
    /// Say what leaves the context where earlier turns do not fit.
    ChooseCompaction {
        /// The first way that suffices; `None` = what the settings say.
        strategies: Option<Vec<CompactionStrategy>>,
    },
    /// The model answered.
    Answered {
        /// The request that asked.
        request: ModelRequestId,
        answer: Answer,
    },
    /// The model request failed for good.
    ModelFailed {
        /// The request that asked.
        request: ModelRequestId,
        failure: Failure,
    },
    /// The request did not fit the model's window, and less of the past may.
    Overflowed {
        /// The request that asked.
        request: ModelRequestId,
        /// What to go on with.
        cut: Cut,
        /// What its attempts used before.
        spent: Vec<Spent>,
    },
    /// What a person attached is in the workspace now, because the model that is asked cannot read it.
    AttachmentPlaced {
        /// The request that needs it.
        request: ModelRequestId,
        id: BlobId,
        /// What people call it.
        name: String,
        /// Where it is, as the session's tools name it.
        path: String,
    },
    /// A model that was asked for a title has given one, or cannot.
    Titled {
        /// Cleaned; none = there is none to be had.
        title: Option<String>,
        /// What its attempts used.
        spent: Vec<Spent>,
    },
    /// A model that was asked about a call has said something, or cannot.
    Reviewed {
        call: CallId,
        review: Review,
        /// What its attempts used.
        spent: Vec<Spent>,
    },
    /// The workspace of a fork has what it begins with.
    WorkspaceCopied { outcome: WorkspaceCopy },
    /// A call ended.
    CallEnded {
        call: CallId,
        outcome: Outcome,
        /// How long it ran.
        duration_ms: u64,
    },
    /// A view asks for a call.
    CallByView(Box<ViewCall>),
    /// A view was closed, or waits no more: those of its calls that nobody has let run are not wanted.
    CloseView {
        /// The page's own id of this showing.
        view: String,
        /// Which request alone; none = all of them, because the view is closed.
        request: Option<String>,
    },
    /// The server of a running call made a task of it.
    TaskCreated { call: CallId, task: CallTask },
    /// A server asks the person something while a call of it runs.
    Elicit(Arc<Elicitation>),
    /// A person answers it.
    AnswerElicitation(ElicitationReply),
    /// A person goes to the page that a server wants opened.
    OpenElicitation { id: ElicitationId, by: Actor },
    /// The server says that all is done at its page.
    CompleteElicitation { id: ElicitationId },
    /// The server does not want to know any more.
    WithdrawElicitation { id: ElicitationId },
    /// The model that a server wanted asked has answered, or cannot.
    Sampled {
        id: ElicitationId,
        /// The turn that pays.
        turn: TurnId,
        result: Result<Completion, SamplingProblem>,
        /// What its attempts used.
        spent: Vec<Spent>,
    },
    /// Hold a rule for this session alone; it decides what waits, too. One of the same id changes nothing.
    GiveRule {
        /// Checked by the shell.
        rule: Box<Rule>,
        by: Actor,
    },
    /// Hold a rule of this session no more.
    TakeRuleBack { id: String, by: Actor },
    /// A command of the session was refused a host.
    HostRefused(Box<HostRefusal>),
    /// The rules may be others than when calls were asked for or approved: what is refused by now does
    /// not wait and does not start.
    ReviewCalls,
    /// The deciding process goes on with the session, whose runner is gone.
    TakeOver {
        /// The runner that is gone; changes nothing if another one has taken over meanwhile.
        from: Option<GatewayId>,
    },
}

/// A person's decision about one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub call: CallId,
    /// Whether it may run; `false` without a reason on an approved one takes the approval back.
    pub approved: bool,
    /// Only takes an approval back: a repeat does not reject the call that waits again.
    pub take_back: bool,
    /// The person's words; the model reads them.
    pub reason: Option<String>,
    pub edit: Option<Edit>,
    /// The result of the call's dry run that it shall have; none = it runs.
    pub dry_run: Option<Digest>,
    /// What the person was shown.
    pub digest: Option<Digest>,
    pub by: Actor,
    /// Their role, as the door knows it; `None` = only what the owner may is theirs.
    pub role: Option<Role>,
}

/// Changed arguments, looked up and validated by the shell.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    pub args: Value,
    /// Hash of what the arguments as they were shown would run now; none if the tool is gone. Only
    /// where that is still what the card showed, the change is one of the arguments alone.
    pub unedited: Option<Digest>,
    /// Hash of what would run.
    pub digest: Digest,
    /// Hash of server, tool and new arguments.
    pub equal: Digest,
    /// What is wrong with them, naming the field.
    pub invalid: Option<String>,
}

impl Edit {
    /// Of a call whose queue is gone: all that is asked is whether it is the same change again.
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

/// A whole answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub text: String,
    /// What it thought aloud before.
    pub reasoning: Option<Reasoning>,
    /// The calls, looked up and validated.
    pub calls: Vec<Proposal>,
    /// How many more it asked for that mean nothing, because its filter stopped it or because they
    /// name no tool.
    pub dropped_calls: u64,
    /// What was shortened of the request that it answers.
    pub shortened: Option<Shortened>,
    /// What of earlier turns left the context with the request that it answers, or became shorter.
    pub compacted: Option<Box<Compacted>>,
    /// What its vendor compacted by itself before it.
    pub compacted_by_vendor: Option<Box<CompactedByVendor>>,
    pub native: Option<Native>,
    /// What the request used.
    pub usage: TokenUsage,
    /// What it cost, if the price is known.
    pub cost: Option<MicroUsd>,
    /// Who was asked, and what for.
    pub request: Option<Arc<RequestFacts>>,
    /// From the start of the request to its first piece; `None` where nobody has measured it.
    pub first_token_ms: Option<u64>,
    pub finish: String,
    /// The same in the vendor's words, where it gave some.
    pub stop_detail: Option<String>,
    /// Who gave it in the place of the model that was asked.
    pub answered_by: Option<Box<AnsweredBy>>,
    /// What the attempts before it used.
    pub spent: Vec<Spent>,
}

/// What of the context to go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// How many of the newest entries.
    pub kept: usize,
    /// What makes it smaller.
    pub kind: CutKind,
    /// Tokens of history that the rest of the turn may read.
    pub max_tokens: u64,
    /// The context that did not fit.
    pub before: ContextSize,
    /// The context to go on with.
    pub after: ContextSize,
}

/// What was shortened of a request: results that the model had read, so that it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortened {
    /// How many results of the running turn.
    pub results: u64,
    /// The context with every result whole.
    pub before: ContextSize,
    /// The context that was sent.
    pub after: ContextSize,
}

/// Why a turn ends without an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub code: Code,
    pub text: String,
    /// Whether asking again may help.
    pub is_retryable: bool,
    /// What its attempts used all the same.
    pub spent: Vec<Spent>,
}

/// Why a command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    /// The field that is wrong, if one is.
    pub field: Option<&'static str>,
}

impl Refusal {
    /// A refusal that names no field.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
        }
    }

    /// A refusal that names the wrong field.
    pub fn of_field(code: Code, field: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: Some(field),
        }
    }
}
