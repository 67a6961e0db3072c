//! `notifications`: how people and programs are told outside of the page when calls wait.

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::read;

/// `notifications`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// The wait before the first repetition of what failed.
    #[serde(deserialize_with = "read::seconds")]
    pub first_retry: Duration,
    /// How long calls have waited before their person gets a mail.
    #[serde(deserialize_with = "read::seconds")]
    pub mail_delay: Duration,
    /// Whether the titles of sessions are told.
    pub titles: bool,
    pub smtp: Smtp,
}

/// `notifications.smtp`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smtp {
    /// The relay; may hold a password. `None` = nobody gets mail.
    pub url: Option<SecretString>,
    /// The sender; there is one where there is a relay.
    pub from: Option<String>,
}
