//! Determines what a dry run changed: compares two scans of the copy, and the texts of changed files.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use similar::TextDiff;

use crate::agent::checkpoints::{Checkpoints, ScanResult};
use crate::domain::{ChangeCounts, Digest, FileKind};
use crate::jobs::Pool;
use crate::mcp::{Connection, FileAccess, FileError, Found};
use crate::servers::LiveConnection;
use crate::session::{DryRunChange, DryRunFile, NoDiff};

/// The time limit of one request to the server in a sandbox.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// The most paths listed one by one.
const MAX_FILES: usize = 50;
/// The largest file that is compared, in bytes: as much as the server in the sandbox reads at once.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The most bytes of files stored with a result.
pub(super) const MAX_KEPT_BYTES: u64 = 8 << 20;
/// The most bytes of one diff, and of all of them.
const MAX_DIFF_BYTES: usize = 16 * 1024;
const MAX_DIFFS_BYTES: usize = 48 * 1024;
/// The time limit of the search for the shortest diff of one file; after that a longer one is used.
const DIFF_LIMIT: Duration = Duration::from_millis(200);

/// The number of scans of the workspace until no file was changed a moment ago, and the pause between scans.
const SCANS: u32 = 4;
const BETWEEN_SCANS: Duration = Duration::from_millis(60);

/// The most dry runs whose files are compared at the same time.
static DIFFS: LazyLock<Pool> = LazyLock::new(|| Pool::new("diffs of dry runs", 2));

/// A scan of a workspace.
#[derive(Clone, Default)]
pub(super) struct WorkspaceScan {
    entries: BTreeMap<String, Found>,
}

/// A changed path.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) before: Option<Found>,
    pub(super) after: Option<Found>,
}

/// The contents of files, by path.
pub(super) type Contents = BTreeMap<String, Vec<u8>>;

impl WorkspaceScan {
    /// Scans the copy; `None` if that fails.
    pub(super) async fn at(connection: &Connection) -> Option<Self> {
        let scanned = FileAccess::new(connection, ANSWER_LIMIT).scan(None).await;
        noted(scanned).map(|scan| Self::of(scan.found))
    }

    /// Scans the session's own workspace: through its history if possible, because the server then reports
    /// only differences from the last scan. Repeats a few times while a file was changed a moment ago.
    pub(super) async fn of_live(
        checkpoints: &Checkpoints,
        opened: Result<LiveConnection, String>,
    ) -> Option<Self> {
        let held = match opened {
            Ok(held) => held,
            Err(error) => {
                tracing::warn!(
                    error,
                    "The files of a session are not looked at before a dry run"
                );
                return None;
            }
        };
        for _ in 1..SCANS {
            match checkpoints.see(&held.connection).await {
                ScanResult::Settled(found) => return Some(Self::of(found)),
                ScanResult::Fresh => {}
                ScanResult::Unknown => {
                    let scan = Self::at(&held.connection).await?;
                    if scan.is_settled() {
                        return Some(scan);
                    }
                }
            }
            tokio::time::sleep(BETWEEN_SCANS).await;
        }
        Self::at(&held.connection).await
    }

    /// Returns true if any later change to a file would change its version.
    pub(super) fn is_settled(&self) -> bool {
        !self.entries.values().any(|found| found.is_fresh)
    }

    /// Identifies exactly this state: any write to a file changes the digest.
    pub(super) fn digest(&self) -> Digest {
        let entries = self.entries.values().map(|found| {
            let Found {
                path,
                kind,
                mode,
                bytes,
                version,
                target,
                is_fresh: _,
            } = found;
            let entry = (path, kind, mode, bytes, version, target);
            format!("{entry:?}")
        });
        let all: Vec<String> = entries.collect();
        Digest::of_bytes(all.join("\n").as_bytes())
    }

    fn of(found: Vec<Found>) -> Self {
        let found = found.into_iter();
        Self {
            entries: found.map(|found| (found.path.clone(), found)).collect(),
        }
    }

    /// Returns the changes, by path. The copy is older than one tick of any file system's clock, so the
    /// version is enough to tell contents apart.
    pub(super) fn changes(mut self, after: Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (path, now) in after.entries {
            let was = self.entries.remove(&path);
            if was.as_ref().is_none_or(|was| !is_same(was, &now)) {
                changes.push(Change {
                    path,
                    before: was,
                    after: Some(now),
                });
            }
        }
        let gone = self.entries.into_iter().map(|(path, was)| Change {
            path,
            before: Some(was),
            after: None,
        });
        changes.extend(gone);
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        changes
    }
}

fn is_same(was: &Found, now: &Found) -> bool {
    (was.kind, was.mode, was.bytes, &was.version, &was.target)
        == (now.kind, now.mode, now.bytes, &now.version, &now.target)
}

/// Reads the changed files' contents in the copy: all of them if they are small enough to store, otherwise
/// those that are listed.
pub(super) async fn contents_after(changes: &[Change], copy: &Connection) -> Contents {
    let all = if bytes_of(changes) > MAX_KEPT_BYTES {
        MAX_FILES
    } else {
        changes.len()
    };
    let is = changes.iter().take(all);
    let is = is.filter_map(|change| change.after.as_ref());
    contents(copy, is.collect()).await
}

/// The bytes of the changed and created files.
pub(super) fn bytes_of(changes: &[Change]) -> u64 {
    let after = changes.iter().filter_map(|change| change.after.as_ref());
    after.map(|found| found.bytes).sum()
}

/// Describes the changes for people. The earlier contents are read from the session's own workspace, if they
/// are still unchanged there.
pub(super) async fn told(
    changes: &[Change],
    (live, own): (&WorkspaceScan, Option<&Connection>),
    after: &Arc<Contents>,
) -> (ChangeCounts, Vec<DryRunFile>) {
    let mut counts = ChangeCounts::default();
    let kind = |found: &Option<Found>| found.as_ref().map(|found| found.kind);
    for change in changes {
        counts.count(kind(&change.before), kind(&change.after));
    }
    let shown: Vec<Change> = changes.iter().take(MAX_FILES).cloned().collect();
    let was = shown.iter().filter_map(|change| {
        let now = live.entries.get(&change.path)?;
        let was = change.before.as_ref()?;
        // The live file has another version, because it is another file on the disk.
        ((was.kind, was.bytes) == (now.kind, now.bytes)).then_some(now)
    });
    let before = match own {
        Some(own) => contents(own, was.collect()).await,
        None => Contents::new(),
    };
    let after = Arc::clone(after);
    let files = DIFFS.run(move || files(shown, &before, &after));
    (counts, files.await.unwrap_or_default())
}

fn kind_of(change: &Change) -> DryRunChange {
    match (&change.before, &change.after) {
        (None, _) => DryRunChange::Created,
        (_, None) => DryRunChange::Deleted,
        (Some(_), Some(_)) => DryRunChange::Modified,
    }
}

/// Reads the contents of the files among these, as far as possible.
async fn contents(connection: &Connection, found: Vec<&Found>) -> Contents {
    let access = FileAccess::new(connection, ANSWER_LIMIT);
    let files = found.into_iter().filter(|found| is_comparable(found));
    let mut wanted: Vec<(&str, &str)> = files
        .map(|found| {
            let version = found.version.as_deref().unwrap_or_default();
            (found.path.as_str(), version)
        })
        .collect();
    let mut contents = Contents::new();
    while !wanted.is_empty() {
        let Some(told) = noted(access.contents(&wanted).await) else {
            break;
        };
        let done = wanted.drain(..told.len().min(wanted.len()));
        for ((path, _), content) in done.zip(told) {
            contents.extend(content.map(|content| (path.to_owned(), content)));
        }
    }
    contents
}

pub(super) fn is_comparable(found: &Found) -> bool {
    found.kind == FileKind::File && found.bytes <= MAX_FILE_BYTES
}

fn files(changes: Vec<Change>, before: &Contents, after: &Contents) -> Vec<DryRunFile> {
    let mut room = MAX_DIFFS_BYTES;
    let told = changes.into_iter().map(|change| {
        let (was, is) = (before.get(&change.path), after.get(&change.path));
        let compared = compared(&change, was, is).and_then(|diff| {
            let fits = diff.len() <= MAX_DIFF_BYTES.min(room);
            fits.then_some(diff).ok_or(NoDiff::TooLarge)
        });
        if let Ok(diff) = &compared {
            room -= diff.len();
        }
        DryRunFile {
            change: kind_of(&change),
            path: change.path,
            why: compared.as_ref().err().copied(),
            diff: compared.ok(),
        }
    });
    told.collect()
}

/// Returns the unified diff of a path.
fn compared(
    change: &Change,
    was: Option<&Vec<u8>>,
    is: Option<&Vec<u8>>,
) -> Result<String, NoDiff> {
    let sides = [&change.before, &change.after];
    let is_file = |found: &Found| found.kind == FileKind::File;
    if !sides.into_iter().flatten().any(is_file) {
        return Err(NoDiff::NoContent);
    }
    let was = side(change.before.as_ref(), was)?;
    let is = side(change.after.as_ref(), is)?;
    if was == is {
        return Err(NoDiff::NoContent);
    }
    let diff = TextDiff::configure()
        .timeout(DIFF_LIMIT)
        .diff_lines(was, is);
    Ok(diff.unified_diff().context_radius(3).to_string())
}

/// Returns the text of one side; empty if it is not a file.
fn side<'a>(found: Option<&Found>, content: Option<&'a Vec<u8>>) -> Result<&'a str, NoDiff> {
    let Some(found) = found.filter(|found| found.kind == FileKind::File) else {
        return Ok("");
    };
    if !is_comparable(found) {
        return Err(NoDiff::TooLarge);
    }
    let content = content.ok_or(NoDiff::Unread)?;
    let text = std::str::from_utf8(content).map_err(|_| NoDiff::Binary)?;
    (!text.contains('\0')).then_some(text).ok_or(NoDiff::Binary)
}

fn noted<T>(told: Result<T, FileError>) -> Option<T> {
    told.inspect_err(|error| tracing::warn!(%error, "A dry run does not see files"))
        .ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Change, WorkspaceScan, files};
    use crate::domain::FileKind;
    use crate::mcp::Found;
    use crate::session::{DryRunChange, NoDiff};

    fn file(path: &str, version: &str) -> Found {
        Found {
            path: path.to_owned(),
            kind: FileKind::File,
            mode: 0o644,
            bytes: 4,
            version: Some(version.to_owned()),
            is_fresh: false,
            target: None,
        }
    }

    fn scan(found: &[Found]) -> WorkspaceScan {
        let entries = found.iter().map(|it| (it.path.clone(), it.clone()));
        WorkspaceScan {
            entries: entries.collect(),
        }
    }

    #[test]
    fn what_differs_is_told_by_path() {
        let before = scan(&[file("a", "1"), file("b", "2"), file("c", "3")]);
        let after = scan(&[file("a", "1"), file("b", "9"), file("d", "4")]);
        let paths: Vec<String> = before
            .changes(after)
            .into_iter()
            .map(|it| it.path)
            .collect();
        assert_eq!(paths, ["b", "c", "d"]);
    }

    #[test]
    fn each_change_has_a_diff_or_says_why_it_has_none() {
        let change = |path: &str, was: bool, is: bool| Change {
            path: path.to_owned(),
            before: was.then(|| file(path, "1")),
            after: is.then(|| file(path, "2")),
        };
        let bytes = |path: &str, content: &[u8]| (path.to_owned(), content.to_vec());
        let before = BTreeMap::from([bytes("text", b"one\ntwo\n"), bytes("same", b"x")]);
        let after = BTreeMap::from([
            bytes("text", b"one\nTWO\n"),
            bytes("same", b"x"),
            bytes("new", b"hello\n"),
            bytes("data", b"\xff\0"),
            bytes("lost", b"y"),
            bytes("long", "line\n".repeat(20_000).as_bytes()),
        ]);
        let changes = vec![
            change("text", true, true),
            change("same", true, true),
            change("new", false, true),
            change("data", false, true),
            change("lost", true, true),
            change("long", false, true),
        ];
        let told = files(changes, &before, &after);
        let why: Vec<Option<NoDiff>> = told.iter().map(|file| file.why).collect();
        let none = [
            NoDiff::NoContent,
            NoDiff::Binary,
            NoDiff::Unread,
            NoDiff::TooLarge,
        ];
        let [same, data, lost, long] = none.map(Some);
        assert_eq!(why, [None, same, None, data, lost, long]);
        assert!(told[0].diff.as_deref().unwrap().contains("-two\n+TWO\n"));
        assert_eq!(told[2].change, DryRunChange::Created);
        assert!(told[2].diff.as_deref().unwrap().contains("+hello\n"));
    }
}
