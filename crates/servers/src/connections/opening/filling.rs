//! Fills in the references of an entry, and selects the tokens that a remote server is sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Opener;
use super::failure::{Cause, Failure, failure};
use super::secret;
use super::stderr::Said;
use crate::authorization::{Nobody, PersonAuthorizer, Target};
use crate::catalogue::entry::{ServerEntry, Source};
use sepal_core::domain::{Holder, McpServerConfig};
use sepal_mcp::config::{Expanded, References, as_written, expand};
use sepal_mcp::{Authorizer, Cleaner};
use sepal_store as store;

impl Opener {
    /// Returns the source of the tokens for a server; `None` if its entry sets the `Authorization` header, or
    /// if it is not remote.
    pub(super) fn authorizer(
        &self,
        entry: &ServerEntry,
        url: &str,
        client_secret: Option<String>,
        person: Option<&Holder>,
    ) -> Option<Arc<dyn Authorizer>> {
        let target = Target::new(entry, url, client_secret, self.client(entry))?;
        if target.is_of_client() {
            return Some(Arc::new(
                self.client_grants.authorizer(target, self.grants.clone()),
            ));
        }
        match person.filter(|_| !entry.is_trial) {
            Some(person) => Some(Arc::new(PersonAuthorizer {
                grants: self.grants.clone(),
                target,
                person: person.clone(),
            })),
            None => Some(Arc::new(Nobody(target))),
        }
    }

    /// Returns a stored server as the target of people's grants; `None` if nobody connects to it.
    pub(crate) async fn target(&self, entry: &ServerEntry) -> Result<Option<Target>, Failure> {
        let expanded = self.expand(entry, &entry.config, None).await;
        let expanded = expanded
            .map_err(|cause| failure(&cause, &Cleaner::default(), &Said::default(), entry))?;
        let url = expanded.url.unwrap_or_default();

        Ok(Target::new(
            entry,
            &url,
            expanded.client_secret,
            self.client(entry),
        ))
    }

    /// Returns the HTTP client for a server. Only entries of operators may reach private addresses.
    pub(super) fn client(&self, entry: &ServerEntry) -> reqwest::Client {
        let client = if entry.source.is_of_operators() {
            &self.clients.open
        } else {
            &self.clients.guarded
        };
        client.clone()
    }

    /// Returns the values of the references of a stored entry: its secrets, and the environment for entries
    /// of the installation.
    pub(crate) async fn references(
        &self,
        entry: &ServerEntry,
    ) -> Result<References<'_>, store::Error> {
        let secrets = secret::read_all(
            &self.records.secrets(),
            &self.sealer,
            &entry.scope,
            entry.name.as_str(),
        )
        .await?;
        let reads_environment = entry.source == Source::Installation;
        Ok(References {
            environment: reads_environment.then_some(&*self.environment),
            secrets,
        })
    }

    pub(super) async fn expand(
        &self,
        entry: &ServerEntry,
        config: &McpServerConfig,
        trial: Option<&BTreeMap<String, String>>,
    ) -> Result<Expanded, Cause> {
        let from = if entry.is_trial {
            // A trial may have the name of a stored server and another address, so it must not get that
            // server's secrets.
            References {
                environment: None,
                secrets: trial.cloned().unwrap_or_default(),
            }
        } else {
            self.references(entry).await?
        };
        if entry.source == Source::Settings {
            // References in the settings were replaced when the settings were read; what still looks like one
            // is plain text.
            return Ok(as_written(config));
        }
        Ok(expand(config, &from)?)
    }
}
