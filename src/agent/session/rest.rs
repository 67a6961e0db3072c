//! How long a session stays in memory, and whether it may come into being.

use std::time::Duration;

use super::LiveSession;
use crate::domain::{Actor, Holder};
use crate::session::Refusal;

/// How long a session stays in memory that nobody has told anything: long enough for a first message
/// that comes at once.
const UNTOLD_FOR: Duration = Duration::from_millis(50);

impl LiveSession {
    /// Whose session it is, or would be once it is stored.
    pub(crate) fn owner(&self) -> &Actor {
        let owner = self.state.control.owner.as_ref();
        owner.unwrap_or(&self.genesis.owner)
    }

    /// The first command stores a session for good: there may be only so many in a minute.
    pub(crate) fn may_be_created(&self) -> Result<(), Refusal> {
        if self.state.control.version > 0 {
            return Ok(());
        }
        self.creation_limit.count(&Holder {
            tenant: self.key.tenant.clone(),
            user: self.owner().id.clone(),
        })
    }

    /// Whether nothing goes on, and nothing that takes time to begin anew is kept for it.
    pub(crate) fn can_rest(&self) -> bool {
        let has_servers = self.agent.tools.idle_limit().is_some();
        self.running.is_empty() && self.unsettled.is_none() && !has_servers
    }

    /// A live sandbox is kept longer than a mere state, and a session that nobody has told anything
    /// hardly at all: whoever has joined it waits for its feed alone.
    pub(crate) fn idle_after(&self) -> Duration {
        let state = match self.state.control.version {
            0 => self.idle_after.min(UNTOLD_FOR),
            _ => self.idle_after,
        };
        self.agent.tools.idle_limit().unwrap_or(state)
    }
}
