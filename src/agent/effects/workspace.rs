//! The fourth effect: a fork gets a copy of the other session's files, before anything else is asked.

use std::sync::Arc;
use std::time::Duration;

use super::tool_call::SessionTools;
use crate::agent::feed::{Feed, What};
use crate::domain::SessionKey;
use crate::sandbox::CopyWatch;
use crate::session::Command;

/// How often people are told how far it is; what takes less is not talked about.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// A copy of a workspace.
pub(super) struct WorkspaceCopying {
    pub(super) tools: Arc<SessionTools>,
    /// Whose is copied.
    pub(super) source: SessionKey,
    pub(super) feed: Arc<Feed>,
}

impl WorkspaceCopying {
    /// The outcome as a command. The copy stops when this is dropped.
    pub(super) async fn run(self) -> Command {
        let watch = CopyWatch::default();
        let copying = self.tools.assignment.copy_from(&self.source, &watch);
        tokio::pin!(copying);
        loop {
            match tokio::time::timeout(TELL_EVERY, &mut copying).await {
                Ok(outcome) => return Command::WorkspaceCopied { outcome },
                Err(_) => self.feed.announce(What::Copying(watch.bytes())),
            }
        }
    }
}
