//! What people do to the registry: add, change, remove, try, decide about single tools. Every verb
//! takes who asks, and checks what they may.

use std::collections::BTreeMap;

use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::fitness::{NewServer, check, merge, still_fits};
use super::masking::unmasked;
use super::permission::{administers_tenant, scope_for};
use super::report::{ServerReport, TestReport};
use super::retarget::{goes_elsewhere, kept_secret, kept_values};
use crate::domain::{Caller, Digest, McpServerConfig, SandboxId, Scope, TenantId, ToolRef};
use crate::mcp::config::{Author, entry_problems};
use crate::servers::catalogue::entry::{BUNDLED, ServerEntry, Source};
use crate::servers::catalogue::tool_report::ToolReport;
use crate::servers::connections::logs::LogLine;
use crate::servers::connections::opening::{Phase, ServerLocation};
use crate::servers::error::Error;
use crate::servers::health::health_history::HealthStep;
use crate::servers::monitor;
use crate::servers::news::{Change, NewsKind};
use crate::servers::registry::Servers;
use crate::session::PolicyEffect;
use crate::store;
use crate::store::clock::now;
use crate::store::records::{McpServerRow, ToolSetting};

/// Servers that a tenant has, beside those of the installation.
const MOST_OF_A_TENANT: usize = 50;

/// What is decided about one tool.
#[derive(Debug, Clone, Default)]
pub struct ToolChange {
    /// Whether the model is told of it.
    pub enabled: Option<bool>,
    /// What happens to its calls.
    pub effect: Option<PolicyEffect>,
    /// Hash of the definition that this was decided about.
    pub hash: Option<Digest>,
}

impl ToolChange {
    /// Whether it says yes to the definition as it is now. One that has changed is said yes to only by
    /// whoever names it.
    fn accepts(&self, is_drifted: bool) -> bool {
        self.effect.is_some() && (self.hash.is_some() || !is_drifted)
    }

    /// Whether it is about the definition as it is now. What only takes away needs no reading.
    fn is_about(&self, now: &Digest, is_drifted: bool) -> bool {
        let lets_more = matches!(self.effect, Some(PolicyEffect::Allow | PolicyEffect::Ask));
        match &self.hash {
            Some(seen) => seen == now,
            None => !(is_drifted && lets_more),
        }
    }
}

impl Servers {
    /// Every server that the caller sees.
    pub async fn list(&self, caller: &Caller) -> Result<Vec<ServerReport>, Error> {
        let view = self.view(&caller.tenant.id).await?;
        let mut reports = Vec::new();
        for server in &view.ingredients.servers {
            reports.push(self.report(caller, &view, server).await?);
        }
        Ok(reports)
    }

    /// One of them.
    pub async fn one(&self, caller: &Caller, name: &str) -> Result<ServerReport, Error> {
        let view = self.view(&caller.tenant.id).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        self.report(caller, &view, server).await
    }

    /// Adds a server to `mcp-config.json` or to the caller's tenant.
    pub async fn add(&self, caller: &Caller, new: NewServer) -> Result<(), Error> {
        let scope = scope_for(caller, new.for_everybody)?;
        check(&new)?;
        self.check_address(&scope, &new.config).await?;
        let _alone = self.0.changing.lock().await;
        self.check_free(&scope, &new.name).await?;
        // What an entry of that name left behind, removed by hand perhaps, was given to another.
        self.forget_secrets(&scope, &new.name).await?;
        // Before the entry: the monitor lists it as soon as it is there.
        for (secret, value) in &new.secrets {
            self.keep_secret(&scope, &new.name, (secret, value)).await?;
        }
        match &scope {
            Scope::Installation => self.0.file.add(&new.name, &new.config).await?,
            Scope::Tenant(tenant) => {
                let row = row(tenant, &new.name, &new.config);
                self.0
                    .records
                    .mcp_servers()
                    .put(&row)
                    .await
                    .map_err(taken)?;
            }
        }
        self.changed(&scope, &new.name, Some(NewsKind::Added));
        tracing::info!(mcp.server = %new.name, scope = %scope, user.id = %caller.user.id, "An MCP server was added");
        Ok(())
    }

    /// Changes an entry by a JSON merge patch; what was shown masked stays as it was, unless it
    /// would now go elsewhere.
    pub async fn change(&self, caller: &Caller, name: &str, patch: &Value) -> Result<(), Error> {
        loop {
            let entry = self.find_own(caller, name).await?;
            let secrets = self.secret_names(&entry.scope, name).await?;
            // Looks up names of hosts: not while others wait.
            let config = self.patched(&entry, patch).await?;
            let _alone = self.0.changing.lock().await;
            let is_same = self.find_own(caller, name).await?.config == entry.config
                && self.secret_names(&entry.scope, name).await? == secrets;
            if !is_same {
                // Somebody changed something else meanwhile: that stays.
                continue;
            }
            match &entry.scope {
                Scope::Installation => self.0.file.put(name, &config).await?,
                Scope::Tenant(tenant) => {
                    let row = row(tenant, name, &config);
                    if !self.0.records.mcp_servers().update(&row).await? {
                        return Err(unknown(name));
                    }
                }
            }
            self.changed(&entry.scope, name, None);
            return Ok(());
        }
    }

    /// The entry's configuration with the patch, if it may be so.
    async fn patched(&self, entry: &ServerEntry, patch: &Value) -> Result<McpServerConfig, Error> {
        let name = &entry.name;
        let mut merged = serde_json::to_value(&entry.config).unwrap_or_default();
        merge(&mut merged, patch);
        let mut config: McpServerConfig = serde_json::from_value(merged)
            .map_err(|error| Error::invalid("config", error.to_string()))?;
        unmasked(&mut config, &entry.config);
        let is_moved = goes_elsewhere(&entry.config, &config);
        // What an operator wrote by hand stays theirs, where they wrote that it goes; what is
        // changed here has to be fit for it.
        let known = entry_problems(&entry.config, Author::Person);
        let is_strict = is_moved || entry.source == Source::Tenant;
        let mut problems = entry_problems(&config, Author::Person);
        problems.retain(|problem| is_strict || !known.contains(problem));
        if is_moved {
            problems.extend(kept_values((&entry.config, &config), patch));
            let kept = self.secret_names(&entry.scope, name).await?;
            problems.extend(kept.iter().map(|secret| kept_secret(name, secret)));
        }
        if !problems.is_empty() {
            return Err(Error::Invalid(problems));
        }
        self.check_address(&entry.scope, &config).await?;
        Ok(config)
    }

    /// Removes an entry with its secrets and everything decided about its tools.
    pub async fn remove(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        // The name is free before the secrets are gone: they are not those of who takes it next.
        let _alone = self.0.changing.lock().await;
        let entry = self.find_own(caller, name).await?;
        let tenants = match &entry.scope {
            Scope::Installation => {
                self.0.file.remove(name).await?;
                let tenants = self.0.records.tenants().list().await?;
                tenants.into_iter().map(|tenant| tenant.id).collect()
            }
            Scope::Tenant(tenant) => {
                self.0.records.mcp_servers().delete(tenant, name).await?;
                vec![tenant.clone()]
            }
        };
        for tenant in &tenants {
            self.0.records.tool_settings().forget(tenant, name).await?;
            self.0.definitions.forget(tenant, name).await?;
        }
        self.forget_secrets(&entry.scope, name).await?;
        self.0.health.forget(entry.tenant(), &entry.name);
        self.0.logs.forget(&entry);
        self.changed(&entry.scope, name, Some(NewsKind::Removed));
        tracing::info!(mcp.server = %name, user.id = %caller.user.id, "An MCP server was removed");
        Ok(())
    }

    /// Starts a server in a place that is thrown away, and says how each phase went.
    pub async fn test(&self, caller: &Caller, name: &str) -> Result<TestReport, Error> {
        administers_tenant(caller)?;
        let view = self.view(&caller.tenant.id).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        still_fits(&server.entry)?;
        let _turn = self.0.probe_limits.turn(&caller.tenant.id).await;
        let mut phases = Vec::new();
        let tried = monitor::try_out(self, &server.entry, &mut phases).await;
        Ok(TestReport::new(phases, tried))
    }

    /// The same for an entry that is not stored.
    pub async fn test_new(&self, caller: &Caller, new: NewServer) -> Result<TestReport, Error> {
        let scope = scope_for(caller, new.for_everybody)?;
        check(&new)?;
        self.check_address(&scope, &new.config).await?;
        let source = match scope {
            Scope::Installation => Source::Installation,
            Scope::Tenant(_) => Source::Tenant,
        };
        let mut entry = self.entry(new.name, source, scope, new.config);
        // The environment is for what operators wrote, not for what somebody tries.
        entry.is_trial = true;
        let sandbox = SandboxId::from_bits(rand::random());
        let secrets = new.secrets.iter();
        let secrets = secrets.map(|(name, value)| (name.clone(), value.expose_secret().to_owned()));
        let secrets: BTreeMap<String, String> = secrets.collect();
        let holder = caller.holder();
        let place = ServerLocation {
            tenant: Some(&caller.tenant.id),
            holder: Some(&holder),
            sandbox: &sandbox,
            secrets: Some(&secrets),
        };
        let _turn = self.0.probe_limits.turn(&caller.tenant.id).await;
        let mut phases: Vec<Phase> = Vec::new();
        let opening = &self.0.opener;
        let tried = match opening.open(&entry, place, &mut phases).await {
            Ok(server) => {
                let listed = opening.list(&entry, &server, &mut phases).await;
                server.kill().await;
                listed.map(|tools| (tools, server.last_words()))
            }
            Err(failure) => Err(failure),
        };
        self.0.place.discard(&sandbox).await;
        Ok(TestReport::new(phases, tried))
    }

    /// What a server offers, and what was decided about it.
    pub async fn tools(&self, caller: &Caller, name: &str) -> Result<Vec<ToolReport>, Error> {
        let view = self.view(&caller.tenant.id).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        let listed = server.listed.iter().flat_map(|tools| tools.iter());
        Ok(listed
            .map(|tool| ToolReport::new(&view, server, tool))
            .collect())
    }

    /// Decides about one tool for the caller's tenant. Whoever names the definition that they saw and
    /// says what happens to its calls says yes to it.
    pub async fn set_tool(
        &self,
        caller: &Caller,
        (name, tool): (&str, &str),
        change: ToolChange,
    ) -> Result<ToolReport, Error> {
        administers_tenant(caller)?;
        let tenant = &caller.tenant.id;
        let _alone = self.0.changing.lock().await;
        let view = self.view(tenant).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        let mut listed = server.listed.iter().flat_map(|tools| tools.iter());
        let known = listed.find(|known| known.name == tool);
        let known = known.ok_or_else(|| Error::NoTool {
            server: name.to_owned(),
            tool: tool.to_owned(),
        })?;
        let is_drifted = server.drift(known).is_some();
        if !change.is_about(&known.hash(), is_drifted) {
            let now = ToolReport::new(&view, server, known);
            return Err(Error::ChangedTool(Box::new(now)));
        }
        let (enabled, effect) = server.setting(tool);
        let setting = ToolSetting {
            tool: ToolRef {
                server: name.to_owned(),
                tool: tool.to_owned(),
            },
            is_enabled: change.enabled.unwrap_or(enabled),
            effect: change.effect.unwrap_or(effect),
        };
        if change.accepts(is_drifted) {
            self.0.definitions.accept((tenant, name), known).await?;
        }
        self.0.records.tool_settings().put(tenant, &setting).await?;
        self.stale();
        self.pass_on(Some(tenant), name, Change::Rules);
        self.rules_changed(tenant);
        let view = self.view(tenant).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        Ok(ToolReport::new(&view, server, known))
    }

    /// The last lines of a server's stderr, for the admins of the tenant.
    pub async fn logs(&self, caller: &Caller, name: &str) -> Result<Vec<LogLine>, Error> {
        administers_tenant(caller)?;
        let view = self.view(&caller.tenant.id).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        let shared = server.entry.tenant().is_none() && caller.user.installation_admin;
        Ok(self.0.logs.of(&caller.tenant.id, name, shared))
    }

    /// What was seen of a server in the last 24 hours, at this gateway and since it started.
    pub async fn day(&self, caller: &Caller, name: &str) -> Result<Vec<HealthStep>, Error> {
        let view = self.view(&caller.tenant.id).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        Ok(self
            .0
            .health
            .day_of(&caller.tenant.id, &server.entry, now()))
    }

    /// An entry that the caller may change.
    pub(crate) async fn find_own(&self, caller: &Caller, name: &str) -> Result<ServerEntry, Error> {
        let view = self.view(&caller.tenant.id).await?;
        let server = view.server(name).ok_or_else(|| unknown(name))?;
        match server.entry.source {
            Source::Installation if !caller.user.installation_admin => {
                return Err(Error::NotAllowed(
                    "only installation admins change the servers of all tenants",
                ));
            }
            Source::Installation => {}
            Source::Tenant => administers_tenant(caller)?,
            Source::Bundled | Source::Settings => {
                administers_tenant(caller)?;
                return Err(Error::ReadOnly(name.to_owned()));
            }
        }
        Ok(ServerEntry::clone(&server.entry))
    }

    async fn check_free(&self, scope: &Scope, name: &str) -> Result<(), Error> {
        let of_all = self.installation_entries(&self.0.file.state());
        let mut is_taken = name == BUNDLED || of_all.iter().any(|entry| entry.name == name);
        let rows = match scope {
            // It would hide a tenant's own.
            Scope::Installation => self.0.records.mcp_servers().all().await?,
            Scope::Tenant(tenant) => self.0.records.mcp_servers().list(tenant).await?,
        };
        is_taken |= rows.iter().any(|row| row.name == name);
        if is_taken {
            return Err(Error::Taken(name.to_owned()));
        }
        if matches!(scope, Scope::Tenant(_)) && rows.len() >= MOST_OF_A_TENANT {
            return Err(Error::Full(MOST_OF_A_TENANT));
        }
        Ok(())
    }

    /// A clear answer for whoever types a private address; what holds is the client's own check.
    async fn check_address(&self, scope: &Scope, config: &McpServerConfig) -> Result<(), Error> {
        let url = config
            .url
            .as_deref()
            .and_then(|url| url::Url::parse(url).ok());
        match (scope, url) {
            (Scope::Tenant(_), Some(url)) => {
                let checked = self.0.guard.check(&url).await;
                checked.map_err(|blocked| Error::invalid("config.url", blocked.to_string()))
            }
            (Scope::Installation | Scope::Tenant(_), _) => Ok(()),
        }
    }

    /// The registry is another: sessions see it at their next request, the monitor looks at it.
    pub(crate) fn changed(&self, scope: &Scope, name: &str, news: Option<NewsKind>) {
        self.stale();
        self.0.bell.notify_one();
        match scope {
            Scope::Tenant(tenant) => {
                self.pass_on(Some(tenant), name, Change::of(news.as_ref()));
                if let Some(kind) = news {
                    self.tell(Some(tenant), name, kind);
                }
            }
            // What happens in the file is told by whoever watches it, edits by hand included; each
            // gateway has its own.
            Scope::Installation => {}
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::NotFound(name.to_owned())
}

fn taken(error: store::Error) -> Error {
    if let store::Error::Taken(name) = error {
        return Error::Taken(name);
    }
    Error::Store(error)
}

fn row(tenant: &TenantId, name: &str, config: &McpServerConfig) -> McpServerRow {
    McpServerRow {
        tenant: tenant.clone(),
        name: name.to_owned(),
        config: config.clone(),
        updated_at: now(),
    }
}
