//! People and programs are told outside of the page when calls wait: by webhook and by mail, once for
//! each batch, and never with arguments or what anybody said.
//!
//! What waits is read off the list of sessions into an outbox (`store::records::Notifications`), and
//! whatever is due there is claimed, sent, and tried again later where it failed.

mod access;
mod forms;
mod mailing;
mod sending;
mod signature;

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

/// Attempts that run at a time; each of them is another target's.
const AT_ONCE: usize = 64;
/// Longer than an attempt takes, so that nobody else tries the same meanwhile.
const LEASE: Duration = Duration::from_mins(1);
/// Between two looks at what waits, unless more time is left until something is due.
const PAUSE: Duration = Duration::from_millis(200);
/// How often is looked without a reason: another gateway may have left something.
const EVERY: Duration = Duration::from_secs(30);
/// How often what was told a week ago is forgotten.
const PRUNE_EVERY: Duration = Duration::from_hours(1);
/// How long what is being sent at a stop may take; the rest is sent again, by the same id.
const FAREWELL: Duration = Duration::from_secs(1);
/// Addresses that people try at a time.
const TRIALS: usize = 4;
/// The waits before an attempt is repeated, as multiples of the first.
const WAITS: [u32; 6] = [1, 6, 60, 360, 1_440, 3_600];

/// How people and programs are told.
#[derive(Debug, Clone)]
pub struct NotificationSettings {
    /// How long a batch has waited before its person gets a mail.
    pub mail_after: Duration,
    /// The wait before the first repetition.
    pub first_retry: Duration,
    /// Whether the titles of sessions leave the house: they may be the first words of a message.
    pub tells_titles: bool,
    /// Whether other gateways tell too.
    pub is_shared: bool,
}

/// What telling needs.
pub struct NotificationParts {
    pub records: Records,
    pub sealer: Sealer,
    /// Which addresses tenants may name.
    pub guard: Guard,
    /// Connects to what `guard` allows, and to nothing else.
    pub http: Client,
    /// None = nobody gets mail.
    pub mailer: Option<Mailer>,
    /// How what is told looks on the wire.
    pub forms: Arc<dyn NotificationForms>,
}

/// Tells people and programs what waits. Cheap to clone.
#[derive(Clone)]
pub struct Notifications(Arc<Shared>);

struct Shared {
    parts: NotificationParts,
    settings: NotificationSettings,
    trials: Semaphore,
}

impl Notifications {
    /// Puts it together; [`Self::run`] does the telling.
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

    /// Tells what waits until `stop`, and looks whenever the bell rings.
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
                    let wait = self.look_or_wait(&mut running).await;
                    last = Instant::now();
                    next = last + wait;
                }
            }
        }
        let rest = async { while running.join_next().await.is_some() {} };
        // What is dropped is claimed until its lease is over.
        let _ = tokio::time::timeout(FAREWELL, rest).await;
    }

    /// Where there is one gateway, nobody else holds what the process before it claimed.
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

    async fn look_or_wait(&self, running: &mut JoinSet<()>) -> Duration {
        match self.look(running).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!(%error, "What waits is told later");
                EVERY
            }
        }
    }

    /// Takes up what waits and begins what is due; says how long nothing else will be.
    async fn look(&self, running: &mut JoinSet<()>) -> Result<Duration, Error> {
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

    /// The wait after that many attempts have failed; none = it is given up.
    fn wait(&self, attempts: u32) -> Option<Duration> {
        let at = usize::try_from(attempts.saturating_sub(1)).ok()?;
        let factor = WAITS.get(at)?;
        Some(self.0.settings.first_retry.saturating_mul(*factor))
    }
}
