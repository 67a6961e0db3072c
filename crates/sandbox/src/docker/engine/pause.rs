//! Calls the engine's API to pause and resume containers.

use super::Engine;
use super::problem::Problem;

/// The wanted state of a container's processes: paused or running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::docker) enum PauseState {
    Yes,
    No,
}

impl Engine {
    /// Pauses or resumes all processes of a container. Succeeds if that is already the case, or if the
    /// container does not run any more.
    pub(in crate::docker) async fn set_paused(
        &self,
        id: &str,
        paused: PauseState,
    ) -> Result<(), Problem> {
        let set = async || match paused {
            PauseState::Yes => self.client.pause_container(id).await,
            PauseState::No => self.client.unpause_container(id).await,
        };
        match self.ask(set).await {
            Ok(()) => Ok(()),
            Err(asked) if asked.is(404) || asked.is(409) => Ok(()),
            Err(asked) => Err(self.told(asked, "pause or resume a container")),
        }
    }
}
