//! Makes containers whose names another gateway may still hold.
//!
//! A session's container has one name wherever the session runs. What has ended, and what is of
//! this gateway or of one that is over, goes at once. A gateway that lives lets go by itself as soon as
//! it sees that the session is no longer its own, so that one is waited for and never robbed.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bollard::models::ContainerCreateBody;
use tokio::time::{Instant, sleep};

use super::engine::problem::Problem;
use super::engine::{Engine, Holder};
use crate::sandbox::{Peers, Program};

/// How long another gateway may take to let go.
const PATIENCE: Duration = Duration::from_secs(15);
/// The wait between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// The one that makes containers.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) engine: Arc<Engine>,
    pub(super) peers: Peers,
}

impl Maker {
    /// Refuses an image that would have folders without a limit.
    pub(super) async fn check(&self, program: &Program) -> Result<(), Problem> {
        let Program::Image { image, .. } = program else {
            return Ok(());
        };
        // An engine makes those without any limit.
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

    /// Makes a container, and gives its id.
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
                // Nobody: it is gone since, or it is another's that we are not shown.
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
