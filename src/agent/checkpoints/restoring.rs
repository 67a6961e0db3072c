//! The steps that bring an earlier state back: what is too much goes first, folders before what is in them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::CheckpointError;
use super::plan::{PlannedChange, UndoPlan};
use crate::domain::{ContentHash, FileKind, FileState, SessionKey};
use crate::mcp::{FileAccess, RestoreStep, Unrestored};
use crate::store::Records;

/// Bytes of contents in one request, about.
const MAX_BATCH_BYTES: usize = 1 << 20;
/// Steps of one request.
const MAX_BATCH: usize = 500;

/// A step whose content is not read yet.
enum Planned {
    Ready(RestoreStep),
    File {
        path: String,
        mode: u32,
        content: ContentHash,
    },
}

/// Does what is possible of a plan; what the server in the sandbox could not do.
pub(super) async fn restore(
    (records, key): (&Records, &SessionKey),
    plan: &UndoPlan,
    access: FileAccess<'_>,
) -> Result<Vec<Unrestored>, CheckpointError> {
    let mut failed = Vec::new();
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for step in steps(plan) {
        let step = match step {
            Planned::Ready(step) => step,
            Planned::File {
                path,
                mode,
                content,
            } => {
                let rows = records.checkpoints();
                let Some(content) = rows.content(key, &content).await? else {
                    continue;
                };
                bytes += content.len();
                let data = STANDARD.encode(content);
                RestoreStep::File { path, mode, data }
            }
        };
        batch.push(step);
        if bytes > MAX_BATCH_BYTES || batch.len() >= MAX_BATCH {
            failed.extend(access.restore(&batch).await?);
            batch.clear();
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        failed.extend(access.restore(&batch).await?);
    }
    Ok(failed)
}

/// How deep a path lies; bash's form escapes no separator.
fn depth(path: &str) -> usize {
    path.matches('/').count()
}

fn steps(plan: &UndoPlan) -> Vec<Planned> {
    let possible = plan.changes.iter().filter(|planned| planned.is_possible);
    let mut possible: Vec<&PlannedChange> = possible.collect();
    possible.sort_by_key(|planned| depth(&planned.change.path));
    let (mut folders, mut others, mut modes) = (Vec::new(), Vec::new(), Vec::new());
    let mut removals = Vec::new();
    for PlannedChange { change, .. } in possible {
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
    use crate::agent::checkpoints::{PlannedChange, UndoPlan};
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

    fn planned(path: &str, is: Option<FileKind>, was: Option<FileKind>) -> PlannedChange {
        PlannedChange {
            change: FileChange {
                path: path.to_owned(),
                before: is.map(state),
                after: was.map(state),
            },
            is_possible: true,
        }
    }

    #[test]
    fn the_deepest_goes_first_and_folders_come_before_what_is_in_them() {
        use FileKind::{File, Folder, Link};
        let plan = UndoPlan {
            number: 1,
            digest: String::new(),
            changes: vec![
                planned("a", Some(Folder), Some(File)),
                planned("a/b", Some(Folder), None),
                planned("a/b/c", Some(File), None),
                planned("d", None, Some(Folder)),
                planned("d/e", None, Some(Folder)),
                planned("d/e/f", None, Some(File)),
                planned("g", Some(Link), Some(Link)),
                planned("h", Some(File), Some(File)),
            ],
        };
        let told: Vec<String> = steps(&plan)
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
