//! The fourth effect: a fork gets a copy of the other session's files, before anything else is asked.

use std::sync::Arc;
use std::time::Duration;

use super::tool_call::SessionTools;
use super::{Beside, Running, Wanted};
use crate::agent::feed::{Feed, What};
use crate::domain::SessionKey;
use crate::sandbox::CopyWatch;
use crate::session::Command;

/// How often people are told how far it is; what takes less is not talked about.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Begins the copy of the workspace that a fork begins with.
pub(super) fn copy(running: &Running, wanted: &Wanted<'_>) -> Option<Beside> {
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
    Some(Beside(task.abort_handle()))
}

/// A copy of a workspace.
struct WorkspaceCopying {
    tools: Arc<SessionTools>,
    /// Whose is copied.
    source: SessionKey,
    feed: Arc<Feed>,
}

impl WorkspaceCopying {
    /// The outcome as a command. The copy stops when this is dropped.
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
