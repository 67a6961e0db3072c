//! The request and response bodies of the routes of MCP servers.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::connections::ServerConnection;
use super::refused::ServerRefusedHost;
use crate::domain::{McpServerConfig, RunsIn};
use crate::gateway::error::ApiError;
use crate::gateway::extract::required;
use crate::gateway::word_list;
use crate::servers::{Health, LogLine, NewServer, Phase, ServerAudience, ServerReport, TestReport};

/// An MCP server as the caller sees it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a field on the wire")]
pub(in crate::gateway) struct Server {
    /// The server's name.
    pub(super) name: String,
    /// The place where the server's entry is stored.
    #[schema(value_type = word_list::ServerSource)]
    source: &'static str,
    /// The transport between the gateway and the server.
    #[schema(value_type = word_list::ServerTransport)]
    transport: &'static str,
    /// True if sessions may use the server.
    enabled: bool,
    /// The server's purpose; absent if the entry has no description.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The server's entry, with `••••` in place of the values of variables and headers; absent if the caller
    /// may not change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    config: Option<McpServerConfig>,
    /// The names of the secrets that are set; absent if the caller may not change the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<Vec<String>>,
    /// The place where the server's calls run: `{ kind: sandbox | container | remote, hosts }`. `hosts` are
    /// the reachable hosts; empty means no network.
    #[schema(value_type = Object)]
    runs_in: RunsIn,
    /// The server's health.
    #[schema(value_type = word_list::ServerStatus)]
    status: &'static str,
    /// The number of tools that the server offers; `null` until its tools were listed.
    tool_count: Option<usize>,
    /// The number of tools that models are offered; `null` until its tools were listed.
    enabled_tools: Option<usize>,
    /// The estimated tokens of the tools' definitions in each model request; `null` until its tools were
    /// listed.
    definition_tokens: Option<u64>,
    /// The last error; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// True if tools of the server differ from the definitions that the tenant accepted.
    drift: bool,
    /// The names of the tools that differ.
    drifted: Vec<String>,
    /// The hosts that the server was refused in sessions of the caller's tenant, latest first, for callers
    /// who manage the server. Hosts that its entry allows by now are left out. Absent if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused_hosts: Vec<ServerRefusedHost>,
    /// True if the caller manages the server: may test it, restart it, read its log and decide about its
    /// tools.
    looked_after: bool,
    /// The reasons why tools are not offered or hosts are withheld.
    problems: Vec<String>,
    /// The caller's own connection to the server; absent if people do not connect to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<ServerConnection>,
    /// The names of the groups for whose members alone the server is, for callers who manage the tenant's
    /// servers; absent if it is open to everybody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    /// True if the caller's own sessions may not use the server, which they only manage: the caller is in none
    /// of its groups. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    closed: bool,
}

impl From<ServerReport> for Server {
    fn from(report: ServerReport) -> Self {
        let listed = report.is_listed;
        Self {
            name: report.name,
            source: report.source.as_str(),
            transport: report.transport.as_str(),
            enabled: report.enabled,
            description: report.description,
            config: report.config,
            secrets: report.secrets,
            runs_in: report.runs_in,
            status: report.health.status.as_str(),
            tool_count: listed.then_some(report.tool_count),
            enabled_tools: listed.then_some(report.enabled_tools),
            definition_tokens: listed.then_some(report.definition_tokens),
            last_error: report.health.error,
            drift: !report.drift.is_empty(),
            drifted: report.drift,
            refused_hosts: report.refused_hosts.into_iter().map(Into::into).collect(),
            looked_after: report.is_looked_after,
            problems: report.problems,
            connection: report.connection.map(ServerConnection::from),
            groups: report.groups.into_iter().map(|(_, name)| name).collect(),
            closed: !report.is_open,
        }
    }
}

/// The servers that the caller sees.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerList {
    /// The servers.
    pub(super) items: Vec<Server>,
    /// The cursor of the next page; `null` if there is none.
    pub(super) next_cursor: Option<String>,
    /// The problems of `mcp-config.json`, for installation admins; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<String>,
    /// The servers that the caller may add.
    pub(super) may_add: MayAdd,
}

/// The transports of the servers that the caller may add, by scope.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct MayAdd {
    /// The transports of servers for all tenants.
    #[schema(value_type = Vec<word_list::ServerTransport>)]
    pub(super) installation: Vec<&'static str>,
    /// The transports of servers for everybody in the caller's tenant.
    #[schema(value_type = Vec<word_list::ServerTransport>)]
    pub(super) tenant: Vec<&'static str>,
    /// The transports of servers for the caller alone.
    #[schema(value_type = Vec<word_list::ServerTransport>)]
    pub(super) person: Vec<&'static str>,
}

/// A server to add or to test.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct AddServerRequest {
    /// 1 to 64 letters, digits, `_` and `-`; not needed for a test. `add`, `health`, `package` and `test` are
    /// reserved. The schema does not state these limits, because all problems of an entry are reported
    /// together.
    name: Option<String>,
    /// The server's entry; see docs/mcp-servers.md.
    #[schema(value_type = Object)]
    config: Option<Value>,
    /// The values of the `${secret:NAME}` placeholders in the entry, by name. They are never returned.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    secrets: BTreeMap<String, SecretString>,
    /// The people who get the server: `installation` (all tenants), `tenant`, or `person` (the caller alone);
    /// if absent, the widest scope that the caller may choose.
    scope: Option<Scope>,
}

/// The people who get a new server.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    Installation,
    Tenant,
    Person,
}

impl AddServerRequest {
    /// Returns the new server in the form of the registry, which validates its fields. An entry that cannot
    /// be read is an error with the path of the faulty field.
    pub(super) fn read(self, name_if_none: Option<&str>) -> Result<NewServer, ApiError> {
        let name = self.name.or_else(|| name_if_none.map(ToOwned::to_owned));
        let config = required("config", self.config)?;
        let config = serde_path_to_error::deserialize(config).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." {
                "config".to_owned()
            } else {
                format!("config.{path}")
            };
            ApiError::of_fields([(path, error.into_inner().to_string())])
        })?;
        Ok(NewServer {
            name: required("name", name)?,
            config,
            secrets: self.secrets,
            audience: self.scope.map(|scope| match scope {
                Scope::Installation => ServerAudience::Installation,
                Scope::Tenant => ServerAudience::Tenant,
                Scope::Person => ServerAudience::Person,
            }),
        })
    }
}

/// The new server.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct AddServerResponse {
    /// The server's name.
    pub(super) name: String,
}

/// The server that was removed.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct RemoveServerResponse {
    /// Always true; a failure is an error response.
    pub(super) ok: bool,
    /// The server's name, which is free now.
    pub(super) name: String,
}

/// The new value of a secret.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct SecretRequest {
    /// The value. It is stored sealed, used only for this server, and never returned.
    #[schema(value_type = String, required, min_length = 1, max_length = 16_384)]
    pub(super) value: Option<SecretString>,
}

/// The result of a server's test.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct TestServerResponse {
    /// True if the server started and listed its tools.
    ok: bool,
    /// The phases that ran, in order.
    phases: Vec<TestPhase>,
    /// The tools that the server offers; empty if the test failed.
    tools: Vec<TestTool>,
    /// The last lines of the server's stderr, without its secrets.
    stderr: Vec<String>,
    /// The reason the test failed; absent if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The likely cause of the failure, and the remedy; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// A phase of a server's test.
#[derive(Serialize, ToSchema)]
struct TestPhase {
    /// The phase.
    #[schema(value_type = word_list::TestPhaseName)]
    name: &'static str,
    /// The duration of the phase in milliseconds.
    ms: u64,
    /// True if the phase succeeded.
    ok: bool,
    /// The error; absent if the phase succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A tool that a tested server offers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TestTool {
    /// The tool's name.
    name: String,
    /// The tool's description.
    description: String,
    /// True if the tool works only as a task, which its server does not support. Such a tool is not offered
    /// to models.
    needs_tasks: bool,
    /// True if only views may call the tool. Such a tool is not offered to models.
    app_only: bool,
}

impl From<TestReport> for TestServerResponse {
    fn from(report: TestReport) -> Self {
        let phase = |phase: Phase| TestPhase {
            name: phase.name,
            ms: phase.ms,
            ok: phase.error.is_none(),
            error: phase.error,
        };
        let tools = report.tools.into_iter().map(|tool| TestTool {
            app_only: tool.is_app_only(),
            name: tool.name,
            description: tool.description,
            needs_tasks: tool.needs_tasks,
        });
        Self {
            ok: report.error.is_none(),
            phases: report.phases.into_iter().map(phase).collect(),
            tools: tools.collect(),
            stderr: report.stderr,
            error: report.error,
            reason: report.reason,
        }
    }
}

/// The last lines of a server's stderr.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct ServerLogs {
    /// The lines.
    lines: Vec<ServerLog>,
}

/// A line of a server's stderr.
#[derive(Serialize, ToSchema)]
struct ServerLog {
    /// When the line was written (RFC 3339).
    at: String,
    /// The line.
    text: String,
}

impl From<Vec<LogLine>> for ServerLogs {
    fn from(lines: Vec<LogLine>) -> Self {
        let lines = lines.into_iter().map(|line| ServerLog {
            at: line.at.to_rfc3339(),
            text: line.text,
        });
        Self {
            lines: lines.collect(),
        }
    }
}

/// The health of all servers, from their use and from the monitor.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct McpHealth {
    /// The number of servers by status, and of all servers as `total`.
    pub(super) summary: BTreeMap<&'static str, usize>,
    /// The health of each server.
    pub(super) mcps: Vec<ServerHealth>,
}

/// The health of one server.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerHealth {
    /// The server's name.
    name: String,
    /// The server's status.
    #[schema(value_type = word_list::ServerStatus)]
    pub(super) status: &'static str,
    /// When the server was last checked or used (RFC 3339); `null` if never.
    last_check: Option<String>,
    /// When a check or use last succeeded (RFC 3339); `null` if never.
    last_success: Option<String>,
    /// The number of consecutive failures.
    consecutive_failures: u32,
    /// The latency of the last answer in milliseconds; `null` if there was none.
    latency_ms: Option<u64>,
    /// The number of tools that the server offers; `null` until its tools were listed.
    tool_count: Option<usize>,
    /// The last error, without secrets; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<ServerReport> for ServerHealth {
    fn from(report: ServerReport) -> Self {
        let Health {
            status,
            last_check,
            last_success,
            consecutive_failures,
            latency_ms,
            error,
        } = report.health;
        Self {
            name: report.name,
            status: status.as_str(),
            last_check: last_check.map(crate::domain::Timestamp::to_rfc3339),
            last_success: last_success.map(crate::domain::Timestamp::to_rfc3339),
            consecutive_failures,
            latency_ms,
            tool_count: report.is_listed.then_some(report.tool_count),
            error,
        }
    }
}
