//! Sets up the audit from settings and store: its key, and who else gets signatures and records.

use std::sync::Arc;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::notifications::mailer;
use super::secret_keys;
use crate::agent::{Anchor, AuditParts, AuditSettings, AuditTrail, Receivers};
use crate::config::{self, Settings};
use crate::gateway::wire::audit::RecordWire;
use crate::net::{self, Syslog};
use crate::store::audit::{AuditKey, KeyError, PublicKey};
use crate::store::{Sealer, Store};
use crate::tenancy::Tenancy;

/// Opens the audit, and looks after it from now on.
pub(super) async fn start(
    settings: &Settings,
    store: &Store,
    sealer: &Sealer,
    tenancy: &Tenancy,
    (tasks, stop): &(TaskTracker, CancellationToken),
) -> anyhow::Result<AuditTrail> {
    let trail = open_audit(settings, store, Some(sealer)).await?;
    tasks.spawn(trail.clone().run(tenancy.clone(), stop.clone()));
    Ok(trail)
}

/// Opens the audit without looking after it. Without a sealer, that of the settings is opened if the key of the audit
/// is in the store.
pub async fn open_audit(
    settings: &Settings,
    store: &Store,
    sealer: Option<&Sealer>,
) -> anyhow::Result<AuditTrail> {
    let said = &settings.audit;
    if said.anchor.mail.is_some() && settings.notifications.smtp.url.is_none() {
        anyhow::bail!("`audit.anchor.mail` needs a relay for mail (`notifications.smtp.url`)");
    }
    let syslog = said.siem.syslog.as_deref().map(Syslog::parse).transpose();
    let parts = AuditParts {
        records: store.records(),
        live: store.live(),
        key: key(settings, store, sealer).await?,
        http: net::client(&net::Settings::default())?,
        mailer: mailer(&settings.notifications.smtp)?,
        receivers: Receivers {
            webhook: said
                .siem
                .webhook
                .clone()
                .map(|url| (url, said.siem.webhook_secret.clone())),
            syslog: syslog.context("`audit.siem.syslog` is wrong")?,
            forms: Arc::new(RecordWire {
                format: said.siem.format,
            }),
        },
    };
    let retention = said.retention_days;
    let how = AuditSettings {
        seal_every: said.seal_minutes,
        retention: (!retention.is_zero()).then_some(retention),
        has_arguments: said.arguments,
        former_keys: former_keys(&said.trusted_keys)?,
        first_retry: settings.notifications.first_retry,
        anchors: anchors(&said.anchor),
    };
    Ok(AuditTrail::new(parts, how))
}

/// The key of the settings, or else the one that the store keeps.
async fn key(
    settings: &Settings,
    store: &Store,
    sealer: Option<&Sealer>,
) -> anyhow::Result<AuditKey> {
    let said = &settings.audit;
    if let Some(key) = &said.key {
        return AuditKey::parse(key).context("`audit.key` is wrong");
    }
    if let Some(file) = &said.key_file {
        let text = tokio::fs::read_to_string(file).await;
        let text =
            text.with_context(|| format!("`audit.key_file` {} cannot be read", file.display()))?;
        return AuditKey::parse(&text.into())
            .with_context(|| format!("`audit.key_file` {} is wrong", file.display()));
    }
    let sealer = match sealer {
        Some(sealer) => sealer.clone(),
        None => store.sealer(&secret_keys(&settings.auth)).await?,
    };
    Ok(store.records().audit_key(&sealer).await?)
}

fn former_keys(said: &[String]) -> anyhow::Result<Vec<PublicKey>> {
    let key = |text: &String| {
        read_public_key(text).with_context(|| format!("`audit.trusted_keys` names `{text}`"))
    };
    said.iter().map(key).collect()
}

/// Reads a public key: PEM, base64url, or a file with either.
pub fn read_public_key(text: &str) -> Result<PublicKey, KeyError> {
    let file = std::fs::read_to_string(text);
    PublicKey::parse(file.as_deref().unwrap_or(text))
}

fn anchors(said: &config::Anchor) -> Vec<Anchor> {
    let webhook = said.webhook.clone();
    let all = [
        said.file.clone().map(Anchor::File),
        webhook.map(|url| Anchor::Webhook(url, said.webhook_secret.clone())),
        said.mail.clone().map(Anchor::Mail),
        said.timestamp.clone().map(Anchor::Timestamp),
    ];
    all.into_iter().flatten().collect()
}
