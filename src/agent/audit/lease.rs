//! Leases: work that goes on outside of the installation is done by one gateway at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::Mutex;

use super::sealing::millis;
use super::{Anchor, AuditTrail};
use crate::domain::Timestamp;
use crate::store::Error;
use crate::store::clock::now;
use crate::store::records::{Audit, LeaseName, RecordReceiver};

/// The time after which another gateway takes over, if this one does not renew its lease.
const LEASE: Duration = Duration::from_secs(30);

/// The interval at which a lease is renewed, and the time that a renewal may take: work ends before its lease.
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// The leases of one gateway.
pub(super) struct Leases {
    /// Names this gateway.
    holder: String,
    /// The kinds of work, so that this gateway does each once at a time.
    works: BTreeMap<&'static str, Mutex<()>>,
}

impl Leases {
    /// The leases of a gateway with these anchors.
    pub(super) fn new(anchors: &[Anchor]) -> Self {
        let receivers = RecordReceiver::ALL.map(of_receiver);
        let works = anchors.iter().map(of_anchor).chain(receivers);
        Self {
            holder: format!("{:032x}", rand::random::<u128>()),
            works: works.map(|work| (work, Mutex::default())).collect(),
        }
    }

    fn named<'a>(&'a self, work: &'a str) -> LeaseName<'a> {
        LeaseName {
            work,
            holder: &self.holder,
        }
    }
}

/// The name of the lease for passing records on to a receiver.
pub(super) fn of_receiver(receiver: RecordReceiver) -> &'static str {
    match receiver {
        RecordReceiver::Webhook => "pass to webhook",
        RecordReceiver::Syslog => "pass to syslog",
    }
}

/// The name of the lease for giving signatures to an anchor.
pub(super) fn of_anchor(anchor: &Anchor) -> &'static str {
    match anchor {
        Anchor::File(_) => "anchor in file",
        Anchor::Webhook(..) => "anchor at webhook",
        Anchor::Mail(_) => "anchor by mail",
        Anchor::Timestamp(_) => "anchor at timestamp",
    }
}

impl AuditTrail {
    /// Does work unless another gateway does it. It ends where it is if the lease cannot be renewed in time.
    /// A second call of this gateway waits for the first one.
    pub(super) async fn alone(
        &self,
        work: &'static str,
        doing: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let leases = &self.0.leases;
        let _alone = match leases.works.get(work) {
            Some(work) => Some(work.lock().await),
            None => None,
        };
        let audit = self.0.parts.records.audit();
        let lease = leases.named(work);
        if !audit.take_lease(lease, now(), end()).await? {
            return Ok(());
        }
        tokio::select! {
            () = doing => {}
            () = lost(&audit, lease) => {
                tracing::warn!(work, "Work of the audit ended early: its lease was not renewed");
            }
        }
        audit.end_lease(lease).await
    }

    /// Ends every lease of this gateway, so that another one need not wait until they run out.
    pub(super) async fn end_leases(&self) -> Result<(), Error> {
        let leases = &self.0.leases;
        for work in leases.works.keys() {
            let audit = self.0.parts.records.audit();
            audit.end_lease(leases.named(work)).await?;
        }
        Ok(())
    }
}

/// Renews a lease, until that fails.
async fn lost(audit: &Audit<'_>, lease: LeaseName<'_>) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        let renewed = tokio::time::timeout(RENEW_EVERY, audit.renew_lease(lease, end())).await;
        if !matches!(renewed, Ok(Ok(true))) {
            return;
        }
    }
}

/// The end of a lease that begins now.
fn end() -> Timestamp {
    Timestamp(now().0.saturating_add(millis(LEASE)))
}
