//! Signs the chains of the audit, with the newest links of the sessions, and removes what retention no longer
//! keeps.

use std::collections::BTreeMap;
use std::time::Duration;

use super::AuditTrail;
use crate::domain::{Scope, SessionKey, TenantId, Timestamp};
use crate::session::proof::link_of_stored;
use crate::store::Error;
use crate::store::audit::sign_head;
use crate::store::clock::now;

/// The interval at which old records are removed.
const CUT_EVERY: Duration = Duration::from_hours(24);

/// The newest links of a tenant's sessions: session, version, link.
type Links = Vec<(String, u64, String)>;

impl AuditTrail {
    /// Signs what was added, if the last signature of any gateway is old enough.
    pub(super) async fn seal_if_due(&self) -> Result<(), Error> {
        if self.take_turn("seal", self.0.settings.seal_every).await? {
            self.seal().await?;
        }
        Ok(())
    }

    /// Signs the end of every chain that grew. Returns the number of signatures.
    pub async fn seal(&self) -> Result<usize, Error> {
        self.seal_sessions().await?;
        let mut signed = 0;
        for chain in self.0.parts.records.audit().chains().await? {
            signed += usize::from(self.seal_chain(&chain).await?);
        }
        Ok(signed)
    }

    async fn seal_chain(&self, chain: &Scope) -> Result<bool, Error> {
        let audit = self.0.parts.records.audit();
        let Some(head) = audit.head(chain).await? else {
            return Ok(false);
        };
        let last = audit.newest_seal(chain).await?;
        if last.is_some_and(|last| last.n >= head.n) {
            return Ok(false);
        }
        let seal = sign_head(&self.0.parts.key, chain, &head, now());
        let anchors = self.0.settings.anchors.iter();
        let anchors: Vec<&str> = anchors.map(super::Anchor::name).collect();
        audit.add_seal(chain, &seal, &anchors).await
    }

    /// Records the newest link of each session that changed, in the chain of its tenant.
    async fn seal_sessions(&self) -> Result<(), Error> {
        let audit = self.0.parts.records.audit();
        let mut last: Option<SessionKey> = None;
        loop {
            let page = audit.unsealed_sessions(last.as_ref()).await?;
            let Some(end) = page.last().cloned() else {
                return Ok(());
            };
            let mut links: BTreeMap<TenantId, Links> = BTreeMap::new();
            for key in page {
                if let Some((version, link)) = self.newest_link(&key).await? {
                    let of_tenant = links.entry(key.tenant).or_default();
                    of_tenant.push((key.session.to_string(), version, link));
                }
            }
            for (tenant, links) in links {
                unless_deleted(audit.seal_sessions(&tenant, &links).await)?;
            }
            last = Some(end);
        }
    }

    /// The newest version of a session's journal and its link. `None` if it has no journal, or an earlier
    /// release wrote its last commit: the next commit binds it.
    async fn newest_link(&self, key: &SessionKey) -> Result<Option<(u64, String)>, Error> {
        let live = &self.0.parts.live;
        let version = live.version(key).await?;
        let records = live
            .read_after_version(key, version.saturating_sub(1), 1)
            .await?;
        let stored = records.first().and_then(|it| link_of_stored(&it.body).ok());
        Ok(stored.and_then(|stored| Some((stored.version, stored.link?.as_str().to_owned()))))
    }

    /// Removes records older than the setting says, once a day.
    pub(super) async fn cut_if_due(&self) -> Result<(), Error> {
        let Some(retention) = self.0.settings.retention else {
            return Ok(());
        };
        if !self.take_turn("retention", CUT_EVERY).await? {
            return Ok(());
        }
        let before = earlier(now(), retention);
        for chain in self.0.parts.records.audit().chains().await? {
            unless_deleted(self.cut(&chain, before).await)?;
        }
        Ok(())
    }

    /// Removes the records of a chain from before a time: only after a signed record of the chain says so.
    pub async fn cut(&self, chain: &Scope, before: Timestamp) -> Result<(), Error> {
        let audit = self.0.parts.records.audit();
        if let Scope::Tenant(tenant) = chain {
            audit.remove_decisions(tenant, before).await?;
        }
        let Some(last) = audit.last_before(chain, before).await? else {
            return Ok(());
        };
        audit.record_cut(chain, &last).await?;
        self.seal_chain(chain).await?;
        audit.remove_cut(chain, &last).await
    }

    /// Takes the turn to do something for the installation, once in each interval.
    pub(super) async fn take_turn(&self, work: &str, every: Duration) -> Result<bool, Error> {
        let at = now();
        let until = Timestamp(at.0.saturating_add(millis(every)));
        self.0
            .parts
            .records
            .audit()
            .take_turn(work, at, until)
            .await
    }
}

/// Work for a tenant that was deleted meanwhile is done; the other tenants come next.
fn unless_deleted(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::TenantDeleted) => Ok(()),
        done => done,
    }
}

/// The time `by` before `at`.
fn earlier(at: Timestamp, by: Duration) -> Timestamp {
    Timestamp(at.0.saturating_sub(millis(by)))
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
