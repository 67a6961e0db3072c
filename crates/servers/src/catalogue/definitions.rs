//! Stores the tools that each server offers, under a key of its configuration, so that no model request waits
//! for a server.

use std::sync::Arc;

use sepal_core::domain::{Digest, ServerOffer, TenantId, Timestamp, Tool};
use sepal_store::{self as store, Records};

/// The stored definitions of all servers.
pub(crate) struct Definitions {
    records: Records,
}

/// The tools of a server that a tenant has accepted, and when the server's tools last changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accepted {
    /// The tools as the tenant first saw them, or last accepted a change.
    pub tools: Arc<[Tool]>,
    /// When the server began to offer its current tools.
    pub since: Option<Timestamp>,
}

impl Definitions {
    pub(crate) fn new(records: Records) -> Self {
        Self { records }
    }

    /// Returns the tools that were last listed; `None` if the server was never listed.
    pub(crate) async fn get(&self, key: &Digest) -> Result<Option<Arc<[Tool]>>, store::Error> {
        self.read(key.as_str()).await
    }

    /// Stores a list of tools; returns true if it differs from the stored one.
    pub(crate) async fn put(&self, key: &Digest, tools: &[Tool]) -> Result<bool, store::Error> {
        let before = self.get(key).await?;
        if before.as_deref() == Some(tools) {
            return Ok(false);
        }
        self.write(key.as_str(), tools).await?;
        Ok(true)
    }

    /// Returns the resources and prompts that were last listed; `None` if they never were.
    pub(crate) async fn offer(&self, key: &Digest) -> Result<Option<ServerOffer>, store::Error> {
        self.records.server_offers().get(key.as_str()).await
    }

    /// Stores a list of resources and prompts; returns true if it differs from the stored one.
    pub(crate) async fn put_offer(
        &self,
        key: &Digest,
        offer: &ServerOffer,
    ) -> Result<bool, store::Error> {
        if self.offer(key).await?.as_ref() == Some(offer) {
            return Ok(false);
        }
        self.records
            .server_offers()
            .put(key.as_str(), offer)
            .await?;
        Ok(true)
    }

    /// Returns the tools of a server that the tenant has accepted, and adds the offered tools that the tenant
    /// has never seen: they count as accepted, because nothing was decided about them yet. Also notes changed
    /// definitions in the history.
    pub(crate) async fn accepted(
        &self,
        tenant: &TenantId,
        server: &str,
        now: (&[Tool], Timestamp),
    ) -> Result<Accepted, store::Error> {
        let (offered, at) = now;
        let key = accepted_key(tenant, server);
        let before = self.read(&key).await?.unwrap_or_default();
        let is_new = |tool: &&Tool| before.iter().all(|known| known.name != tool.name);
        let new: Vec<Tool> = offered.iter().filter(is_new).cloned().collect();
        let tools: Arc<[Tool]> = if new.is_empty() {
            before
        } else {
            let all: Vec<Tool> = before.iter().cloned().chain(new).collect();
            self.write(&key, &all).await?;
            all.into()
        };
        let defined: Vec<Tool> = offered.iter().map(Tool::known).collect();
        let hash = Digest::of_json(&serde_json::json!(defined));
        let records = self.records.tool_definitions();
        let history = records.history(tenant, server).await?;
        let newest = history.first();
        let known = newest.filter(|change| change.hash == hash.as_str());
        let since = if let Some(known) = known {
            known.first_seen
        } else {
            records.note(tenant, server, hash.as_str(), at).await?;
            for tool in &defined {
                records.note_version(tenant, server, tool, at).await?;
            }
            at
        };
        let since = Some(since);
        Ok(Accepted { tools, since })
    }

    /// Marks a tool as accepted by the tenant as it is now.
    pub(crate) async fn accept(
        &self,
        tenant: &TenantId,
        server: &str,
        tool: &Tool,
    ) -> Result<(), store::Error> {
        let key = accepted_key(tenant, server);
        let before = self.read(&key).await?.unwrap_or_default();
        let others = before.iter().filter(|known| known.name != tool.name);
        let all: Vec<Tool> = others.chain([tool]).cloned().collect();
        self.write(&key, &all).await
    }

    async fn read(&self, key: &str) -> Result<Option<Arc<[Tool]>>, store::Error> {
        let tools = self.records.tool_definitions().get(key).await?;
        Ok(tools.map(Into::into))
    }

    async fn write(&self, key: &str, tools: &[Tool]) -> Result<(), store::Error> {
        self.records.tool_definitions().put(key, tools).await
    }
}

/// The key of the accepted tools; `ToolSettings::forget` deletes them by it.
fn accepted_key(tenant: &TenantId, server: &str) -> String {
    format!("accepted:{}:{server}", tenant.as_str())
}
