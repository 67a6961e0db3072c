//! `runtime`: the log, the listeners and their limits.

use std::net::IpAddr;
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
    /// The transports on which the gateway listens.
    pub transports: Transports,
    /// The public address, and the origins and proxies that are trusted.
    pub http: Access,
    /// The private addresses that tenants may use.
    pub outgoing: Outgoing,
    /// The limits for clients.
    pub limits: Limits,
    pub socket: Socket,
    pub metrics: Metrics,
}

/// `runtime.log`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// The lowest level that is logged.
    pub level: LogLevel,
    #[serde(deserialize_with = "read::parsed")]
    pub output: LogOutput,
    pub format: LogFormat,
}

/// The lowest level that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// Details for developers.
    Debug,
    /// Events for operators.
    Info,
    /// Problems that were handled.
    Warn,
    /// Errors.
    Error,
    /// Errors that stop the process, and panics.
    Fatal,
    /// Panics only.
    Panic,
}

/// The destination of the log (S0.24).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOutput {
    /// Standard error.
    Stderr,
    /// Standard output.
    Stdout,
    /// A file, to which entries are appended.
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

/// The format of log entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// `runtime.transports`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transports {
    /// True if messages of MCP clients are logged.
    pub debug: bool,
    /// Standard input and output.
    pub stdio: Stdio,
    pub http: Http,
}

/// `runtime.transports.stdio`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stdio {
    /// True if a start without a command means `sepal agent` while HTTP is off. The command `sepal agent`
    /// itself works either way.
    pub enabled: bool,
    /// Bytes per read.
    pub buffer_size: usize,
}

/// `runtime.transports.http`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// True if the gateway listens.
    pub enabled: bool,
    /// The address or name to listen on; an IPv6 address without brackets.
    pub host: String,
    /// The port; 0 = any free port.
    pub port: u16,
}

/// Returns true if a listener or page at that host can be reached only from this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl Http {
    /// Returns true if the listener can be reached only from this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }
}

/// `runtime.http`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// The public URL of the gateway.
    #[serde(deserialize_with = "read::parsed_option")]
    pub public_url: Option<Url>,
    /// Other origins that may call the gateway from a browser, in the form of the `Origin` header.
    pub allowed_origins: Vec<String>,
    /// Proxies whose forwarding headers are trusted.
    #[serde(deserialize_with = "read::parsed_list")]
    pub trusted_proxies: Vec<IpNet>,
}

/// `runtime.outgoing`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outgoing {
    /// Private addresses that tenants may use.
    #[serde(deserialize_with = "read::parsed_list")]
    pub allow: Vec<IpNet>,
}

/// `runtime.limits`; `None` = no limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The most unanswered commands of one socket.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub commands_per_socket: Option<NonZeroU32>,
    /// The most bytes of one client message.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub frame_bytes: Option<NonZeroU32>,
    /// The most failed handshakes per minute and address.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub connects_per_minute: Option<NonZeroU32>,
    /// The most open sockets of one user.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sockets_per_user: Option<NonZeroU32>,
    /// The most open sockets in total.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sockets: Option<NonZeroU32>,
    /// The most open sockets of one tenant.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sockets_per_tenant: Option<NonZeroU32>,
    /// The most bytes of commands that wait for one socket.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub waiting_bytes_per_socket: Option<NonZeroU32>,
    /// The most bytes of commands that wait for all sockets.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub waiting_bytes: Option<NonZeroU32>,
    /// The most bytes of commands that wait for the sockets of one user.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub waiting_bytes_per_user: Option<NonZeroU32>,
    /// The most bytes of commands that wait for the sockets of one tenant.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub waiting_bytes_per_tenant: Option<NonZeroU32>,
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sessions: Option<NonZeroU32>,
    /// The most sessions of one user in memory.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sessions_per_user: Option<NonZeroU32>,
    /// The most sessions of one tenant in memory.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sessions_per_tenant: Option<NonZeroU32>,
    /// The most requests that one user sends to the REST door per minute.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub requests_per_minute: Option<NonZeroU32>,
    /// The most sessions that one user creates per minute.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub new_sessions_per_user: Option<NonZeroU32>,
    /// The most sessions that one tenant creates per minute.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub new_sessions_per_tenant: Option<NonZeroU32>,
    /// The most running sandboxes of one user.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sandboxes_per_user: Option<NonZeroU32>,
    /// The most running sandboxes of one tenant.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub sandboxes_per_tenant: Option<NonZeroU32>,
    /// The most questions of MCP clients that are answered at the same time.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub questions: Option<NonZeroU32>,
    /// The most such questions of one user.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub questions_per_user: Option<NonZeroU32>,
    /// The most such questions of one tenant.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub questions_per_tenant: Option<NonZeroU32>,
    /// The most connections and event streams of MCP clients.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub streams: Option<NonZeroU32>,
    /// The most connections and event streams of one user.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub streams_per_user: Option<NonZeroU32>,
    /// The most connections and event streams of one tenant.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub streams_per_tenant: Option<NonZeroU32>,
    #[serde(deserialize_with = "read::zero_is_none")]
    pub connections: Option<NonZeroU32>,
    /// The most connections of one address.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub connections_per_address: Option<NonZeroU32>,
    /// The time limit of a request body, extended by one second per KiB received.
    #[serde(rename = "body_seconds", deserialize_with = "read::zero_is_never")]
    pub body: Option<Duration>,
    /// The largest attachment in MiB.
    pub attachment_mb: u32,
    /// The most MiB of all attachments of one session.
    pub attachments_mb_per_session: u32,
    /// The largest file in MiB that people may upload into a workspace.
    pub upload_mb: u32,
}

impl Limits {
    /// The limits of open sockets: in total, per tenant, per user.
    pub fn sockets(&self) -> Most {
        most(self.sockets, self.sockets_per_tenant, self.sockets_per_user)
    }

    /// The limits of bytes of commands that wait for sockets.
    pub fn waiting_bytes(&self) -> Most {
        most(
            self.waiting_bytes,
            self.waiting_bytes_per_tenant,
            self.waiting_bytes_per_user,
        )
    }

    /// The limits of sessions in memory.
    pub fn sessions(&self) -> Most {
        most(
            self.sessions,
            self.sessions_per_tenant,
            self.sessions_per_user,
        )
    }

    /// The limits of running sandboxes; `max` is the total, `sandbox.max`.
    pub fn sandboxes(&self, max: u32) -> Most {
        most(
            NonZeroU32::new(max),
            self.sandboxes_per_tenant,
            self.sandboxes_per_user,
        )
    }

    /// The limits of questions of MCP clients that are answered at the same time.
    pub fn questions(&self) -> Most {
        most(
            self.questions,
            self.questions_per_tenant,
            self.questions_per_user,
        )
    }

    /// The limits of connections and event streams of MCP clients.
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
    /// The address that serves metrics without a key; `None` = none.
    #[serde(deserialize_with = "read::parsed_option")]
    pub listen: Option<SocketAddr>,
}

/// `runtime.socket`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// The time between two heartbeats.
    #[serde(rename = "ping_interval_ms", deserialize_with = "read::milliseconds")]
    pub ping_interval: Duration,
    /// The time limit for the answer to a heartbeat.
    #[serde(rename = "ping_timeout_ms", deserialize_with = "read::milliseconds")]
    pub ping_timeout: Duration,
    /// The most bytes of one packet.
    pub max_payload: u32,
}
