//! Verifies a stored journal: its chain, and that the decision records follow from the events. Pure.

use super::chain::{has_known_form, link_of_stored};
use super::record::{DecisionRecord, digest_of_records, forms, records};
use crate::domain::Digest;
use crate::session::event::{Commit, CommitError};
use crate::session::state::Control;

/// Verifies the commits of a journal, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Verifier {
    control: Control,
    link: Option<Digest>,
}

/// A commit whose place in the chain was verified.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedCommit {
    pub commit: Commit,
    /// SHA-256 of the commit without its link.
    pub content: Digest,
    pub link: Digest,
    /// The decision records; `None` if an earlier release wrote the commit, which bound none.
    pub records: Option<Vec<DecisionRecord>>,
}

/// The first commit of a journal that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("commit {version}: {defect}")]
pub struct BrokenCommit {
    /// The version that should be there.
    pub version: u64,
    pub defect: Defect,
}

/// The way in which a journal is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// No commit can be read there.
    #[error("it cannot be read")]
    Unreadable,
    /// A later commit follows in its place.
    #[error("it is missing, and commit {found} follows")]
    Missing { found: u64 },
    /// The commit before it follows again.
    #[error("the commit before it is there twice")]
    Doubled,
    /// An earlier commit follows in its place.
    #[error("commit {found}, which belongs before it, is in its place")]
    Moved { found: u64 },
    /// Its content, its link or the commit before it was changed.
    #[error("its content or its link was changed")]
    Changed,
    /// The decision records that it was written with do not follow from its events.
    #[error("its decision records do not follow from its events")]
    OtherRecords,
}

impl Verifier {
    /// Verifies the next stored commit.
    pub fn take(&mut self, body: &[u8]) -> Result<VerifiedCommit, BrokenCommit> {
        let version = self.control.version.saturating_add(1);
        let broken = |defect| BrokenCommit { version, defect };
        let unreadable = |_: CommitError| broken(Defect::Unreadable);
        if !has_known_form(body) {
            return Err(broken(Defect::Unreadable));
        }
        let stored = link_of_stored(body).map_err(unreadable)?;
        let commit = Commit::from_bytes(body).map_err(unreadable)?;
        if stored.version != version {
            return Err(broken(misplaced(version, stored.version)));
        }
        let link = stored.link_after(self.link.as_ref());
        if stored.link.as_ref().is_some_and(|written| *written != link) {
            return Err(broken(Defect::Changed));
        }
        let records = (stored.records.as_ref()).map(|_| records(&self.control, &commit));
        let digest = |records: &[DecisionRecord]| digest_of_records(&forms(records));
        if records.as_deref().map(digest) != stored.records {
            return Err(broken(Defect::OtherRecords));
        }
        self.control.apply(&commit);
        self.link = Some(link.clone());
        Ok(VerifiedCommit {
            commit,
            content: stored.content,
            link,
            records,
        })
    }

    /// The version of the last verified commit; 0 = none.
    pub fn version(&self) -> u64 {
        self.control.version
    }

    /// The link of the last verified commit.
    pub fn link(&self) -> Option<&Digest> {
        self.link.as_ref()
    }

    /// The state after the last verified commit.
    pub fn control(&self) -> &Control {
        &self.control
    }
}

/// Verifies a whole journal, and returns the link of its last commit.
pub fn verify<'a>(
    bodies: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Option<Digest>, BrokenCommit> {
    let mut verifier = Verifier::default();
    for body in bodies {
        verifier.take(body)?;
    }
    Ok(verifier.link)
}

fn misplaced(expected: u64, found: u64) -> Defect {
    if found > expected {
        Defect::Missing { found }
    } else if found.saturating_add(1) == expected {
        Defect::Doubled
    } else {
        Defect::Moved { found }
    }
}
