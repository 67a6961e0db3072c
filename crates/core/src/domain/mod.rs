//! Defines the nouns that all layers share, one file per noun: ids, entries, tools, usage, faults and
//! stored records. No I/O, no async, no clock.

pub mod access;
mod adding_roles;
pub mod attachment;
pub mod budget;
pub mod checkpoint;
pub mod code;
pub mod digest;
pub mod effort;
pub mod egress;
pub mod encoding;
pub mod entry;
pub mod file_facts;
pub mod fork;
pub mod gesture;
pub mod group_access;
pub mod id;
pub mod key_grant;
pub mod mcp_server;
pub mod memo;
pub mod package;
pub mod request_parts;
pub mod result_block;
pub mod rights;
pub mod sandbox;
pub mod search;
pub mod server_offer;
pub mod share;
pub mod shared;
pub mod strategy_name;
pub mod surrogates;
pub mod time;
pub mod tool;
pub mod usage;
pub mod view;
pub mod visible;

pub use access::{Actor, Caller, CredentialId, Role, Scope, Tenant, User, known_approver};
pub use adding_roles::{AddingRoles, RoleByTransport};
pub use attachment::{Attachment, BlobId, MediaType, ResourceRef};
pub use budget::{
    Budget, BudgetLevel, BudgetPeriod, BudgetSource, BudgetStanding, Days, Grant, Need,
    WARN_PERCENT, grant, in_force, tightest,
};
pub use checkpoint::{
    ChangeCause, ChangeCounts, ContentHash, FileChange, FileKind, FileState, WorkspaceChange,
};
pub use code::{Code, Fault};
pub use digest::{Digest, canonical_json};
pub use effort::{Effort, UnknownEffort};
pub use egress::{
    AllowedHost, AllowedHosts, HostMatch, HostProblem, HostRefusal, MAX_ALLOWED_HOSTS, RefusedHost,
};
pub use encoding::{ByEncoding, Encoding, Weights};
pub use entry::{CountedEntry, Entry, ModelCall, Native, Stamp};
pub use file_facts::{FileFacts, written_path};
pub use fork::{ForkOrigin, NoCopy, WorkspaceCopy};
pub use gesture::{Gesture, GestureCall, GestureMeans};
pub use group_access::{AccessKind, GroupAccess, KnownGroup, Used};
pub use id::{
    ApiKeyId, AssistantId, CallId, CommitId, ElicitationId, EngineId, GatewayId, Iteration,
    JournalId, ModelRequestId, RequestId, SandboxId, SessionId, SessionKey, SharedSessionId,
    SkillId, TenantId, TurnId, UserId, WebhookId,
};
pub use key_grant::{KeyGrant, KeyScope, KeyScopes};
pub use mcp_server::{
    McpBundle, McpGrant, McpNetwork, McpOAuth, McpServerConfig, McpTransport, McpWorkspace,
    NetworkWord,
};
pub use memo::Memo;
pub use package::{
    InstallPhase, InstallProblem, InstallState, Installation, InstalledPackage, PackageRegistry,
    PackageSpec,
};
pub use request_parts::{RequestParts, RequestPurpose};
pub use result_block::{Audience, BlockContent, ResourceLink, ResultBlock};
pub use rights::{Right, Rights};
pub use sandbox::{Enforcement, RunsIn, RunsInKind, SandboxKind};
pub use search::SearchQuery;
pub use server_offer::{PromptArgument, PromptOffer, ResourceTemplate, ServerOffer};
pub use share::{Holder, Ledger, Most, ReachedLimit, Resource, Share, ShareLevel, Shares};
pub use shared::Shared;
pub use strategy_name::{StrategyName, UnknownStrategy};
pub use surrogates::mend_surrogates;
pub use time::Timestamp;
pub use tool::{
    BUNDLED_SERVER, FIND_TOOLS, READ_MORE, READ_SKILL_FILE, Schema, Tool, ToolAnnotations, ToolRef,
    USE_SKILL, USE_TOOL, named_shell, shell_tool,
};
pub use usage::{MicroUsd, TokenUsage, Totals};
pub use view::{ToolView, VIEW_TYPE, ViewHost, ViewHosts, ViewReach, is_view_uri};
pub use visible::{visible, visible_line};
