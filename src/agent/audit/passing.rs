//! Passes records of the audit on to receivers outside, at least once each: by webhook and syslog.

use std::time::Duration;

use super::anchors::Posted;
use super::{AuditTrail, PASS_EVERY, lease};
use crate::domain::{Scope, Timestamp};
use crate::net::SyslogMessage;
use crate::store::Error;
use crate::store::records::{AuditRow, RecordReceiver};
use crate::telemetry::metrics::instruments;

/// A record, with the chain that it is of.
#[derive(Debug, Clone, Copy)]
pub struct PassedRecord<'r> {
    pub chain: &'r Scope,
    pub record: &'r AuditRow,
}

/// Writes records in the form that receivers read. Implemented by the doors, which are above this layer.
pub trait RecordForms: Send + Sync {
    /// Writes a record in one line.
    fn line(&self, record: PassedRecord<'_>) -> String;

    /// The content type of lines.
    fn kind(&self) -> &'static str;
}

/// The reason a batch was not passed on.
enum Failure {
    Store(Error),
    Receiver(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl AuditTrail {
    /// Passes on what is due. Of several gateways one looks at each interval.
    pub(super) async fn pass_on_if_due(&self) {
        let receivers = &self.0.parts.receivers;
        if !RecordReceiver::ALL.iter().any(|it| receivers.has(*it)) {
            return;
        }
        let turn = PASS_EVERY.saturating_sub(Duration::from_secs(1));
        match self.take_turn("pass", turn).await {
            Ok(true) => self.pass_on().await,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "Records of the audit are passed on later"),
        }
    }

    /// Passes on what the receivers do not have yet, unless another gateway does. Failures are logged, and the
    /// next call tries again. One that is away holds up no other.
    pub async fn pass_on(&self) {
        let receivers = &self.0.parts.receivers;
        let given = RecordReceiver::ALL
            .into_iter()
            .filter(|it| receivers.has(*it));
        let pass = async |receiver| {
            let passed = self.alone(lease::of_receiver(receiver), self.pass_to(receiver));
            if let Err(error) = Box::pin(passed).await {
                tracing::warn!(%error, "Records of the audit are passed on later");
            }
        };
        futures::future::join_all(given.map(pass)).await;
    }

    async fn pass_to(&self, receiver: RecordReceiver) {
        match self.pass_all(receiver).await {
            Ok(()) => {}
            Err(Failure::Store(error)) => {
                tracing::warn!(%error, "Records of the audit are passed on later");
            }
            Err(Failure::Receiver(reason)) => {
                instruments().audit_undelivered(match receiver {
                    RecordReceiver::Webhook => "siem_webhook",
                    RecordReceiver::Syslog => "siem_syslog",
                });
                let receiver = receiver.as_str();
                tracing::warn!(
                    receiver,
                    reason,
                    "A receiver did not take records of the audit"
                );
            }
        }
    }

    async fn pass_all(&self, receiver: RecordReceiver) -> Result<(), Failure> {
        let audit = self.0.parts.records.audit();
        for chain in audit.chains().await? {
            self.pass_acts(&chain, receiver).await?;
        }
        while let Some((chain, decided)) = audit.unsent_decisions(receiver).await? {
            self.give_records(receiver, &chain, &decided).await?;
            audit.decisions_sent(receiver, &chain, &decided).await?;
        }
        Ok(())
    }

    /// Passes the acts of a chain on to one receiver, in their order.
    async fn pass_acts(&self, chain: &Scope, receiver: RecordReceiver) -> Result<(), Failure> {
        let audit = self.0.parts.records.audit();
        let place = audit.cursor(chain, receiver).await?;
        let mut after = place.and_then(|place| place.parse().ok()).unwrap_or(0);
        loop {
            let page = audit.records(chain, after).await?;
            let Some(last) = page.last().map(|record| record.n) else {
                return Ok(());
            };
            let rows: Vec<AuditRow> = page.into_iter().map(AuditRow::from).collect();
            self.give_records(receiver, chain, &rows).await?;
            audit.set_cursor(chain, receiver, &last.to_string()).await?;
            after = last;
        }
    }

    /// Gives records to a receiver, if there is one.
    async fn give_records(
        &self,
        receiver: RecordReceiver,
        chain: &Scope,
        rows: &[AuditRow],
    ) -> Result<(), Failure> {
        let receivers = &self.0.parts.receivers;
        let line = |record: &AuditRow| receivers.forms.line(PassedRecord { chain, record });
        match (receiver, &receivers.webhook, &receivers.syslog) {
            (RecordReceiver::Webhook, Some((url, secret)), _) => {
                let (first, last) = (rows.first(), rows.last());
                let name =
                    |row: Option<&AuditRow>| row.map_or("", |row| row.place.as_str()).to_owned();
                let mut lines: Vec<String> = rows.iter().map(line).collect();
                // Each line ends with a line break.
                lines.push(String::new());
                let message = Posted {
                    id: format!("audit_{}_{}_{}", chain.as_str(), name(first), name(last)),
                    body: lines.join("\n"),
                    kind: receivers.forms.kind(),
                };
                let posted = self.post(url, secret.as_ref(), message).await;
                posted.map_err(Failure::Receiver)
            }
            (RecordReceiver::Syslog, _, Some(syslog)) => {
                let message = |row: &AuditRow| SyslogMessage {
                    at: Timestamp(row.at).to_rfc3339(),
                    kind: row.act.clone(),
                    text: line(row),
                };
                let messages: Vec<SyslogMessage> = rows.iter().map(message).collect();
                let sent = syslog.send(&messages).await;
                sent.map_err(|error| Failure::Receiver(error.to_string()))
            }
            (RecordReceiver::Webhook, None, _) | (RecordReceiver::Syslog, _, None) => Ok(()),
        }
    }
}
