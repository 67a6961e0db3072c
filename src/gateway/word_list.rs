//! Declares closed lists of words in responses for the description of the REST door, so that a client
//! generated from the description, such as our page, knows every possible value.

use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Declares types that exist in the description only. `tests/it` checks every response against them.
macro_rules! word_lists {
    ($($(#[doc = $doc:literal])+ $name:ident = $($word:literal)|+;)+) => {$(
        $(#[doc = $doc])+
        pub(in crate::gateway) enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let words = ObjectBuilder::new()
                    .schema_type(Type::String)
                    .description(Some(concat!($($doc),+).trim()))
                    .enum_values(Some([$($word),+]));
                RefOr::T(words.into())
            }
        }

        impl ToSchema for $name {}
    )+};
}

word_lists! {
    /// The subject whose spending a budget limits.
    BudgetLevel = "turn" | "own" | "assistant" | "session" | "person" | "group_each" | "group_pooled" | "tenant";
    /// The time in which a budget may be spent, in UTC.
    BudgetPeriod = "whole" | "day" | "month";
    /// The origin of a budget: set for this subject, set for each subject, or a setting.
    BudgetSource = "subject" | "each" | "settings";
    /// Whose an assistant is: a person's, or the team's.
    AssistantScope = "person" | "team";
    /// What somebody may do with an assistant: see it, use it for sessions, edit it, or own it.
    AssistantLevel = "see" | "use" | "edit" | "own";
    /// The state of a session.
    SessionState = "idle" | "running" | "waiting" | "failed";
    /// The readers of a shared session: everybody who is signed in to the tenant, or everybody who has the
    /// link.
    ShareAudience = "tenant" | "link";
    /// The kind of text that a search found.
    TextKind = "title" | "message" | "answer" | "call" | "output";
    /// The way in which people sign in.
    SignInMode = "password" | "none";
    /// The role of a person in a tenant.
    UserRole = "viewer" | "approver" | "member" | "admin" | "owner";
    /// What an API key may do.
    KeyScopeWord = "read" | "message" | "decide" | "administer";
    /// A right, which a role gives.
    UserRight = "people.manage" | "people.manage_admins" | "keys.manage" | "roles.manage"
        | "groups.manage" | "rules.manage" | "budgets.manage" | "servers.manage" | "providers.manage"
        | "models.manage" | "models.test" | "skills.manage" | "assistants.manage" | "sharing.manage"
        | "webhooks.manage" | "audit.read" | "usage.read" | "network.open" | "sessions.read_content";
    /// The protocol of a model provider.
    ProviderWire = "openai" | "anthropic" | "gemini" | "openai-compatible" | "scripted";
    /// The place where a model provider is stored.
    ProviderSource = "settings" | "installation" | "tenant";
    /// The origin of the choice of the model for new sessions.
    ModelDefaultSource = "own" | "tenant" | "installation" | "settings";
    /// The strategy that shortens the context of a session if earlier turns do not fit.
    Compaction = "none" | "delete-old" | "delete-middle" | "partial-summary";
    /// The method by which tokens were counted.
    TokenMethod = "exact" | "calibrated" | "estimated";
    /// The driver of the sandboxes.
    SandboxKind = "docker" | "bubblewrap" | "none";
    /// The mechanism that enforces a limit.
    LimitMeans = "cgroup" | "rlimit" | "quota" | "watchdog" | "none";
    /// The state of a person's connection to an MCP server.
    ConnectionState = "connected" | "needed" | "absent";
    /// The sessions that are offered a skill: those of the person who stored it, or all of the tenant.
    SkillScope = "person" | "tenant";
    /// The place where the entry of an MCP server is stored.
    ServerSource = "bundled" | "settings" | "installation" | "tenant" | "person";
    /// The transport to an MCP server.
    ServerTransport = "stdio" | "stdio-docker" | "http" | "sse";
    /// The health of an MCP server.
    ServerStatus = "healthy" | "unhealthy" | "reconnecting" | "disconnected" | "unauthorized" | "unknown";
    /// The effect of a rule or a setting on a call.
    ToolEffect = "ask" | "allow" | "deny";
    /// The calls that a rule covers, by their owner; the narrowest first.
    RuleScope = "session" | "person" | "group" | "tenant" | "installation";
    /// The place where a rule is stored.
    RuleOrigin = "session" | "person" | "group" | "tenant" | "tool" | "settings";
    /// The state of a rule: in force, expired, or without effect because the tool changed.
    RuleState = "active" | "expired" | "drifted";
    /// The reach of a rule that is made from a call.
    RuleReach = "exact" | "arguments" | "tool";
    /// A step of the test of an MCP server.
    TestPhaseName = "start" | "handshake" | "tools";
    /// The kind of a text that somebody pasted.
    PastedWire = "nothing" | "json" | "command" | "image" | "url";
    /// The registry from which a package comes.
    PackageRegistryName = "npm" | "pypi" | "bundle";
    /// The progress of the installation of a package.
    InstallStateName = "waiting" | "resolving" | "downloading" | "installing" | "listing" | "ready" | "failed";
    /// The reason why a package is not installed.
    InstallProblemName = "no_such_package" | "no_such_version" | "yanked" | "no_wheel" | "needs_newer" | "wrong_hash" | "unreachable" | "too_large" | "timed_out" | "needs_script" | "no_program" | "no_tools" | "does_not_start" | "cancelled" | "other";
    /// The kind of text of an answer.
    DeltaKind = "text" | "reasoning";
    /// The thing that a turn waits for.
    TurnPhase = "model" | "waiting" | "calls";
    /// The party that has to act on an error.
    ErrorCategory = "validation" | "transient" | "external" | "internal";
    /// The reason a call cannot have a dry run.
    NoDryRun = "remote" | "network" | "open_world" | "no_workspace" | "no_tool";
    /// The means by which a person showed that they were there.
    GestureMeans = "passkey" | "password" | "provider";
    /// The state of a call.
    CallStatus = "pending" | "approved" | "rejected" | "executing" | "completed" | "failed" | "cancelled" | "unknown";
    /// The kind of place in which a call runs.
    RunsInKind = "sandbox" | "container" | "remote";
    /// The state of a model's review of a call.
    ReviewStatus = "running" | "allowed" | "refused" | "doubted" | "failed";
    /// The state of a dry run.
    DryRunStatus = "running" | "completed" | "failed" | "not_run";
    /// The change of a path.
    PathChange = "created" | "modified" | "deleted";
    /// The scope of a decision.
    DecisionScope = "once" | "taken_back";
    /// The kind of a piece of a result.
    BlockKind = "text" | "file" | "resource" | "resource_link";
    /// The kind of a server's question.
    QuestionMode = "form" | "url" | "sampling";
    /// The stage of a completion that a server asked for.
    CompletionStage = "requested" | "asking" | "answered" | "failed";
}
