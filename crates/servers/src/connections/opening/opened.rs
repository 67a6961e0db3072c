//! An open connection and the sandbox behind it.

use std::sync::{Mutex, PoisonError};

use super::END_GRACE;
use super::ending::Ending;
use super::stderr::Said;
use sepal_mcp::{Cleaner, Connection};
use sepal_sandbox::{ImageId, Life, ProgramEnd, Using};

/// An open connection with its sandbox. Dropping it ends both.
pub struct Opened {
    pub connection: Connection,
    /// Taken by the caller that ends it; `None` for a remote server. Never held across an await.
    pub(super) life: Mutex<Option<Life>>,
    pub(super) said: Said,
    pub(super) cleaner: Cleaner,
    /// The content of the image that it was started from, if known.
    pub image: Option<ImageId>,
    pub(super) ending: Ending,
}

impl Opened {
    /// Ends the sandbox and waits for its end.
    pub async fn kill(&self) {
        let life = self.take_life();
        if let Some(life) = life {
            life.kill().await;
        }
    }

    /// Marks the sandbox as in use, so that it is not ended as idle; `None` if that has already happened.
    pub fn hold(&self) -> Option<Using> {
        match &mut *self.life.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(life) => life.using(),
            // A remote server, or an ended one, which shows in its connection.
            None => Some(Using::default()),
        }
    }

    /// Returns true if nobody uses the sandbox now.
    pub fn is_unused(&self) -> bool {
        let life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        life.as_ref().is_none_or(Life::is_unused)
    }

    /// Waits briefly for the sandbox to end and returns the reason, [`ProgramEnd::Lost`] on a timeout; `None` for
    /// a remote server.
    pub async fn ended(&self) -> Option<ProgramEnd> {
        let ended = match &*self.life.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(life) => life.ended(),
            None => return None,
        };
        let ended = tokio::time::timeout(END_GRACE, ended).await;
        Some(ended.unwrap_or(ProgramEnd::Lost))
    }

    /// The last lines of stderr.
    pub fn last_words(&self) -> Vec<String> {
        self.said.last()
    }

    pub(super) fn take_life(&self) -> Option<Life> {
        let mut life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        life.take()
    }
}
