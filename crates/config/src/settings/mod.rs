//! The settings as the other modules get them: one struct per concern, checked and typed.

mod agent;
mod context;
mod mcp_registry;
mod notifications;
mod of_models;
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
pub use context::{
    Context, ContextKind, ContextPosition, ContextProviderEntry, ContextRole, Skills,
};
pub use mcp_registry::McpRegistry;
pub use notifications::{Notifications, Smtp};
pub use of_models::ModelPrice;
pub(crate) use of_models::{model_effort, model_max_output, model_price, model_window};
pub use rules::Reviewer;
pub(crate) use rules::rule;
pub use runtime::{
    Access, Http, Limits, Log, LogFormat, LogLevel, LogOutput, Metrics, Runtime, Socket, Stdio,
    Transports,
};
pub use telemetry::Telemetry;

use sepal_core::domain::{AddingRoles, McpNetwork, McpServerConfig, Most};

/// Everything that can be set. A module gets its own section, once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Logs, doors and their limits.
    pub runtime: Runtime,
    /// How the agent introduces itself.
    pub agent: Agent,
    /// What the model is shown of a session, and how often it is asked.
    pub chat: Chat,
    /// What models read beside the conversation.
    pub context: Context,
    /// Folders of instructions that models read when a task fits.
    pub skills: Skills,
    /// The model and its providers.
    pub llm: Llm,
    /// The one tool of the agent as an MCP server.
    pub tool: Tool,
    /// Who decides about calls of the agent as an MCP server, the first way that is possible.
    pub approval: Vec<ApprovalWay>,
    /// MCP servers whose tools sessions get, by name.
    pub mcp_servers: BTreeMap<String, McpServerConfig>,
    /// Rules about everybody's calls.
    pub rules: Vec<Rule>,
    /// Who reviews calls that rules open.
    pub reviewer: Reviewer,
    /// Where published MCP servers are looked up.
    pub mcp_registry: McpRegistry,
    /// Who may add MCP servers.
    pub mcp_roles: AddingRoles,
    /// What outlives the process.
    pub store: Store,
    pub sandbox: Sandbox,
    /// How people sign in.
    pub auth: Auth,
    pub notifications: Notifications,
    pub telemetry: Telemetry,
}

/// The settings in the shape of the file; a key that the structs lack is an error, and so is one
/// that the table lacks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tree {
    runtime: Runtime,
    agent: AgentTree,
    store: Store,
    sandbox: Sandbox,
    auth: Auth,
    notifications: Notifications,
    telemetry: Telemetry,
    policy: PolicyTree,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyTree {
    /// The fields of each, which were checked.
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
    /// The folder that holds what outlives the process.
    pub data_dir: PathBuf,
    /// The database, as sqlx reads it; may hold a password.
    pub database_url: SecretString,
    /// The Redis that keeps live sessions; may hold a password.
    pub redis_url: Option<SecretString>,
    /// Whether a Redis that may forget is taken all the same.
    pub allow_volatile: bool,
    /// How long a session in Redis lives without activity; `None` = for ever.
    #[serde(
        rename = "history_ttl_seconds",
        deserialize_with = "read::zero_is_never"
    )]
    pub history_ttl: Option<Duration>,
    /// Whether stored conversations are compressed.
    pub compression: bool,
}

/// `sandbox`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// What seals tools in.
    pub driver: SandboxDriver,
    /// The image of a sandbox (Docker).
    pub image: String,
    /// The engine's runtime for sandboxes; `None` = its own choice (Docker).
    pub runtime: Option<String>,
    /// What commands in a session's sandbox may reach.
    pub network: McpNetwork,
    /// What people may let commands in the sandboxes of their own sessions reach, by a rule.
    pub network_on_request: McpNetwork,
    /// Where the engine is; `None` = its own socket (Docker).
    pub docker_host: Option<String>,
    /// Sandboxes that wait started for a session (Docker).
    pub pool_size: u32,
    /// Memory of one sandbox in MiB.
    pub memory_mb: u32,
    /// Processor cores of one sandbox.
    pub cpus: f64,
    /// Processes and threads of one sandbox.
    pub pids: u32,
    /// Size of one workspace in MiB.
    pub workspace_mb: u32,
    /// MiB that stay free on the disks of data and workspaces; 0 = all may be filled.
    pub min_free_mb: u32,
    /// How long one command may take.
    /// Most that is kept of each stream of a command.
    pub output_kb: u64,
    #[serde(rename = "command_timeout_s", deserialize_with = "read::whole_seconds")]
    pub command_timeout: Duration,
    /// Sandboxes that may run at the same time.
    pub max: u32,
    /// The same with the shares of one tenant and one user (`runtime.limits`).
    #[serde(skip)]
    pub most: Most,
    /// Copy every file for a dry run, where an overlay would do; for tests.
    #[serde(skip)]
    pub forces_copies: bool,
    /// How long a sandbox may lie idle.
    #[serde(rename = "idle_minutes", deserialize_with = "read::minutes")]
    pub idle: Duration,
    /// Steps of the history of one workspace; 0 = none.
    pub checkpoints: u32,
    /// MiB of files' contents that are kept for it.
    pub checkpoints_mb: u32,
    /// How packages of MCP servers are installed.
    pub packages: Packages,
}

/// `sandbox.packages`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    /// Whether any are.
    pub enabled: bool,
    /// Where those of npm come from.
    pub npm_registry: String,
    /// Where those of Python come from, as pip takes it.
    pub pypi_index: String,
    /// More hosts that an installation may reach, comma-separated.
    #[serde(default)]
    pub hosts: Option<String>,
    /// The image with Node and Python (Docker).
    pub image: String,
    /// Memory of one installation in MiB.
    pub memory_mb: u32,
    /// What one may fill in MiB.
    pub size_mb: u32,
    /// What a bundle that is uploaded may have in MiB.
    pub bundle_mb: u32,
    /// How long one may take.
    #[serde(rename = "timeout_s", deserialize_with = "read::whole_seconds")]
    pub timeout: Duration,
}

/// What seals tools in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxDriver {
    /// Whatever works on this machine.
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
    /// How people sign in.
    pub mode: AuthMode,
    /// What stored keys and secrets are sealed with; `None` = a key made once in the data folder.
    pub secret_key: Option<SecretString>,
}

/// How people sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// With a name and a password.
    Password,
    /// Not at all; only on loopback.
    None,
}
