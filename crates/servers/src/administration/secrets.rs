//! Sets and removes the secrets of servers; people can never read them.

use secrecy::{ExposeSecret as _, SecretString};

use super::Administration;
use super::fitness::check_secret;
use super::retarget::{kept_for_another, leads_elsewhere};
use crate::catalogue::entry::ServerEntry;
use crate::connections::opening::{secret_context, secret_name};
use crate::error::Error;
use sepal_core::domain::Scope;
use sepal_mcp::config::References;
use sepal_store::clock::now;
use sepal_store::records::SecretRow;

impl Administration<'_> {
    /// Sets the value of `${secret:NAME}` of a server. It is never returned. A secret that would change the
    /// server's address is refused while a hidden value or another secret is set that was given for the old
    /// address.
    pub async fn set_secret(
        &self,
        server: &str,
        name: &str,
        value: &SecretString,
    ) -> Result<(), Error> {
        check_secret(name, value)?;
        // Locked, so that neither the entry nor another secret changes after the check.
        let _alone = self.servers.0.changing.lock().await;
        let entry = self.find_own(server).await?;
        self.check_lead(&entry, name, value).await?;
        self.keep_secret(&entry.scope, server, name, value).await?;
        self.servers.changed(&entry.scope, server, None);
        Ok(())
    }

    /// Refuses a secret that would send values that were given for one address to another.
    async fn check_lead(
        &self,
        entry: &ServerEntry,
        name: &str,
        value: &SecretString,
    ) -> Result<(), Error> {
        let old = self.servers.0.opener.references(entry).await?;
        let mut secrets = old.secrets.clone();
        secrets.insert(name.to_owned(), value.expose_secret().to_owned());
        let new = References {
            environment: old.environment,
            secrets,
        };
        if !leads_elsewhere(&entry.config, &old, &new) {
            return Ok(());
        }
        let kept = kept_for_another(&entry.config, name, &old, &new);
        if !kept.is_empty() {
            return Err(Error::Invalid(kept));
        }
        // People gave their grants for the old address.
        let grants = self.servers.0.records.mcp_grants();
        Ok(grants.forget(&entry.scope, &entry.name).await?)
    }

    /// Removes a secret.
    pub async fn remove_secret(&self, server: &str, name: &str) -> Result<(), Error> {
        let _alone = self.servers.0.changing.lock().await;
        let entry = self.find_own(server).await?;
        let kept = secret_name(server, name);
        if !self
            .servers
            .0
            .records
            .secrets()
            .delete(&entry.scope, &kept)
            .await?
        {
            return Err(Error::NotFound(format!("{server}/{name}")));
        }
        self.servers.secrets_changed(&entry.scope, server);
        self.servers.changed(&entry.scope, server, None);
        Ok(())
    }

    /// Returns the names of the secrets that are set for a server.
    pub async fn secret_names(&self, scope: &Scope, server: &str) -> Result<Vec<String>, Error> {
        let prefix = secret_name(server, "");
        let names = self.servers.0.records.secrets().names(scope).await?;
        let own = names.iter().filter_map(|name| name.strip_prefix(&prefix));
        Ok(own.map(ToOwned::to_owned).collect())
    }

    /// Removes all secrets of a server.
    pub async fn forget_secrets(&self, scope: &Scope, server: &str) -> Result<(), Error> {
        for name in self.secret_names(scope, server).await? {
            let kept = secret_name(server, &name);
            self.servers
                .0
                .records
                .secrets()
                .delete(scope, &kept)
                .await?;
        }
        Ok(())
    }

    /// Seals a secret and stores it.
    pub async fn keep_secret(
        &self,
        scope: &Scope,
        server: &str,
        name: &str,
        value: &SecretString,
    ) -> Result<(), Error> {
        let name = secret_name(server, name);
        let context = secret_context(scope, &name);
        let sealed = self
            .servers
            .0
            .sealer
            .seal(&context, value.expose_secret().as_bytes())?;
        let row = SecretRow {
            scope: scope.clone(),
            name,
            sealed,
            updated_at: now(),
        };
        self.servers.0.records.secrets().put(&row).await?;
        self.servers.secrets_changed(scope, server);
        Ok(())
    }
}
