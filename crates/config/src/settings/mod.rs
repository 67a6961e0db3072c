//! The typed and checked settings for the other modules: one struct per concern.

mod agent;
mod audit;
mod context;
mod mcp_registry;
mod notifications;
mod of_models;
mod oidc;
mod proxy;
mod read;
mod rules;
mod runtime;
mod telemetry;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use sepal_policy::Rule;
use serde::Deserialize;

pub use agent::{
    Agent, ApiFlavour, ApprovalWay, Breaker, CacheTtl, Chat, CompactedBy, EditsByOthers,
    FallbackEntry, Llm, ProviderEntry, ProviderKind, Retry, Titles, Tool, ToolSearch,
};
pub(crate) use agent::{fallback, listed};
pub use audit::{Anchor, Audit, Siem, SiemFormat};
pub use context::{
    Context, ContextKind, ContextPosition, ContextProviderEntry, ContextRole, Skills,
};
pub use mcp_registry::McpRegistry;
pub use notifications::{Notifications, Smtp};
pub use of_models::ModelPrice;
pub(crate) use of_models::{model_effort, model_max_output, model_price, model_window};
pub(crate) use oidc::pair;
pub use oidc::{OidcProvider, ScimLink};
pub use proxy::SignInProxy;
pub use rules::Reviewer;
pub(crate) use rules::rule;
pub(crate) use runtime::is_loopback;
pub use runtime::{
    Access, Http, Limits, Log, LogFormat, LogLevel, LogOutput, Metrics, Runtime, Socket, Stdio,
    Transports,
};
pub use telemetry::Telemetry;

use sepal_core::domain::{AddingRoles, McpNetwork, McpServerConfig, Most};

/// All settings. Each module gets its own section.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Logs, listeners and their limits.
    pub runtime: Runtime,
    /// The agent's name and version.
    pub agent: Agent,
    /// The history limits of a session, and the number of model requests.
    pub chat: Chat,
    /// The context that models get beside the conversation.
    pub context: Context,
    /// Skills: folders with instructions that models read if a task matches.
    pub skills: Skills,
    /// The model and its providers.
    pub llm: Llm,
    /// The one tool of the agent as an MCP server.
    pub tool: Tool,
    /// The ways to decide about calls when the agent runs as an MCP server; the first possible one is used.
    pub approval: Vec<ApprovalWay>,
    /// MCP servers whose tools all sessions get, by name.
    pub mcp_servers: BTreeMap<String, McpServerConfig>,
    /// Rules about the calls of all users.
    pub rules: Vec<Rule>,
    /// The model that reviews calls which rules submit to it.
    pub reviewer: Reviewer,
    /// The registry of published MCP servers.
    pub mcp_registry: McpRegistry,
    /// The roles that may add MCP servers.
    pub mcp_roles: AddingRoles,
    /// Persistent storage.
    pub store: Store,
    pub sandbox: Sandbox,
    /// The way in which people sign in.
    pub auth: Auth,
    pub notifications: Notifications,
    /// The audit: its key, and who else gets signatures and records.
    pub audit: Audit,
    pub telemetry: Telemetry,
}

/// The settings in the structure of the file. A key that the structs or the table lack is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tree {
    runtime: Runtime,
    agent: AgentTree,
    store: Store,
    sandbox: Sandbox,
    auth: Auth,
    notifications: Notifications,
    audit: Audit,
    telemetry: Telemetry,
    policy: PolicyTree,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyTree {
    /// The checked fields of each rule.
    rules: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentTree {
    name: String,
    version: String,
    tool: Tool,
    approval: Vec<ApprovalWay>,
    chat: Chat,
    context: Context,
    skills: Skills,
    llm: Llm,
    reviewer: Reviewer,
    mcp_registry: McpRegistry,
    mcp_roles: AddingRoles,
    connections: Connections,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Connections {
    mcp_servers: BTreeMap<String, McpServerConfig>,
}

impl Settings {
    /// Builds the settings from a complete tree of checked values.
    pub(super) fn from_tree(tree: serde_json::Value) -> serde_json::Result<Self> {
        let tree: Tree = serde_json::from_value(tree)?;
        let most = tree.runtime.limits.sandboxes(tree.sandbox.max);
        Ok(Self {
            runtime: tree.runtime,
            agent: Agent {
                name: tree.agent.name,
                version: tree.agent.version,
            },
            chat: tree.agent.chat,
            context: tree.agent.context,
            skills: tree.agent.skills,
            llm: tree.agent.llm,
            tool: tree.agent.tool,
            approval: tree.agent.approval,
            mcp_servers: tree.agent.connections.mcp_servers,
            rules: rules_of(&tree.policy.rules)?,
            reviewer: tree.agent.reviewer,
            mcp_registry: tree.agent.mcp_registry,
            mcp_roles: tree.agent.mcp_roles,
            store: tree.store,
            sandbox: Sandbox {
                most,
                ..tree.sandbox
            },
            auth: tree.auth,
            notifications: tree.notifications,
            audit: tree.audit,
            telemetry: tree.telemetry,
        })
    }
}

fn rules_of(
    rules: &BTreeMap<String, BTreeMap<String, serde_json::Value>>,
) -> serde_json::Result<Vec<Rule>> {
    use serde::de::Error as _;
    let rules = rules.iter().map(|(name, fields)| {
        let problem = |(field, what)| serde_json::Error::custom(format!("{name}.{field}: {what}"));
        rule(name, fields).map_err(problem)
    });
    rules.collect()
}

/// `store`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The folder for persistent data.
    pub data_dir: PathBuf,
    /// The database URL for sqlx; may hold a password.
    pub database_url: SecretString,
    /// The URL of the Redis with live sessions; may hold a password.
    pub redis_url: Option<SecretString>,
    /// True if a Redis that may lose data is accepted.
    pub allow_volatile: bool,
    /// The time that an inactive session is kept in Redis; `None` = forever.
    #[serde(
        rename = "history_ttl_seconds",
        deserialize_with = "read::zero_is_never"
    )]
    pub history_ttl: Option<Duration>,
    /// True if stored conversations are compressed.
    pub compression: bool,
}

/// `sandbox`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// The driver that isolates tools.
    pub driver: SandboxDriver,
    /// The image of a sandbox (Docker).
    pub image: String,
    /// The engine's OCI runtime for sandboxes; `None` = the engine's default (Docker).
    pub runtime: Option<String>,
    /// The hosts that commands in a session's sandbox may reach.
    pub network: McpNetwork,
    /// The hosts that people may allow by a rule for the sandboxes of their own sessions.
    pub network_on_request: McpNetwork,
    /// The engine's address; `None` = its default socket (Docker).
    pub docker_host: Option<String>,
    /// The number of warm sandboxes (Docker).
    pub pool_size: u32,
    /// The memory of one sandbox in MiB.
    pub memory_mb: u32,
    /// The processor cores of one sandbox.
    pub cpus: f64,
    /// The most processes and threads of one sandbox.
    pub pids: u32,
    /// The size of one workspace in MiB.
    pub workspace_mb: u32,
    /// MiB to keep free on the disks of data and workspaces; 0 = the disks may fill up.
    pub min_free_mb: u32,
    /// The most KiB that are kept of each output stream of a command.
    pub output_kb: u64,
    /// The time limit of one command.
    #[serde(rename = "command_timeout_s", deserialize_with = "read::whole_seconds")]
    pub command_timeout: Duration,
    /// The most sandboxes that run at the same time.
    pub max: u32,
    /// `max` with the shares of one tenant and one user (`runtime.limits`).
    #[serde(skip)]
    pub most: Most,
    /// Copies every file for a dry run instead of using an overlay; for tests.
    #[serde(skip)]
    pub forces_copies: bool,
    /// The time after which an idle sandbox is stopped.
    #[serde(rename = "idle_minutes", deserialize_with = "read::minutes")]
    pub idle: Duration,
    /// The most steps in the history of one workspace; 0 = no history.
    pub checkpoints: u32,
    /// The most MiB of file contents that the history of one workspace keeps.
    pub checkpoints_mb: u32,
    /// The installation of MCP servers' packages.
    pub packages: Packages,
}

/// `sandbox.packages`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    /// True if packages are installed.
    pub enabled: bool,
    /// The npm registry.
    pub npm_registry: String,
    /// The index of Python packages, in the form that pip accepts.
    pub pypi_index: String,
    /// Further hosts that an installation may reach, comma-separated.
    #[serde(default)]
    pub hosts: Option<String>,
    /// The image with Node and Python (Docker).
    pub image: String,
    /// The memory of one installation in MiB.
    pub memory_mb: u32,
    /// The most disk space of one installation in MiB.
    pub size_mb: u32,
    /// The largest bundle that may be uploaded, in MiB.
    pub bundle_mb: u32,
    /// The time limit of one installation.
    #[serde(rename = "timeout_s", deserialize_with = "read::whole_seconds")]
    pub timeout: Duration,
}

/// The driver that isolates tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxDriver {
    /// A driver that works on this machine.
    Auto,
    /// Containers of a Docker engine.
    Docker,
    /// Linux namespaces by bubblewrap.
    Bubblewrap,
    /// Sandboxed tools are off.
    None,
}

/// `auth`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// The way in which people sign in.
    pub mode: AuthMode,
    /// The key that seals the installation's keys, which seal stored keys and secrets; `None` = a key that is generated once in the data folder.
    pub secret_key: Option<SecretString>,
    /// The secret key before the current one. It opens the installation's keys once, to seal them with the current
    /// one.
    pub former_secret_key: Option<SecretString>,
    /// The OpenID providers at which people sign in, by id.
    pub oidc: BTreeMap<String, OidcProvider>,
    /// The proxy that signs people in.
    pub proxy: SignInProxy,
}

/// The way in which people sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// With a name and a password.
    Password,
    /// Without sign-in; only on loopback.
    None,
}
