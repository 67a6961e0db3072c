//! What each server offers, kept by its configuration, so that no model request waits for one.

use std::sync::Arc;

use crate::domain::{Digest, ServerOffer, TenantId, Timestamp, Tool};
use crate::store::{self, Records};

/// The definitions of all servers.
pub(crate) struct Definitions {
    records: Records,
}

/// What a tenant has accepted of a server, and when it last changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accepted {
    /// The tools as they were when the tenant first saw them, or last said yes to a change.
    pub(crate) tools: Arc<[Tool]>,
    /// Since when the server offers what it offers now.
    pub(crate) since: Option<Timestamp>,
}

impl Definitions {
    pub(crate) fn new(records: Records) -> Self {
        Self { records }
    }

    /// What was last listed; `None` if nothing ever was.
    pub(crate) async fn get(&self, key: &Digest) -> Result<Option<Arc<[Tool]>>, store::Error> {
        self.read(key.as_str()).await
    }

    /// Takes a new list; whether it is another than before.
    pub(crate) async fn put(&self, key: &Digest, tools: &[Tool]) -> Result<bool, store::Error> {
        let before = self.get(key).await?;
        if before.as_deref() == Some(tools) {
            return Ok(false);
        }
        self.write(key.as_str(), tools).await?;
        Ok(true)
    }

    /// The resources and prompts that were last listed; `None` if nothing ever was.
    pub(crate) async fn offer(&self, key: &Digest) -> Result<Option<ServerOffer>, store::Error> {
        self.records.server_offers().get(key.as_str()).await
    }

    /// Takes a new list of them; whether it is another than before.
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

    /// What the tenant has accepted of a server. Tools that it never saw are accepted as they are:
    /// nothing was decided about them yet.
    pub(crate) async fn accepted(
        &self,
        (tenant, server): (&TenantId, &str),
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
        let whose = (tenant, server);
        let history = records.history(whose).await?;
        let newest = history.first();
        let known = newest.filter(|change| change.hash == hash.as_str());
        let since = if let Some(known) = known {
            known.first_seen
        } else {
            records.note(whose, hash.as_str(), at).await?;
            for tool in &defined {
                records.note_version(whose, tool, at).await?;
            }
            at
        };
        let since = Some(since);
        Ok(Accepted { tools, since })
    }

    /// The tenant says yes to a tool as it is now.
    pub(crate) async fn accept(
        &self,
        (tenant, server): (&TenantId, &str),
        tool: &Tool,
    ) -> Result<(), store::Error> {
        let key = accepted_key(tenant, server);
        let before = self.read(&key).await?.unwrap_or_default();
        let others = before.iter().filter(|known| known.name != tool.name);
        let all: Vec<Tool> = others.chain([tool]).cloned().collect();
        self.write(&key, &all).await
    }

    /// Another server of that name inherits nothing.
    pub(crate) async fn forget(&self, tenant: &TenantId, server: &str) -> Result<(), store::Error> {
        self.write(&accepted_key(tenant, server), &[]).await
    }

    async fn read(&self, key: &str) -> Result<Option<Arc<[Tool]>>, store::Error> {
        let tools = self.records.tool_definitions().get(key).await?;
        Ok(tools.map(Into::into))
    }

    async fn write(&self, key: &str, tools: &[Tool]) -> Result<(), store::Error> {
        self.records.tool_definitions().put(key, tools).await
    }
}

fn accepted_key(tenant: &TenantId, server: &str) -> String {
    format!("accepted:{}:{server}", tenant.as_str())
}
