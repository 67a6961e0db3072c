//! Copies the other session's files into a fork, before any other effect.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use super::tool_call::SessionTools;
use super::{Running, Wanted};
use crate::agent::feed::{Feed, What};
use crate::domain::SessionKey;
use crate::sandbox::CopyWatch;
use crate::session::Command;

/// The interval at which progress is shown; a copy that takes less is not mentioned.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Starts the copy of the workspace that a fork begins with.
pub(super) fn copy(running: &Running, wanted: &Wanted<'_>) -> Option<AbortOnDropHandle<()>> {
    let origin = wanted.control.forked_from.as_ref()?;
    let copying = WorkspaceCopying {
        tools: Arc::clone(&wanted.agent.tools),
        source: SessionKey {
            tenant: wanted.agent.tenant.clone(),
            session: origin.session.clone(),
        },
        feed: Arc::clone(wanted.feed),
    };
    let outcomes = running.outcomes();
    let task = running.tracker.spawn(async move {
        outcomes.tell(copying.run().await).await;
    });
    Some(AbortOnDropHandle::new(task))
}

/// A copy of a workspace.
struct WorkspaceCopying {
    tools: Arc<SessionTools>,
    /// The session whose workspace is copied.
    source: SessionKey,
    feed: Arc<Feed>,
}

impl WorkspaceCopying {
    /// Copies the workspace, and returns the outcome as a command. Dropping the future stops the copy.
    async fn run(self) -> Command {
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
