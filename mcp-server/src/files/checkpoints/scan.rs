//! Which files a workspace has, told as differences from the scan before: a look at each entry, and none at
//! any content.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use cap_std::fs::{Dir, Metadata, MetadataExt};
use serde::{Deserialize, Serialize};

use crate::files::people::{FileRefusal, Kind, kind_of, open_folder, version};
use crate::files::{Workspace, name};

/// Entries that a workspace may have: both sides hold the list in memory.
const MAX_ENTRIES: usize = 50_000;
/// Levels that are looked into, as many as where sizes are counted.
const MAX_LEVELS: usize = 64;
/// Bytes of an answer, about: the gateway reads 4 MiB of one message.
const MAX_PAGE_BYTES: usize = 1 << 20;
/// What an entry takes beside its path.
const ENTRY_BYTES: usize = 160;
/// The clock of file systems ticks at least this often. A file that was changed so shortly before the scan
/// may change again without another time.
const TICK: Duration = Duration::from_millis(50);

/// The request.
#[derive(Debug, Deserialize)]
pub(crate) struct ScanWorkspace {
    /// The `id` of the scan that the gateway knows; none, or one that is not known here = all is told.
    #[serde(default)]
    base: Option<String>,
    /// The `next` of the page before; none = the workspace is looked at anew.
    #[serde(default)]
    from: Option<usize>,
}

/// A page of what a scan found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScanPage {
    /// Names the scan.
    id: String,
    /// Whether all entries are told, and not the differences.
    is_whole: bool,
    entries: Vec<Entry>,
    /// Paths of what is gone; none where all entries are told.
    removed: Vec<String>,
    /// Where the next page begins; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// An entry of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    /// From the workspace down, in bash's form where it is no plain text.
    pub(super) path: String,
    pub(super) kind: &'static str,
    /// Who may read, write and run it, as in `chmod`.
    pub(super) mode: u32,
    /// Of a file.
    pub(super) bytes: u64,
    /// Which content a file has, as in the list of a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// Whether it was changed so lately that it may change again without another version.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_fresh: bool,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
}

/// The last scan.
#[derive(Default)]
pub(crate) struct Scans(Mutex<Last>);

#[derive(Default)]
struct Last {
    id: String,
    known: BTreeMap<PathBuf, Entry>,
    is_whole: bool,
    /// What the pages tell, in their order.
    told: Vec<PathBuf>,
}

pub(crate) fn scan_workspace(
    workspace: &Workspace,
    scans: &Scans,
    asked: &ScanWorkspace,
) -> Result<ScanPage, FileRefusal> {
    let mut last = scans.0.lock().unwrap_or_else(PoisonError::into_inner);
    let base = asked.base.as_deref();
    let Some(from) = asked.from else {
        let found = look(&workspace.root)?;
        last.replace(found, base);
        return Ok(last.page(0));
    };
    if base != Some(last.id.as_str()) {
        let text = "the scan was given up; begin it anew";
        return Err(FileRefusal::new(Kind::Changed, text));
    }
    Ok(last.page(from))
}

impl Last {
    fn replace(&mut self, found: BTreeMap<PathBuf, Entry>, base: Option<&str>) {
        self.is_whole = base != Some(self.id.as_str()) || self.id.is_empty();
        let before = std::mem::take(&mut self.known);
        self.told = if self.is_whole {
            found.keys().cloned().collect()
        } else {
            let is_other = |path: &Path, entry: &Entry| {
                entry.is_fresh || before.get(path).is_none_or(|before| before != entry)
            };
            let others = found.iter().filter(|(path, entry)| is_other(path, entry));
            let gone = before.keys().filter(|path| !found.contains_key(*path));
            others.map(|(path, _)| path).chain(gone).cloned().collect()
        };
        self.known = found;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        self.id = format!("{:x}", since.unwrap_or_default().as_nanos());
    }

    fn page(&self, from: usize) -> ScanPage {
        let mut page = ScanPage {
            id: self.id.clone(),
            is_whole: self.is_whole,
            entries: Vec::new(),
            removed: Vec::new(),
            next: None,
        };
        let mut bytes = 0;
        for (at, path) in self.told.iter().enumerate().skip(from) {
            if bytes > MAX_PAGE_BYTES {
                page.next = Some(at);
                break;
            }
            if let Some(entry) = self.known.get(path) {
                let target = entry.target.as_ref().map_or(0, String::len);
                bytes += ENTRY_BYTES + entry.path.len() + target;
                page.entries.push(entry.clone());
            } else {
                let shown = name::show(path.as_os_str());
                bytes += shown.len();
                page.removed.push(shown);
            }
        }
        page
    }
}

/// Every entry of the workspace. What vanishes meanwhile is left out, and so is what is neither file, folder
/// nor link.
fn look(root: &Dir) -> Result<BTreeMap<PathBuf, Entry>, FileRefusal> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let fresh_from = now.unwrap_or_default().saturating_sub(TICK);
    let mut found = BTreeMap::new();
    let mut folders: Vec<Vec<OsString>> = vec![Vec::new()];
    while let Some(parts) = folders.pop() {
        let Ok(folder) = open_folder(root, &parts, false) else {
            continue;
        };
        let Ok(entries) = folder.entries() else {
            continue;
        };
        let place: PathBuf = parts.iter().collect();
        for entry in entries.flatten() {
            let file_name = entry.file_name();
            let Ok(metadata) = folder.symlink_metadata(&file_name) else {
                continue;
            };
            let path = place.join(&file_name);
            let Some(entry) = describe(&folder, &file_name, &path, &metadata, fresh_from) else {
                continue;
            };
            if metadata.is_dir() {
                if parts.len() + 1 >= MAX_LEVELS {
                    let text = format!("its folders are nested deeper than {MAX_LEVELS} levels");
                    return Err(FileRefusal::new(Kind::Full, text));
                }
                let mut inner = parts.clone();
                inner.push(file_name);
                folders.push(inner);
            }
            found.insert(path, entry);
            if found.len() > MAX_ENTRIES {
                let text = format!("it has more than {MAX_ENTRIES} files and folders");
                return Err(FileRefusal::new(Kind::Full, text));
            }
        }
    }
    Ok(found)
}

fn describe(
    folder: &Dir,
    file_name: &OsStr,
    path: &Path,
    metadata: &Metadata,
    fresh_from: Duration,
) -> Option<Entry> {
    let kind = kind_of(metadata);
    if kind == "special" {
        return None;
    }
    let is_file = metadata.is_file();
    let target = metadata.is_symlink().then(|| {
        let target = folder.read_link_contents(file_name).unwrap_or_default();
        name::show(target.as_os_str())
    });
    Some(Entry {
        path: name::show(path.as_os_str()),
        kind,
        mode: if metadata.is_symlink() {
            0o777
        } else {
            metadata.mode() & 0o7777
        },
        bytes: if is_file { metadata.len() } else { 0 },
        version: is_file.then(|| version(metadata)),
        is_fresh: is_file && changed_at(metadata) >= fresh_from,
        target,
    })
}

/// When the file was changed last, since 1970; the future counts as such.
fn changed_at(metadata: &Metadata) -> Duration {
    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    let rest = u32::try_from(metadata.ctime_nsec()).unwrap_or(0);
    Duration::new(seconds, rest)
}
