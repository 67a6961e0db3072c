//! Creates containers whose names another gateway may still hold.
//!
//! A session's container has the same name wherever the session runs. A container that has ended, or that
//! belongs to this gateway or to a dead one, is removed at once. A living gateway removes its container by
//! itself as soon as it sees that the session is no longer its own, so its container is waited for and never
//! removed by force.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bollard::models::ContainerCreateBody;
use tokio::time::{Instant, sleep};

use super::engine::problem::Problem;
use super::engine::{Engine, Holder};
use crate::{Peers, Program};

/// The time that another gateway may take to remove its container.
const PATIENCE: Duration = Duration::from_secs(15);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// Creates containers.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) engine: Arc<Engine>,
    pub(super) peers: Peers,
}

impl Maker {
    /// Refuses an image that declares volumes.
    pub(super) async fn check(&self, program: &Program) -> Result<(), Problem> {
        let Program::Image { image, .. } = program else {
            return Ok(());
        };
        // An engine creates these volumes without any limit.
        let folders = self
            .engine
            .image_config(image)
            .await?
            .volumes
            .unwrap_or_default();
        if folders.is_empty() {
            return Ok(());
        }
        Err(Problem::HasVolumes {
            image: image.clone(),
            folders: folders.join("`, `"),
        })
    }

    /// Creates a container and returns its id.
    pub(super) async fn create(
        &self,
        name: &str,
        body: &ContainerCreateBody,
    ) -> Result<String, Problem> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(id) = self.engine.create(name, body).await? {
                return Ok(id);
            }
            match self.engine.holder(name).await? {
                Some(holder) if self.may_go(&holder).await => {
                    self.engine.remove(&holder.id).await?;
                }
                Some(_) | None if Instant::now() >= deadline => {
                    let name = name.to_owned();
                    return Err(Problem::Taken { name });
                }
                // The container is gone by now, or belongs to another installation and is hidden from us.
                Some(_) | None => sleep(PAUSE).await,
            }
        }
    }

    async fn may_go(&self, holder: &Holder) -> bool {
        let gateway = &holder.gateway;
        if holder.has_ended || gateway == self.peers.own() {
            return true;
        }
        let over = self.peers.over(BTreeSet::from([gateway.clone()])).await;
        over.contains(gateway)
    }
}
