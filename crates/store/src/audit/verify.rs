//! Checks a chain of the audit: finds the first record that was changed, dropped, doubled or moved, and says up
//! to which time the chain is proven.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{AuditKey, ChainHead, FIRST_PREV, PublicKey, StoredRecord, canonical, link_of};
use sepal_core::domain::{Scope, Timestamp};

/// A signature over the end of a chain.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub struct Seal {
    /// The record whose link is signed.
    pub n: i64,
    pub at: i64,
    pub link: String,
    /// The public key, in base64url.
    pub key: String,
    /// The signature, in base64url.
    pub signature: String,
}

/// A fault of a chain, and the record from which on the chain proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Break {
    #[error("record {0} was changed: its link is not the hash of its text")]
    Changed(i64),
    #[error("record {0} is missing")]
    Missing(i64),
    #[error("record {0} stands twice")]
    Doubled(i64),
    #[error("record {0} was moved: it stands after a later one")]
    Moved(i64),
    #[error(
        "record {0} does not follow the one before: that one was changed, or this one comes from elsewhere"
    )]
    Unlinked(i64),
    #[error("record {0} was changed: its text and what it is found by differ in `{1}`")]
    Columns(i64, &'static str),
    #[error("record {0} is the first, and no signed record says that those before were removed")]
    Uncut(i64),
    #[error("the signature of record {0} is not right")]
    Signature(i64),
    #[error("record {0} is not the one that was signed")]
    Resealed(i64),
    #[error("record {0} was signed, and is missing")]
    Beheaded(i64),
    #[error(
        "record {0} was signed with the key {1}, which is not trusted; if it is a former key of this \
         installation, name it in `audit.trusted_keys`, or with `--key`"
    )]
    OtherKey(i64, String),
}

impl Break {
    /// The record from which on nothing is proven.
    pub fn n(&self) -> i64 {
        match self {
            Self::Changed(n)
            | Self::Missing(n)
            | Self::Doubled(n)
            | Self::Moved(n)
            | Self::Unlinked(n)
            | Self::Columns(n, _)
            | Self::Uncut(n)
            | Self::Signature(n)
            | Self::Resealed(n)
            | Self::Beheaded(n)
            | Self::OtherKey(n, _) => *n,
        }
    }
}

/// The result of checking a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainReport {
    /// The number of records that were read.
    pub records: u64,
    /// The last record.
    pub last: i64,
    /// The first thing that is wrong.
    pub broken: Option<Break>,
    /// The last record that a good signature covers, and the time of that signature: up to then, everything is
    /// proven.
    pub proven: Option<(i64, i64)>,
    /// The newest link of each session that the chain names and that was not deleted since, with the record
    /// that names it.
    pub sessions: BTreeMap<String, SealedSession>,
}

/// The end of a session's journal when the chain named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSession {
    pub version: u64,
    pub link: String,
    /// The record that names it.
    pub n: i64,
}

/// Checks one chain, record by record in its order, and its signatures as they come.
pub struct Verifier<'k> {
    chain: String,
    keys: &'k [PublicKey],
    /// The number and link of the last record that was fine.
    last: Option<(i64, String)>,
    /// Links of records that are not signed yet, for the signatures to come.
    open: BTreeMap<i64, String>,
    /// Of a chain that does not begin with record 1: its first record, what that names as the one before, and
    /// the record that says so.
    begun: Option<(i64, String)>,
    cut: Option<i64>,
    /// The sessions that were deleted.
    deleted: BTreeSet<String>,
    report: ChainReport,
}

impl<'k> Verifier<'k> {
    /// Checks the chain of this name; `keys` are those whose signatures count.
    pub fn new(chain: &str, keys: &'k [PublicKey]) -> Self {
        Self {
            chain: chain.to_owned(),
            keys,
            last: None,
            open: BTreeMap::new(),
            begun: None,
            cut: None,
            deleted: BTreeSet::new(),
            report: ChainReport::default(),
        }
    }

    /// Checks the next record.
    pub fn record(&mut self, record: &StoredRecord) {
        self.report.records += 1;
        self.report.last = self.report.last.max(record.n);
        match &self.report.broken {
            None => {
                if let Err(found) = self.follow(record) {
                    self.report.broken = Some(found);
                }
            }
            // What seemed to be missing comes later.
            Some(Break::Missing(n)) if *n == record.n => {
                self.report.broken = Some(Break::Moved(record.n));
            }
            Some(_) => {}
        }
    }

    fn follow(&mut self, record: &StoredRecord) -> Result<(), Break> {
        let n = record.n;
        let expected = self.last.as_ref().map(|(last, _)| last.saturating_add(1));
        match expected {
            Some(expected) if n > expected => return Err(Break::Missing(expected)),
            Some(expected) if n.saturating_add(1) == expected => return Err(Break::Doubled(n)),
            Some(expected) if n < expected => return Err(Break::Moved(n)),
            _ => {}
        }
        if link_of(&record.body) != record.link {
            return Err(Break::Changed(n));
        }
        let body: Value = serde_json::from_str(&record.body).map_err(|_| Break::Changed(n))?;
        if canonical(&body) != record.body {
            return Err(Break::Changed(n));
        }
        let number = |name: &str| body.get(name).and_then(Value::as_i64);
        if number("n") != Some(n) {
            return Err(Break::Moved(n));
        }
        let prev = body.get("prev").and_then(Value::as_str).unwrap_or_default();
        match &self.last {
            Some((_, link)) if link == prev => {}
            None if n == 1 && prev == FIRST_PREV => {}
            None if n > 1 => self.begun = Some((n, prev.to_owned())),
            Some(_) | None => return Err(Break::Unlinked(n)),
        }
        let text = |path: &str| {
            body.pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        for (name, is_same) in [
            ("at", number("at") == Some(record.at)),
            ("act", text("/act") == record.act),
            ("person", text("/by/id") == record.person),
            ("kind", text("/on/kind") == record.kind),
            ("subject", text("/on/id") == record.subject),
        ] {
            if !is_same {
                return Err(Break::Columns(n, name));
            }
        }
        self.heed(record, &body);
        self.open.insert(n, record.link.clone());
        self.last = Some((n, record.link.clone()));
        Ok(())
    }

    /// Notes what a record says about the chain and about sessions.
    fn heed(&mut self, record: &StoredRecord, body: &Value) {
        match record.act.as_str() {
            "chain.cut" => {
                if let Some((first, prev)) = &self.begun {
                    let through = body.pointer("/details/through").and_then(Value::as_i64);
                    let link = body.pointer("/details/link").and_then(Value::as_str);
                    if through == Some(first.saturating_sub(1)) && link == Some(prev) {
                        self.cut = Some(record.n);
                    }
                }
            }
            "sessions.sealed" => {
                let list = body.pointer("/details/sessions").and_then(Value::as_array);
                for session in list.into_iter().flatten() {
                    let text = |name| session.get(name).and_then(Value::as_str);
                    let version = session.get("version").and_then(Value::as_u64);
                    if let (Some(id), Some(version), Some(link)) =
                        (text("id"), version, text("link"))
                    {
                        let sealed = SealedSession {
                            version,
                            link: link.to_owned(),
                            n: record.n,
                        };
                        // A session may be deleted while its link is recorded.
                        if !self.deleted.contains(id) {
                            self.report.sessions.insert(id.to_owned(), sealed);
                        }
                    }
                }
            }
            "session.deleted" => {
                self.report.sessions.remove(&record.subject);
                self.deleted.insert(record.subject.clone());
            }
            _ => {}
        }
    }

    /// Checks the next signature. Every record up to it has been given before.
    pub fn seal(&mut self, seal: &Seal) {
        if let Err(found) = self.check(seal) {
            let is_first = self.report.broken.as_ref();
            if is_first.is_none_or(|broken| found.n() < broken.n()) {
                self.report.broken = Some(found);
            }
        }
    }

    fn check(&mut self, seal: &Seal) -> Result<(), Break> {
        let n = seal.n;
        let Some(link) = self.open.get(&n) else {
            // What lies after a break proves nothing, and is no other break.
            return match &self.report.broken {
                Some(broken) if broken.n() <= n => Ok(()),
                _ => Err(Break::Beheaded(n)),
            };
        };
        if *link != seal.link {
            return Err(Break::Resealed(n));
        }
        let key = PublicKey::parse(&seal.key).map_err(|_| Break::Signature(n))?;
        if !self.keys.contains(&key) {
            return Err(Break::OtherKey(n, key.to_string()));
        }
        if !key.has_signed(&signed(&self.chain, seal), &seal.signature) {
            return Err(Break::Signature(n));
        }
        self.report.proven = Some((n, seal.at));
        self.open = self.open.split_off(&n.saturating_add(1));
        Ok(())
    }

    /// Returns the result, after the last record and signature.
    pub fn finish(mut self) -> ChainReport {
        let Some((first, _)) = self.begun else {
            return self.report;
        };
        let proven = self.report.proven.map_or(0, |(n, _)| n);
        if self.report.broken.is_none() && self.cut.is_none_or(|cut| cut > proven) {
            self.report.broken = Some(Break::Uncut(first));
            self.report.proven = None;
        }
        self.report
    }
}

/// Signs the end of a chain.
pub fn sign_head(key: &AuditKey, chain: &Scope, head: &ChainHead, at: Timestamp) -> Seal {
    let mut seal = Seal {
        n: head.n,
        at: at.0.max(head.at),
        link: head.link.clone(),
        key: key.public().to_string(),
        signature: String::new(),
    };
    seal.signature = key.sign(&signed(chain.as_str(), &seal));
    seal
}

/// The value that a seal signs.
fn signed(chain: &str, seal: &Seal) -> Value {
    json!({ "at": seal.at, "link": seal.link, "n": seal.n, "tenant": chain })
}
