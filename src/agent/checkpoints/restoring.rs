//! Orders the steps that restore an earlier state: removals first, and folders before their contents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::CheckpointError;
use super::plan::UndoPlan;
use crate::domain::{ContentHash, FileChange, FileKind, FileState, SessionKey};
use crate::mcp::{FileAccess, FileError, RestoreStep, Unrestored};
use crate::store::Records;

/// The approximate most bytes of base64 contents in one request.
const MAX_BATCH_BYTES: usize = 1_400_000;
/// The most steps in one request.
const MAX_BATCH: usize = 500;

/// A step whose content may not be loaded yet.
pub(in crate::agent) enum PlannedStep {
    Ready(RestoreStep),
    File {
        path: String,
        mode: u32,
        content: ContentHash,
    },
}

impl PlannedStep {
    /// Returns the step with its content, or `None` if the content is not found.
    pub(in crate::agent) fn with(
        self,
        find: impl FnOnce(&str) -> Option<Vec<u8>>,
    ) -> Option<RestoreStep> {
        Some(match self {
            Self::Ready(step) => step,
            Self::File {
                path,
                mode,
                content,
            } => {
                let data = STANDARD.encode(find(content.as_str())?);
                RestoreStep::File { path, mode, data }
            }
        })
    }
}

/// Sends steps to the server in the sandbox, in batches that fit its memory.
pub(in crate::agent) struct Restoring<'c> {
    access: FileAccess<'c>,
    batch: Vec<RestoreStep>,
    bytes: usize,
    failed: Vec<Unrestored>,
}

impl<'c> Restoring<'c> {
    pub(in crate::agent) fn by(access: FileAccess<'c>) -> Self {
        Self {
            access,
            batch: Vec::new(),
            bytes: 0,
            failed: Vec::new(),
        }
    }

    pub(in crate::agent) async fn take(&mut self, step: RestoreStep) -> Result<(), FileError> {
        if let RestoreStep::File { data, .. } = &step {
            self.bytes += data.len();
        }
        self.batch.push(step);
        if self.bytes > MAX_BATCH_BYTES || self.batch.len() >= MAX_BATCH {
            self.send().await?;
        }
        Ok(())
    }

    /// Sends the rest, and returns the steps that the server in the sandbox could not carry out.
    pub(in crate::agent) async fn end(mut self) -> Result<Vec<Unrestored>, FileError> {
        if !self.batch.is_empty() {
            self.send().await?;
        }
        Ok(self.failed)
    }

    async fn send(&mut self) -> Result<(), FileError> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        self.failed.extend(self.access.restore(&batch).await?);
        Ok(())
    }
}

/// Carries out the possible changes of a plan, and returns those that the server in the sandbox could not
/// carry out.
pub(super) async fn restore(
    records: &Records,
    key: &SessionKey,
    plan: &UndoPlan,
    access: FileAccess<'_>,
) -> Result<Vec<Unrestored>, CheckpointError> {
    let possible = plan.changes.iter().filter(|planned| planned.is_possible);
    let mut restoring = Restoring::by(access);
    for step in steps(possible.map(|planned| &planned.change)) {
        let content = match &step {
            PlannedStep::Ready(_) => None,
            PlannedStep::File { content, .. } => {
                records.checkpoints().content(key, content).await?
            }
        };
        if let Some(step) = step.with(|_| content) {
            restoring.take(step).await?;
        }
    }
    Ok(restoring.end().await?)
}

/// The depth of a path. Bash's escaped form never escapes a slash.
fn depth(path: &str) -> usize {
    path.matches('/').count()
}

/// Returns the steps from the `before` of each change to its `after`, in an order that works.
pub(in crate::agent) fn steps<'c>(
    changes: impl IntoIterator<Item = &'c FileChange>,
) -> Vec<PlannedStep> {
    let mut changes: Vec<&FileChange> = changes.into_iter().collect();
    changes.sort_by_key(|change| depth(&change.path));
    let (mut folders, mut others, mut modes) = (Vec::new(), Vec::new(), Vec::new());
    let mut removals = Vec::new();
    for change in changes {
        let (path, is, was) = (&change.path, &change.before, &change.after);
        if is.as_ref().is_some_and(|is| has_to_go(is, was.as_ref())) {
            removals.push(PlannedStep::Ready(RestoreStep::Remove {
                path: path.clone(),
            }));
        }
        let Some(was) = was else { continue };
        match was.kind {
            FileKind::Folder => {
                if is.as_ref().is_none_or(|is| is.kind != FileKind::Folder) {
                    folders.push(PlannedStep::Ready(RestoreStep::Folder {
                        path: path.clone(),
                    }));
                }
                let (path, mode) = (path.clone(), was.mode);
                modes.push(PlannedStep::Ready(RestoreStep::Mode { path, mode }));
            }
            FileKind::File => {
                let (path, mode) = (path.clone(), was.mode);
                others.extend(was.content.clone().map(|content| PlannedStep::File {
                    path,
                    mode,
                    content,
                }));
            }
            FileKind::Link => {
                let target = was.target.clone().unwrap_or_default();
                let path = path.clone();
                others.push(PlannedStep::Ready(RestoreStep::Link { path, target }));
            }
        }
    }
    // Deepest first: a folder is empty when it is removed, and stays writable until its contents are made.
    removals.reverse();
    modes.reverse();
    let steps = removals.into_iter().chain(folders);
    steps.chain(others).chain(modes).collect()
}

/// Returns true if the existing entry has to be deleted first. A file replaces a file atomically.
fn has_to_go(is: &FileState, was: Option<&FileState>) -> bool {
    let Some(was) = was else { return true };
    is.kind != was.kind || was.kind == FileKind::Link
}

#[cfg(test)]
mod tests {
    use super::{PlannedStep, steps};
    use crate::domain::{ContentHash, FileChange, FileKind, FileState};
    use crate::mcp::RestoreStep;

    fn state(kind: FileKind) -> FileState {
        FileState {
            kind,
            mode: 0o700,
            bytes: 0,
            version: String::new(),
            content: Some(ContentHash::from_stored("c".to_owned())),
            target: Some("t".to_owned()),
        }
    }

    fn change(path: &str, is: Option<FileKind>, was: Option<FileKind>) -> FileChange {
        FileChange {
            path: path.to_owned(),
            before: is.map(state),
            after: was.map(state),
        }
    }

    #[test]
    fn the_deepest_goes_first_and_folders_come_before_what_is_in_them() {
        use FileKind::{File, Folder, Link};
        let changes = [
            change("a", Some(Folder), Some(File)),
            change("a/b", Some(Folder), None),
            change("a/b/c", Some(File), None),
            change("d", None, Some(Folder)),
            change("d/e", None, Some(Folder)),
            change("d/e/f", None, Some(File)),
            change("g", Some(Link), Some(Link)),
            change("h", Some(File), Some(File)),
        ];
        let told: Vec<String> = steps(&changes)
            .into_iter()
            .map(|step| match step {
                PlannedStep::Ready(RestoreStep::Remove { path }) => format!("- {path}"),
                PlannedStep::Ready(RestoreStep::Folder { path }) => format!("/ {path}"),
                PlannedStep::Ready(RestoreStep::Link { path, .. }) => format!("> {path}"),
                PlannedStep::Ready(RestoreStep::Mode { path, .. }) => format!("m {path}"),
                PlannedStep::Ready(RestoreStep::File { path, .. })
                | PlannedStep::File { path, .. } => {
                    format!("+ {path}")
                }
            })
            .collect();
        let expected = [
            "- a/b/c", "- a/b", "- g", "- a", "/ d", "/ d/e", "+ a", "> g", "+ h", "+ d/e/f",
            "m d/e", "m d",
        ];
        assert_eq!(told, expected);
    }
}
