//! What happened: the events of the journal and the commits that hold them.

mod commit;
pub(super) mod compaction;
mod edited_args;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use commit::{Commit, CommitError, SCHEMA, Unfinished};
pub(super) use edited_args::EditedArgs;

use self::compaction::{Compacted, CompactedByVendor, ContextSize};
use super::call::{
    Call, CallTask, Decider, DryRun, Elicitation, ElicitationAnswer, ElicitationEnd, Outcome,
    SaidCall, SamplingStage, Verdict, Wants, is_zero,
};
use super::model::{AnsweredBy, ModelChoice, RequestFacts};
use super::policy::Rule;
use super::reasoning::Reasoning;
use super::review::Review;
use super::title::{TitleSource, Titling};
use crate::domain::{
    Actor, Attachment, BlobId, CallId, Code, CompactionStrategy, Digest, Effort, ElicitationId,
    EngineId, ForkOrigin, GatewayId, GestureMeans, HostRefusal, Iteration, JournalId, MicroUsd,
    Native, Role, SandboxId, TokenUsage, TurnId, WorkspaceCopy,
};

/// The `finish` of an answer that might not have its calls run (S3.29).
pub(super) const MAX_ITERATIONS: &str = "max_iterations";

/// One thing that happened. *Shown* events get the session's next `seq`; *hidden* ones none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Hidden. The session began.
    Created {
        /// Names this journal to clients that resume.
        journal: JournalId,
        /// Whose session it is.
        owner: Actor,
        sandbox: SandboxId,
        /// What answers in it.
        model: ModelChoice,
    },
    /// Hidden. Another process runs the effects from here on.
    OwnerChanged {
        /// That process. Journals of the first releases call it `owner`.
        #[serde(alias = "owner")]
        runner: GatewayId,
        /// The engine that its sandboxes run on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        engine: Option<EngineId>,
    },
    /// Hidden. The calls of an answer entered the queue.
    Queued {
        /// All of them, in order.
        calls: Vec<Arc<Call>>,
    },
    /// Hidden. Rules want something else of a waiting call than before.
    WantsChanged { call: CallId, wants: Wants },
    /// Hidden. A person said yes to a call that wants more than its owner's yes. It starts only once
    /// it was decided.
    Consented {
        call: CallId,
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
        /// What would run: what the yes is about.
        digest: Digest,
        /// The changed arguments and their digest: whoever said yes before said it to others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<EditedArgs>,
        /// The fresh gesture that came with it, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gesture: Option<GestureMeans>,
    },
    /// Hidden. They took it back while the call waited.
    ConsentWithdrawn { call: CallId, by: Actor },
    /// Hidden. An attempt of a model request used this and became no answer: it failed, or was stopped.
    Spent {
        turn: TurnId,
        usage: TokenUsage,
        /// What it cost, if the price is known.
        cost: Option<MicroUsd>,
        /// Who was asked, and what for. Journals of earlier releases do not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Arc<RequestFacts>>,
    },
    /// Hidden. The running turn is to stop.
    StopRequested {
        turn: TurnId,
        /// Because it went on for longer than so many milliseconds without a person (S0.58).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_ms: Option<u64>,
    },
    /// Hidden. One running call is to stop.
    CallStopRequested { call: CallId },
    /// Hidden. The server runs the call as a task: from here on it outlives its runner.
    TaskCreated { call: CallId, task: CallTask },
    /// Hidden. A model is asked for a title, or is not any more.
    TitlingMoved { to: Titling },
    /// Hidden. A model is asked whether the call may run, beside the person.
    ReviewAsked { call: CallId },
    /// Hidden. It has said something, or cannot. A yes that counts is followed by [`Self::Decided`].
    Reviewed { call: CallId, review: Review },
    /// Hidden. A dry run of a waiting call began or ended; none = `by` put it away.
    DryRunMoved {
        call: CallId,
        to: Option<Arc<DryRun>>,
        by: Option<Actor>,
    },
    /// A person said something.
    UserMessage {
        text: String,
        author: Actor,
        /// The client's own id, for repeats.
        client_message_id: Option<String>,
        /// How much the model may think in the turn that takes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A model request starts.
    Thinking {
        /// The turn, from 1.
        turn: TurnId,
        /// The request within the turn, from 1.
        iteration: Iteration,
        /// The model that is asked.
        model: String,
        /// `seq` of the messages that this request is the first to read.
        took: Vec<u64>,
        /// Whether the last answer is to be replaced.
        is_retry: bool,
    },
    /// The model said something together with calls.
    Said {
        turn: TurnId,
        iteration: Iteration,
        text: String,
        /// Id, name, server and arguments of each call.
        calls: Vec<SaidCall>,
        /// What the request used.
        usage: TokenUsage,
        /// What it cost, if the price is known.
        cost: Option<MicroUsd>,
        /// Who was asked, and what for. Journals of earlier releases do not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Arc<RequestFacts>>,
        native: Option<Native>,
        /// What it thought aloud before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
        /// Who said it in the place of the model that was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<Box<AnsweredBy>>,
    },
    /// The final answer of a turn.
    Answered {
        turn: TurnId,
        text: String,
        /// The model that answered.
        model: String,
        /// What the request used.
        usage: TokenUsage,
        /// What it cost, if the price is known.
        cost: Option<MicroUsd>,
        /// Who was asked, and what for. Journals of earlier releases do not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Arc<RequestFacts>>,
        /// Time of the whole turn.
        duration_ms: u64,
        /// From the start of the last request to its first piece.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_token_ms: Option<u64>,
        /// Why the model stopped (`stop`, `length`, `max_iterations`, …).
        finish: String,
        /// The same in the vendor's words, if it gave some: a refusal's category, or what its filter found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_detail: Option<String>,
        /// Calls that it asked for and that were dropped: its provider's filter stopped it, or they
        /// named no tool.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped_calls: u64,
        native: Option<Native>,
        /// What it thought aloud before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
        /// Who said it in the place of the model that was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<Box<AnsweredBy>>,
    },
    /// A view asked for a call, which belongs to no turn; the model hears nothing of it.
    ViewCalled { call: Arc<Call>, by: Actor },
    /// A call waits for a decision.
    ApprovalAsked {
        /// The whole card, so that a replay needs nothing else.
        call: Arc<Call>,
        /// Its place, from 1.
        position: usize,
        /// How many calls the answer asked for.
        total: usize,
        /// What the model said with the calls.
        said: String,
    },
    /// A call was decided.
    Decided {
        call: CallId,
        verdict: Verdict,
        by: Decider,
        reason: Option<String>,
        /// The arguments that run and their digest, where a person changed them: now, or before others
        /// said yes. Journals of earlier releases say it only of those who decided alone.
        edited: Option<EditedArgs>,
        /// The person who changed them, where it was not the one who decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited_by: Option<Actor>,
        /// The fresh gesture that came with the yes, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gesture: Option<GestureMeans>,
        /// The result of the call's dry run that it has instead of running.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dry_run: Option<Digest>,
        /// How long a call that was taken back waits again until it expires, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_after_ms: Option<u64>,
    },
    /// A call runs.
    Started {
        call: CallId,
        name: String,
        server: String,
        /// What runs; equal to what was approved.
        digest: Digest,
        /// The address of the tool's view at its server, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        view: Option<String>,
    },
    /// A call has its result.
    Ended {
        call: CallId,
        name: String,
        server: String,
        outcome: Outcome,
        /// How long it ran.
        duration_ms: u64,
    },
    /// A person said whether an unknown call happened.
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
        /// Whether asking again may help.
        is_retryable: bool,
    },
    /// The turn was stopped, and every call of it has a result.
    Cancelled {
        turn: TurnId,
        /// What had been said of the answer.
        text: Option<String>,
        /// What it thought aloud until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
    },
    /// A waiting message was taken back.
    Withdrawn {
        /// Its `seq`.
        message_seq: u64,
        /// The client's own id.
        client_message_id: String,
    },
    /// The session has a title.
    TitleSet {
        title: String,
        /// Who gave it. Journals of earlier releases do not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<TitleSource>,
    },
    /// Another model answers from the next model request on; everything that was counted goes on.
    ModelChosen { model: ModelChoice },
    /// How much of the past the model reads from the next model request on.
    WindowChosen {
        /// Whether as much as its window holds; else as much as the settings say.
        whole: bool,
    },
    /// The model starts with an empty context; the transcript stays.
    ContextReset,
    /// The model no longer reads the older entries; the transcript stays (D2).
    ContextCut {
        /// How it was cut, for people: `fresh-context`, or `shorten-results`.
        strategy: String,
        /// How many of the newest entries the model goes on reading.
        kept: usize,
        /// Tokens of history that the rest of the turn may read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u64>,
        before: ContextSize,
        after: ContextSize,
    },
    /// The session goes on from here where another one was: what stands before happened there.
    Forked {
        origin: ForkOrigin,
        /// Whether the other one has a workspace, of which a copy is made now; none = earlier releases
        /// left it behind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        has_files: Option<bool>,
    },
    /// The workspace of a fork has what it begins with.
    WorkspaceCopied { outcome: WorkspaceCopy },
    /// What a person attached was put into the workspace, because a model could not read it itself.
    AttachmentPlaced {
        /// Its content.
        id: BlobId,
        /// What people call it.
        name: String,
        /// Where it is, as the session's tools name it.
        path: String,
    },
    /// Earlier turns take less of the context from this request on; the transcript stays.
    ContextCompacted(Box<Compacted>),
    /// The vendor compacted what it was sent, and goes on from that: the answer that follows holds what
    /// stands for it. The transcript stays.
    CompactedByVendor(Box<CompactedByVendor>),
    /// What leaves the context where earlier turns do not fit, from the next model request on.
    CompactionChosen {
        /// The first way that suffices; `None` = what the settings say.
        strategies: Option<Vec<CompactionStrategy>>,
    },
    /// A rule holds from here on, for this session alone.
    RuleGiven { rule: Box<Rule>, by: Actor },
    /// It holds no more.
    RuleTakenBack { id: String, by: Actor },
    /// A command of the session was refused a host, which people may allow by a rule.
    HostRefused(Box<HostRefusal>),
    /// A server asks the person something while a call of it runs.
    ElicitationAsked(Arc<Elicitation>),
    /// The person went to the page that a server wanted opened; it goes on until all is done there.
    ElicitationOpened {
        id: ElicitationId,
        call: CallId,
        by: Actor,
    },
    /// It was answered, or closed.
    ElicitationResolved {
        id: ElicitationId,
        call: CallId,
        answer: ElicitationAnswer,
        /// Who answered; none = nobody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// Why it was closed, where nobody answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<ElicitationEnd>,
    },
    /// What a server wants a model to be asked moved on: the model is asked, has answered, or cannot.
    SamplingMoved {
        id: ElicitationId,
        call: CallId,
        to: SamplingStage,
    },
    /// Results of the running turn were shown in a short form from this request on, because the turn
    /// would not have fitted otherwise; the transcript stays. Told once for a turn.
    ResultsShortened {
        results: u64,
        /// The context with every result whole.
        before: ContextSize,
        /// The context that was sent.
        after: ContextSize,
    },
}

impl Event {
    /// Whether clients see it, with a `seq`.
    pub fn is_shown(&self) -> bool {
        !matches!(
            self,
            Self::Created { .. }
                | Self::OwnerChanged { .. }
                | Self::Queued { .. }
                | Self::WantsChanged { .. }
                | Self::Consented { .. }
                | Self::ConsentWithdrawn { .. }
                | Self::Spent { .. }
                | Self::StopRequested { .. }
                | Self::CallStopRequested { .. }
                | Self::TaskCreated { .. }
                | Self::TitlingMoved { .. }
                | Self::ReviewAsked { .. }
                | Self::Reviewed { .. }
                | Self::DryRunMoved { .. }
        )
    }
}
