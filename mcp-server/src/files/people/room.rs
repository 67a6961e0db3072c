//! How much of a workspace is used, looked at before a file is let in. What holds the limit is the
//! sandbox itself; this says so before anything has to be ended for it.

use std::{collections::HashSet, ffi::OsString};

use cap_std::fs::{Dir, MetadataExt};

use super::open_folder;

/// Entries that are counted; a workspace with more is counted in part.
const MOST_ENTRIES: usize = 200_000;
/// Levels that are looked into.
const MOST_LEVELS: usize = 64;
/// Bytes of the blocks in which sizes are told (stat(2)).
const BLOCK: u64 = 512;

/// Bytes on the disk of what is below that folder. What cannot be looked at is not counted.
pub(super) fn used(root: &Dir) -> u64 {
    let (mut bytes, mut entries) = (0_u64, 0);
    let mut linked = HashSet::new();
    let mut folders: Vec<Vec<OsString>> = vec![Vec::new()];
    while let Some(path) = folders.pop() {
        let Ok(folder) = open_folder(root, &path, false) else {
            continue;
        };
        let Ok(all) = folder.entries() else { continue };
        for entry in all.flatten() {
            entries += 1;
            if entries > MOST_ENTRIES {
                return bytes;
            }
            let name = entry.file_name();
            let Ok(found) = folder.symlink_metadata(&name) else {
                continue;
            };
            // A file with several names is there once.
            if found.is_file() && found.nlink() > 1 && !linked.insert(found.ino()) {
                continue;
            }
            bytes = bytes.saturating_add(found.blocks().saturating_mul(BLOCK));
            if found.is_dir() && path.len() < MOST_LEVELS {
                let mut inner = path.clone();
                inner.push(name);
                folders.push(inner);
            }
        }
    }
    bytes
}
