//! Runs one task per live session, which decides commands, appends the commits, then shows them and carries
//! them out.
//!
//! [`Sessions`] is the only way in: every door tells, watches and reads sessions through it.

mod assistants;
mod attachments;
mod audit;
mod budget;
mod checkpoints;
mod cluster;
mod effects;
mod feed;
#[cfg(test)]
mod fuzz;
mod journal;
mod key_limits;
mod mailbox;
mod notifications;
mod request;
mod row_error;
mod rules;
mod search;
mod service_events;
mod session;
mod sessions;
mod usage;

pub use crate::providers::Providers;
pub use crate::sandbox::host::SandboxHost;
pub use crate::servers::{Servers, ServersParts};
pub use assistants::{
    AccessEntry, AccessWhom, AssistantChoice, AssistantDraft, AssistantFile, AssistantScope,
    AssistantView, Assistants, NamedAccess, SessionStart,
};
pub use attachments::{AttachmentLimits, Attachments};
pub use audit::{
    Anchor, AuditAccess, AuditCheck, AuditError, AuditPage, AuditParts, AuditPlace, AuditSettings,
    AuditStanding, AuditTrail, BrokenSession, ExportLine, ListedRecord, PassedRecord, Receivers,
    RecordForms, TimestampError, check_all, check_lines,
};
pub use budget::{
    BudgetChange, BudgetError, BudgetSettings, BudgetView, BudgetWhose, Budgets, Probe, ProbeError,
};
pub use checkpoints::{PlannedChange, UndoPlan, UndoResult};
pub use cluster::list_broadcast::ListWatch;
pub use effects::session_agent::{
    AgentFactory, AgentParts, ContextSources, Reviewer, SessionAgent,
};
pub use effects::tool_call::SessionTools;
pub use feed::list_update::ListUpdate;
pub use feed::running_answer::{Delta, DeltaKind, RunningAnswer, tail};
pub use feed::{
    Feed, FeedItem, GoingOn, Notice, OmittedHistory, OthersSession, QueueState,
    SessionSubscription, SessionView, ShownEvent, Signal, TurnView, UsageState,
};
pub use key_limits::require_scope;
pub use mailbox::{Acknowledgement, damaged, limit_reached};
pub use notifications::{
    BatchNotice, MailSetting, MailText, NewWebhook, NotificationError, NotificationForms,
    NotificationParts, NotificationSettings, Notifications, Trial, WebhookAccess,
};
pub use request::{SessionAction, SessionRequest, SubmitOptions, ViewContext, ViewRequest};
pub use row_error::RowError;
pub use rules::{
    Change, CreatedRule, NewRule, OthersCalls, PreviewedRule, RuleAccess, RuleError, RuleOffer,
    RuleReach, RuleState, RuleView, RuleWhose, SimulatedCall, Simulation,
};
pub use search::finding::{FoundPage, FoundSession, FoundText, SnippetPiece};
pub use service_events::{ServiceEvent, ServiceObserver};
pub use sessions::approvals::{Approvals, WaitingPage, WaitingSession};
pub use sessions::archive::{Archive, ArchivedSession};
pub use sessions::attach::Upload;
pub use sessions::decisions::{DecisionPart, DecisionReader};
pub use sessions::files::changes::WorkspaceHistory;
pub use sessions::files::{FilePurpose, SessionFiles};
pub use sessions::fork::{ForkRequest, family, fork};
pub use sessions::import::{CarriedFile, Conversation, ImportResult, Importing};
pub use sessions::offers::{
    GivenMessage, MessagePart, PromptGiven, ServerView, SessionOffers, ViewBody, ViewContent,
};
pub use sessions::readings::{ReadingView, Readings};
pub use sessions::removal::expiry::remove_expired_rows;
pub use sessions::shared::{SharedBy, SharedView, Sharing, TranscriptPart};
pub use sessions::transfers::{TransferPart, Transfers};
pub use sessions::{Page, Sessions, SessionsSettings};
pub use usage::{UsageAccess, UsageGroups, UsageReport, UsageRequest};
