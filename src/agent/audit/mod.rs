//! Signs the audit, gives the signatures to places outside of this machine, passes records on, removes old
//! ones, and checks everything.
//!
//! The records themselves are written by the store, in the transaction of each act.

mod access;
mod anchors;
mod checking;
pub(super) mod decisions;
mod lease;
mod passing;
mod sealing;
mod timestamp;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

pub use access::{AuditAccess, AuditError, AuditPage, AuditPlace, AuditStanding, ListedRecord};
pub use checking::{AuditCheck, BrokenSession, ExportLine, check_all, check_lines};
use lease::Leases;
pub use passing::{PassedRecord, RecordForms};
pub use timestamp::TimestampError;

use crate::domain::Scope;
use crate::net::{Mailer, Syslog};
use crate::store::audit::{AuditKey, PublicKey};
use crate::store::records::{RecordReceiver, Seal};
use crate::store::{Error, LiveStore, Records};
use crate::tenancy::Tenancy;

/// The interval at which there is something to look after.
const EVERY: Duration = Duration::from_mins(1);

/// The interval at which records are passed on, if anybody gets them.
const PASS_EVERY: Duration = Duration::from_secs(5);

/// The time that the last signature before a stop may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// The settings of the audit.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    /// The time between two signatures.
    pub seal_every: Duration,
    /// The time for which records are kept; `None` = for ever.
    pub retention: Option<Duration>,
    /// True if documents of decisions have the arguments of calls, for the owners of sessions.
    pub has_arguments: bool,
    /// Former public keys, whose signatures count beside those of the present key.
    pub former_keys: Vec<PublicKey>,
    /// The first wait before an anchor is tried again.
    pub first_retry: Duration,
    pub anchors: Vec<Anchor>,
}

/// A place outside of this machine that is given each signature.
#[derive(Debug, Clone)]
pub enum Anchor {
    /// A file that is appended to.
    File(std::path::PathBuf),
    /// An address that is posted to, with the secret that signs the messages.
    Webhook(Url, Option<SecretString>),
    /// A mail address.
    Mail(String),
    /// A time-stamp service.
    Timestamp(Url),
}

impl Anchor {
    /// The name in the store.
    fn name(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Webhook(..) => "webhook",
            Self::Mail(_) => "mail",
            Self::Timestamp(_) => "timestamp",
        }
    }
}

/// The receivers of each record.
pub struct Receivers {
    /// An address that is posted to, with the secret that signs the messages.
    pub webhook: Option<(Url, Option<SecretString>)>,
    pub syslog: Option<Syslog>,
    /// Writes records in the form that the receivers read.
    pub forms: Arc<dyn RecordForms>,
}

impl Receivers {
    fn has(&self, receiver: RecordReceiver) -> bool {
        match receiver {
            RecordReceiver::Webhook => self.webhook.is_some(),
            RecordReceiver::Syslog => self.syslog.is_some(),
        }
    }
}

/// The dependencies of [`AuditTrail`].
pub struct AuditParts {
    pub records: Records,
    pub live: Arc<dyn LiveStore>,
    pub key: AuditKey,
    /// The operator's addresses are reached with it.
    pub http: Client,
    /// `None` = no mail is sent.
    pub mailer: Option<Mailer>,
    pub receivers: Receivers,
}

/// Looks after the audit. Cheap to clone.
#[derive(Clone)]
pub struct AuditTrail(Arc<Shared>);

struct Shared {
    parts: AuditParts,
    settings: AuditSettings,
    leases: Leases,
}

impl AuditTrail {
    /// Makes the service; [`Self::run`] does what is due.
    pub fn new(parts: AuditParts, settings: AuditSettings) -> Self {
        let leases = Leases::new(&settings.anchors);
        Self(Arc::new(Shared {
            parts,
            settings,
            leases,
        }))
    }

    /// Signs, anchors and removes what is due, and passes records on, until `stop`; then signs once more. What
    /// waits for somebody outside holds up nothing else.
    pub async fn run(self, tenancy: Tenancy, stop: CancellationToken) {
        self.note_receivers().await;
        let (trail, people) = (&self, &tenancy);
        tokio::join!(
            repeat(EVERY, &stop, || async move {
                people.note_ended_attempts().await;
                trail.look_after().await;
            }),
            repeat(EVERY, &stop, || trail.anchor()),
            repeat(PASS_EVERY, &stop, || trail.pass_on_if_due()),
        );
        let is_signed = tokio::time::timeout(FAREWELL, self.seal_the_end(&tenancy)).await;
        if !matches!(is_signed, Ok(Ok(()))) {
            tracing::warn!(
                ?is_signed,
                "The end of the audit is signed at the next start"
            );
        }
    }

    /// Notes for the writers of records which receivers the settings name.
    async fn note_receivers(&self) {
        let audit = self.0.parts.records.audit();
        for receiver in RecordReceiver::ALL {
            let is_set = self.0.parts.receivers.has(receiver);
            if let Err(error) = audit.set_receives(receiver, is_set).await {
                tracing::warn!(%error, "Decisions of sessions are not passed on until the next start");
            }
        }
    }

    async fn seal_the_end(&self, tenancy: &Tenancy) -> Result<(), Error> {
        tenancy.note_all_attempts().await;
        self.seal().await?;
        // What was ended where it was holds its lease.
        self.end_leases().await
    }

    async fn look_after(&self) {
        if let Err(error) = self.seal_if_due().await {
            tracing::warn!(%error, "The audit is signed later");
        }
        if let Err(error) = self.cut_if_due().await {
            tracing::warn!(%error, "Old records of the audit are removed later");
        }
    }

    /// Returns the key that signs the audit.
    pub fn key(&self) -> &AuditKey {
        &self.0.parts.key
    }

    /// Returns the public keys whose signatures count: the present one, and the former ones.
    pub fn trusted_keys(&self) -> Vec<PublicKey> {
        let own = self.key().public();
        let former = self.0.settings.former_keys.iter().copied();
        std::iter::once(own).chain(former).collect()
    }

    /// Returns true if documents of decisions have the arguments of calls, for the owners of sessions.
    pub fn has_arguments(&self) -> bool {
        self.0.settings.has_arguments
    }
}

/// Does some work again and again until `stop`, which ends it where it is.
async fn repeat<F: Future<Output = ()>>(
    every: Duration,
    stop: &CancellationToken,
    work: impl Fn() -> F,
) {
    let mut ticks = tokio::time::interval(every);
    let working = async {
        loop {
            ticks.tick().await;
            work().await;
        }
    };
    stop.run_until_cancelled(working).await;
}

/// A signature as it is given away: canonical JSON, in one line.
fn seal_text(chain: &Scope, seal: &Seal) -> String {
    let value: Value = json!({
        "at": seal.at,
        "key": seal.key,
        "link": seal.link,
        "n": seal.n,
        "signature": seal.signature,
        "tenant": chain.as_str(),
    });
    // The members are sorted, and nothing in them needs another form.
    value.to_string()
}
