//! What changed on the lists of sessions.

use serde::{Deserialize, Serialize};

use crate::domain::{Holder, SessionKey, Timestamp, UserId};
use crate::store::records::SessionRow;

/// A row of a list of sessions that is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are rows, and each is passed on at once"
)]
pub enum ListUpdate {
    /// It is another, or new.
    Changed(SessionRow),
    /// The session was given up: it is deleted at that time, unless that is taken back. Then it is
    /// told as changed.
    GivenUp {
        key: SessionKey,
        /// On whose list it was.
        owner: UserId,
        delete_at: Timestamp,
    },
    /// The session was deleted.
    Removed {
        key: SessionKey,
        /// On whose list it was.
        owner: UserId,
    },
}

impl ListUpdate {
    /// The session.
    pub fn key(&self) -> &SessionKey {
        match self {
            Self::Changed(row) => &row.key,
            Self::GivenUp { key, .. } | Self::Removed { key, .. } => key,
        }
    }

    /// On whose list it stands: nobody else may learn of it.
    pub fn holder(&self) -> Holder {
        let (key, owner) = match self {
            Self::Changed(row) => (&row.key, &row.owner),
            Self::GivenUp { key, owner, .. } | Self::Removed { key, owner } => (key, owner),
        };
        Holder {
            tenant: key.tenant.clone(),
            user: owner.clone(),
        }
    }
}
