//! A folder, in pages: however many entries it has, one page of them is held in memory.

use std::{
    collections::BinaryHeap,
    ffi::{OsStr, OsString},
    io,
};

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

use super::{FileRefusal, Kind, kind_of, modified_ms, open_folder, parts, version};
use crate::files::{Workspace, name};

/// Entries of a page.
const MAX_ENTRIES: usize = 1000;

/// The request.
#[derive(Debug, Deserialize)]
pub(crate) struct ListFolder {
    /// The folder; empty for the workspace itself.
    path: String,
    /// The `next` of the page before.
    #[serde(default)]
    after: Option<String>,
    limit: usize,
}

/// A page: folders first, each kind in the order of the bytes of its names.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    entries: Vec<Entry>,
    /// How many the folder has.
    total: u64,
    /// Where the next page begins; `None` at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    /// In bash's form where it is no plain text.
    name: String,
    kind: &'static str,
    bytes: u64,
    modified_ms: i64,
    /// Of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

/// How entries are sorted: whether it is no folder, and its name.
type Key = (bool, OsString);

pub(crate) fn list_folder(workspace: &Workspace, asked: &ListFolder) -> Result<Page, FileRefusal> {
    let path = asked.path.as_str();
    let failed = |error: io::Error| FileRefusal::of(path, &error);
    let folder = open_folder(&workspace.root, &parts(path)?, false).map_err(failed)?;
    let after = asked.after.as_deref().map(read_key).transpose()?;
    let limit = asked.limit.clamp(1, MAX_ENTRIES);
    let (total, mut keys) = first_keys(&folder, after.as_ref(), limit + 1).map_err(failed)?;
    let next = (keys.len() > limit).then(|| {
        keys.truncate(limit);
        keys.last().map(write_key)
    });
    // What vanishes while we look is left out.
    let entries = keys.iter().filter_map(|(_, name)| entry(&folder, name));
    Ok(Page {
        entries: entries.collect(),
        total,
        next: next.flatten(),
    })
}

/// How many there are, and the first of those after `after`, sorted.
fn first_keys(folder: &Dir, after: Option<&Key>, most: usize) -> io::Result<(u64, Vec<Key>)> {
    let mut total = 0;
    let mut first: BinaryHeap<Key> = BinaryHeap::with_capacity(most + 1);
    for entry in folder.entries()? {
        let entry = entry?;
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        total += 1;
        let key = (!kind.is_dir(), entry.file_name());
        let is_wanted = after.is_none_or(|after| key > *after);
        if is_wanted && (first.len() < most || first.peek().is_some_and(|last| key < *last)) {
            first.push(key);
            if first.len() > most {
                first.pop();
            }
        }
    }
    Ok((total, first.into_sorted_vec()))
}

fn entry(folder: &Dir, file_name: &OsStr) -> Option<Entry> {
    let found = folder.symlink_metadata(file_name).ok()?;
    let target = found.is_symlink().then(|| {
        let target = folder.read_link_contents(file_name).unwrap_or_default();
        name::show(target.as_os_str())
    });
    Some(Entry {
        name: name::show(file_name),
        kind: kind_of(&found),
        bytes: if found.is_file() { found.len() } else { 0 },
        modified_ms: modified_ms(&found),
        version: found.is_file().then(|| version(&found)),
        target,
    })
}

fn write_key((is_other, file_name): &Key) -> String {
    let kind = if *is_other { 'f' } else { 'd' };
    format!("{kind}{}", name::show(file_name))
}

fn read_key(text: &str) -> Result<Key, FileRefusal> {
    let wrong = || FileRefusal::new(Kind::Invalid, "`after` is not the `next` of a page");
    let mut letters = text.chars();
    let is_other = match letters.next() {
        Some('f') => true,
        Some('d') => false,
        Some(_) | None => return Err(wrong()),
    };
    Ok((is_other, name::parse(letters.as_str()).into_os_string()))
}
