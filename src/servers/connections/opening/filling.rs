//! What an entry's references stand for, and which tokens a remote server is sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Opener;
use super::failure::{Cause, Failure, failure};
use super::secret;
use super::stderr::Said;
use crate::domain::{Holder, McpServerConfig};
use crate::mcp::config::{Expanded, References, as_written, expand};
use crate::mcp::{Authorizer, Cleaner};
use crate::servers::authorization::{Nobody, PersonAuthorizer, Target};
use crate::servers::catalogue::entry::{ServerEntry, Source};
use crate::store;

impl Opener {
    /// Where the tokens for a server come from. None for one whose entry says what is sent.
    pub(super) fn authorizer(
        &self,
        entry: &ServerEntry,
        (url, client_secret): (&str, Option<String>),
        person: Option<&Holder>,
    ) -> Option<Arc<dyn Authorizer>> {
        let target = Target::new(entry, url, (client_secret, self.client(entry)))?;
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

    /// A stored server as people connect to it; none where they do not.
    pub(crate) async fn target(&self, entry: &ServerEntry) -> Result<Option<Target>, Failure> {
        let expanded = self.expand(entry, &entry.config, None).await;
        let expanded = expanded
            .map_err(|cause| failure(&cause, &Cleaner::default(), &Said::default(), entry))?;
        let url = expanded.url.unwrap_or_default();
        let with = (expanded.client_secret, self.client(entry));
        Ok(Target::new(entry, &url, with))
    }

    /// What reaches a server over HTTP. Whoever is no operator reaches nothing private.
    pub(super) fn client(&self, entry: &ServerEntry) -> reqwest::Client {
        let client = if entry.source.is_of_operators() {
            &self.clients.open
        } else {
            &self.clients.guarded
        };
        client.clone()
    }

    /// What the references of a stored entry stand for.
    pub(crate) async fn references(
        &self,
        entry: &ServerEntry,
    ) -> Result<References<'_>, store::Error> {
        let whose = (&entry.scope, entry.name.as_str());
        let secrets = secret::read_all(&self.records.secrets(), &self.sealer, whose).await?;
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
            // It may bear the name of a server that is stored, and go elsewhere than that.
            References {
                environment: None,
                secrets: trial.cloned().unwrap_or_default(),
            }
        } else {
            self.references(entry).await?
        };
        if entry.source == Source::Settings {
            // The settings replaced them when they were read; what looks like one is text.
            return Ok(as_written(config));
        }
        Ok(expand(config, &from)?)
    }
}
