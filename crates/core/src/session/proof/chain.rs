//! Writes and reads the links of stored commits.

use serde::Deserialize;

use super::record::{RecordForm, digest_of_records, forms, records};
use crate::domain::{Digest, Timestamp};
use crate::session::event::{Commit, CommitError};
use crate::session::state::Control;

/// The beginning of a stored commit with a link. Two digests follow, each in its quotes, and then the rest of
/// the commit.
const LINK: &[u8] = br#"{"link":""#;
const RECORDS: &[u8] = br#"","records":""#;
const REST: &[u8] = br#"","#;

/// The beginning of a stored commit of an earlier release.
const UNLINKED: &[u8] = br#"{"version":"#;

/// The members that every stored commit has, with or without a link.
#[derive(Deserialize)]
struct Head {
    version: u64,
    at: Timestamp,
}

/// The place of a stored commit in the chain of its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLink {
    pub version: u64,
    /// The time of the decision.
    pub at: Timestamp,
    /// SHA-256 of the commit without its link.
    pub content: Digest,
    /// Hash of the commit's decision records; `None` if an earlier release wrote the commit.
    pub records: Option<Digest>,
    /// The stored link; `None` if an earlier release wrote the commit.
    pub link: Option<Digest>,
}

/// The stored form of a commit, with its link and its decision records.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkedCommit {
    pub body: Vec<u8>,
    pub link: Digest,
    pub records: Vec<RecordForm>,
}

impl StoredLink {
    /// The link of the commit, if the commit before it has this link; `None` = it is the first.
    pub fn link_after(&self, prev: Option<&Digest>) -> Digest {
        // RFC 8785: the names are sorted, and nothing in the values needs an escape.
        let prev = prev.map_or(Digest::ZERO, Digest::as_str);
        let content = self.content.as_str();
        let records = self.records.as_ref().map_or_else(String::new, |records| {
            format!(r#","records":"{}""#, records.as_str())
        });
        let (at, version) = (self.at.0, self.version);
        let form = format!(
            r#"{{"at":{at},"content":"{content}","prev":"{prev}"{records},"version":{version}}}"#
        );
        Digest::of_bytes(form.as_bytes())
    }
}

impl LinkedCommit {
    /// Writes the stored form of a commit that follows the state `before`, whose last commit has the link
    /// `prev`.
    pub fn new(
        before: &Control,
        prev: Option<&Digest>,
        commit: &Commit,
    ) -> Result<Self, CommitError> {
        let content = commit.to_bytes()?;
        let decided = forms(&records(before, commit));
        let stored = StoredLink {
            version: commit.version,
            at: commit.at,
            content: Digest::of_bytes(&content),
            records: Some(digest_of_records(&decided)),
            link: None,
        };
        let link = stored.link_after(prev);
        let records = stored.records.as_ref().map_or("", Digest::as_str);
        let parts = [
            LINK,
            link.as_str().as_bytes(),
            RECORDS,
            records.as_bytes(),
            REST,
            content.strip_prefix(b"{").unwrap_or_default(),
        ];
        let body = parts.concat();
        Ok(Self {
            body,
            link,
            records: decided,
        })
    }
}

/// Reads the link of a stored commit, from its stored form alone. The link is not compared with the content.
pub fn link_of_stored(body: &[u8]) -> Result<StoredLink, CommitError> {
    let Head { version, at } = serde_json::from_slice(body)?;
    let Some(rest) = body.strip_prefix(LINK) else {
        return Ok(StoredLink {
            version,
            at,
            content: Digest::of_bytes(body),
            records: None,
            link: None,
        });
    };
    let (link, records, rest) = members(rest).ok_or(CommitError::BrokenLink { version })?;
    Ok(StoredLink {
        version,
        at,
        content: Digest::of_parts(&[b"{", rest]),
        records: Some(records),
        link: Some(link),
    })
}

/// Splits what follows [`LINK`] into link, hash of the records, and rest.
fn members(text: &[u8]) -> Option<(Digest, Digest, &[u8])> {
    let (link, text) = digest(text)?;
    let (records, text) = digest(text.strip_prefix(RECORDS)?)?;
    Some((link, records, text.strip_prefix(REST)?))
}

/// Returns true if a stored commit begins as this release or an earlier one begins it.
pub(super) fn has_known_form(body: &[u8]) -> bool {
    body.starts_with(LINK) || body.starts_with(UNLINKED)
}

/// The link of a stored commit that follows one with the link `prev`: the stored one, or, if an earlier release
/// wrote the commit, the one that it would have.
pub fn link_after(body: &[u8], prev: Option<&Digest>) -> Result<Digest, CommitError> {
    let stored = body.strip_prefix(LINK).and_then(digest);
    match stored {
        Some((link, _)) => Ok(link),
        None => Ok(link_of_stored(body)?.link_after(prev)),
    }
}

fn digest(text: &[u8]) -> Option<(Digest, &[u8])> {
    let (digest, rest) = text.split_at_checked(Digest::CHARS)?;
    Some((Digest::parse(digest)?, rest))
}

/// Links the commits of a new journal, one after the other.
#[derive(Debug, Default)]
pub struct Chain {
    control: Control,
    link: Option<Digest>,
}

impl Chain {
    /// Returns the stored form of the next commit.
    pub fn append(&mut self, commit: &Commit) -> Result<Vec<u8>, CommitError> {
        let linked = LinkedCommit::new(&self.control, self.link.as_ref(), commit)?;
        self.control.apply(commit);
        self.link = Some(linked.link);
        Ok(linked.body)
    }

    /// The link of the last commit; `None` = there is none.
    pub fn into_link(self) -> Option<Digest> {
        self.link
    }
}
