//! Stores all data that is not part of a journal, with one file per table: credentials, the lists of
//! sessions, and so on.
//!
//! Every query names the tenant, except those that look up someone by the hash of a secret.

mod admission;
mod api_keys;
mod assistants;
mod attachments;
mod audit;
mod budgets;
mod calibrations;
mod checkpoints;
mod compaction_defaults;
mod custom_roles;
mod directories;
mod dry_run_results;
mod gestures;
mod given_rights;
mod group_access;
mod idempotency_keys;
mod identities;
mod installation;
mod invitations;
mod key_grants;
mod links;
mod mcp_authorizations;
mod mcp_bundles;
mod mcp_grants;
mod mcp_servers;
mod model_defaults;
mod notifications;
mod oidc_flows;
mod packages;
mod passkeys;
mod providers;
mod rules;
mod sandboxes;
mod scim_tokens;
mod secrets;
mod server_offers;
mod session_readings;
mod session_transfers;
mod sessions;
mod shared_sessions;
mod skills;
pub(crate) mod tenant_tables;
mod tenants;
mod texts;
mod tool_definitions;
mod tool_settings;
mod usage;
mod user_groups;
mod users;
mod versions;
mod web_sessions;
mod webhooks;

pub use admission::{AccountName, Admission, SecretHash};
pub use api_keys::{ApiKey, ApiKeys, NewApiKey};
pub use assistants::{
    AssistantAccess, AssistantLevel, AssistantRow, AssistantVersion, Assistants, MOST_VERSIONS,
    NewAssistantVersion,
};
pub use attachments::{AttachedTo, Attachments, PutOutcome};
pub use audit::{
    AnchorRow, Audit, AuditFilter, AuditRow, DecisionRow, DueAnchor, LeaseName, Note,
    RecordReceiver, Seal,
};
pub use budgets::{Budgets, ListedBudget, Payer, ReservationOutcome};
pub use calibrations::{CalibrationRow, Calibrations};
pub use checkpoints::{Checkpoints, WorkspaceBase, WorkspaceEntries};
pub use compaction_defaults::CompactionDefaults;
pub use custom_roles::{CustomRole, CustomRoles, ListedRole};
pub use directories::{
    DIRECTORY, Directories, DirectoryEntry, DirectoryGroup, DirectoryKey, DirectoryMember,
    DirectoryPerson, MembersOf, PeopleWanted,
};
pub use dry_run_results::DryRunResults;
pub use gestures::{GestureStage, Gestures, NewGesture};
pub use group_access::{GroupAccesses, NamedThing};
pub use idempotency_keys::{
    IdempotencyKeys, KEY_LIFE_MS, KeptAnswer, KeyOutcome, KeyedRequest, MOST_KEYS,
};
pub use identities::{Identities, IdentitySignIn};
pub use invitations::{Invitation, Invitations};
pub use links::{LinkTarget, Links};
pub use mcp_authorizations::McpAuthorizations;
pub use mcp_bundles::{BundleRow, McpBundles};
pub use mcp_grants::{GrantKey, GrantRow, McpGrants, SealedTokens};
pub use mcp_servers::{McpServerRow, McpServers};
pub use model_defaults::{ModelDefault, ModelDefaults};
pub use notifications::{
    AttemptOutcome, DueNotification, NotificationEvent, NotificationKey, NotificationTarget,
    Notifications,
};
pub use oidc_flows::{EndedAt, OidcFlow, OidcFlows, StepUp};
pub use packages::{InstallationRow, PackageVolume, Packages};
pub use passkeys::{MOST_PASSKEYS, OwnedPasskey, PasskeyRow, Passkeys};
pub use providers::{ProviderRow, Providers};
pub use rules::{MOST_RULES, RuleRow, RuleUses, Rules};
pub use sandboxes::{ListedSandbox, SandboxRow, Sandboxes};
pub use scim_tokens::{ScimToken, ScimTokens};
pub use secrets::{SecretRow, Secrets};
pub use server_offers::ServerOffers;
pub use session_readings::{ListedReading, Reading, SessionReadings};
pub use session_transfers::SessionTransfers;
pub use sessions::{
    AskedRoles, Cursor, DecidableSessions, ListFilter, MAX_TAGS, Marks, MarksChange, ProjectedRow,
    SessionRow, SessionState, Sessions, SessionsPage, WaitingBatch, WaitingCursor,
    WaitingSessionsPage, WaitingTotals,
};
pub use shared_sessions::{Audience, SharedSession, SharedSessions};
pub use skills::{OfferedSkill, SkillRow, Skills};
pub use tenants::{ListedTenant, TenantStanding, Tenants};
pub use texts::{Behind, Hit, NewText, TakenUp, TextChange, TextKind, Texts};
pub use tool_definitions::{DefinitionChange, ToolDefinitions, ToolVersion};
pub use tool_settings::{ToolSetting, ToolSettings};
pub use usage::{
    CallRow, CallSums, DAY_MS, Direction, EventPlace, RequestRow, RequestSums, Sorting, Usage,
    UsageBy, UsageFilter, UsageGroup, UsageProgress, UsageRows,
};
pub use user_groups::{GroupMember, GroupsChange, ListedGroup, UserGroup, UserGroups};
pub use users::{FirstOwner, ListedUser, MailChoice, NewUser, UserKind, UserRecord, Users};
pub use versions::RecordVersions;
pub use web_sessions::{Identity, NewWebSession, SignIn, WebSessions};
pub use webhooks::{Address, Attempt, WebhookRow, Webhooks};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::db::Db;
use super::{Error, Sealer};
use sepal_core::domain::{Iteration, ModelRequestId, Scope, SessionId, TenantId, TurnId, UserId};

/// Access to the records, with one accessor per noun.
#[derive(Debug, Clone)]
pub struct Records {
    db: Db,
}

/// Declares one accessor for each noun.
macro_rules! nouns {
    ($($(#[$doc:meta])* $name:ident: $noun:ident),* $(,)?) => {
        $($(#[$doc])* pub fn $name(&self) -> $noun<'_> { $noun::new(&self.db) })*
    };
}

impl Records {
    pub(super) fn new(db: Db) -> Self {
        Self { db }
    }

    /// Seals values that earlier releases stored unsealed: the addresses of webhooks, and the private texts
    /// of MCP servers. Safe to repeat, and to run on several gateways at once.
    pub async fn seal_what_is_plain(&self, sealer: &Sealer) -> Result<(), Error> {
        let servers = self.mcp_servers().seal_all(sealer).await?;
        let webhooks = self.webhooks().seal_all(sealer).await?;
        if servers + webhooks > 0 {
            tracing::info!(
                servers,
                webhooks,
                "Values that an earlier release kept readable were sealed"
            );
        }
        Ok(())
    }

    /// Reads what gateways read of all tenants at once. Fails if one of the rows cannot be read.
    pub(crate) async fn check_lists(&self) -> Result<(), Error> {
        self.compaction_defaults().all().await?;
        self.group_access().all().await?;
        self.mcp_servers().all().await?;
        self.model_defaults().all().await?;
        self.packages().all().await?;
        self.providers().all().await?;
        self.sandboxes().all().await?;
        self.users().given_up().await?;
        Ok(())
    }

    /// The versions of records that are changed as a whole.
    pub fn versions(&self) -> RecordVersions {
        RecordVersions::new(self.db.clone())
    }

    /// Keys of requests that clients may send again.
    pub fn idempotency_keys(&self, sealer: Sealer) -> IdempotencyKeys {
        IdempotencyKeys::new(self.db.clone(), sealer)
    }

    nouns! {
        tenants: Tenants,
        users: Users,
        /// API keys for programs.
        api_keys: ApiKeys,
        /// Signed-in browsers.
        web_sessions: WebSessions,
        /// One-time setup and sign-in links.
        links: Links,
        /// Roles that tenants made for themselves, and who has them.
        custom_roles: CustomRoles,
        /// Groups of people.
        user_groups: UserGroups,
        /// Tokens of directories that manage people and groups.
        scim_tokens: ScimTokens,
        /// What directories say of people and groups.
        directories: Directories,
        /// The models and servers that groups name.
        group_access: GroupAccesses,
        /// Links by which new people enter.
        invitations: Invitations,
        /// Accounts at OpenID providers by which people sign in.
        identities: Identities,
        /// Sign-ins that browsers began at OpenID providers, and used logout tokens.
        oidc_flows: OidcFlows,
        /// Passkeys of users.
        passkeys: Passkeys,
        /// Challenges for gestures, and the gestures made in answer.
        gestures: Gestures,
        /// The audit of everything that people and the gateway do, other than in sessions.
        audit: Audit,
        /// Assistants with their versions.
        assistants: Assistants,
        /// Attachments of sessions.
        attachments: Attachments,
        /// The lists of sessions.
        sessions: Sessions,
        /// Permissions to read sessions of others.
        session_readings: SessionReadings,
        /// Copies of sessions for other people.
        session_transfers: SessionTransfers,
        /// Sessions shared with other readers.
        shared_sessions: SharedSessions,
        /// The full-text index of sessions.
        texts: Texts,
        /// Model providers that were added while running.
        providers: Providers,
        /// The default models of new sessions.
        model_defaults: ModelDefaults,
        /// The default compaction strategies of tenants.
        compaction_defaults: CompactionDefaults,
        /// Calibrations of token counts against what providers report.
        calibrations: Calibrations,
        /// Secrets that configurations refer to.
        secrets: Secrets,
        /// MCP servers that tenants added.
        mcp_servers: McpServers,
        /// Bundles of MCP servers that tenants uploaded.
        mcp_bundles: McpBundles,
        /// The access that people granted to MCP servers.
        mcp_grants: McpGrants,
        /// Running authorisations of people at authorisation servers, and our client registrations there.
        mcp_authorizations: McpAuthorizations,
        /// Tool definitions that MCP servers offered.
        tool_definitions: ToolDefinitions,
        /// The resources and prompts that MCP servers offered.
        server_offers: ServerOffers,
        /// Installed packages of MCP servers.
        packages: Packages,
        /// Settings of tenants for single tools.
        tool_settings: ToolSettings,
        /// Rules of users and admins that decide calls in advance.
        rules: Rules,
        /// Skills of tenants and users.
        skills: Skills,
        /// Usage of models and tools.
        usage: Usage,
        /// Budgets, and what running model requests have reserved.
        budgets: Budgets,
        /// Webhooks of tenants for waiting calls.
        webhooks: Webhooks,
        /// The outbox of notifications.
        notifications: Notifications,
        /// The history of sessions' workspaces.
        checkpoints: Checkpoints,
        /// Results of dry runs, for approvals that take the result.
        dry_run_results: DryRunResults,
        /// The sandboxes of sessions.
        sandboxes: Sandboxes,
    }
}

fn tenant_id(text: String) -> Result<TenantId, Error> {
    TenantId::parse(&text).ok_or_else(|| Error::corrupt("tenant id", text))
}

fn user_id(text: String) -> Result<UserId, Error> {
    UserId::parse(&text).ok_or_else(|| Error::corrupt("user id", text))
}

fn session_id(text: String) -> Result<SessionId, Error> {
    SessionId::parse(&text).ok_or_else(|| Error::corrupt("session id", text))
}

/// Builds the id of a batch from the two columns that store it.
fn request_id(turn: i64, iteration: i64) -> ModelRequestId {
    ModelRequestId {
        turn: TurnId(u64::try_from(turn).unwrap_or(0)),
        iteration: Iteration(u32::try_from(iteration).unwrap_or(0)),
    }
}

fn scope(text: String) -> Result<Scope, Error> {
    Scope::parse(&text).ok_or_else(|| Error::corrupt("scope", text))
}

/// Parses a JSON column.
fn from_json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::corrupt(what, error.to_string()))
}

/// Serializes a JSON column. Stored values always have a JSON form, so an error is a bug.
fn to_json<T: Serialize + ?Sized>(what: &'static str, value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::corrupt(what, error.to_string()))
}
