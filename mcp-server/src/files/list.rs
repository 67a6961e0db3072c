//! `list_files`: a bounded, sorted look into folders.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Component, PathBuf},
};

use cap_std::fs::{Dir, FileType};
use rustix::io::Errno;

use super::{Workspace, name};
use crate::{failure::Failure, tools::ListFiles};

/// The most entries that one call returns.
const MAX_ENTRIES: usize = 1000;
/// The most text that one call returns, far below what the other side takes as one line.
const MAX_BYTES: usize = 200 * 1024;
/// The most entries of one folder that are looked at before sorting.
const MAX_FOLDER_ENTRIES: usize = 20_000;
/// The deepest look.
const MAX_DEPTH: u32 = 16;

pub(crate) fn list(workspace: &Workspace, arguments: &ListFiles) -> Result<Vec<String>, Failure> {
    let path = arguments.path.as_str();
    let folder = workspace
        .root
        .open_dir(workspace.resolve(path)?.path)
        .map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOTDIR) => Failure::new(format!(
                "`{path}` is not a folder. Use read_file for a file."
            )),
            _ => Failure::of(path, &error),
        })?;
    // Every line is a path that the other tools accept as it stands.
    let prefix: PathBuf = workspace
        .named(path)?
        .components()
        .filter(|part| *part != Component::CurDir)
        .collect();
    let mut listing = Listing::default();
    listing
        .visit(
            &folder,
            prefix.as_os_str(),
            arguments.depth.clamp(1, MAX_DEPTH),
        )
        .map_err(|error| Failure::of(path, &error))?;
    Ok(listing.texts(path))
}

#[derive(Default)]
struct Listing {
    lines: Vec<String>,
    /// Bytes of the lines.
    bytes: usize,
    left_out: usize,
    /// Some folder was too large even to count.
    is_partial: bool,
}

impl Listing {
    fn visit(&mut self, folder: &Dir, prefix: &OsStr, depth: u32) -> io::Result<()> {
        let mut entries: Vec<(OsString, FileType)> = Vec::new();
        for entry in folder.entries()? {
            if entries.len() == MAX_FOLDER_ENTRIES {
                self.is_partial = true;
                break;
            }
            // An entry may vanish while we look.
            if let Ok(entry) = entry
                && let Ok(kind) = entry.file_type()
            {
                entries.push((entry.file_name(), kind));
            }
        }
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        for (file_name, kind) in entries {
            // What comes after the first that is left out is left out too.
            if self.left_out > 0 {
                self.left_out += 1;
                continue;
            }
            let shown = joined(prefix, &file_name);
            let line = line(folder, &file_name, kind, &name::show(&shown));
            if self.lines.len() == MAX_ENTRIES || self.bytes + line.len() > MAX_BYTES {
                self.left_out += 1;
                continue;
            }
            self.bytes += line.len() + 1;
            self.lines.push(line);
            if kind.is_dir()
                && depth > 1
                && let Ok(inner) = folder.open_dir(&file_name)
            {
                // A folder that may not be read, or vanished, is listed without its content.
                let _ = self.visit(&inner, &shown, depth - 1);
            }
        }
        Ok(())
    }

    fn texts(self, path: &str) -> Vec<String> {
        if self.lines.is_empty() {
            return vec![String::new(), format!("[`{path}` is empty.]")];
        }
        let mut texts = vec![self.lines.join("\n")];
        if self.is_partial {
            texts.push("[More entries were left out. Use execute_command with `find`.]".to_owned());
        } else if self.left_out > 0 {
            texts.push(format!(
                "[{} more entries were left out. List a folder of it, or use a smaller depth.]",
                self.left_out
            ));
        }
        texts
    }
}

fn joined(prefix: &OsStr, name: &OsStr) -> OsString {
    let mut path = OsString::from(prefix);
    if !prefix.is_empty() {
        path.push("/");
    }
    path.push(name);
    path
}

fn line(folder: &Dir, file_name: &OsStr, kind: FileType, shown: &str) -> String {
    if kind.is_dir() {
        format!("{shown}/")
    } else if kind.is_symlink() {
        let target = folder.read_link_contents(file_name).unwrap_or_default();
        format!("{shown} -> {}", name::show(target.as_os_str()))
    } else if kind.is_file() {
        match folder.symlink_metadata(file_name) {
            Ok(found) => format!("{shown} ({} bytes)", found.len()),
            Err(_) => shown.to_owned(),
        }
    } else {
        format!("{shown} (special file)")
    }
}
