//! The engine's API for containers that stand still for a while.

use super::Engine;
use super::problem::Problem;

/// Whether the processes of a container stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sandbox::docker) enum Paused {
    Yes,
    No,
}

impl Engine {
    /// Stops all processes of a container where they are, or lets them go on. No error where it is so
    /// already, or does not run any more.
    pub(in crate::sandbox::docker) async fn set_paused(
        &self,
        id: &str,
        paused: Paused,
    ) -> Result<(), Problem> {
        let set = async || match paused {
            Paused::Yes => self.client.pause_container(id).await,
            Paused::No => self.client.unpause_container(id).await,
        };
        match self.ask(set).await {
            Ok(()) => Ok(()),
            Err(asked) if asked.is(404) || asked.is(409) => Ok(()),
            Err(asked) => Err(self.told(asked, "pause or resume a container")),
        }
    }
}
