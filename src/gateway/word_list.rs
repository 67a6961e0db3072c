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
    /// Whose spending a budget limits.
    BudgetLevel = "turn" | "own" | "session" | "person" | "tenant";
    /// In which time a budget may be spent, in UTC.
    BudgetPeriod = "whole" | "day" | "month";
    /// Where a budget is from: set for this one, set for each, or a setting.
    BudgetSource = "subject" | "each" | "settings";
    /// What a session does.
    SessionState = "idle" | "running" | "waiting" | "failed";
    /// Who may read what is shared: whoever is signed in to the tenant, or whoever has the link.
    ShareAudience = "tenant" | "link";
    /// What was found.
    TextKind = "title" | "message" | "answer" | "call" | "output";
    /// How people sign in.
    SignInMode = "password" | "none";
    /// What a person may do in a tenant.
    UserRole = "viewer" | "member" | "admin" | "owner";
    /// What a model provider speaks.
    ProviderWire = "openai" | "anthropic" | "gemini" | "openai-compatible" | "scripted";
    /// Where a model provider is kept.
    ProviderSource = "settings" | "installation" | "tenant";
    /// Who chose the model of new sessions.
    ModelDefaultSource = "own" | "tenant" | "installation" | "settings";
    /// What leaves the context of a session where earlier turns do not fit.
    Compaction = "none" | "delete-old" | "delete-middle" | "partial-summary";
    /// How tokens were counted.
    TokenMethod = "exact" | "calibrated" | "estimated";
    /// What seals tools in.
    SandboxKind = "docker" | "bubblewrap" | "none";
    /// What holds a limit in force.
    LimitMeans = "cgroup" | "rlimit" | "quota" | "watchdog" | "none";
    /// Whether a person is connected to an MCP server.
    ConnectionState = "connected" | "needed" | "absent";
    /// Whose sessions a skill is for: those of the person who keeps it, or everybody's in the tenant.
    SkillScope = "person" | "tenant";
    /// Where an MCP server is kept.
    ServerSource = "bundled" | "settings" | "installation" | "tenant" | "person";
    /// How an MCP server is spoken to.
    ServerTransport = "stdio" | "stdio-docker" | "http" | "sse";
    /// How an MCP server is.
    ServerStatus = "healthy" | "unhealthy" | "reconnecting" | "disconnected" | "unauthorized" | "unknown";
    /// What is done with a call of a tool.
    ToolEffect = "ask" | "allow" | "deny";
    /// For whose calls a rule is, the nearest first.
    RuleScope = "session" | "person" | "tenant" | "installation";
    /// Where a rule was written down.
    RuleOrigin = "session" | "person" | "tenant" | "tool" | "settings";
    /// Whether a rule still does something.
    RuleState = "active" | "expired" | "drifted";
    /// About how many calls a rule would be that is made from one.
    RuleReach = "exact" | "arguments" | "tool";
    /// A step of trying out an MCP server.
    TestPhaseName = "start" | "handshake" | "tools";
    /// Where a package comes from.
    PackageRegistryName = "npm" | "pypi" | "bundle";
    /// How far the installation of a package is.
    InstallStateName = "waiting" | "resolving" | "downloading" | "installing" | "listing" | "ready" | "failed";
    /// Why a package is not installed.
    InstallProblemName = "no_such_package" | "no_such_version" | "yanked" | "no_wheel" | "needs_newer" | "wrong_hash" | "unreachable" | "too_large" | "timed_out" | "needs_script" | "no_program" | "no_tools" | "does_not_start" | "cancelled" | "other";
}
