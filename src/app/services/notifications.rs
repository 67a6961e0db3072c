//! Sets up the notifications about waiting calls from settings and store.

use std::sync::Arc;

use anyhow::Context as _;

use super::Services;
use crate::agent::{NotificationParts, NotificationSettings, Notifications};
use crate::config::{self, Settings};
use crate::gateway::wire::NotificationWire;
use crate::net::{self, Guard, Mailer};

/// Starts the notifications, with links to the page's address.
pub(in crate::app) fn start(
    settings: &Settings,
    base_url: &str,
    services: &Services,
) -> anyhow::Result<Notifications> {
    let (store, (tasks, stop)) = (&services.store, &services.agents);
    let guard = Guard::new(settings.runtime.outgoing.allow.clone());
    let parts = NotificationParts {
        records: store.records(),
        sealer: services.sealer.clone(),
        http: net::guarded_client(&net::Settings::default(), &guard)?,
        guard,
        mailer: mailer(&settings.notifications.smtp)?,
        forms: Arc::new(NotificationWire {
            base_url: base_url.to_owned(),
        }),
    };
    let how = NotificationSettings {
        mail_after: settings.notifications.mail_delay,
        first_retry: settings.notifications.first_retry,
        tells_titles: settings.notifications.titles,
        is_shared: store.cluster_bus().is_shared(),
    };
    let notifications = Notifications::new(parts, how);
    let telling = notifications
        .clone()
        .run(services.sessions.waiting_bell(), stop.clone());
    tasks.spawn(telling);
    Ok(notifications)
}

pub(super) fn mailer(smtp: &config::Smtp) -> anyhow::Result<Option<Mailer>> {
    let Some(url) = &smtp.url else {
        return Ok(None);
    };
    let from = smtp.from.as_deref().unwrap_or_default();
    let mailer = Mailer::open(url, from).context("mail cannot be sent (`notifications.smtp`)")?;
    Ok(Some(mailer))
}
