//! Reports servers and tools to people. Configurations go only to those who may change them, with masked
//! values.

use super::masking::masked;
use super::unknown;
use crate::catalogue::entry::{ServerEntry, Source};
use crate::catalogue::tool_history::{self, ToolChangeReport};
use crate::catalogue::tool_offering::{Ingredient, ToolOffering};
use crate::catalogue::tool_report::ToolReport;
use crate::connections::logs::LogLine;
use crate::connections::opening::{Failure, Phase, secret_name};
use crate::error::Error;
use crate::health::health_history::HealthStep;
use crate::health::{Health, Status};
use crate::permission::{
    ServerAudience, addable, looks_after, may_administer, may_change, must_look_after,
};
use crate::person_connections::ConnectionReport;
use crate::registry::{Servers, is_of_groups};
use sepal_core::domain::{
    AccessKind, Caller, McpGrant, McpServerConfig, McpTransport, RefusedHost, Role, RunsIn,
    Timestamp, Tool, Used,
};
use sepal_llm::tokens;
use sepal_store::clock::now;
use sepal_store::records::{GrantKey, ToolVersion};

/// The report about a server, for people.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own"
)]
pub struct ServerReport {
    pub name: String,
    /// The place where its entry is defined.
    pub source: Source,
    /// The transport.
    pub transport: McpTransport,
    /// True if sessions may use it.
    pub enabled: bool,
    /// Its description.
    pub description: Option<String>,
    /// Its masked configuration, for those who may change it.
    pub config: Option<McpServerConfig>,
    /// The names of its secrets, for those who may change it.
    pub secrets: Option<Vec<String>>,
    /// The place where the calls of the server run.
    pub runs_in: RunsIn,
    pub health: Health,
    /// True if its tools were ever listed.
    pub is_listed: bool,
    /// The number of tools that it offers.
    pub tool_count: usize,
    /// The number of tools that the model is told of.
    pub enabled_tools: usize,
    /// The estimated tokens of their definitions in each request.
    pub definition_tokens: u64,
    /// The names of tools that differ from the accepted definition.
    pub drift: Vec<String>,
    /// True if the caller manages the server: may test it, restart it, read its log and decide about its
    /// tools.
    pub is_looked_after: bool,
    /// The hosts that it was refused in the caller's tenant, for those who manage it.
    pub refused_hosts: Vec<RefusedHost>,
    /// The reasons why tools are not offered and hosts are withheld.
    pub problems: Vec<String>,
    /// The caller's own connection, if people connect to the server.
    pub connection: Option<ConnectionReport>,
    /// The id and the name of each group that names it, for those who manage the tenant's servers.
    pub groups: Vec<(String, String)>,
    /// True if the caller's sessions may use it: no group names it, or the caller is in one that does.
    pub is_open: bool,
}

/// The result of a trial.
#[derive(Debug, Clone)]
pub struct TestReport {
    /// The phases that were run.
    pub phases: Vec<Phase>,
    pub tools: Vec<Tool>,
    /// The last lines of its stderr.
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
    pub(crate) fn new(offering: &ToolOffering, server: &Ingredient, tool: &Tool) -> Self {
        let (_, effect) = server.setting(&tool.name);
        let mut offered = offering.toolbox.tools();
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

/// The operations of a caller that read the registry.
pub struct Reports<'a> {
    pub(super) servers: &'a Servers,
    pub(super) caller: &'a Caller,
}

impl Reports<'_> {
    /// Returns the transports with which the caller may add servers for that audience.
    pub fn addable(&self, audience: ServerAudience) -> Vec<McpTransport> {
        addable(self.caller, self.servers.0.roles, audience)
    }

    /// Returns the reports of all servers that the caller sees.
    pub async fn list(&self) -> Result<Vec<ServerReport>, Error> {
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let mut reports = Vec::new();
        for server in &offering.ingredients.servers {
            reports.push(self.report(&offering, server).await?);
        }
        Ok(reports)
    }

    /// Returns the report of one server.
    pub async fn one(&self, name: &str) -> Result<ServerReport, Error> {
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name).ok_or_else(|| unknown(name))?;
        self.report(&offering, server).await
    }

    /// Returns a server's tools, with what was decided about them.
    pub async fn tools(&self, name: &str) -> Result<Vec<ToolReport>, Error> {
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name).ok_or_else(|| unknown(name))?;
        let listed = server.listed.iter().flat_map(|tools| tools.iter());
        Ok(listed
            .map(|tool| ToolReport::new(&offering, server, tool))
            .collect())
    }

    /// Returns the stored definitions of a tool that the tenant was offered, newest first.
    pub async fn tool_history(
        &self,
        name: &str,
        tool: &str,
    ) -> Result<Vec<ToolChangeReport>, Error> {
        let tenant = &self.caller.tenant.id;
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name).ok_or_else(|| unknown(name))?;
        let definitions = self.servers.0.records.tool_definitions();
        let mut versions = definitions.versions(tenant, name, tool).await?;
        let mut listed = server.listed.iter().flat_map(|tools| tools.iter());
        let now = listed.find(|known| known.name == tool);
        if versions.is_empty() {
            let Some(now) = now else {
                let (server, tool) = (name.to_owned(), tool.to_owned());
                return Err(Error::NoTool { server, tool });
            };
            // Tools that an earlier release listed have no history: the current definition is the only
            // version.
            versions.push(ToolVersion {
                hash: now.hash().as_str().to_owned(),
                first_seen: server.since.unwrap_or(Timestamp(0)),
                definition: now.known(),
            });
        }
        Ok(tool_history::reports(&versions))
    }

    /// Returns the last lines of a server's stderr, for those who manage the server.
    pub async fn logs(&self, name: &str) -> Result<Vec<LogLine>, Error> {
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name).ok_or_else(|| unknown(name))?;
        must_look_after(self.caller, &server.entry)?;
        let shared = server.entry.tenant().is_none() && self.caller.user.installation_admin;
        Ok(self.servers.0.logs.of(&self.caller.tenant.id, name, shared))
    }

    /// Returns the checks of a server in the last 24 hours, by this gateway since it started.
    pub async fn day(&self, name: &str) -> Result<Vec<HealthStep>, Error> {
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name).ok_or_else(|| unknown(name))?;
        Ok(self
            .servers
            .0
            .health
            .day_of(&self.caller.tenant.id, &server.entry, now()))
    }

    async fn report(
        &self,
        offering: &ToolOffering,
        server: &Ingredient,
    ) -> Result<ServerReport, Error> {
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
        let offered = offering.toolbox.tools();
        let offered: Vec<&Tool> = offered
            .filter(|tool| tool.at.server == entry.name)
            .map(|tool| &tool.tool)
            .collect();
        let mut problems = offering
            .problems
            .get(&entry.name)
            .cloned()
            .unwrap_or_default();
        problems.extend(entry.withheld.iter().map(|host| {
            format!(
                "it does not reach `{host}`: only an administrator of the tenant lets a server reach it, \
                 or `sandbox.network_on_request` names it"
            )
        }));
        let key = entry.definitions_key(&self.servers.0.place.image());
        let offer = self.servers.0.definitions.offer(&key).await?;
        problems.extend(offer.unwrap_or_default().problems);
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
            groups: self.groups(offering, entry),
            is_open: is_open(self.caller, offering, entry),
        })
    }

    /// Returns the groups that name a server, for those who manage the tenant's servers.
    fn groups(&self, offering: &ToolOffering, entry: &ServerEntry) -> Vec<(String, String)> {
        if !may_administer(self.caller) || !is_of_groups(entry) {
            return Vec::new();
        }
        let access = &offering.ingredients.access;
        let naming = access
            .that_name(AccessKind::Server, &entry.name)
            .into_iter();
        naming
            .map(|(id, name)| (id.to_owned(), name.to_owned()))
            .collect()
    }

    fn refused_hosts(&self, entry: &ServerEntry) -> Vec<RefusedHost> {
        if !looks_after(self.caller, entry) {
            return Vec::new();
        }
        let refused = &self.servers.0.opener.outside.refused_hosts;
        refused.list(&self.caller.tenant.id, entry)
    }

    /// Returns the caller's own connection, if they have one or people are known to connect to the server.
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
            // The sandbox was checked at the start of the gateway; otherwise this entry would not exist.
            health.status = Status::Healthy;
        }
        health
    }
}

/// Returns true if the caller's sessions may use a server.
fn is_open(caller: &Caller, offering: &ToolOffering, entry: &ServerEntry) -> bool {
    let access = &offering.ingredients.access;
    !is_of_groups(entry) || access.may_use(&caller.user.id, Used::Server(&entry.name))
}
