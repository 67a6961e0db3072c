//! `runtime`: the log, the doors and their limits.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;
use url::Url;

use super::read;
use sepal_core::domain::Most;

/// `runtime`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    pub log: Log,
    /// Where the gateway listens.
    pub transports: Transports,
    /// Who may reach it, and under which address.
    pub http: Access,
    /// Where tenants may lead requests.
    pub outgoing: Outgoing,
    /// What one client may use.
    pub limits: Limits,
    pub socket: Socket,
    pub metrics: Metrics,
}

/// `runtime.log`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// The least serious entries that are logged.
    pub level: LogLevel,
    #[serde(deserialize_with = "read::parsed")]
    pub output: LogOutput,
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
    /// What the process cannot go on with, and panics.
    Fatal,
    /// Panics.
    Panic,
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
    /// Whether messages of MCP clients are logged.
    pub debug: bool,
    /// Standard input and output.
    pub stdio: Stdio,
    pub http: Http,
}

/// `runtime.transports.stdio`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stdio {
    /// Whether a start without a command means `sepal agent` where HTTP is off; the command itself
    /// answers either way.
    pub enabled: bool,
    /// Bytes that are read at once.
    pub buffer_size: usize,
}

/// `runtime.transports.http`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// Whether the gateway listens.
    pub enabled: bool,
    /// The address or name to listen on, an IPv6 one without brackets.
    pub host: String,
    /// The port; 0 takes any free one.
    pub port: u16,
}

impl Http {
    /// Whether only this machine can reach the listener.
    pub fn is_loopback(&self) -> bool {
        crate::derive::is_loopback(&self.host)
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

/// `runtime.outgoing`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outgoing {
    /// Private addresses that tenants may name.
    #[serde(deserialize_with = "read::parsed_list")]
    pub allow: Vec<IpNet>,
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
    /// Open sockets of one tenant.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sockets_per_tenant: Option<NonZeroU32>,
    /// Bytes of commands that wait for one socket.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub waiting_bytes_per_socket: Option<NonZeroU32>,
    /// Bytes of commands that wait for all sockets.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub waiting_bytes: Option<NonZeroU32>,
    /// Those of one user.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub waiting_bytes_per_user: Option<NonZeroU32>,
    /// Those of one tenant.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub waiting_bytes_per_tenant: Option<NonZeroU32>,
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sessions: Option<NonZeroU32>,
    /// Those of one user.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sessions_per_user: Option<NonZeroU32>,
    /// Those of one tenant.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sessions_per_tenant: Option<NonZeroU32>,
    /// Sessions that one user creates in a minute.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub new_sessions_per_user: Option<NonZeroU32>,
    /// Sessions that one tenant creates in a minute.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub new_sessions_per_tenant: Option<NonZeroU32>,
    /// Sandboxes of one user that run.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sandboxes_per_user: Option<NonZeroU32>,
    /// Sandboxes of one tenant that run.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sandboxes_per_tenant: Option<NonZeroU32>,
    /// Questions of MCP clients that are being answered.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub questions: Option<NonZeroU32>,
    /// Those of one user.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub questions_per_user: Option<NonZeroU32>,
    /// Those of one tenant.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub questions_per_tenant: Option<NonZeroU32>,
    /// Connections and event streams of MCP clients.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub streams: Option<NonZeroU32>,
    /// Those of one user.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub streams_per_user: Option<NonZeroU32>,
    /// Those of one tenant.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub streams_per_tenant: Option<NonZeroU32>,
    #[serde(deserialize_with = "read::zero_is_none")]
    pub connections: Option<NonZeroU32>,
    /// Those of one address.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub connections_per_address: Option<NonZeroU32>,
    /// How long the body of a request may take, beside a second for each KiB of it.
    #[serde(rename = "body_seconds", deserialize_with = "read::zero_is_never")]
    pub body: Option<Duration>,
    /// MiB of one file that people attach.
    pub attachment_mb: u32,
    /// MiB of all that one session holds.
    pub attachments_mb_per_session: u32,
    /// MiB of one file that people upload into a workspace.
    pub upload_mb: u32,
}

impl Limits {
    /// Open sockets: in all, of one tenant, of one user.
    pub fn sockets(&self) -> Most {
        most(self.sockets, self.sockets_per_tenant, self.sockets_per_user)
    }

    /// Bytes of commands that wait for sockets.
    pub fn waiting_bytes(&self) -> Most {
        most(
            self.waiting_bytes,
            self.waiting_bytes_per_tenant,
            self.waiting_bytes_per_user,
        )
    }

    /// Sessions in memory.
    pub fn sessions(&self) -> Most {
        most(
            self.sessions,
            self.sessions_per_tenant,
            self.sessions_per_user,
        )
    }

    /// Sandboxes that run, where `sandbox.max` is how many there are in all.
    pub fn sandboxes(&self, max: u32) -> Most {
        most(
            NonZeroU32::new(max),
            self.sandboxes_per_tenant,
            self.sandboxes_per_user,
        )
    }

    /// Questions of MCP clients that are being answered.
    pub fn questions(&self) -> Most {
        most(
            self.questions,
            self.questions_per_tenant,
            self.questions_per_user,
        )
    }

    /// Connections and event streams of MCP clients.
    pub fn streams(&self) -> Most {
        most(self.streams, self.streams_per_tenant, self.streams_per_user)
    }
}

fn most(
    all: Option<NonZeroU32>,
    per_tenant: Option<NonZeroU32>,
    per_user: Option<NonZeroU32>,
) -> Most {
    let number = |most: Option<NonZeroU32>| most.map(|most| u64::from(most.get()));
    Most {
        all: number(all),
        per_tenant: number(per_tenant),
        per_user: number(per_user),
    }
}

/// `runtime.metrics`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Where they are given without a key; `None` = nowhere.
    #[serde(deserialize_with = "read::parsed_option")]
    pub listen: Option<SocketAddr>,
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
