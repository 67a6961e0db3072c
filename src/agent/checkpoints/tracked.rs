//! Holds a workspace as of the last scan, and the stored part of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{ContentHash, FileChange, FileKind, FileState, SessionKey};
use crate::mcp::{Found, Scan};
use crate::store::records::{WorkspaceBase, WorkspaceEntries};
use crate::store::{Error, Records};

/// The whole list of entries is stored again after this many changes plus a quarter of the list's length: so
/// storing lists costs less than storing changes, and few changes follow a stored list.
const BASE_AFTER: usize = 64;

/// A workspace as of the last scan. Ten thousand entries take about two megabytes.
pub(super) struct TrackedWorkspace {
    /// The last step; 0 = none.
    pub(super) number: u64,
    pub(super) entries: WorkspaceEntries,
    /// The scan that produced the entries. The server in the sandbox may still know it.
    pub(super) scan: Option<String>,
    /// True if that scan found no file that could change again without a visible difference.
    pub(super) is_settled: bool,
    /// True if this is the first scan, whose result is the start of the history.
    pub(super) is_new: bool,
    /// The stored contents, with their sizes in bytes.
    pub(super) kept: BTreeMap<ContentHash, u64>,
    /// The number of stored steps.
    pub(super) steps: u64,
    /// The number of changes since the list was stored.
    pub(super) since_base: usize,
}

impl TrackedWorkspace {
    /// Loads the workspace from the store.
    pub(super) async fn load(records: &Records, key: &SessionKey) -> Result<Self, Error> {
        let rows = records.checkpoints();
        let kept = rows.kept(key).await?.into_iter().collect();
        let base = rows.base(key).await?;
        let is_new = base.is_none();
        let WorkspaceBase { number, entries } = base.unwrap_or(WorkspaceBase {
            number: 0,
            entries: BTreeMap::new(),
        });
        let mut tracked = Self {
            number,
            entries,
            scan: None,
            is_settled: false,
            is_new,
            kept,
            steps: rows.history(key).await?.len() as u64,
            since_base: 0,
        };
        for (number, changes) in rows.changes_from(key, number + 1).await? {
            tracked.number = number;
            tracked.apply(&changes);
        }
        Ok(tracked)
    }

    /// The current entries as a base for the history.
    pub(super) fn base(&self) -> WorkspaceBase {
        WorkspaceBase {
            number: self.number,
            entries: self.entries.clone(),
        }
    }

    /// Returns true if the list is due to be stored, after `more` further changes.
    pub(super) fn is_base_due(&self, more: usize) -> bool {
        self.since_base + more > BASE_AFTER + self.entries.len() / 4
    }

    pub(super) fn apply(&mut self, changes: &[FileChange]) {
        self.since_base += changes.len() + 1;
        for change in changes {
            match &change.after {
                Some(after) => self.entries.insert(change.path.clone(), after.clone()),
                None => self.entries.remove(&change.path),
            };
        }
    }

    /// Returns the workspace as a scan without fresh files would report it.
    pub(super) fn found(&self) -> Vec<Found> {
        let entries = self.entries.iter();
        let found = entries.map(|(path, is)| Found {
            path: path.clone(),
            kind: is.kind,
            mode: is.mode,
            bytes: is.bytes,
            version: (is.kind == FileKind::File).then(|| is.version.clone()),
            is_fresh: false,
            target: is.target.clone(),
        });
        found.collect()
    }

    /// Returns the stored contents of the current workspace, with their sizes.
    pub(super) fn held(&self) -> BTreeMap<ContentHash, u64> {
        let contents = self.entries.values();
        let contents = contents.filter_map(|entry| entry.content.as_ref());
        let held = contents.filter_map(|hash| Some((hash.clone(), *self.kept.get(hash)?)));
        held.collect()
    }

    /// Returns the bytes of stored contents at paths other than `others`.
    pub(super) fn held_bytes_beside(&self, others: &BTreeSet<&str>) -> u64 {
        let entries = self.entries.iter();
        let contents = entries.filter(|(path, _)| !others.contains(path.as_str()));
        let contents = contents.filter_map(|(_, entry)| entry.content.as_ref());
        let contents: BTreeSet<&ContentHash> = contents.collect();
        let sizes = contents.into_iter().filter_map(|hash| self.kept.get(hash));
        sizes.sum()
    }

    /// Returns the scanned entries that differ from the last scan, and the paths that are gone.
    pub(super) fn differences(&self, scan: Scan) -> (Vec<Found>, Vec<String>) {
        let gone = if scan.is_whole {
            let there: BTreeSet<&str> = scan.found.iter().map(|it| it.path.as_str()).collect();
            let known = self.entries.keys();
            let gone = known.filter(|path| !there.contains(path.as_str()));
            gone.cloned().collect()
        } else {
            let is_known = |path: &String| self.entries.contains_key(path);
            scan.removed.into_iter().filter(is_known).collect()
        };
        let found = scan.found.into_iter();
        let others = found.filter(|found| {
            !self
                .entries
                .get(&found.path)
                .is_some_and(|known| is_as(known, found))
        });
        (others.collect(), gone)
    }
}

/// Returns true if the scanned entry is unchanged.
fn is_as(known: &FileState, found: &Found) -> bool {
    let is_same = (known.kind, known.mode, known.bytes, &known.target)
        == (found.kind, found.mode, found.bytes, &found.target);
    let has_same_content = match &found.version {
        Some(version) => !found.is_fresh && known.version == *version,
        None => true,
    };
    is_same && has_same_content
}
