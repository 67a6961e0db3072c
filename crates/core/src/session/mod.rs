//! Models a session as a pure state machine, without a clock, randomness or I/O: times, ids and [`Rules`]
//! are inputs.
//!
//! A session is the fold of its journal. [`decide()`] turns commands into events, the fold
//! ([`SessionState::apply`]) turns events into state, and [`effects()`] lists the work that has to run.

mod assistant;
mod call;
mod command;
mod decide;
mod effects;
mod event;
mod evolve;
mod model;
mod policy;
pub mod proof;
mod reasoning;
mod refusal;
mod replay;
mod review;
mod state;
mod title;

#[cfg(test)]
mod fuzz;
#[cfg(any(test, feature = "testing"))]
#[expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests, also where other crates play sessions with them"
)]
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        unused_imports,
        reason = "the properties themselves run in the tests of this crate alone"
    )
)]
pub mod properties;
#[cfg(test)]
mod stories;

pub use assistant::{
    AllowedModel, AssistantBudget, AssistantDefinition, Narrowing, ServerTools, SessionAssistant,
    ToolSelection,
};
pub use call::{
    ApprovalRequirement, Call, CallStatus, CallTask, Completion, Consent, Decider, DryRun,
    DryRunChange, DryRunFile, DryRunReport, DryRunStatus, Elicitation, ElicitationAction,
    ElicitationAnswer, ElicitationEnd, ElicitationReply, NoDiff, NoDryRun, NoResult, Outcome,
    Output, PastDecision, Proposal, RepeatedCalls, Resolution, RuleName, SaidCall, Sampling,
    SamplingMessage, SamplingProblem, SamplingReply, SamplingRole, SamplingStage, ToolFacts,
    Unseen, Verdict, ViewCall, ViewCalls, ViewOrigin, elicitations_wait_since, waiting_since,
};
pub use command::{Answer, Command, Cut, Decision, Edit, Failure, Genesis, RequestShortening};
pub use decide::{Fork, Gateway, Import, Inputs, SaidElsewhere, Speaker, decide, overdue};
pub use effects::{Effect, effects};
pub use event::compaction::{
    BY_VENDOR, CompactedByVendor, Compaction, CompactionReport, ContextSize, CutKind, Gaps,
    LOWER_LIMIT, SHORTEN_RESULTS, SummarisedBy,
};
pub use event::{Commit, CommitError, Event, EventFacts, SCHEMA, UnfinishedWork};
pub use model::{AnsweredBy, AttemptUsage, ModelChoice, RequestFacts};
pub use policy::{
    Approver, EditsByOthers, GivenRule, Policy, PolicyEffect, Rule, Rules, Ruling, SessionRules,
    policy_call,
};
pub use reasoning::{MAX_REASONING, Reasoning};
pub use refusal::Refusal;
pub use replay::{Difference, Replay, ReplayFigures, ReplayReport};
pub use review::{CallReview, Review, ReviewVerdict, Reviewing, RunningReview};
pub use state::{
    Activity, ContextState, Control, Ending, Phase, Runner, SessionState, SessionTitle,
    SessionUsage, Turn, WaitingMessage,
};
pub use title::{TitleSource, Titling};
