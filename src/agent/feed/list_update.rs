//! Defines changes of session lists.

use serde::{Deserialize, Serialize};

use crate::domain::{Holder, SessionKey, Timestamp, UserId};
use crate::store::records::SessionRow;

/// A written row of a session list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListUpdate {
    /// The row is new or changed.
    Changed(SessionRow),
    /// The same while nobody watched a list: the row has no marks, because nobody read them, and the session
    /// may be given up.
    Unlisted(SessionRow),
    /// The session was given up: it is deleted at `delete_at`, unless it is restored, which is sent as
    /// `Changed`.
    GivenUp {
        key: SessionKey,
        /// The user whose list had the session.
        owner: UserId,
        delete_at: Timestamp,
    },
    /// The session was deleted.
    Removed {
        key: SessionKey,
        /// The user whose list had the session.
        owner: UserId,
    },
}

impl ListUpdate {
    /// The session's key.
    pub fn key(&self) -> &SessionKey {
        match self {
            Self::Changed(row) | Self::Unlisted(row) => &row.key,
            Self::GivenUp { key, .. } | Self::Removed { key, .. } => key,
        }
    }

    /// The user whose list has the session: nobody else may learn of it.
    pub fn holder(&self) -> Holder {
        let (key, owner) = match self {
            Self::Changed(row) | Self::Unlisted(row) => (&row.key, &row.owner),
            Self::GivenUp { key, owner, .. } | Self::Removed { key, owner } => (key, owner),
        };
        Holder {
            tenant: key.tenant.clone(),
            user: owner.clone(),
        }
    }
}
