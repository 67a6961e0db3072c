//! Lists what servers offer beside tools (prompts and resources) in the background, and stores the lists as
//! tool definitions are stored, so that nobody who reads the lists waits for a server.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::catalogue::entry::{ServerEntry, Source};
use super::connections::opening::Opened;
use super::registry::Servers;
use sepal_core::domain::{ServerOffer, TenantId, UserId};
use sepal_mcp::Offers;
use sepal_store as store;

/// The shortest time between two listings when a server announces changes.
const PAUSE: Duration = Duration::from_secs(1);

/// A server with what it offers beside tools.
#[derive(Debug, Clone)]
pub struct ListedOffer {
    pub server: String,
    /// The server's description, for people.
    pub description: Option<String>,
    /// The offers of the server; `None` if it was never listed.
    pub offer: Option<ServerOffer>,
}

/// Returns what the servers of a person's sessions offered when they were last listed. Starts no server.
pub async fn list(
    servers: &Servers,
    whose: (&TenantId, &UserId),
) -> Result<Vec<ListedOffer>, store::Error> {
    let offering = servers.offering(whose).await?;
    let mut listed = Vec::new();
    for entry in offering
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

/// Lists what an open server offers beside tools, and stores it.
pub async fn note(servers: &Servers, entry: &ServerEntry, opened: &Opened) {
    if entry.source == Source::Bundled || entry.is_trial {
        return;
    }
    let offer = Offers::of(&opened.connection).list().await;
    let key = entry.definitions_key(&servers.0.place.image());
    if let Err(error) = servers.0.definitions.put_offer(&key, &offer).await {
        tracing::warn!(mcp.server = %entry.name, ?error, "What a server offers beside tools was not kept");
    }
}

/// Lists what the server offers beside tools now, and again whenever the server announces a change. Ends with
/// the connection.
pub fn follow(servers: &Servers, entry: &ServerEntry, opened: &Arc<Opened>) {
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
            // A server that announces changes all the time is listed at most once a second.
            tokio::time::sleep(PAUSE).await;
            if changes.changed().await.is_err() {
                return;
            }
        }
    });
}
