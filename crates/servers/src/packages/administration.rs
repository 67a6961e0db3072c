//! Lets people see and control packages: preview the package of an entry, read the state of an installation,
//! retry it, stop it, and review and accept newer versions. Each operation checks the caller's permission.

use std::sync::Arc;

use super::following::announce;
use super::resolving::{Refused, resolve};
use crate::bundles::unpacking::kept_facts;
use crate::catalogue::entry::{ServerEntry, Source};
use crate::error::Error;
use crate::permission::{adds_servers, administers_tenant, looks_after, must_look_after};
use crate::registry::Servers;
use sepal_core::domain::{
    Caller, InstallProblem, InstallState, Installation, InstalledPackage, McpServerConfig,
    PackageRegistry, PackageSpec, Scope, Tool,
};
use sepal_mcp::config::package_of;
use sepal_store::records::InstallationRow;

/// The operations of a caller on packages.
pub struct PackageAdministration<'a> {
    servers: &'a Servers,
    caller: &'a Caller,
}

/// The package that an entry would install.
#[derive(Debug, Clone)]
pub struct PackagePreview {
    pub spec: PackageSpec,
    /// The version that would be installed, if the registry names it.
    pub version: Option<String>,
    /// The author's description.
    pub summary: Option<String>,
    /// The reason why it cannot be installed, and the message for the person.
    pub refused: Option<(InstallProblem, String)>,
}

/// The report about the installation of a server's package.
#[derive(Debug, Clone)]
pub struct InstallationReport {
    pub installation: Installation,
    /// True if the caller may see the installer's log.
    pub has_log: bool,
    /// The changes of a newer version, if there is one to review.
    pub changes: Option<ToolChanges>,
}

/// The tools of a newer version compared with those in use.
#[derive(Debug, Clone, Default)]
pub struct ToolChanges {
    pub added: Vec<Tool>,
    pub removed: Vec<Tool>,
    /// Each changed tool: in use, and in the newer version.
    pub changed: Vec<(Tool, Tool)>,
}

impl ToolChanges {
    fn between(used: &[Tool], next: &[Tool]) -> Self {
        let find = |tools: &[Tool], name: &str| tools.iter().find(|it| it.name == name).cloned();
        let missing = |from: &[Tool], other: &[Tool]| {
            let gone = from.iter().filter(|it| find(other, &it.name).is_none());
            gone.cloned().collect()
        };
        let pairs = used.iter().filter_map(|before| {
            let after = find(next, &before.name)?;
            (after != *before).then(|| (before.clone(), after))
        });
        Self {
            added: missing(next, used),
            removed: missing(used, next),
            changed: pairs.collect(),
        }
    }
}

impl<'a> PackageAdministration<'a> {
    /// Operations in the name of `caller`.
    pub fn new(servers: &'a Servers, caller: &'a Caller) -> Self {
        Self { servers, caller }
    }

    /// Returns the package that an entry that is not stored would install; `None` if it starts no package.
    pub async fn preview(&self, config: &McpServerConfig) -> Result<Option<PackagePreview>, Error> {
        adds_servers(self.caller, self.servers.0.roles)?;
        let command = package_of(config).map_err(|problem| Error::Invalid(vec![problem]))?;
        let Some(command) = command else {
            return Ok(None);
        };
        if command.spec.registry == PackageRegistry::Bundle {
            return self.preview_bundle(command.spec).await.map(Some);
        }
        let client = &self.servers.0.opener.clients.open;
        let settings = &self.servers.0.place.packages;
        let resolved = resolve(client, &command.spec, settings).await;
        let (resolved, refused) = match resolved {
            Ok(resolved) => (resolved, None),
            Err(Refused { problem, text }) => (super::Resolved::default(), Some((problem, text))),
        };
        Ok(Some(PackagePreview {
            version: resolved
                .version
                .map(|it| it.trim_start_matches('=').to_owned()),
            summary: resolved.summary,
            spec: command.spec,
            refused,
        }))
    }

    async fn preview_bundle(&self, mut spec: PackageSpec) -> Result<PackagePreview, Error> {
        administers_tenant(self.caller)?;
        let scope = Scope::Tenant(self.caller.tenant.id.clone());
        let facts = kept_facts(&self.servers.0.records, &scope, &spec.name).await?;
        let missing = || {
            let text = "no such bundle is kept: upload its file".to_owned();
            (InstallProblem::NoSuchPackage, text)
        };
        let dependencies = facts.as_ref().and_then(|it| it.dependencies.clone());
        spec.with = dependencies.map(|it| it.wanted).unwrap_or_default();
        Ok(PackagePreview {
            spec,
            version: facts.as_ref().map(|it| it.version.clone()),
            summary: facts.as_ref().map(|it| it.description.clone()),
            refused: facts.is_none().then(missing),
        })
    }

    /// Returns the installation of a server that the caller sees.
    pub async fn report(&self, name: &str) -> Result<InstallationReport, Error> {
        let entry = self.entry(name).await?;
        let mut installation = self.row(&entry).await?.installation;
        let changes = match &installation.candidate {
            Some(candidate) => Some(self.changes(&entry, &installation, candidate).await?),
            None => None,
        };
        let waits_for_start = matches!(
            installation.problem,
            Some(InstallProblem::DoesNotStart | InstallProblem::NeedsScript)
        );
        if waits_for_start && changes.is_none() && self.listed(&entry).await?.is_some() {
            // The server has started since, with another variable or argument.
            installation.problem = None;
        }
        Ok(InstallationReport {
            installation,
            has_log: looks_after(self.caller, &entry),
            changes,
        })
    }

    /// Retries a failed installation; if a version is installed, looks for a newer one.
    pub async fn retry(&self, name: &str) -> Result<InstallationReport, Error> {
        let entry = self.own_entry(name).await?;
        let row = self.row(&entry).await?;
        if row.installation.state.is_open() {
            return self.report(name).await;
        }
        if row.installation.installed.is_some() {
            return self.check(name).await;
        }
        self.begin_anew(&row, name).await
    }

    /// Stops an installation.
    pub async fn cancel(&self, name: &str) -> Result<InstallationReport, Error> {
        let entry = self.own_entry(name).await?;
        let row = self.row(&entry).await?;
        if !row.installation.state.is_open() {
            return Err(Error::Package(format!(
                "nothing is being installed for `{name}`"
            )));
        }
        let mut installation = row.installation.clone();
        installation.problem = Some(InstallProblem::Cancelled);
        installation.is_update = false;
        if let Some(phase) = installation.phases.last_mut() {
            phase.error = Some("a person stopped it".to_owned());
        }
        installation.state = match installation.installed {
            Some(_) => InstallState::Ready,
            None => InstallState::Failed,
        };
        self.save(&row, installation, name).await?;
        tracing::info!(mcp.server = %name, user.id = %self.caller.user.id, "An installation was stopped");
        self.begun(name).await
    }

    /// Looks for a newer version: installs it beside the version in use and lists its tools. Sessions use it
    /// only after an admin accepts it.
    pub async fn check(&self, name: &str) -> Result<InstallationReport, Error> {
        let entry = self.own_entry(name).await?;
        let row = self.row(&entry).await?;
        if row.installation.state.is_open() {
            return self.report(name).await;
        }
        if row.installation.installed.is_none() {
            return self.begin_anew(&row, name).await;
        }
        if row.installation.spec.registry == PackageRegistry::Bundle {
            return Err(Error::Package(format!(
                "`{name}` runs a bundle, which no registry has a newer version of: upload the newer file, \
                 and replace it"
            )));
        }
        let mut installation = row.installation.clone();
        installation.state = InstallState::Waiting;
        installation.is_update = true;
        installation.candidate = None;
        self.save(&row, installation, name).await?;
        self.begun(name).await
    }

    async fn begin_anew(
        &self,
        row: &InstallationRow,
        name: &str,
    ) -> Result<InstallationReport, Error> {
        let fresh = Installation::new(row.installation.spec.clone());
        let records = self.servers.0.records.packages();
        records.begin(&row.scope, &row.server, &fresh).await?;
        self.begun(name).await
    }

    /// Accepts the newer version that was shown, by the hash of its content. The tool definitions that were
    /// shown count as accepted by the caller's tenant.
    pub async fn accept(&self, name: &str, content: &str) -> Result<InstallationReport, Error> {
        let entry = self.own_entry(name).await?;
        let row = self.row(&entry).await?;
        let mut installation = row.installation.clone();
        let candidate = installation.candidate.take();
        let shown = candidate.filter(|it| it.content.as_str() == content);
        let Some(shown) = shown.filter(|_| !installation.state.is_open()) else {
            return Err(Error::ReplacedPackage(name.to_owned()));
        };
        let next = ServerEntry {
            package: Some(Arc::new(shown.clone())),
            ..entry.clone()
        };
        let tools = self.listed(&next).await?;
        installation.installed = Some(shown);
        let changed = InstallationRow {
            installation,
            ..row.clone()
        };
        let records = self.servers.0.records.packages();
        let (_, pins) = records.pins(&row.scope, &row.server).await?;
        let saved = records.save_pins(&changed, pins.as_deref(), None).await?;
        if saved.is_none() {
            return Err(Error::ReplacedPackage(name.to_owned()));
        }
        let tenant = &self.caller.tenant.id;
        for tool in tools.iter().flat_map(|tools| tools.iter()) {
            self.servers
                .0
                .definitions
                .accept(tenant, name, tool)
                .await?;
        }
        tracing::info!(mcp.server = %name, user.id = %self.caller.user.id, "A newer version of a package is used");
        self.servers.changed(&row.scope, name, None);
        self.begun(name).await
    }

    async fn changes(
        &self,
        entry: &ServerEntry,
        installation: &Installation,
        candidate: &InstalledPackage,
    ) -> Result<ToolChanges, Error> {
        let of = |package: &InstalledPackage| ServerEntry {
            package: Some(Arc::new(package.clone())),
            ..entry.clone()
        };
        let used = match &installation.installed {
            Some(used) => self.listed(&of(used)).await?,
            None => None,
        };
        let next = self.listed(&of(candidate)).await?;
        Ok(ToolChanges::between(
            used.as_deref().unwrap_or_default(),
            next.as_deref().unwrap_or_default(),
        ))
    }

    async fn listed(&self, entry: &ServerEntry) -> Result<Option<Arc<[Tool]>>, Error> {
        let key = entry.definitions_key(&self.servers.0.place.image());
        Ok(self.servers.0.definitions.get(&key).await?)
    }

    async fn save(
        &self,
        row: &InstallationRow,
        installation: Installation,
        name: &str,
    ) -> Result<(), Error> {
        let changed = InstallationRow {
            installation,
            ..row.clone()
        };
        let saved = self.servers.0.records.packages().save(&changed).await?;
        match saved {
            Some(saved) => {
                self.servers
                    .0
                    .records
                    .packages()
                    .free(&saved.scope, name)
                    .await?;
                Ok(())
            }
            None => Err(Error::Package(format!(
                "the installation of `{name}` went on meanwhile: look again"
            ))),
        }
    }

    /// Announces the new state, and wakes the installer.
    async fn begun(&self, name: &str) -> Result<InstallationReport, Error> {
        self.servers.0.installations.refresh().await?;
        self.servers.0.installations.bell.notify_one();
        let entry = self.entry(name).await?;
        announce(self.servers, &self.row(&entry).await?);
        self.report(name).await
    }

    async fn row(&self, entry: &ServerEntry) -> Result<InstallationRow, Error> {
        let command = package_of(&entry.config).ok().flatten();
        let command = command.ok_or_else(|| {
            Error::Package(format!("the MCP server `{}` starts no package", entry.name))
        })?;
        let records = self.servers.0.records.packages();
        let row = records.get(&entry.scope, &entry.name).await?;
        let row = row.filter(|row| row.installation.spec == command.spec);
        Ok(row.unwrap_or_else(|| InstallationRow {
            scope: entry.scope.clone(),
            server: entry.name.clone(),
            installation: Installation::new(command.spec),
            revision: 0,
            lease_gateway: None,
            lease_until: sepal_core::domain::Timestamp(0),
        }))
    }

    /// Returns a server that the caller sees.
    async fn entry(&self, name: &str) -> Result<ServerEntry, Error> {
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name);
        let server = server.ok_or_else(|| Error::NotFound(name.to_owned()))?;
        Ok(ServerEntry::clone(&server.entry))
    }

    /// Returns a server whose package the caller may control.
    async fn own_entry(&self, name: &str) -> Result<ServerEntry, Error> {
        let entry = self.entry(name).await?;
        match entry.source {
            Source::Tenant | Source::Bundled => administers_tenant(self.caller)?,
            Source::Person => must_look_after(self.caller, &entry)?,
            Source::Settings | Source::Installation if self.caller.user.installation_admin => {}
            Source::Settings | Source::Installation => {
                return Err(Error::NotAllowed(
                    "only installation admins change the servers of all tenants",
                ));
            }
        }
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ToolChanges;
    use sepal_core::domain::{Tool, ToolAnnotations};

    #[test]
    fn what_a_newer_version_changes_is_told_by_tool() {
        let tool = |name: &str, description: &str| -> Tool {
            Tool {
                name: name.to_owned(),
                title: None,
                description: description.to_owned(),
                input_schema: json!({"type": "object"}),
                annotations: ToolAnnotations::default(),
                needs_tasks: false,
                view: None,
                runs_as_task: false,
                output_schema: None,
            }
        };
        let used = [tool("a", "old"), tool("b", "same"), tool("c", "gone")];
        let next = [tool("a", "new"), tool("b", "same"), tool("d", "added")];
        let changes = ToolChanges::between(&used, &next);
        let names = |tools: &[Tool]| tools.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&changes.added), ["d"]);
        assert_eq!(names(&changes.removed), ["c"]);
        assert_eq!(changes.changed.len(), 1);
        assert_eq!(changes.changed[0].1.description, "new");
    }
}
