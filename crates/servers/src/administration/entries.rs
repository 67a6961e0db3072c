//! Adds, changes and removes entries of the registry.

use secrecy::SecretString;
use serde_json::Value;

use super::fitness::{NewServer, check, check_address, check_package, check_secret, merge};
use super::masking::unmasked;
use super::retarget::{changes_reach, kept_secret, kept_values, replaced};
use super::{Administration, unknown};
use crate::bundles;
use crate::catalogue::entry::{BUNDLED, ServerEntry, Source};
use crate::error::Error;
use crate::mcp_registry::FilledEntry;
use crate::news::NewsKind;
use crate::permission::{
    ServerAudience, administers_tenant, audience_for, audience_of, check_endpoint_origins,
    check_hosts, check_sampling, check_transport, must_look_after, place_of,
};
use crate::registry::Servers;
use sepal_core::domain::{Caller, McpServerConfig, McpTransport, Scope, UserId};
use sepal_mcp::config::{Author, as_image, entry_problems};
use sepal_store as store;
use sepal_store::clock::now;
use sepal_store::records::McpServerRow;
use sepal_store::versions::{self, RecordName};

/// The most servers of a tenant, not counting those of the installation and of its people.
const MOST_OF_A_TENANT: usize = 50;
/// The most servers that a person owns.
const MOST_OF_A_PERSON: usize = 20;

impl Administration<'_> {
    /// Adds a server to `mcp-config.json`, to the caller's tenant, or for the caller alone.
    pub async fn add(&self, new: NewServer) -> Result<(), Error> {
        let (scope, owner) = check_new(self.servers, self.caller, &new).await?;
        let _alone = self.servers.0.changing.lock().await;
        self.check_bundle(&scope, owner.as_ref(), &new.config)
            .await?;
        self.check_free(&scope, owner.as_ref(), &new.name).await?;
        // An earlier entry of this name, removed by hand perhaps, may have left decisions, secrets and grants
        // that were not given for this one.
        self.forget_tools(&scope, &new.name).await?;
        self.forget_secrets(&scope, &new.name).await?;
        self.servers
            .0
            .records
            .mcp_grants()
            .forget(&scope, &new.name)
            .await?;
        // Secrets come before the entry, because the monitor lists the server as soon as the entry exists.
        for (secret, value) in &new.secrets {
            self.keep_secret(&scope, &new.name, secret, value).await?;
        }
        match &scope {
            Scope::Installation => self.servers.0.file.add(&new.name, &new.config).await?,
            Scope::Tenant(tenant) => {
                self.servers
                    .0
                    .owners
                    .note(&scope, &new.name, owner.as_ref());

                let sealer = &self.servers.0.sealer;
                let row = McpServerRow::seal(
                    tenant.clone(),
                    new.name.clone(),
                    owner,
                    new.config,
                    sealer,
                    now(),
                )?;
                self.servers
                    .0
                    .records
                    .mcp_servers()
                    .put(&row)
                    .await
                    .map_err(taken)?;
            }
        }
        self.servers
            .changed(&scope, &new.name, Some(NewsKind::Added));
        tracing::info!(mcp.server = %new.name, scope = %scope, user.id = %self.caller.user.id, "An MCP server was added");
        Ok(())
    }

    /// Changes an entry by a JSON merge patch. Masked values in the patch keep the stored ones, unless the
    /// change affects what the server does, sees or reaches: then hidden values have to be given again.
    pub async fn change(&self, name: &str, patch: &Value) -> Result<(), Error> {
        let counts = self.servers.0.records.versions();
        let scopes = [
            Scope::Installation,
            Scope::Tenant(self.caller.tenant.id.clone()),
        ];
        loop {
            let records = scopes.each_ref().map(|it| RecordName::server(it, name));
            let seen = counts.of(&records).await?;
            let seen: versions::Required = records.into_iter().zip(seen).collect();
            let is_required = seen.iter().any(|(record, _)| versions::is_required(record));
            let entry = self.find_current(name).await?;
            let secrets = self.secret_names(&entry.scope, name).await?;
            // Resolves host names, so the lock is not held.
            let config = self.patched(&entry, patch).await?;
            let _alone = self.servers.0.changing.lock().await;
            let is_same = self.find_current(name).await?.config == entry.config
                && self.secret_names(&entry.scope, name).await? == secrets;
            if !is_same {
                // The entry or its secrets have changed meanwhile: apply the patch to the new entry.
                continue;
            }
            // Another gateway may have changed the entry since it was read.
            let change = async {
                match &entry.scope {
                    Scope::Installation => {
                        counts.count(RecordName::server(&entry.scope, name)).await?;
                        Ok(self.servers.0.file.put(name, &config).await?)
                    }
                    Scope::Tenant(_) => self.update(&entry, &config).await,
                }
            };
            match versions::requiring(seen, change).await {
                Err(Error::Store(store::Error::Changed)) if !is_required => continue,
                changed => changed?,
            }
            if let Some(old) = &entry.config.bundle {
                bundles::let_go(self.servers, &entry.scope, old).await?;
            }
            // People gave their grants for the old address.
            if changes_reach(&entry.config, &config) {
                let grants = self.servers.0.records.mcp_grants();
                grants.forget(&entry.scope, name).await?;
            }
            self.servers.changed(&entry.scope, name, None);
            return Ok(());
        }
    }

    /// Returns the entry's configuration with the patch applied, or the reasons why it is refused.
    async fn patched(&self, entry: &ServerEntry, patch: &Value) -> Result<McpServerConfig, Error> {
        let name = &entry.name;
        let mut merged = serde_json::to_value(&entry.config).unwrap_or_default();
        merge(&mut merged, patch);
        let mut config: McpServerConfig = serde_json::from_value(merged)
            .map_err(|error| Error::invalid("config", error.to_string()))?;
        unmasked(&mut config, &entry.config);
        let is_moved = changes_reach(&entry.config, &config);
        // Problems that an operator's entry had before are tolerated, unless the change affects what the
        // server does, sees or reaches.
        let known = entry_problems(&entry.config, Author::Person);
        let is_strict = is_moved || !entry.source.is_of_operators();
        let mut problems = entry_problems(&config, Author::Person);
        problems.retain(|problem| is_strict || !known.contains(problem));
        if is_moved {
            problems.extend(kept_values(&entry.config, &config, patch));
            let kept = self.secret_names(&entry.scope, name).await?;
            problems.extend(kept.iter().map(|secret| kept_secret(name, secret)));
        }
        if !problems.is_empty() {
            return Err(Error::Invalid(problems));
        }
        let audience = audience_of(entry);
        if transport_of(&config) != transport_of(&entry.config) {
            self.check_transport(audience, &config)?;
        }
        // What the old entry was allowed counts only if the server does, sees and reaches the same as before.
        let known = Some(&entry.config).filter(|_| !is_moved);
        check_sampling(self.caller, &config, known)?;
        let on_request = self.servers.hosts_on_request();
        check_hosts(self.caller, on_request, audience, &config, known)?;
        check_endpoint_origins(self.caller, &config, known)?;
        check_package(&self.servers.0.place, &config)?;
        check_address(&self.servers.0.opener.outside.guard, &entry.scope, &config).await?;
        self.check_bundle(&entry.scope, entry.owner.as_ref(), &config)
            .await?;
        Ok(config)
    }

    fn check_transport(
        &self,
        audience: ServerAudience,
        config: &McpServerConfig,
    ) -> Result<(), Error> {
        let wanted = (audience, transport_of(config));
        check_transport(self.caller, self.servers.0.roles, wanted)
    }

    async fn check_bundle(
        &self,
        scope: &Scope,
        owner: Option<&UserId>,
        config: &McpServerConfig,
    ) -> Result<(), Error> {
        let Some(bundle) = &config.bundle else {
            return Ok(());
        };
        if owner.is_some() {
            let text = "a bundle serves everybody in the tenant: an admin adds it \
                        (`scope: tenant`)";
            return Err(Error::invalid("config.bundle", text));
        }
        bundles::check_kept(self.servers, scope, bundle).await
    }

    /// Stores the changed configuration of a tenant's or a person's entry.
    async fn update(&self, entry: &ServerEntry, config: &McpServerConfig) -> Result<(), Error> {
        let Scope::Tenant(tenant) = &entry.scope else {
            return Err(unknown(&entry.name));
        };

        let sealer = &self.servers.0.sealer;
        let row = McpServerRow::seal(
            tenant.clone(),
            entry.name.clone(),
            entry.owner.clone(),
            config.clone(),
            sealer,
            now(),
        )?;
        if self.servers.0.records.mcp_servers().update(&row).await? {
            return Ok(());
        }
        Err(unknown(&entry.name))
    }

    /// Replaces the bundle of a server, which has to be `seen`, by the entry made of another bundle. The
    /// stored secrets are deleted, because they were given for the old code: `filled` contains all that the
    /// new one needs.
    pub async fn replace_bundle(
        &self,
        name: &str,
        seen: &str,
        filled: FilledEntry,
    ) -> Result<(), Error> {
        let _alone = self.servers.0.changing.lock().await;
        let entry = self.find_own(name).await?;
        let (scope, old) = (&entry.scope, &entry.config);
        let Some(old_bundle) = old.bundle.as_ref().filter(|it| it.sha256 == seen) else {
            return Err(Error::ReplacedPackage(name.to_owned()));
        };
        let config = replaced(old, &filled)?;
        let mut problems = entry_problems(&config, Author::Person);
        let secrets: Vec<(String, SecretString)> = filled
            .secrets
            .into_iter()
            .map(|(secret, value)| (secret, value.into()))
            .collect();
        for (secret, value) in &secrets {
            if let Err(Error::Invalid(wrong)) = check_secret(secret, value) {
                problems.extend(wrong);
            }
        }
        if !problems.is_empty() {
            return Err(Error::Invalid(problems));
        }
        let on_request = self.servers.hosts_on_request();
        check_hosts(self.caller, on_request, audience_of(&entry), &config, None)?;
        check_package(&self.servers.0.place, &config)?;
        self.check_bundle(scope, entry.owner.as_ref(), &config)
            .await?;
        self.forget_secrets(scope, name).await?;
        self.update(&entry, &config).await?;
        for (secret, value) in &secrets {
            self.keep_secret(scope, name, secret, value).await?;
        }
        bundles::let_go(self.servers, scope, old_bundle).await?;
        self.servers.changed(scope, name, None);
        tracing::info!(mcp.server = %name, user.id = %self.caller.user.id, "A bundle was replaced");
        Ok(())
    }

    /// Removes an entry with its secrets and everything decided about its tools.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        // Locked, because the name becomes free before the secrets are deleted: nobody may take it in
        // between.
        let _alone = self.servers.0.changing.lock().await;
        let entry = self.find_own(name).await?;
        self.remove_entry(&entry).await
    }

    /// Removes the servers that the caller alone uses.
    pub async fn remove_all_own(&self) -> Result<(), Error> {
        let _alone = self.servers.0.changing.lock().await;
        let (tenant, person) = self.caller.whose();
        let rows = self.servers.0.records.mcp_servers().list(tenant).await?;
        for row in rows {
            if row.owner.as_ref() == Some(person) {
                let entry = self.servers.kept_entry(row).await?;
                self.remove_entry(&entry).await?;
            }
        }
        Ok(())
    }

    async fn remove_entry(&self, entry: &ServerEntry) -> Result<(), Error> {
        let name = entry.name.as_str();
        match &entry.scope {
            Scope::Installation => {
                let record = RecordName::server(&entry.scope, name);
                self.servers.0.records.versions().count(record).await?;
                self.servers.0.file.remove(name).await?;
            }
            Scope::Tenant(tenant) => {
                let rows = self.servers.0.records.mcp_servers();
                rows.delete(tenant, name).await?;
            }
        }
        self.forget_tools(&entry.scope, name).await?;
        self.forget_secrets(&entry.scope, name).await?;
        self.servers
            .0
            .installations
            .forget(&entry.scope, name)
            .await?;
        self.servers
            .0
            .records
            .mcp_grants()
            .forget(&entry.scope, name)
            .await?;
        if let Some(bundle) = &entry.config.bundle {
            bundles::let_go(self.servers, &entry.scope, bundle).await?;
        }
        self.servers.0.health.forget(entry.tenant(), &entry.name);
        self.servers.0.logs.forget(entry);
        self.servers.0.opener.outside.refused_hosts.forget(entry);
        self.servers
            .changed(&entry.scope, name, Some(NewsKind::Removed));
        tracing::info!(mcp.server = %name, user.id = %self.caller.user.id, "An MCP server was removed");
        Ok(())
    }

    /// Forgets what each tenant that the server serves has decided and seen of its tools, so that another
    /// server of the same name does not inherit it.
    async fn forget_tools(&self, scope: &Scope, name: &str) -> Result<(), Error> {
        let settings = self.servers.0.records.tool_settings();
        Ok(settings.forget(scope, name).await?)
    }

    /// Returns an entry that the caller may change, as it is stored now: an offering may be some seconds old,
    /// and another gateway may have changed the entry since.
    async fn find_current(&self, name: &str) -> Result<ServerEntry, Error> {
        let entry = self.find_own(name).await?;
        let Scope::Tenant(tenant) = &entry.scope else {
            return Ok(entry);
        };
        match self
            .servers
            .0
            .records
            .mcp_servers()
            .get(tenant, name)
            .await?
        {
            Some(row) => Ok(self.servers.kept_entry(row).await?),
            None => Err(unknown(name)),
        }
    }

    /// Returns an entry that the caller may change.
    pub async fn find_own(&self, name: &str) -> Result<ServerEntry, Error> {
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name).ok_or_else(|| unknown(name))?;
        match server.entry.source {
            Source::Person => must_look_after(self.caller, &server.entry)?,
            Source::Installation if !self.caller.user.installation_admin => {
                return Err(Error::NotAllowed(
                    "only installation admins change the servers of all tenants",
                ));
            }
            Source::Installation => {}
            Source::Tenant => administers_tenant(self.caller)?,
            Source::Bundled | Source::Settings => {
                administers_tenant(self.caller)?;
                return Err(Error::ReadOnly(name.to_owned()));
            }
        }
        Ok(ServerEntry::clone(&server.entry))
    }

    async fn check_free(
        &self,
        scope: &Scope,
        owner: Option<&UserId>,
        name: &str,
    ) -> Result<(), Error> {
        let of_all = self
            .servers
            .installation_entries(&self.servers.0.file.state());
        let mut is_taken = name == BUNDLED || of_all.iter().any(|entry| entry.name == name);
        let rows = match scope {
            // An entry of the installation would hide a tenant's entry of the same name.
            Scope::Installation => self.servers.0.records.mcp_servers().all().await?,
            Scope::Tenant(tenant) => self.servers.0.records.mcp_servers().list(tenant).await?,
        };
        is_taken |= rows.iter().any(|row| row.name == name);
        if is_taken {
            return Err(Error::Taken(name.to_owned()));
        }
        let theirs = rows.iter().filter(|row| row.owner.as_ref() == owner);
        let theirs = theirs.count();
        match (scope, owner) {
            (Scope::Tenant(_), None) if theirs >= MOST_OF_A_TENANT => {
                Err(Error::Full(MOST_OF_A_TENANT))
            }
            (Scope::Tenant(_), Some(_)) if theirs >= MOST_OF_A_PERSON => {
                Err(Error::OwnFull(MOST_OF_A_PERSON))
            }
            (Scope::Installation | Scope::Tenant(_), _) => Ok(()),
        }
    }
}

/// Checks a server that is added or tested, and returns the scope and the owner under which it is stored.
pub(super) async fn check_new(
    servers: &Servers,
    caller: &Caller,
    new: &NewServer,
) -> Result<(Scope, Option<UserId>), Error> {
    let config = &new.config;
    // A bundle belongs to its tenant, so by default its server does too, even if an installation admin adds
    // it.
    let own = config.bundle.is_some().then_some(ServerAudience::Tenant);
    let audience = audience_for(caller, new.audience.or(own))?;
    check(new)?;
    check_transport(caller, servers.0.roles, (audience, transport_of(config)))?;
    check_sampling(caller, config, None)?;
    check_hosts(caller, servers.hosts_on_request(), audience, config, None)?;
    check_endpoint_origins(caller, config, None)?;
    let (scope, owner) = place_of(caller, audience);
    check_package(&servers.0.place, config)?;
    check_address(&servers.0.opener.outside.guard, &scope, config).await?;
    Ok((scope, owner))
}

fn taken(error: store::Error) -> Error {
    if let store::Error::Taken(name) = error {
        return Error::Taken(name);
    }
    Error::Store(error)
}

/// Returns the transport of an entry; `docker run …` counts as an image.
fn transport_of(config: &McpServerConfig) -> McpTransport {
    as_image(config).map_or(config.transport(), |config| config.transport())
}
