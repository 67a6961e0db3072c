//! Plans an undo: compares the workspace before a step with the current one.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::tracked::TrackedWorkspace;
use crate::domain::{FileChange, FileKind, FileState};

/// The changes that an undo would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoPlan {
    /// The step before which the workspace is restored.
    pub number: u64,
    /// Identifies exactly this plan, so that only the plan that was shown is carried out.
    pub digest: String,
    /// Each path that changes, sorted.
    pub changes: Vec<PlannedChange>,
}

/// A path that an undo would change. `before` is the current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    pub change: FileChange,
    /// True if the change is possible; false if the earlier content is not stored.
    pub is_possible: bool,
}

/// Plans an undo. The first `before` of each path is its state to restore.
pub(super) fn plan(
    number: u64,
    tracked: &TrackedWorkspace,
    steps: &[(u64, Vec<FileChange>)],
) -> UndoPlan {
    let mut was: BTreeMap<&str, Option<&FileState>> = BTreeMap::new();
    for change in steps.iter().flat_map(|(_, changes)| changes) {
        was.entry(&change.path).or_insert(change.before.as_ref());
    }
    let changes = was.into_iter().filter_map(|(path, was)| {
        let is = tracked.entries.get(path);
        let is_same = match (is, was) {
            (Some(is), Some(was)) => is.is_like(was),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        (!is_same).then(|| PlannedChange {
            is_possible: was.is_none_or(|was| is_kept(tracked, was)),
            change: FileChange {
                path: path.to_owned(),
                before: is.cloned(),
                after: was.cloned(),
            },
        })
    });
    let changes: Vec<_> = changes.collect();
    UndoPlan {
        number,
        digest: digest(number, &changes),
        changes,
    }
}

fn is_kept(tracked: &TrackedWorkspace, was: &FileState) -> bool {
    let is_there = |hash| tracked.kept.contains_key(hash);
    was.kind != FileKind::File || was.content.as_ref().is_some_and(is_there)
}

/// Hashes what people are shown, which excludes file versions.
fn digest(number: u64, changes: &[PlannedChange]) -> String {
    let mut hash = Sha256::new();
    hash.update(number.to_le_bytes());
    for PlannedChange {
        change,
        is_possible,
    } in changes
    {
        let shown = |state: &Option<FileState>| {
            state.as_ref().map(|state| {
                let content = state.content.as_ref().map_or("", |hash| hash.as_str());
                format!(
                    "{:?} {:o} {} {content} {:?}",
                    state.kind, state.mode, state.bytes, state.target
                )
            })
        };
        let line = (
            &change.path,
            shown(&change.before),
            shown(&change.after),
            is_possible,
        );
        hash.update(format!("{line:?}\n"));
    }
    hex::encode(hash.finalize())
}
