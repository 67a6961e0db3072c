//! Looks for model servers on the machine of the gateway, such as Ollama at its usual address.

use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use super::Providers;
use super::keeping::{Draft, KeyChange};
use sepal_core::domain::Scope;
use sepal_llm::{ProviderKind, Windows};

use crate::ThresholdChange;

/// The time limit of a server's model list: what runs on this machine answers at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// A model server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    pub name: String,
    pub base_url: String,
    /// The models that it lists; a server without any is running, but cannot answer.
    pub models: Vec<String>,
}

impl Providers {
    /// Asks each server of `agent.llm.local_servers` for its model list, all at once and without any key, and
    /// returns those that answered, by name. A server at an address that the scope may not reach is not asked.
    pub async fn find_local(&self, scope: &Scope) -> Vec<LocalServer> {
        let servers = self.0.ways.local_servers.iter();
        let asked = servers.map(|(name, address)| self.ask_local(scope, name, address));
        join_all(asked).await.into_iter().flatten().collect()
    }

    async fn ask_local(&self, scope: &Scope, name: &str, address: &str) -> Option<LocalServer> {
        let draft = Draft {
            kind: ProviderKind::OpenAiCompatible,
            base_url: Some(address.to_owned()),
            api: None,
            models: Vec::new(),
            windows: Windows::default(),
            max_outputs: None,
            efforts: None,
            prices: None,
            cache_ttl: None,
            compaction: None,
            compaction_threshold: ThresholdChange::Keep,
            key: KeyChange::Remove,
            more_keys: Some(Vec::new()),
            fallback: None,
        };
        let offer = self.draw(scope, name, draft).await.ok()?;
        let listed = timeout(PATIENCE, offer.provider.models())
            .await
            .ok()?
            .ok()?;
        Some(LocalServer {
            name: name.to_owned(),
            base_url: offer
                .provider
                .found_address()
                .unwrap_or_else(|| address.to_owned()),
            models: listed.models.into_iter().map(|model| model.id).collect(),
        })
    }
}
