//! The steps that bring an earlier state back: what is too much goes first, folders before what is in them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::CheckpointError;
use super::plan::UndoPlan;
use crate::domain::{ContentHash, FileChange, FileKind, FileState, SessionKey};
use crate::mcp::{FileAccess, FileError, RestoreStep, Unrestored};
use crate::store::Records;

/// Bytes of contents in one request as base64, about.
const MAX_BATCH_BYTES: usize = 1_400_000;
/// Steps of one request.
const MAX_BATCH: usize = 500;

/// A step whose content is not read yet.
pub(in crate::agent) enum Planned {
    Ready(RestoreStep),
    File {
        path: String,
        mode: u32,
        content: ContentHash,
    },
}

impl Planned {
    /// The step, with the content that it names.
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

/// Steps on their way to the server in the sandbox, so many in a request that its memory suffices.
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

    /// What the server in the sandbox could not do.
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

/// Does what is possible of a plan; what the server in the sandbox could not do.
pub(super) async fn restore(
    (records, key): (&Records, &SessionKey),
    plan: &UndoPlan,
    access: FileAccess<'_>,
) -> Result<Vec<Unrestored>, CheckpointError> {
    let possible = plan.changes.iter().filter(|planned| planned.is_possible);
    let mut restoring = Restoring::by(access);
    for step in steps(possible.map(|planned| &planned.change)) {
        let content = match &step {
            Planned::Ready(_) => None,
            Planned::File { content, .. } => records.checkpoints().content(key, content).await?,
        };
        if let Some(step) = step.with(|_| content) {
            restoring.take(step).await?;
        }
    }
    Ok(restoring.end().await?)
}

/// How deep a path lies; bash's form escapes no separator.
fn depth(path: &str) -> usize {
    path.matches('/').count()
}

/// The steps from the `before` of each change to its `after`, in an order in which they can be taken.
pub(in crate::agent) fn steps<'c>(
    changes: impl IntoIterator<Item = &'c FileChange>,
) -> Vec<Planned> {
    let mut changes: Vec<&FileChange> = changes.into_iter().collect();
    changes.sort_by_key(|change| depth(&change.path));
    let (mut folders, mut others, mut modes) = (Vec::new(), Vec::new(), Vec::new());
    let mut removals = Vec::new();
    for change in changes {
        let (path, is, was) = (&change.path, &change.before, &change.after);
        if is.as_ref().is_some_and(|is| has_to_go(is, was.as_ref())) {
            removals.push(Planned::Ready(RestoreStep::Remove { path: path.clone() }));
        }
        let Some(was) = was else { continue };
        match was.kind {
            FileKind::Folder => {
                if is.as_ref().is_none_or(|is| is.kind != FileKind::Folder) {
                    folders.push(Planned::Ready(RestoreStep::Folder { path: path.clone() }));
                }
                let (path, mode) = (path.clone(), was.mode);
                modes.push(Planned::Ready(RestoreStep::Mode { path, mode }));
            }
            FileKind::File => {
                let (path, mode) = (path.clone(), was.mode);
                others.extend(was.content.clone().map(|content| Planned::File {
                    path,
                    mode,
                    content,
                }));
            }
            FileKind::Link => {
                let target = was.target.clone().unwrap_or_default();
                let path = path.clone();
                others.push(Planned::Ready(RestoreStep::Link { path, target }));
            }
        }
    }
    // The deepest first: a folder is empty by then, and still open while what is in it is made.
    removals.reverse();
    modes.reverse();
    let steps = removals.into_iter().chain(folders);
    steps.chain(others).chain(modes).collect()
}

/// Whether what is there is deleted before anything else is put in its place. A file takes the place of a
/// file in one go.
fn has_to_go(is: &FileState, was: Option<&FileState>) -> bool {
    let Some(was) = was else { return true };
    is.kind != was.kind || was.kind == FileKind::Link
}

#[cfg(test)]
mod tests {
    use super::{Planned, steps};
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
                Planned::Ready(RestoreStep::Remove { path }) => format!("- {path}"),
                Planned::Ready(RestoreStep::Folder { path }) => format!("/ {path}"),
                Planned::Ready(RestoreStep::Link { path, .. }) => format!("> {path}"),
                Planned::Ready(RestoreStep::Mode { path, .. }) => format!("m {path}"),
                Planned::Ready(RestoreStep::File { path, .. }) | Planned::File { path, .. } => {
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
