//! Notifies people and programs outside of the page when calls wait: by webhook and by mail, once for each
//! batch, and never with arguments or text of the conversation.
//!
//! Waiting batches are copied from the session list into an outbox (`store::records::Notifications`). Due
//! entries are claimed, sent, and tried again later if that failed.

mod access;
mod forms;
mod mailing;
mod sending;
pub(super) mod signature;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use access::{NewWebhook, NotificationError, Trial, WebhookAccess};
pub use forms::{BatchNotice, MailText, NotificationForms};
pub use mailing::MailSetting;

use crate::net::{Guard, Mailer};
use crate::store::clock::now;
use crate::store::{Error, Records, Sealer};

/// The most concurrent attempts, each to another target.
const AT_ONCE: usize = 64;
/// Longer than an attempt takes, so that no other gateway tries the same entry meanwhile.
const LEASE: Duration = Duration::from_mins(1);
/// The pause between two looks at the outbox, unless the next entry is due later.
const PAUSE: Duration = Duration::from_millis(200);
/// The interval at which the outbox is checked without a signal: another gateway may have left entries.
const EVERY: Duration = Duration::from_secs(30);
/// The interval at which entries older than a week are pruned.
const PRUNE_EVERY: Duration = Duration::from_hours(1);
/// The time for which attempts may still run at a shutdown; the others are sent again, with the same message
/// id.
const FAREWELL: Duration = Duration::from_secs(1);
/// The most concurrent test messages.
const TRIALS: usize = 4;
/// The backoff before each retry, as multiples of the first.
const WAITS: [u32; 6] = [1, 6, 60, 360, 1_440, 3_600];

/// The settings of notifications.
#[derive(Debug, Clone)]
pub struct NotificationSettings {
    /// The time for which a batch waits before its person gets a mail.
    pub mail_after: Duration,
    /// The wait before the first retry.
    pub first_retry: Duration,
    /// True if session titles may be sent out: they may be the first words of a message.
    pub tells_titles: bool,
    /// True if other gateways send notifications too.
    pub is_shared: bool,
}

/// The dependencies of [`Notifications`].
pub struct NotificationParts {
    pub records: Records,
    pub sealer: Sealer,
    /// Decides which addresses tenants may use.
    pub guard: Guard,
    /// Connects only to addresses that `guard` allows.
    pub http: Client,
    /// `None` = nobody gets mail.
    pub mailer: Option<Mailer>,
    /// Renders notices for the wire.
    pub forms: Arc<dyn NotificationForms>,
}

/// Sends the notifications. Cheap to clone.
#[derive(Clone)]
pub struct Notifications(Arc<Shared>);

struct Shared {
    parts: NotificationParts,
    settings: NotificationSettings,
    trials: Semaphore,
}

impl Notifications {
    /// Makes the notifier; [`Self::run`] sends.
    pub fn new(parts: NotificationParts, settings: NotificationSettings) -> Self {
        Self(Arc::new(Shared {
            parts,
            settings,
            trials: Semaphore::new(TRIALS),
        }))
    }

    /// The webhooks of tenants.
    pub fn webhooks(&self) -> WebhookAccess<'_> {
        WebhookAccess(self)
    }

    /// Sends notifications until `stop`, and checks the outbox whenever the bell is notified.
    pub async fn run(self, bell: Arc<Notify>, stop: CancellationToken) {
        self.release().await;
        let mut running = JoinSet::new();
        let (mut last, mut next) = (Instant::now(), Instant::now());
        let mut prunes = tokio::time::interval(PRUNE_EVERY);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(_) = running.join_next() => next = next.min(last + PAUSE),
                () = bell.notified() => next = next.min(last + PAUSE),
                _ = prunes.tick() => self.prune().await,
                () = tokio::time::sleep_until(next) => {
                    let wait = self.advance_or_wait(&mut running).await;
                    last = Instant::now();
                    next = last + wait;
                }
            }
        }
        let rest = async { while running.join_next().await.is_some() {} };
        // Dropped attempts stay claimed until their lease expires.
        let _ = tokio::time::timeout(FAREWELL, rest).await;
    }

    /// Releases the claims of an earlier process. Only with a single gateway, because otherwise another one
    /// may hold them.
    async fn release(&self) {
        if self.0.settings.is_shared {
            return;
        }
        if let Err(error) = self.0.parts.records.notifications().release().await {
            tracing::warn!(%error, "What an earlier process was telling is told again later");
        }
    }

    async fn prune(&self) {
        if let Err(error) = self.0.parts.records.notifications().prune(now()).await {
            tracing::debug!(%error, "What was told is forgotten later");
        }
    }

    async fn advance_or_wait(&self, running: &mut JoinSet<()>) -> Duration {
        match self.advance(running).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!(%error, "What waits is told later");
                EVERY
            }
        }
    }

    /// Queues new waiting batches and starts due attempts. Returns the time until the next entry is due.
    async fn advance(&self, running: &mut JoinSet<()>) -> Result<Duration, Error> {
        let outbox = self.0.parts.records.notifications();
        let mail_after = self.0.settings.mail_after;
        let mail_after = self.0.parts.mailer.is_some().then_some(mail_after);
        outbox.take_up(now(), mail_after).await?;
        let free = AT_ONCE.saturating_sub(running.len());
        let claimed = outbox.claim(now(), LEASE, free).await?;
        for due in claimed {
            running.spawn(self.clone().attempt(due));
        }
        let Some(due) = outbox.next_due().await? else {
            return Ok(EVERY);
        };
        let wait = u64::try_from(due.0.saturating_sub(now().0)).unwrap_or(0);
        Ok(Duration::from_millis(wait).clamp(PAUSE, EVERY))
    }

    /// Returns the backoff after that many failed attempts; `None` = give up.
    fn wait(&self, attempts: u32) -> Option<Duration> {
        let at = usize::try_from(attempts.saturating_sub(1)).ok()?;
        let factor = WAITS.get(at)?;
        Some(self.0.settings.first_retry.saturating_mul(*factor))
    }
}
