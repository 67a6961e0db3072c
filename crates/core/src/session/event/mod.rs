//! Defines the events of the journal and the commits that group them.

mod commit;
pub(super) mod compaction;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use commit::{Commit, CommitError, SCHEMA, UnfinishedWork};

use self::compaction::{CompactedByVendor, CompactionReport, ContextSize};
use super::assistant::SessionAssistant;
use super::call::{
    ApprovalRequirement, Call, CallTask, Decider, DryRun, Elicitation, ElicitationAnswer,
    ElicitationEnd, Outcome, SaidCall, SamplingStage, Verdict, is_zero,
};
use super::model::{AnsweredBy, ModelChoice, RequestFacts};
use super::policy::Rule;
use super::reasoning::Reasoning;
use super::review::Review;
use super::title::{TitleSource, Titling};
use crate::domain::{
    Actor, Attachment, BlobId, CallId, Code, Digest, Effort, ElicitationId, EngineId, ForkOrigin,
    GatewayId, GestureMeans, HostRefusal, Iteration, JournalId, MicroUsd, Native, Role, SandboxId,
    StrategyName, TokenUsage, TurnId, WorkspaceCopy,
};

/// The `finish` of an answer whose calls were not run because the iteration limit was reached (S3.29).
pub(super) const MAX_ITERATIONS: &str = "max_iterations";

/// One event. *Shown* events get the session's next `seq`; *hidden* ones none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Hidden. The session began.
    Created {
        /// Names this journal to clients that resume.
        journal: JournalId,
        /// The owner of the session.
        owner: Actor,
        sandbox: SandboxId,
        /// The session's model.
        model: ModelChoice,
        /// The assistant that the session was started with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assistant: Option<Arc<SessionAssistant>>,
        /// The only MCP servers whose tools the session may use.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        servers: Option<Arc<BTreeSet<String>>>,
    },
    /// Hidden. Another gateway runs the effects from now on.
    OwnerChanged {
        /// The new runner. Journals of the first landings call it `owner`.
        #[serde(alias = "owner")]
        runner: GatewayId,
        /// The engine that its sandboxes run on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        engine: Option<EngineId>,
    },
    /// Hidden. The calls of an answer entered the queue.
    Queued {
        /// All calls, in order.
        calls: Vec<Arc<Call>>,
    },
    /// Hidden. The approval requirements of a waiting call changed.
    WantsChanged {
        call: CallId,
        wants: ApprovalRequirement,
    },
    /// Hidden. A person approved a call that needs more than its owner's approval. The call starts only
    /// after [`Self::Decided`].
    Consented {
        call: CallId,
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
        /// Digest of what would run, which the approval covers.
        digest: Digest,
        /// The changed arguments and their digest; they reset the earlier approvals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<EditedArgs>,
        /// The fresh gesture that came with the approval, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gesture: Option<GestureMeans>,
    },
    /// Hidden. A person took their approval back while the call waited.
    ConsentWithdrawn { call: CallId, by: Actor },
    /// Hidden. The usage of a model request attempt that gave no answer because it failed or was stopped.
    Spent {
        turn: TurnId,
        usage: TokenUsage,
        /// The cost, if the price is known.
        cost: Option<MicroUsd>,
        /// The provider, model and purpose of the request. Journals of earlier releases lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Arc<RequestFacts>>,
    },
    /// Hidden. The running turn has to stop.
    StopRequested {
        turn: TurnId,
        /// The exceeded time limit without a person, in milliseconds, if that is the reason (S0.58).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_ms: Option<u64>,
    },
    /// Hidden. One running call has to stop.
    CallStopRequested { call: CallId },
    /// Hidden. The server runs the call as a task, so it outlives its runner from now on.
    TaskCreated { call: CallId, task: CallTask },
    /// Hidden. A title request started or ended.
    TitlingMoved { to: Titling },
    /// Hidden. A model is asked to review the call, in parallel with the person.
    ReviewAsked { call: CallId },
    /// Hidden. The review succeeded or failed. If an approval counts, [`Self::Decided`] follows.
    Reviewed { call: CallId, review: Review },
    /// Hidden. A dry run of a waiting call began or ended; `to: None` = `by` discarded it.
    DryRunMoved {
        call: CallId,
        to: Option<Arc<DryRun>>,
        by: Option<Actor>,
    },
    /// A person sent a message.
    UserMessage {
        text: String,
        author: Actor,
        /// The client's own id, to detect repeats.
        client_message_id: Option<String>,
        /// The effort that the model may spend on thinking in the turn that reads the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A model request starts.
    Thinking {
        /// The turn number, from 1.
        turn: TurnId,
        /// The number of the request within the turn, from 1.
        iteration: Iteration,
        /// The requested model.
        model: String,
        /// `seq` of the messages that this request reads first.
        took: Vec<u64>,
        /// True if the new answer replaces the last one.
        is_retry: bool,
    },
    /// The model requested calls, with or without text.
    Said {
        turn: TurnId,
        iteration: Iteration,
        text: String,
        /// Id, name, server and arguments of each call.
        calls: Vec<SaidCall>,
        /// The usage of the request.
        usage: TokenUsage,
        /// The cost, if the price is known.
        cost: Option<MicroUsd>,
        /// The provider, model and purpose of the request. Journals of earlier releases lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Arc<RequestFacts>>,
        native: Option<Native>,
        /// The reasoning before the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
        /// The model that answered instead of the requested one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<Box<AnsweredBy>>,
    },
    /// The final answer of a turn.
    Answered {
        turn: TurnId,
        text: String,
        /// The model that answered.
        model: String,
        /// The usage of the request.
        usage: TokenUsage,
        /// The cost, if the price is known.
        cost: Option<MicroUsd>,
        /// The provider, model and purpose of the request. Journals of earlier releases lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Arc<RequestFacts>>,
        /// Duration of the whole turn.
        duration_ms: u64,
        /// Time from the start of the last request to its first piece.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_token_ms: Option<u64>,
        /// The reason the model stopped (`stop`, `length`, `max_iterations`, …).
        finish: String,
        /// The vendor's own stop reason, if it gave one: the category of a refusal, or the finding of its
        /// filter.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_detail: Option<String>,
        /// Number of requested calls that were dropped, because a provider's filter stopped the answer or
        /// because they name no tool.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped_calls: u64,
        native: Option<Native>,
        /// The reasoning before the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
        /// The model that answered instead of the requested one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<Box<AnsweredBy>>,
    },
    /// A view requested a call. The call belongs to no turn, and the model never sees it.
    ViewCalled { call: Arc<Call>, by: Actor },
    /// A call waits for a decision.
    ApprovalAsked {
        /// The whole card, so that a replay needs nothing else.
        call: Arc<Call>,
        /// Position in the queue, from 1.
        position: usize,
        /// Number of calls in the answer.
        total: usize,
        /// The text that the model gave with the calls.
        said: String,
    },
    /// A call was decided.
    Decided {
        call: CallId,
        verdict: Verdict,
        by: Decider,
        reason: Option<String>,
        /// The arguments that run and their digest, if a person changed them with this decision or before
        /// an earlier approval. Journals of earlier releases record only changes by a sole decider.
        edited: Option<EditedArgs>,
        /// The person who changed the arguments, if it was not the decider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited_by: Option<Actor>,
        /// The fresh gesture that came with the approval, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gesture: Option<GestureMeans>,
        /// Digest of the dry-run result that replaces running the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dry_run: Option<Digest>,
        /// Time until a call whose approval was taken back expires, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_after_ms: Option<u64>,
    },
    /// A call starts.
    Started {
        call: CallId,
        name: String,
        server: String,
        /// Digest of what runs; equal to the approved digest.
        digest: Digest,
        /// The `ui://` address of the tool's view at its server, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        view: Option<String>,
    },
    /// A call ended with a result.
    Ended {
        call: CallId,
        name: String,
        server: String,
        outcome: Outcome,
        /// Duration of the run.
        duration_ms: u64,
    },
    /// A person stated whether a call with an unknown outcome happened.
    Settled {
        call: CallId,
        name: String,
        happened: bool,
        by: Actor,
    },
    /// The turn ended without an answer.
    TurnFailed {
        turn: TurnId,
        code: Code,
        text: String,
        /// True if a retry may help.
        is_retryable: bool,
    },
    /// The turn was stopped, and all its calls have results.
    Cancelled {
        turn: TurnId,
        /// The text streamed until the stop.
        text: Option<String>,
        /// The reasoning streamed until the stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
    },
    /// A waiting message was taken back.
    Withdrawn {
        /// The message's `seq`.
        message_seq: u64,
        /// The client's own id.
        client_message_id: String,
    },
    /// The session has a title.
    TitleSet {
        title: String,
        /// The source of the title. Journals of earlier releases lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<TitleSource>,
    },
    /// The session goes on with another version of its assistant.
    AssistantUpdated {
        assistant: Arc<SessionAssistant>,
        by: Actor,
    },
    /// Later model requests use another model; all counters continue.
    ModelChosen { model: ModelChoice },
    /// A person set how much of the past the model reads, from the next model request on.
    WindowChosen {
        /// True if the model reads as much as its window holds; otherwise the configured amount.
        whole: bool,
    },
    /// The model starts with an empty context; the transcript stays.
    ContextReset,
    /// A request was too long for its provider, so the turn goes on with a smaller context; the transcript
    /// stays (D2).
    ContextCut {
        /// The cut's name for people: `fresh-context`, `shorten-results` or `lower-limit`.
        strategy: String,
        /// Number of newest entries that stay in the context.
        kept: usize,
        /// Tokens of history that the rest of the turn may read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u64>,
        before: ContextSize,
        after: ContextSize,
    },
    /// The journal up to here was copied from another session.
    Forked {
        origin: ForkOrigin,
        /// True if the other session has a workspace, which is then copied; `None` = written by an earlier
        /// release, which did not copy it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        has_files: Option<bool>,
    },
    /// The initial workspace of a fork is ready.
    WorkspaceCopied { outcome: WorkspaceCopy },
    /// An attachment was put into the workspace because the model cannot read it directly.
    AttachmentPlaced {
        /// Id of its content.
        id: BlobId,
        /// The file name for people.
        name: String,
        /// The path as the session's tools see it.
        path: String,
    },
    /// Earlier turns take less of the context, from this request on; the transcript stays.
    ContextCompacted(Box<CompactionReport>),
    /// The vendor compacted its input before answering; the answer that follows holds the block that
    /// replaces the compacted entries. The transcript stays.
    CompactedByVendor(Box<CompactedByVendor>),
    /// A person chose how to compact earlier turns that do not fit the context, from the next model request
    /// on.
    CompactionChosen {
        /// The strategies to try, in order, until one suffices; `None` = the configured strategies.
        strategies: Option<Vec<StrategyName>>,
    },
    /// A rule applies from now on, to this session only.
    RuleGiven { rule: Box<Rule>, by: Actor },
    /// A rule of this session was removed.
    RuleTakenBack { id: String, by: Actor },
    /// A command in the sandbox was refused access to a host; people may allow it with a rule.
    HostRefused(Box<HostRefusal>),
    /// A server asks the person something during one of its calls.
    ElicitationAsked(Arc<Elicitation>),
    /// The person opened the page of an elicitation, which stays open until the server reports completion.
    ElicitationOpened {
        id: ElicitationId,
        call: CallId,
        by: Actor,
    },
    /// An elicitation was answered or closed.
    ElicitationResolved {
        id: ElicitationId,
        call: CallId,
        answer: ElicitationAnswer,
        /// The person who answered; `None` = nobody answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// The reason the elicitation was closed without an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<ElicitationEnd>,
    },
    /// A completion that a server requested moved to another stage.
    SamplingMoved {
        id: ElicitationId,
        call: CallId,
        to: SamplingStage,
    },
    /// Results of the running turn are shortened from this request on, because the turn would not fit
    /// otherwise; the transcript stays. Recorded once per turn.
    ResultsShortened {
        results: u64,
        /// The context with every result whole.
        before: ContextSize,
        /// The context that was sent.
        after: ContextSize,
    },
}

/// Arguments that a person changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditedArgs {
    pub args: Value,
    /// Digest of what would run with the new arguments.
    pub digest: Digest,
    /// Hash of server, tool and new arguments.
    pub equal: Digest,
}

impl Event {
    /// Returns true if clients see the event, with a `seq`.
    pub fn is_shown(&self) -> bool {
        self.facts().is_shown
    }

    /// Returns what readers need to know about this kind of event.
    #[expect(
        clippy::match_same_arms,
        reason = "a table has a row for each event, in the order of their definition"
    )]
    pub fn facts(&self) -> EventFacts {
        match self {
            Self::Created { .. } => HIDDEN.of_one_session(),
            Self::OwnerChanged { .. } => HIDDEN.of_one_session(),
            Self::Queued { .. } => HIDDEN.changes_queue(),
            Self::WantsChanged { .. } => HIDDEN.changes_queue(),
            Self::Consented { .. } => HIDDEN.changes_queue(),
            Self::ConsentWithdrawn { .. } => HIDDEN.changes_queue(),
            Self::Spent { .. } => HIDDEN.of_one_session().changes_usage(),
            Self::StopRequested { .. } => HIDDEN,
            Self::CallStopRequested { .. } => HIDDEN,
            Self::TaskCreated { .. } => HIDDEN,
            Self::TitlingMoved { .. } => HIDDEN.of_one_session(),
            Self::ReviewAsked { .. } => HIDDEN.of_one_session().changes_queue(),
            Self::Reviewed { .. } => HIDDEN.of_one_session().changes_queue(),
            Self::DryRunMoved { .. } => HIDDEN.of_one_session().changes_queue(),
            Self::UserMessage { .. } => SHOWN,
            Self::Thinking { .. } => SHOWN.changes_queue(),
            Self::Said { .. } => SHOWN.changes_usage().ends_answer(),
            Self::Answered { .. } => SHOWN.changes_usage().ends_answer(),
            Self::ViewCalled { .. } => SHOWN.changes_queue(),
            Self::ApprovalAsked { .. } => SHOWN.changes_queue(),
            Self::Decided { .. } => SHOWN.changes_queue(),
            Self::Started { .. } => SHOWN.changes_queue(),
            Self::Ended { .. } => SHOWN.changes_queue(),
            Self::Settled { .. } => SHOWN,
            Self::TurnFailed { .. } => SHOWN.ends_answer(),
            Self::Cancelled { .. } => SHOWN.changes_queue().ends_answer(),
            Self::Withdrawn { .. } => SHOWN,
            Self::TitleSet { .. } => SHOWN,
            Self::AssistantUpdated { .. } => SHOWN.changes_usage(),
            Self::ModelChosen { .. } => SHOWN.changes_usage(),
            Self::WindowChosen { .. } => SHOWN.changes_usage(),
            Self::ContextReset => SHOWN.changes_usage(),
            Self::ContextCut { .. } => SHOWN.changes_usage(),
            Self::Forked { .. } => SHOWN,
            Self::WorkspaceCopied { .. } => SHOWN,
            Self::AttachmentPlaced { .. } => SHOWN,
            Self::ContextCompacted(_) => SHOWN.changes_usage(),
            Self::CompactedByVendor(_) => SHOWN.changes_usage(),
            Self::CompactionChosen { .. } => SHOWN.changes_usage(),
            Self::RuleGiven { .. } => SHOWN,
            Self::RuleTakenBack { .. } => SHOWN,
            Self::HostRefused(_) => SHOWN,
            Self::ElicitationAsked(_) => SHOWN.changes_queue(),
            Self::ElicitationOpened { .. } => SHOWN.changes_queue(),
            Self::ElicitationResolved { .. } => SHOWN.changes_queue(),
            Self::SamplingMoved { .. } => SHOWN.changes_queue(),
            Self::ResultsShortened { .. } => SHOWN.changes_usage(),
        }
    }
}

/// The facts about a kind of event that its readers go by; [`Event::facts`] has one row for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own"
)]
pub struct EventFacts {
    /// Clients see the event, with a `seq`.
    pub is_shown: bool,
    /// A fork takes the event over; other events concern only the session in which they happened.
    pub is_inherited: bool,
    /// The calls of the turn, or the cards about them, are shown differently from now on.
    pub changes_queue: bool,
    /// The usage, or what the context consists of, is shown differently from now on.
    pub changes_usage: bool,
    /// No further piece of the streamed answer follows.
    pub ends_answer: bool,
}

const HIDDEN: EventFacts = EventFacts {
    is_shown: false,
    is_inherited: true,
    changes_queue: false,
    changes_usage: false,
    ends_answer: false,
};

const SHOWN: EventFacts = EventFacts {
    is_shown: true,
    ..HIDDEN
};

impl EventFacts {
    const fn of_one_session(self) -> Self {
        Self {
            is_inherited: false,
            ..self
        }
    }

    const fn changes_queue(self) -> Self {
        Self {
            changes_queue: true,
            ..self
        }
    }

    const fn changes_usage(self) -> Self {
        Self {
            changes_usage: true,
            ..self
        }
    }

    const fn ends_answer(self) -> Self {
        Self {
            ends_answer: true,
            ..self
        }
    }
}
