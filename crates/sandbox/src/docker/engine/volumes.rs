//! Calls the engine's API for volumes.

use sepal_core::domain::GatewayId;
use std::collections::HashMap;

use bollard::{
    models::VolumeCreateRequest,
    query_parameters::{ListVolumesOptionsBuilder, RemoveVolumeOptions},
};

use super::problem::Problem;
use super::{Engine, gateway_of, labelled};

/// A volume in a list.
#[derive(Debug)]
pub(in crate::docker) struct ListedVolume {
    pub(in crate::docker) name: String,
    /// The gateway that created the volume; empty if it has no label.
    pub(in crate::docker) gateway: GatewayId,
}

impl Engine {
    /// Creates a volume unless it exists, and returns its mount point. With `most` the file system limits it
    /// to that many bytes; engines refuse that on a file system without quotas.
    pub(in crate::docker) async fn provide_volume(
        &self,
        name: &str,
        labels: HashMap<String, String>,
        most: Option<u64>,
    ) -> Result<String, Problem> {
        let size = most.map(|most| HashMap::from([("size".to_owned(), most.to_string())]));
        let body = VolumeCreateRequest {
            name: Some(name.to_owned()),
            labels: Some(labels),
            driver_opts: size,
            ..VolumeCreateRequest::default()
        };
        let made = self.ask(|| self.client.create_volume(body.clone())).await;
        made.map(|volume| volume.mountpoint)
            .map_err(|asked| self.told(asked, "create a volume"))
    }

    /// Returns true if the file system can limit the size of volumes, by creating one with the unused name
    /// `name`.
    pub(in crate::docker) async fn holds_volumes(
        &self,
        name: &str,
        labels: HashMap<String, String>,
    ) -> bool {
        const TRIED: u64 = 1 << 20;
        match self.provide_volume(name, labels, Some(TRIED)).await {
            Ok(_) => {
                if let Err(error) = self.remove_volume(name).await {
                    tracing::debug!(%error, "A volume is left to the janitor");
                }
                true
            }
            Err(error) => {
                tracing::debug!(%error, "The engine's file system holds no volume to a size");
                false
            }
        }
    }

    /// Returns all volumes with that label.
    pub(in crate::docker) async fn volumes(
        &self,
        label: &str,
    ) -> Result<Vec<ListedVolume>, Problem> {
        let options = ListVolumesOptionsBuilder::default()
            .filters(&labelled(label))
            .build();
        let listed = self
            .ask(|| self.client.list_volumes(Some(options.clone())))
            .await
            .map_err(|asked| self.told(asked, "list volumes"))?;
        let volumes = listed.volumes.unwrap_or_default();
        let volumes = volumes.into_iter().map(|volume| ListedVolume {
            name: volume.name,
            gateway: gateway_of(Some(volume.labels)),
        });
        Ok(volumes.collect())
    }

    /// Deletes a volume; a missing one is not an error.
    pub(in crate::docker) async fn remove_volume(&self, name: &str) -> Result<(), Problem> {
        let remove = || self.client.remove_volume(name, None::<RemoveVolumeOptions>);
        match self.ask(remove).await {
            Ok(()) => Ok(()),
            Err(asked) if asked.is(404) => Ok(()),
            Err(asked) => Err(self.told(asked, "remove a volume")),
        }
    }
}
