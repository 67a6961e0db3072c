//! Keeps histories within their limits: deletes the oldest steps, and the contents that only they refer to.

use std::collections::BTreeMap;

use super::tracked::TrackedWorkspace;
use crate::domain::{ContentHash, FileChange, SessionKey};
use crate::sandbox::host::CheckpointLimits;
use crate::store::clock::now;
use crate::store::{Error, Records};

/// Prunes to ten percent below the limits, so that not every step has to prune.
pub(super) async fn prune(
    records: &Records,
    key: &SessionKey,
    limits: CheckpointLimits,
    tracked: &mut TrackedWorkspace,
) -> Result<(), Error> {
    let bytes: u64 = tracked.kept.values().sum();
    if tracked.steps <= limits.steps && bytes <= limits.bytes {
        return Ok(());
    }
    let rows = records.checkpoints();
    let steps = rows.changes_from(key, 0).await?;
    let most = (
        limits.steps - limits.steps / 10,
        limits.bytes - limits.bytes / 10,
    );
    let (from, kept, held) = keep(tracked, &steps, most);
    let is_unheld = |hash: &&ContentHash| !held.contains_key(*hash);
    let unheld: Vec<_> = tracked.kept.keys().filter(is_unheld).cloned().collect();
    let base = tracked.base();
    rows.prune(key, from, &base, &unheld, now()).await?;
    tracked.kept = held;
    tracked.steps = kept;
    tracked.since_base = 0;
    Ok(())
}

/// Returns the first step to keep, the number of steps kept, and the contents that they and the workspace
/// need.
fn keep(
    tracked: &TrackedWorkspace,
    steps: &[(u64, Vec<FileChange>)],
    (most_steps, most_bytes): (u64, u64),
) -> (u64, u64, BTreeMap<ContentHash, u64>) {
    let mut held = tracked.held();
    let mut bytes: u64 = held.values().sum();
    let (mut from, mut kept) = (tracked.number + 1, 0);
    for (number, changes) in steps.iter().rev() {
        let befores = changes.iter().filter_map(|change| change.before.as_ref());
        let contents = befores.filter_map(|before| before.content.as_ref());
        let mut more = BTreeMap::new();
        for hash in contents.filter(|hash| !held.contains_key(*hash)) {
            if let Some(bytes) = tracked.kept.get(hash) {
                more.insert(hash.clone(), *bytes);
            }
        }
        bytes += more.values().sum::<u64>();
        if kept >= most_steps || bytes > most_bytes {
            break;
        }
        held.extend(more);
        (from, kept) = (*number, kept + 1);
    }
    (from, kept, held)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tracked::TrackedWorkspace;
    use super::keep;
    use crate::domain::{ContentHash, FileChange, FileKind, FileState};

    fn file(content: &str) -> FileState {
        FileState {
            kind: FileKind::File,
            mode: 0o644,
            bytes: 1,
            version: String::new(),
            content: Some(ContentHash::from_stored(content.to_owned())),
            target: None,
        }
    }

    fn step(before: &str, after: &str) -> Vec<FileChange> {
        vec![FileChange {
            path: "a".to_owned(),
            before: Some(file(before)),
            after: Some(file(after)),
        }]
    }

    #[test]
    fn the_newest_steps_are_kept_with_what_they_and_the_workspace_need() {
        let hashes = ["1", "2", "3", "4"].map(|hash| ContentHash::from_stored(hash.to_owned()));
        let tracked = TrackedWorkspace {
            number: 3,
            entries: BTreeMap::from([("a".to_owned(), file("4"))]),
            scan: None,
            is_settled: false,
            is_new: false,
            kept: hashes.into_iter().map(|hash| (hash, 10)).collect(),
            steps: 3,
            since_base: 0,
        };
        let steps = [
            (1, step("1", "2")),
            (2, step("2", "3")),
            (3, step("3", "4")),
        ];
        let check = |most, from, kept, held| {
            let (first, count, contents) = keep(&tracked, &steps, most);
            assert_eq!(
                (first, count, contents.len()),
                (from, kept, held),
                "{most:?}"
            );
        };
        check((9, 40), 1, 3, 4);
        check((9, 39), 2, 2, 3);
        check((1, 40), 3, 1, 2);
        check((9, 10), 4, 0, 1);
    }
}
