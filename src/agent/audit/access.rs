//! Shows the audit to those who may see it.

use std::collections::BTreeMap;

use super::AuditTrail;
use super::checking::{AuditCheck, check_all};
use crate::domain::{Caller, Code, Right, Scope, SessionKey};
use crate::session::Refusal;
use crate::store;
use crate::store::audit::{ActName, StoredRecord};
use crate::store::records::{AnchorRow, AuditFilter, AuditRow, Note, Seal};

/// The most sessions whose journals are checked when somebody waits for it; `sepal audit verify` checks all.
const CHECKED_SESSIONS: usize = 500;

/// The reason the audit is not shown.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The caller may not see this, or a value is invalid.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// The part of the audit that a caller may see. It can only be made from a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditAccess {
    chain: Scope,
    /// The only person whose acts are shown; `None` = everybody's.
    person: Option<String>,
}

/// The place of a record in a list: its time, and its place among records of that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPlace {
    pub at: i64,
    pub place: String,
}

/// A record in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRecord {
    pub row: AuditRow,
    /// The name that the person has now.
    pub name: Option<String>,
}

/// A page of the audit, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    pub records: Vec<ListedRecord>,
    /// Where the next page begins, if there is one.
    pub next: Option<AuditPlace>,
}

/// The newest signature of a chain, and the anchors that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditStanding {
    /// The number of the last record.
    pub last: i64,
    pub seal: Option<Seal>,
    /// The newest that each anchor has, and those that it has not got.
    pub anchors: Vec<AnchorRow>,
}

impl AuditAccess {
    /// What the caller may see of their tenant: admins everything, members what they did themselves. Of the
    /// installation, its administrators see everything.
    pub fn of(caller: &Caller, is_of_installation: bool) -> Result<Self, Refusal> {
        let user = &caller.user;
        if is_of_installation {
            if !user.installation_admin {
                let text = "only an administrator of the installation sees its audit";
                return Err(Refusal::of_field(Code::NotAllowed, "scope", text));
            }
            return Ok(Self {
                chain: Scope::Installation,
                person: None,
            });
        }
        let sees_all = caller.may(Right::ReadAudit);
        if !sees_all && !user.role.may_act() {
            let text = "your role does not see the audit";
            return Err(Refusal::new(Code::NotAllowed, text));
        }
        Ok(Self {
            chain: Scope::Tenant(caller.tenant.id.clone()),
            person: (!sees_all).then(|| user.id.to_string()),
        })
    }

    /// The chain that is shown.
    pub fn chain(&self) -> &Scope {
        &self.chain
    }

    /// Returns an error if the caller sees only what they did themselves: signatures and checks are of all.
    pub fn check_sees_all(&self) -> Result<(), Refusal> {
        if self.person.is_none() {
            return Ok(());
        }
        let text = "only admins see the whole audit";
        Err(Refusal::new(Code::NotAllowed, text))
    }

    /// The filter, within what the caller may see.
    fn narrow(&self, filter: AuditFilter) -> Result<AuditFilter, Refusal> {
        let Some(own) = &self.person else {
            return Ok(filter);
        };
        if filter.person.as_ref().is_some_and(|person| person != own) {
            let text = "only admins see what others did";
            return Err(Refusal::of_field(Code::NotAllowed, "person", text));
        }
        Ok(AuditFilter {
            person: Some(own.clone()),
            ..filter
        })
    }
}

impl AuditTrail {
    /// A page of the records that fit a filter, newest first.
    pub async fn list(
        &self,
        access: &AuditAccess,
        filter: AuditFilter,
        after: Option<&AuditPlace>,
        limit: usize,
    ) -> Result<AuditPage, AuditError> {
        let filter = access.narrow(filter)?;
        let audit = self.0.parts.records.audit();
        let after = after.map(|after| (after.at, after.place.as_str()));
        let mut rows = audit
            .list(&access.chain, &filter, after, limit.saturating_add(1))
            .await?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|last| AuditPlace {
            at: last.at,
            place: last.place.clone(),
        });
        let names = self.names(&access.chain).await?;
        let records = rows.into_iter().map(|row| ListedRecord {
            name: names.get(&row.person).cloned(),
            row,
        });
        Ok(AuditPage {
            records: records.collect(),
            next,
        })
    }

    /// The names of people by id.
    async fn names(&self, chain: &Scope) -> Result<BTreeMap<String, String>, store::Error> {
        let names = match chain {
            Scope::Tenant(tenant) => self.0.parts.records.audit().names(Some(tenant)).await?,
            Scope::Installation => self.0.parts.records.audit().names(None).await?,
        };
        Ok(names.into_iter().collect())
    }

    /// The records of a whole chain after one, in their order, and the signatures of them.
    pub async fn whole(
        &self,
        access: &AuditAccess,
        after: i64,
    ) -> Result<(Vec<StoredRecord>, Vec<Seal>), AuditError> {
        access.check_sees_all()?;
        let audit = self.0.parts.records.audit();
        let records = audit.records(&access.chain, after).await?;
        let last = records.last().map_or(after, |last| last.n);
        let mut seals = audit.seals(&access.chain, after).await?;
        seals.retain(|seal| seal.n <= last);
        Ok((records, seals))
    }

    /// Records that somebody took the audit with them.
    pub async fn note_export(&self, access: &AuditAccess, format: &str) -> Result<(), AuditError> {
        let note = Note::new(
            ActName::AuditExported,
            &access.chain,
            "chain",
            access.chain.as_str(),
        );
        let audit = self.0.parts.records.audit();
        Ok(audit.note(note.detail("format", format)).await?)
    }

    /// Records that somebody took all sessions of a person with them.
    pub async fn note_archive(&self, owner: &Caller) -> Result<(), store::Error> {
        let chain = Scope::Tenant(owner.tenant.id.clone());
        let name = ActName::UserArchived;
        let note = Note::new(name, &chain, "user", owner.user.id.as_str());
        self.0.parts.records.audit().note(note).await
    }

    /// Records that somebody took the decisions of another person's session with them.
    pub async fn note_decisions(&self, session: &SessionKey) -> Result<(), store::Error> {
        let chain = Scope::Tenant(session.tenant.clone());
        let name = ActName::DecisionsExported;
        let note = Note::new(name, &chain, "session", session.session.as_str());
        self.0.parts.records.audit().note(note).await
    }

    /// Returns the newest signature of the chain, and the anchors that have it.
    pub async fn standing(&self, access: &AuditAccess) -> Result<AuditStanding, AuditError> {
        access.check_sees_all()?;
        let audit = self.0.parts.records.audit();
        let head = audit.head(&access.chain).await?;
        let mut anchors = audit.anchors(&access.chain).await?;
        let mut told = Vec::new();
        anchors.retain(|row| {
            let is_newest = !told.contains(&(row.anchor.clone(), row.done_at.is_some()));
            if is_newest {
                told.push((row.anchor.clone(), row.done_at.is_some()));
            }
            is_newest
        });
        Ok(AuditStanding {
            last: head.map_or(0, |head| head.n),
            seal: audit.newest_seal(&access.chain).await?,
            anchors,
        })
    }

    /// Checks the chain, with this installation's own keys, and the journals of the sessions that it named
    /// last.
    pub async fn check(&self, access: &AuditAccess) -> Result<AuditCheck, AuditError> {
        access.check_sees_all()?;
        let parts = &self.0.parts;
        let keys = self.trusted_keys();
        let stores = (&parts.records, &parts.live);
        Ok(check_all(stores, &access.chain, &keys, CHECKED_SESSIONS).await?)
    }
}
