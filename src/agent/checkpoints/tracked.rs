//! A workspace as it was last seen, and what is kept of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{ContentHash, FileChange, FileKind, FileState, SessionKey};
use crate::mcp::{Found, Scan};
use crate::store::records::{WorkspaceBase, WorkspaceEntries};
use crate::store::{Error, Records};

/// Changes after which the whole list is written down again, beside a part of the list itself: so the list
/// costs less than the changes, and is read with few of them.
const BASE_AFTER: usize = 64;

/// A workspace as it was last seen. Ten thousand entries take about two megabytes.
pub(super) struct Tracked {
    /// The last step; 0 = none.
    pub(super) number: u64,
    pub(super) entries: WorkspaceEntries,
    /// The scan that they are of, as the server in the sandbox may still know it.
    pub(super) scan: Option<String>,
    /// Whether that scan found no file that may change again without looking so.
    pub(super) is_settled: bool,
    /// Whether nobody has looked before: then what is there is where the history begins.
    pub(super) is_new: bool,
    /// Contents that are kept, with their sizes in bytes.
    pub(super) kept: BTreeMap<ContentHash, u64>,
    /// Steps that are kept.
    pub(super) steps: u64,
    /// Changes since the list was written down.
    pub(super) since_base: usize,
}

impl Tracked {
    /// Reads it from the store.
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

    /// Where the history would begin if only this were kept.
    pub(super) fn base(&self) -> WorkspaceBase {
        WorkspaceBase {
            number: self.number,
            entries: self.entries.clone(),
        }
    }

    /// Whether the list is due to be written down, with so many changes more.
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

    /// The workspace as a scan tells it that found no fresh file.
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

    /// The contents that the workspace has now, with their sizes, as far as they are kept.
    pub(super) fn held(&self) -> BTreeMap<ContentHash, u64> {
        let contents = self.entries.values();
        let contents = contents.filter_map(|entry| entry.content.as_ref());
        let held = contents.filter_map(|hash| Some((hash.clone(), *self.kept.get(hash)?)));
        held.collect()
    }

    /// Bytes of those that other paths than these have.
    pub(super) fn held_bytes_beside(&self, others: &BTreeSet<&str>) -> u64 {
        let entries = self.entries.iter();
        let contents = entries.filter(|(path, _)| !others.contains(path.as_str()));
        let contents = contents.filter_map(|(_, entry)| entry.content.as_ref());
        let contents: BTreeSet<&ContentHash> = contents.collect();
        let sizes = contents.into_iter().filter_map(|hash| self.kept.get(hash));
        sizes.sum()
    }

    /// What a scan found that is not as it was last seen, and the paths of what is gone.
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

/// Whether a look shows that it is as it was.
fn is_as(known: &FileState, found: &Found) -> bool {
    let is_same = (known.kind, known.mode, known.bytes, &known.target)
        == (found.kind, found.mode, found.bytes, &found.target);
    let has_same_content = match &found.version {
        Some(version) => !found.is_fresh && known.version == *version,
        None => true,
    };
    is_same && has_same_content
}
