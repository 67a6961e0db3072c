//! Removes package volumes that nobody uses: old versions, volumes of removed servers, and those that a
//! gateway left unfinished.

use super::following::Halt;
use super::installing::remove;
use crate::catalogue::installations::ServerKey;
use crate::registry::Servers;
use sepal_core::domain::Installation;
use sepal_store as store;
use sepal_store::clock::now;
use sepal_store::records::PackageVolume;

/// Checks all volumes on this gateway's engine once.
pub(super) async fn tidy(
    servers: &Servers,
    gateway: &str,
    is_running: impl Fn(&ServerKey) -> bool,
) -> Result<(), store::Error> {
    let engine = servers.0.place.runtime.engine();
    for volume in servers.0.installations.volumes() {
        let key = (volume.scope.clone(), volume.server.clone());
        if volume.engine != engine || is_running(&key) || is_used(servers, &volume, gateway) {
            continue;
        }
        match remove(servers, &volume.sandbox).await {
            Ok(()) | Err(Halt::Overtaken) => {}
            Err(Halt::Store(error)) => return Err(error),
        }
    }
    Ok(())
}

fn is_used(servers: &Servers, volume: &PackageVolume, gateway: &str) -> bool {
    let Some(row) = servers.0.installations.of(&volume.scope, &volume.server) else {
        return false;
    };
    let Installation {
        installed,
        candidate,
        ..
    } = &row.installation;
    match &volume.content {
        Some(content) => {
            let mut offered = [installed, candidate].into_iter().flatten();
            offered.any(|package| package.content.as_str() == content)
        }
        // Unfinished: another gateway still installs while its lease holds.
        None => volume.gateway != gateway && row.lease_until >= now(),
    }
}
