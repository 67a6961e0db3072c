//! What servers offer beside tools: listed in the background and kept as their tools are, so that
//! nobody who looks at the lists waits for a server.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::catalogue::entry::{ServerEntry, Source};
use super::connections::opening::Opened;
use super::registry::Servers;
use crate::domain::{ServerOffer, TenantId, UserId};
use crate::mcp::Offers;
use crate::store;

/// The shortest time between two looks at lists of which a server says that they change.
const PAUSE: Duration = Duration::from_secs(1);

/// A server with what it offers beside tools.
#[derive(Debug, Clone)]
pub struct ListedOffer {
    pub server: String,
    /// For people.
    pub description: Option<String>,
    /// `None` if it was never listed.
    pub offer: Option<ServerOffer>,
}

/// What the servers that a person's sessions may use offer, as it was last listed. Starts none.
pub(crate) async fn list(
    servers: &Servers,
    whose: (&TenantId, &UserId),
) -> Result<Vec<ListedOffer>, store::Error> {
    let view = servers.view(whose).await?;
    let mut listed = Vec::new();
    for entry in view
        .entries()
        .filter(|entry| entry.source != Source::Bundled)
    {
        let key = entry.definitions_key(&servers.0.place.image());
        listed.push(ListedOffer {
            server: entry.name.clone(),
            description: entry.config.description.clone(),
            offer: servers.0.definitions.offer(&key).await?,
        });
    }
    Ok(listed)
}

/// Lists an open server and keeps what it says.
pub(crate) async fn note(servers: &Servers, entry: &ServerEntry, opened: &Opened) {
    if entry.source == Source::Bundled || entry.is_trial {
        return;
    }
    let offer = Offers::of(&opened.connection).list().await;
    let key = entry.definitions_key(&servers.0.place.image());
    if let Err(error) = servers.0.definitions.put_offer(&key, &offer).await {
        tracing::warn!(mcp.server = %entry.name, ?error, "What a server offers beside tools was not kept");
    }
}

/// Lists it now, and again whenever it says that its lists are others. Ends with the connection.
pub(crate) fn follow(servers: &Servers, entry: &ServerEntry, opened: &Arc<Opened>) {
    let mut changes: watch::Receiver<u64> = opened.connection.offer_changes();
    let (servers, entry, opened) = (servers.clone(), entry.clone(), Arc::downgrade(opened));
    let tasks = servers.0.opener.tasks.clone();
    tasks.spawn(async move {
        loop {
            let Some(opened) = opened.upgrade() else {
                return;
            };
            note(&servers, &entry, &opened).await;
            drop(opened);
            // Whoever floods us with changes is listed once a second.
            tokio::time::sleep(PAUSE).await;
            if changes.changed().await.is_err() {
                return;
            }
        }
    });
}
