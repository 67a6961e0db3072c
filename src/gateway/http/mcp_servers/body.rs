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

/// A server as people see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct Server {
    /// Its name.
    name: String,
    /// Where it is kept.
    #[schema(value_type = word_list::ServerSource)]
    source: &'static str,
    /// How it is spoken to.
    #[schema(value_type = word_list::ServerTransport)]
    transport: &'static str,
    /// Whether sessions get it.
    enabled: bool,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Its entry, for those who may change it; values of variables and headers read `••••`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    config: Option<McpServerConfig>,
    /// The names of the secrets that are set, for those who may change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<Vec<String>>,
    /// Where its calls run: `{ kind: sandbox | container | remote, hosts }`.
    #[schema(value_type = Object)]
    runs_in: RunsIn,
    /// How it is.
    #[schema(value_type = word_list::ServerStatus)]
    status: &'static str,
    /// How many tools it offers; null until it was listed.
    tool_count: Option<usize>,
    /// How many of them the model is told of.
    enabled_tools: Option<usize>,
    /// What their definitions cost in each model request, estimated.
    definition_tokens: Option<u64>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// Whether tools of it changed since the tenant said yes to them.
    drift: bool,
    /// The tools that changed.
    drifted: Vec<String>,
    /// Hosts that it wanted to reach in sessions of the caller's tenant and may not, the latest first;
    /// for those who look after it. What its entry allows by now is left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused_hosts: Vec<ServerRefusedHost>,
    /// Whether I look after it: test it, start it afresh, read its log, decide about its tools.
    looked_after: bool,
    /// Why tools of it are not offered.
    problems: Vec<String>,
    /// My connection to it, where people connect to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<ServerConnection>,
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
        }
    }
}

/// All servers that the caller sees.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerList {
    pub(super) items: Vec<Server>,
    /// What is wrong with `mcp-config.json`; for installation admins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<String>,
    /// What I may add.
    pub(super) may_add: MayAdd,
}

/// The transports of which the caller may add servers, by for whom.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct MayAdd {
    /// For all tenants.
    #[schema(value_type = Vec<word_list::ServerTransport>)]
    pub(super) installation: Vec<&'static str>,
    /// For everybody in the caller's tenant.
    #[schema(value_type = Vec<word_list::ServerTransport>)]
    pub(super) tenant: Vec<&'static str>,
    /// For the caller alone.
    #[schema(value_type = Vec<word_list::ServerTransport>)]
    pub(super) person: Vec<&'static str>,
}

/// A server to add or to try.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct AddServerRequest {
    /// 1 to 64 letters, digits, `_` and `-`; not needed for a trial. `add`, `health` and `test` have a meaning
    /// of their own. The bounds stand in words here, because all problems of an entry are told together.
    name: Option<String>,
    /// See docs/mcp-servers.md.
    #[schema(value_type = Object)]
    config: Option<Value>,
    /// What `${secret:NAME}` of the entry stand for; never given back.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    secrets: BTreeMap<String, SecretString>,
    /// For whom: `installation` (all tenants), `tenant` or `person` (the caller alone); without a word, the
    /// widest that the caller may.
    scope: Option<Scope>,
}

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

/// The name of the new server.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct AddServerResponse {
    pub(super) name: String,
}

/// The server that was removed.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct RemoveServerResponse {
    /// Always true: what was not removed is an error.
    pub(super) ok: bool,
    /// Its name, which is free now.
    pub(super) name: String,
}

/// The value of a secret.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct SecretRequest {
    /// Kept sealed, used only for this server, never given back.
    #[schema(value_type = String, required, min_length = 1, max_length = 16_384)]
    pub(super) value: Option<SecretString>,
}

/// How a trial went.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct TestServerResponse {
    /// Whether it offers tools now.
    ok: bool,
    /// The phases that were reached, in order.
    phases: Vec<TestPhase>,
    /// What it offers.
    tools: Vec<TestTool>,
    /// Its last lines on stderr, without its secrets.
    stderr: Vec<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The likely reason, and what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
struct TestPhase {
    /// Which it is.
    #[schema(value_type = word_list::TestPhaseName)]
    name: &'static str,
    /// Milliseconds.
    ms: u64,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TestTool {
    name: String,
    description: String,
    /// Whether it works only as a task, which its server does not declare: it is not offered to models.
    needs_tasks: bool,
    /// Whether only views may call it: it is not offered to models.
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
    lines: Vec<ServerLog>,
}

#[derive(Serialize, ToSchema)]
struct ServerLog {
    at: String,
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

/// How all servers are, from their use and from the monitor.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct McpHealth {
    /// How many there are of each state, and `total`.
    pub(super) summary: BTreeMap<&'static str, usize>,
    pub(super) mcps: Vec<ServerHealth>,
}

/// How one server is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerHealth {
    name: String,
    /// How it is.
    #[schema(value_type = word_list::ServerStatus)]
    pub(super) status: &'static str,
    last_check: Option<String>,
    last_success: Option<String>,
    consecutive_failures: u32,
    latency_ms: Option<u64>,
    tool_count: Option<usize>,
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
