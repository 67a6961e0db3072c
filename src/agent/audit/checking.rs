//! Checks the audit: the chains with their signatures, and the journals of the sessions that they name; or the
//! lines of an export, with the public key alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::domain::{Digest, Scope, SessionId, SessionKey};
use crate::session::proof::link_of_stored;
use crate::store::audit::{Break, ChainReport, PublicKey, SealedSession, StoredRecord, Verifier};
use crate::store::records::Seal;
use crate::store::{Error, LiveStore, Records};

/// Commits per read.
const PAGE: usize = 500;

/// The result of checking one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCheck {
    pub chain: String,
    pub report: ChainReport,
    /// The newest record of which an anchor has a signature: the record, when it had it, and which anchor.
    pub anchored: Option<(i64, i64, String)>,
    /// The number of sessions whose journals were checked.
    pub sessions: u64,
    /// The first session whose journal is not the one that the chain names.
    pub broken_session: Option<BrokenSession>,
}

impl AuditCheck {
    /// Returns true if nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.report.broken.is_none() && self.broken_session.is_none()
    }
}

/// A session whose journal is not the one that the chain names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenSession {
    pub session: String,
    /// The first commit that does not fit.
    pub version: u64,
    /// The record of the chain that names another journal.
    pub n: i64,
}

/// Checks a chain of the store, and the journals of at most `most` of the sessions that it names, those that
/// were named last first.
pub async fn check_all(
    (records, live): (&Records, &Arc<dyn LiveStore>),
    chain: &Scope,
    keys: &[PublicKey],
    most: usize,
) -> Result<AuditCheck, Error> {
    let report = check_chain(records, chain, keys).await?;
    let anchors = records.audit().anchors(chain).await?;
    let mut anchored = anchors
        .into_iter()
        .filter_map(|row| Some((row.n, row.done_at?, row.anchor)));
    let mut check = AuditCheck {
        chain: chain.as_str().to_owned(),
        anchored: anchored.next(),
        sessions: 0,
        broken_session: None,
        report,
    };
    if let Some((n, _, _)) = &check.anchored
        && *n > check.report.last
    {
        check.report.broken.get_or_insert(Break::Beheaded(*n));
    }
    let Scope::Tenant(tenant) = chain else {
        return Ok(check);
    };
    let mut sealed: Vec<(&String, &SealedSession)> = check.report.sessions.iter().collect();
    sealed.sort_by_key(|(_, sealed)| std::cmp::Reverse(sealed.n));
    for (session, sealed) in sealed.into_iter().take(most) {
        let Some(id) = SessionId::parse(session) else {
            continue;
        };
        let key = SessionKey {
            tenant: tenant.clone(),
            session: id,
        };
        check.sessions += 1;
        if let Some(version) = first_unfit(live, &key, sealed).await? {
            check.broken_session = Some(BrokenSession {
                session: session.clone(),
                version,
                n: sealed.n,
            });
            break;
        }
    }
    Ok(check)
}

/// Checks a chain of the store and its signatures.
async fn check_chain(
    records: &Records,
    chain: &Scope,
    keys: &[PublicKey],
) -> Result<ChainReport, Error> {
    let audit = records.audit();
    let mut verifier = Verifier::new(chain.as_str(), keys);
    let (mut after, mut sealed) = (0, 0);
    let mut seals: Vec<Seal> = Vec::new();
    loop {
        let page = audit.records(chain, after).await?;
        let Some(last) = page.last().map(|record| record.n) else {
            break;
        };
        for record in &page {
            verifier.record(record);
            while let Some(seal) =
                next_seal(&audit, chain, &mut seals, &mut sealed, record.n).await?
            {
                verifier.seal(&seal);
            }
        }
        after = last;
    }
    while let Some(seal) = next_seal(&audit, chain, &mut seals, &mut sealed, i64::MAX).await? {
        verifier.seal(&seal);
    }
    Ok(verifier.finish())
}

/// The next signature of a record up to `n`. Reads the following ones of the store when there is none left.
async fn next_seal(
    audit: &crate::store::records::Audit<'_>,
    chain: &Scope,
    seals: &mut Vec<Seal>,
    read: &mut i64,
    n: i64,
) -> Result<Option<Seal>, Error> {
    if seals.is_empty() && *read < i64::MAX {
        *seals = audit.seals(chain, *read).await?;
        seals.reverse();
        // None left: there is nothing to read again.
        *read = seals.first().map_or(i64::MAX, |seal| seal.n);
    }
    let is_due = seals.last().is_some_and(|seal| seal.n <= n);
    Ok(if is_due { seals.pop() } else { None })
}

/// The first commit of a journal that does not fit what a chain names; `None` if it is that journal.
async fn first_unfit(
    live: &Arc<dyn LiveStore>,
    key: &SessionKey,
    sealed: &SealedSession,
) -> Result<Option<u64>, Error> {
    let mut prev: Option<Digest> = None;
    let mut version = 0;
    loop {
        let page = live.read_after_version(key, version, PAGE).await?;
        if page.is_empty() {
            // It ends before the commit that is named.
            return Ok(Some(version.saturating_add(1)));
        }
        for record in page {
            version = record.version;
            let Ok(stored) = link_of_stored(&record.body) else {
                return Ok(Some(version));
            };
            let link = stored.link_after(prev.as_ref());
            let is_own = stored.version == version && stored.link.is_none_or(|own| own == link);
            if !is_own || (version == sealed.version && link.as_str() != sealed.link) {
                return Ok(Some(version));
            }
            if version >= sealed.version {
                return Ok(None);
            }
            prev = Some(link);
        }
    }
}

/// A line of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportLine {
    Record(String, Box<StoredRecord>),
    Seal(String, Box<Seal>),
    /// A decision in a session, which the export of that session proves.
    Decision,
}

impl ExportLine {
    /// Reads a line; `None` if it is none of an export.
    pub fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |path: &str| Some(value.pointer(path)?.as_str()?.to_owned());
        let number = |path: &str| value.pointer(path)?.as_i64();
        match text("/type")?.as_str() {
            "record" => {
                let record = StoredRecord::of_json(value.get("record")?, text("/link")?)?;
                Some(Self::Record(text("/tenant")?, Box::new(record)))
            }
            "seal" => {
                let seal = Seal {
                    n: number("/n")?,
                    at: number("/at")?,
                    link: text("/link")?,
                    key: text("/key")?,
                    signature: text("/signature")?,
                };
                Some(Self::Seal(text("/tenant")?, Box::new(seal)))
            }
            "decision" => Some(Self::Decision),
            _ => None,
        }
    }
}

/// Checks the lines of an export, chain by chain. The journals of sessions are not in it.
pub fn check_lines(lines: impl Iterator<Item = ExportLine>, keys: &[PublicKey]) -> Vec<AuditCheck> {
    let mut verifiers: BTreeMap<String, Verifier<'_>> = BTreeMap::new();
    for line in lines {
        let of = |chain: &str| Verifier::new(chain, keys);
        match line {
            ExportLine::Record(chain, record) => {
                let verifier = verifiers.entry(chain).or_insert_with_key(|chain| of(chain));
                verifier.record(&record);
            }
            ExportLine::Seal(chain, seal) => {
                let verifier = verifiers.entry(chain).or_insert_with_key(|chain| of(chain));
                verifier.seal(&seal);
            }
            ExportLine::Decision => {}
        }
    }
    let checks = verifiers.into_iter().map(|(chain, verifier)| AuditCheck {
        chain,
        report: verifier.finish(),
        anchored: None,
        sessions: 0,
        broken_session: None,
    });
    checks.collect()
}
