//! The settings as the rest of the house gets them: one struct per concern, checked and typed.

mod read;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

/// Everything that can be set. A module gets its own section, once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Logs, doors and their limits.
    pub runtime: Runtime,
    /// How the agent introduces itself.
    pub agent: Agent,
    /// What the model is shown of a session, and how often it is asked.
    pub chat: Chat,
    /// The model's provider.
    pub llm: Llm,
    /// What outlives the process.
    pub store: Store,
    /// Where tools run.
    pub sandbox: Sandbox,
    /// How people sign in.
    pub auth: Auth,
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentTree {
    name: String,
    version: String,
    chat: Chat,
    llm: Llm,
}

impl Settings {
    /// Builds the settings from a complete tree of checked values.
    pub(super) fn from_tree(tree: serde_json::Value) -> serde_json::Result<Self> {
        let tree: Tree = serde_json::from_value(tree)?;
        Ok(Self {
            runtime: tree.runtime,
            agent: Agent {
                name: tree.agent.name,
                version: tree.agent.version,
            },
            chat: tree.agent.chat,
            llm: tree.agent.llm,
            store: tree.store,
            sandbox: tree.sandbox,
            auth: tree.auth,
        })
    }
}

/// `runtime`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// The log.
    pub log: Log,
    /// Where the gateway listens.
    pub transports: Transports,
    /// Who may reach it, and under which address.
    pub http: Access,
    /// What one client may use.
    pub limits: Limits,
    /// Engine.IO's own settings.
    pub socket: Socket,
}

/// `runtime.log`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// The least serious entries that are logged.
    pub level: LogLevel,
    /// Where they go.
    #[serde(deserialize_with = "read::parsed")]
    pub output: LogOutput,
    /// How they look.
    pub format: LogFormat,
}

/// The least serious entries that are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// What a developer wants to know.
    Debug,
    /// What an operator wants to know.
    Info,
    /// What is wrong and was coped with.
    Warn,
    /// What is broken.
    Error,
}

/// Where the log goes (S0.24).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOutput {
    /// Standard error.
    Stderr,
    /// Standard output.
    Stdout,
    /// The end of this file.
    File(PathBuf),
}

impl FromStr for LogOutput {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "stderr" => Self::Stderr,
            "stdout" => Self::Stdout,
            path => Self::File(PathBuf::from(path)),
        })
    }
}

/// How the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `runtime.transports`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transports {
    /// The listener.
    pub http: Http,
}

/// `runtime.transports.http`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// Whether the gateway listens at all; always true in this version.
    pub enabled: bool,
    /// The address or name to listen on, an IPv6 one without brackets.
    pub host: String,
    /// The port; 0 takes any free one.
    pub port: u16,
}

impl Http {
    /// Whether only this machine can reach the listener.
    pub fn is_loopback(&self) -> bool {
        crate::config::derive::is_loopback(&self.host)
    }
}

/// `runtime.http`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// The address under which people reach the gateway.
    #[serde(deserialize_with = "read::parsed_option")]
    pub public_url: Option<Url>,
    /// Other origins that may call from a browser, in the form of the `Origin` header.
    pub allowed_origins: Vec<String>,
    /// Proxies whose forwarding headers are believed.
    #[serde(deserialize_with = "read::parsed_list")]
    pub trusted_proxies: Vec<IpNet>,
}

/// `runtime.limits`; `None` = no limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Unanswered commands of one socket.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub commands_per_socket: Option<NonZeroU32>,
    /// Bytes of one client message.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub frame_bytes: Option<NonZeroU32>,
    /// Failed handshakes per minute and address.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub connects_per_minute: Option<NonZeroU32>,
    /// Open sockets of one user.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sockets_per_user: Option<NonZeroU32>,
    /// Open sockets in all.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sockets: Option<NonZeroU32>,
}

/// `runtime.socket`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// Time between two heartbeats.
    #[serde(rename = "ping_interval_ms", deserialize_with = "read::milliseconds")]
    pub ping_interval: Duration,
    /// Time that a client has to answer one.
    #[serde(rename = "ping_timeout_ms", deserialize_with = "read::milliseconds")]
    pub ping_timeout: Duration,
    /// Bytes of one packet.
    pub max_payload: u32,
}

/// `agent.name` and `agent.version`.
#[derive(Debug, Clone)]
pub struct Agent {
    /// The agent's name.
    pub name: String,
    /// The agent's version.
    pub version: String,
}

/// `agent.chat`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chat {
    /// Tokens of history that the model is shown; `None` = as many as its window holds.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub max_tokens: Option<NonZeroU32>,
    /// Messages of history that the model is shown; `None` = no limit.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub max_messages: Option<NonZeroU32>,
    /// Model requests of one turn.
    pub max_llm_iterations: NonZeroU32,
}

/// `agent.llm`, with the provider chosen and its own variables filled in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Llm {
    /// Who runs the model.
    pub provider: ProviderKind,
    /// The key; without one, `openai` answers `missing_api_key`.
    pub api_key: Option<SecretString>,
    /// Where the API is; `None` = the provider's own address.
    #[serde(deserialize_with = "read::parsed_option")]
    pub base_url: Option<Url>,
    /// The model, by the provider's name for it.
    pub model: String,
    /// Sent only when set (S0.45).
    pub temperature: Option<f64>,
    /// Tokens of one answer; sent only when set (S0.45, S0.67).
    #[serde(deserialize_with = "read::zero_is_none_option")]
    pub max_tokens: Option<NonZeroU32>,
    /// The system prompt, a Jinja2 template.
    pub prompt_template: String,
    /// What happens after a transient fault.
    pub retry: Retry,
    /// Pause between two pieces of the scripted model's answer.
    #[serde(rename = "scripted_pace_ms", deserialize_with = "read::milliseconds")]
    pub scripted_pace: Duration,
}

/// Who runs the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// `OpenAI` itself, or what stands at another base URL in its name.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anything that speaks Chat Completions at a base URL; needs no key.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible,
    /// The model that follows a script.
    Scripted,
}

impl ProviderKind {
    /// The canonical name (C12).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiCompatible => "openai-compatible",
            Self::Scripted => "scripted",
        }
    }
}

/// `agent.llm.retry` (S0.47).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How often a request is repeated.
    pub max_retries: u32,
    /// The first wait.
    #[serde(deserialize_with = "read::seconds")]
    pub initial_backoff: Duration,
    /// The longest wait.
    #[serde(deserialize_with = "read::seconds")]
    pub max_backoff: Duration,
    /// By how much each wait is longer than the one before.
    pub backoff_multiplier: f64,
}

/// `store`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The folder that holds what outlives the process.
    pub data_dir: PathBuf,
    /// The database, as sqlx reads it.
    pub database_url: String,
    /// Whether stored conversations are compressed.
    pub compression: bool,
}

/// `sandbox`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// What seals tools in.
    pub driver: SandboxDriver,
    /// Memory of one sandbox in MiB.
    pub memory_mb: u32,
    /// Processor cores of one sandbox.
    pub cpus: f64,
    /// Processes and threads of one sandbox.
    pub pids: u32,
    /// Size of one workspace in MiB.
    pub workspace_mb: u32,
    /// How long one command may take.
    #[serde(rename = "command_timeout_s", deserialize_with = "read::whole_seconds")]
    pub command_timeout: Duration,
    /// Sandboxes that may run at the same time.
    pub max: u32,
    /// How long a sandbox may lie idle.
    #[serde(rename = "idle_minutes", deserialize_with = "read::minutes")]
    pub idle: Duration,
}

/// What seals tools in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxDriver {
    /// Whatever works on this machine.
    Auto,
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
