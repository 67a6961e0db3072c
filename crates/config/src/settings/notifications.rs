//! `notifications`: messages to people and programs outside of the page about waiting calls.

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::read;

/// `notifications`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// The pause before the first retry of a failed notification.
    #[serde(deserialize_with = "read::seconds")]
    pub first_retry: Duration,
    /// The time that calls must wait before their person gets a mail.
    #[serde(deserialize_with = "read::seconds")]
    pub mail_delay: Duration,
    /// True if notifications contain the titles of sessions.
    pub titles: bool,
    pub smtp: Smtp,
}

/// `notifications.smtp`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smtp {
    /// The URL of the relay; may hold a password. `None` = no mail is sent.
    pub url: Option<SecretString>,
    /// The sender's address; always set if there is a relay.
    pub from: Option<String>,
}
