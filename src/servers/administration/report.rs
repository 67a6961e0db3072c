//! What people are told of servers and tools. Configurations go to admins only, values masked.

use super::masking::masked;
use super::unknown;
use crate::domain::{
    Caller, McpGrant, McpServerConfig, McpTransport, RefusedHost, Role, RunsIn, Timestamp, Tool,
};
use crate::llm::tokens;
use crate::servers::catalogue::entry::{ServerEntry, Source};
use crate::servers::catalogue::tool_history::{self, ToolChangeReport};
use crate::servers::catalogue::tool_report::ToolReport;
use crate::servers::catalogue::view::{Ingredient, View};
use crate::servers::connections::logs::LogLine;
use crate::servers::connections::opening::{Failure, Phase, secret_name};
use crate::servers::error::Error;
use crate::servers::health::health_history::HealthStep;
use crate::servers::health::{Health, Status};
use crate::servers::permission::{
    ServerAudience, addable, looks_after, may_change, must_look_after,
};
use crate::servers::person_connections::ConnectionReport;
use crate::servers::registry::Servers;
use crate::store::clock::now;
use crate::store::records::{GrantKey, ToolVersion};

/// A server as people see it.
#[derive(Debug, Clone)]
pub struct ServerReport {
    pub name: String,
    /// Where it is written down.
    pub source: Source,
    /// How it is reached.
    pub transport: McpTransport,
    /// Whether sessions get it.
    pub enabled: bool,
    /// What it is for.
    pub description: Option<String>,
    /// Its entry, masked; for those who may change it.
    pub config: Option<McpServerConfig>,
    /// The names of the secrets that are set; for those who may change it.
    pub secrets: Option<Vec<String>>,
    /// Where its calls run.
    pub runs_in: RunsIn,
    pub health: Health,
    /// Whether it was ever listed.
    pub is_listed: bool,
    /// How many tools it offers.
    pub tool_count: usize,
    /// How many of them the model is told of.
    pub enabled_tools: usize,
    /// What their definitions cost in each request, estimated.
    pub definition_tokens: u64,
    /// The tools that are others than those the tenant said yes to.
    pub drift: Vec<String>,
    /// Whether the caller looks after it: tests it, starts it afresh, reads its log, decides about its
    /// tools.
    pub is_looked_after: bool,
    /// The hosts that it was refused in the caller's tenant; for those who look after it.
    pub refused_hosts: Vec<RefusedHost>,
    /// Why tools are not offered.
    pub problems: Vec<String>,
    /// The caller's own connection, where people connect to it.
    pub connection: Option<ConnectionReport>,
}

/// How a trial went.
#[derive(Debug, Clone)]
pub struct TestReport {
    /// The phases that were reached.
    pub phases: Vec<Phase>,
    pub tools: Vec<Tool>,
    /// Its last lines on stderr.
    pub stderr: Vec<String>,
    pub error: Option<String>,
    pub reason: Option<&'static str>,
}

impl TestReport {
    pub(crate) fn new(
        phases: Vec<Phase>,
        tried: Result<(Vec<Tool>, Vec<String>), Failure>,
    ) -> Self {
        match tried {
            Ok((tools, stderr)) => Self {
                phases,
                tools,
                stderr,
                error: None,
                reason: None,
            },
            Err(failure) => Self {
                phases,
                tools: Vec::new(),
                stderr: failure.stderr,
                error: Some(failure.text),
                reason: failure.reason,
            },
        }
    }
}

impl ToolReport {
    pub(crate) fn new(view: &View, server: &Ingredient, tool: &Tool) -> Self {
        let (_, effect) = server.setting(&tool.name);
        let mut offered = view.toolbox.tools();
        let offered =
            offered.find(|it| it.at.server == server.entry.name && it.at.tool == tool.name);
        Self {
            name: tool.name.clone(),
            model_name: offered.map(|it| it.tool.name.clone()),
            title: tool.title.clone(),
            description: tool.description.clone(),
            schema: tool.input_schema.clone(),
            annotations: tool.annotations.clone(),
            hash: tool.hash(),
            enabled: server.is_on(tool),
            needs_tasks: tool.needs_tasks,
            view: tool.view.clone(),
            effect,
            drift: server.drift(tool),
        }
    }
}

/// What a caller may read of the registry.
pub struct Reports<'a> {
    pub(super) servers: &'a Servers,
    pub(super) caller: &'a Caller,
}

impl Reports<'_> {
    /// Of which transports the caller may add servers for them.
    pub fn addable(&self, audience: ServerAudience) -> Vec<McpTransport> {
        addable(self.caller, self.servers.0.roles, audience)
    }

    /// Every server that the caller sees.
    pub async fn list(&self) -> Result<Vec<ServerReport>, Error> {
        let view = self.servers.view(self.caller.whose()).await?;
        let mut reports = Vec::new();
        for server in &view.ingredients.servers {
            reports.push(self.report(&view, server).await?);
        }
        Ok(reports)
    }

    /// One of them.
    pub async fn one(&self, name: &str) -> Result<ServerReport, Error> {
        let view = self.servers.view(self.caller.whose()).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        self.report(&view, server).await
    }

    /// What a server offers, and what was decided about it.
    pub async fn tools(&self, name: &str) -> Result<Vec<ToolReport>, Error> {
        let view = self.servers.view(self.caller.whose()).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        let listed = server.listed.iter().flat_map(|tools| tools.iter());
        Ok(listed
            .map(|tool| ToolReport::new(&view, server, tool))
            .collect())
    }

    /// The definitions of a tool that the tenant was offered, newest first, as far as they are kept.
    pub async fn tool_history(
        &self,
        name: &str,
        tool: &str,
    ) -> Result<Vec<ToolChangeReport>, Error> {
        let tenant = &self.caller.tenant.id;
        let view = self.servers.view(self.caller.whose()).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        let definitions = self.servers.0.records.tool_definitions();
        let mut versions = definitions.versions((tenant, name), tool).await?;
        let mut listed = server.listed.iter().flat_map(|tools| tools.iter());
        let now = listed.find(|known| known.name == tool);
        if versions.is_empty() {
            let Some(now) = now else {
                let (server, tool) = (name.to_owned(), tool.to_owned());
                return Err(Error::NoTool { server, tool });
            };
            // Servers of an earlier release are as they were first seen.
            versions.push(ToolVersion {
                hash: now.hash().as_str().to_owned(),
                first_seen: server.since.unwrap_or(Timestamp(0)),
                definition: now.known(),
            });
        }
        Ok(tool_history::reports(&versions))
    }

    /// The last lines of a server's stderr, for those who look after it.
    pub async fn logs(&self, name: &str) -> Result<Vec<LogLine>, Error> {
        let view = self.servers.view(self.caller.whose()).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        must_look_after(self.caller, &server.entry)?;
        let shared = server.entry.tenant().is_none() && self.caller.user.installation_admin;
        Ok(self.servers.0.logs.of(&self.caller.tenant.id, name, shared))
    }

    /// What was seen of a server in the last 24 hours, at this gateway and since it started.
    pub async fn day(&self, name: &str) -> Result<Vec<HealthStep>, Error> {
        let view = self.servers.view(self.caller.whose()).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        Ok(self
            .servers
            .0
            .health
            .day_of(&self.caller.tenant.id, &server.entry, now()))
    }

    async fn report(&self, view: &View, server: &Ingredient) -> Result<ServerReport, Error> {
        let entry = &server.entry;
        let may_see = may_change(self.caller, entry);
        let secrets = if may_see {
            let prefix = secret_name(&entry.name, "");
            let names = self.servers.0.records.secrets().names(&entry.scope).await?;
            let own = names.iter().filter_map(|name| name.strip_prefix(&prefix));
            Some(own.map(ToOwned::to_owned).collect())
        } else {
            None
        };
        let listed = server.listed.as_deref().unwrap_or_default();
        let offered = view.toolbox.tools();
        let offered: Vec<&Tool> = offered
            .filter(|tool| tool.at.server == entry.name)
            .map(|tool| &tool.tool)
            .collect();
        let mut problems = view.problems.get(&entry.name).cloned().unwrap_or_default();
        problems.extend(entry.withheld.iter().map(|host| {
            format!(
                "it does not reach `{host}`: only an administrator of the tenant lets a server reach it, \
                 or `sandbox.network_on_request` names it"
            )
        }));
        let drift = listed.iter().filter(|tool| server.drift(tool).is_some());
        Ok(ServerReport {
            name: entry.name.clone(),
            source: entry.source,
            transport: entry.transport(),
            enabled: entry.config.enabled,
            description: entry.config.description.clone(),
            config: may_see.then(|| masked(&entry.config)),
            secrets,
            runs_in: entry.runs_in(),
            health: self.health_of(entry),
            is_listed: server.listed.is_some(),
            tool_count: listed.len(),
            enabled_tools: offered.len(),
            definition_tokens: offered.iter().map(|tool| tokens::of_tool(tool)).sum(),
            is_looked_after: looks_after(self.caller, entry),
            refused_hosts: self.refused_hosts(entry),
            drift: drift.map(|tool| tool.name.clone()).collect(),
            problems,
            connection: self.connection(entry).await?,
        })
    }

    fn refused_hosts(&self, entry: &ServerEntry) -> Vec<RefusedHost> {
        if !looks_after(self.caller, entry) {
            return Vec::new();
        }
        let refused = &self.servers.0.opener.outside.refused_hosts;
        refused.list(&self.caller.tenant.id, entry)
    }

    /// The caller's own connection: where they have one, or the server is known to want them.
    async fn connection(&self, entry: &ServerEntry) -> Result<Option<ConnectionReport>, Error> {
        let oauth = entry.config.oauth.as_ref();
        let is_of_client = oauth.is_some_and(|it| it.grant == McpGrant::ClientCredentials);
        let may_connect = self.caller.user.role >= Role::Member;
        if !entry.is_remote() || is_of_client || !may_connect {
            return Ok(None);
        }
        let key = GrantKey {
            scope: entry.scope.clone(),
            server: entry.name.clone(),
            tenant: self.caller.tenant.id.clone(),
            user: self.caller.user.id.clone(),
        };
        let grants = self.servers.0.records.mcp_grants();
        let row = grants.get(&key).await?;
        let health = self.servers.0.health.of(&self.caller.tenant.id, entry);
        let is_for_people = row.is_some()
            || health.status == Status::Unauthorized
            || oauth.is_some()
            || grants.is_for_people(&entry.scope, &entry.name).await?;
        Ok(is_for_people.then(|| ConnectionReport::new(&entry.name, row.as_ref())))
    }

    fn health_of(&self, entry: &ServerEntry) -> Health {
        let mut health = self.servers.0.health.of(&self.caller.tenant.id, entry);
        if entry.source == Source::Bundled && health.status == Status::Unknown {
            // The sandbox was tried at start, else the entry would not be there.
            health.status = Status::Healthy;
        }
        health
    }
}
