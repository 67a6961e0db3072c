//! Stores a scan of the workspace: contents first, then the step that refers to them.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::tracked::TrackedWorkspace;
use super::{CheckpointError, Checkpoints};
use crate::domain::{
    ChangeCause, ChangeCounts, ContentHash, FileChange, FileKind, FileState, WorkspaceChange,
};
use crate::mcp::{FileAccess, Found};
use crate::store::clock::now;
use crate::store::records::WorkspaceBase;

/// The largest file whose content is stored, in bytes: the sandbox's server reads this much at once, and the
/// page compares this much.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl Checkpoints {
    /// Scans the workspace, and adds a step if files changed or calls ran.
    pub(super) async fn take_in(
        &self,
        tracked: &mut TrackedWorkspace,
        access: FileAccess<'_>,
        cause: &ChangeCause,
    ) -> Result<(), CheckpointError> {
        let scan = access.scan(tracked.scan.as_deref()).await?;
        let id = scan.id.clone();
        let is_settled = !scan.found.iter().any(|found| found.is_fresh);
        let (found, gone) = tracked.differences(scan);
        let contents = self.read(tracked, access, &found, &gone).await?;
        let (changes, alike) = changes(tracked, found, gone, &contents);
        if tracked.is_new {
            tracked.apply(&changes);
            let at = now();
            let base = tracked.base();
            self.records
                .checkpoints()
                .put_base(&self.key, &base, at)
                .await?;
            (tracked.is_new, tracked.since_base) = (false, 0);
        } else if !changes.is_empty() || !cause.calls.is_empty() {
            self.add(tracked, &changes, cause).await?;
        }
        tracked.entries.extend(alike);
        (tracked.scan, tracked.is_settled) = (Some(id), is_settled);
        Ok(())
    }

    async fn add(
        &self,
        tracked: &mut TrackedWorkspace,
        changes: &[FileChange],
        cause: &ChangeCause,
    ) -> Result<(), CheckpointError> {
        let step = WorkspaceChange {
            number: tracked.number + 1,
            at: now(),
            cause: cause.clone(),
            counts: ChangeCounts::of(changes),
        };
        let before = tracked.number;
        let base = tracked.is_base_due(changes.len()).then(|| {
            let mut after = tracked.base().entries;
            for change in changes {
                match &change.after {
                    Some(state) => after.insert(change.path.clone(), state.clone()),
                    None => after.remove(&change.path),
                };
            }
            WorkspaceBase {
                number: before + 1,
                entries: after,
            }
        });
        let rows = self.records.checkpoints();
        if !rows.add(&self.key, &step, changes, base.as_ref()).await? {
            return Err(CheckpointError::Overtaken);
        }
        tracked.apply(changes);
        tracked.number = step.number;
        tracked.steps += 1;
        if base.is_some() {
            tracked.since_base = 0;
        }
        Ok(())
    }

    /// Reads and stores the contents of found files that are small enough, while the files of the workspace
    /// take at most half of the limit. The other half is for earlier versions.
    async fn read(
        &self,
        tracked: &mut TrackedWorkspace,
        access: FileAccess<'_>,
        found: &[Found],
        gone: &[String],
    ) -> Result<BTreeMap<String, ContentHash>, CheckpointError> {
        let is_small =
            |found: &&Found| found.kind == FileKind::File && found.bytes <= MAX_FILE_BYTES;
        let wanted = found.iter().filter(is_small);
        let mut wanted: Vec<(&str, &str)> = wanted
            .map(|found| {
                let version = found.version.as_deref().unwrap_or_default();
                (found.path.as_str(), version)
            })
            .collect();
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let others = found.iter().map(|found| found.path.as_str());
        let others = others.chain(gone.iter().map(String::as_str)).collect();
        let mut held = tracked.held_bytes_beside(&others);
        let mut contents = BTreeMap::new();
        while !wanted.is_empty() {
            let told = access.contents(&wanted).await?;
            let done = wanted.drain(..told.len().min(wanted.len()));
            let (mut new, mut sizes) = (BTreeMap::new(), Vec::new());
            for ((path, _), content) in done.zip(told) {
                let Some(content) = content else { continue };
                let hash = ContentHash::from_stored(hex::encode(Sha256::digest(&content)));
                let bytes = content.len() as u64;
                if !tracked.kept.contains_key(&hash) && !new.contains_key(&hash) {
                    if held + bytes > self.limits.bytes / 2 {
                        continue;
                    }
                    held += bytes;
                    sizes.push((hash.clone(), bytes));
                    new.insert(hash.clone(), content);
                }
                contents.insert(path.to_owned(), hash);
            }
            let rows = self.records.checkpoints();
            let new = new.into_iter().collect();
            rows.put_contents(&self.key, new, now()).await?;
            tracked.kept.extend(sizes);
        }
        Ok(contents)
    }
}

/// Returns the changes, and the entries whose metadata changed but whose content did not: only their new
/// metadata is remembered.
fn changes(
    tracked: &TrackedWorkspace,
    found: Vec<Found>,
    gone: Vec<String>,
    contents: &BTreeMap<String, ContentHash>,
) -> (Vec<FileChange>, Vec<(String, FileState)>) {
    let (mut changes, mut alike) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for found in found {
        if !seen.insert(found.path.clone()) {
            continue;
        }
        let content = contents.get(&found.path).cloned();
        let version = found
            .version
            .filter(|_| !found.is_fresh || content.is_none());
        let after = FileState {
            kind: found.kind,
            mode: found.mode,
            bytes: found.bytes,
            version: version.unwrap_or_default(),
            content,
            target: found.target,
        };
        let before = tracked.entries.get(&found.path).cloned();
        if before.as_ref().is_some_and(|before| before.is_like(&after)) {
            alike.push((found.path, after));
        } else {
            let after = Some(after);
            let path = found.path;
            changes.push(FileChange {
                path,
                before,
                after,
            });
        }
    }
    for path in gone {
        if let Some(before) = tracked.entries.get(&path).cloned() {
            let (before, after) = (Some(before), None);
            changes.push(FileChange {
                path,
                before,
                after,
            });
        }
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    (changes, alike)
}
