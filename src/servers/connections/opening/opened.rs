//! An open connection, and the life of what it runs in.

use std::sync::{Mutex, PoisonError};

use super::END_GRACE;
use super::ending::Ending;
use super::stderr::Said;
use crate::mcp::{Cleaner, Connection};
use crate::sandbox::{Ended, ImageId, Life, Using};

/// An open connection with what it runs in. Dropping it ends both.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    /// Taken by whoever ends it. Never held across an await.
    pub(super) life: Mutex<Option<Life>>,
    pub(super) said: Said,
    pub(super) cleaner: Cleaner,
    /// The content that it was started from, where something names it.
    pub(crate) image: Option<ImageId>,
    pub(super) ending: Ending,
}

impl Opened {
    /// Ends everything inside and waits for it.
    pub(crate) async fn kill(&self) {
        let life = self.take_life();
        if let Some(life) = life {
            life.kill().await;
        }
    }

    /// Uses what it runs in, so that it is not ended for lying idle; `None` if that has happened.
    pub(crate) fn hold(&self) -> Option<Using> {
        match &mut *self.life.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(life) => life.using(),
            // A remote server, or one that is closed: that shows in its connection.
            None => Some(Using::default()),
        }
    }

    /// Whether nobody uses what it runs in now.
    pub(crate) fn is_unused(&self) -> bool {
        let life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        life.as_ref().is_none_or(Life::is_unused)
    }

    /// Why it ended, if it has; `None` for a remote server.
    pub(crate) async fn ended(&self) -> Option<Ended> {
        let ended = match &*self.life.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(life) => life.ended(),
            None => return None,
        };
        let ended = tokio::time::timeout(END_GRACE, ended).await;
        Some(ended.unwrap_or(Ended::Lost))
    }

    /// The last lines of stderr.
    pub(crate) fn last_words(&self) -> Vec<String> {
        self.said.last()
    }

    pub(super) fn take_life(&self) -> Option<Life> {
        let mut life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        life.take()
    }
}
