//! Reads the file of a bundle, a ZIP archive. All of it is checked before any of it is unpacked, and its
//! unpacked size is bounded, whatever its headers claim.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, Read, Write};

use zip::ZipArchive;

use super::path::{checked, shown};
use sepal_mcp::config::EntryProblem;
use sepal_skills::repeated;

/// The file that describes how a bundle is started.
pub(super) const MANIFEST: &str = "manifest.json";
/// The most entries of a bundle: a Node program with its dependencies has some thousands.
pub(super) const MAX_ENTRIES: usize = 50_000;
/// The highest ratio of a bundle's unpacked size to its file's size. Honest bundles stay below ten.
pub(super) const MAX_RATIO: u64 = 100;
/// The unpacked size in bytes up to which the ratio does not count.
const RATIO_FROM: u64 = 8 << 20;
/// The most bytes of the manifest.
const MAX_MANIFEST: u64 = 1 << 20;
/// The most problems that are reported.
const MAX_PROBLEMS: usize = 20;

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Packed {
    /// Its index in the archive.
    at: usize,
    bytes: u64,
    is_executable: bool,
}

/// A bundle's file that was checked completely.
pub(super) struct Archive<'f> {
    zip: ZipArchive<Cursor<&'f [u8]>>,
    files: BTreeMap<String, Packed>,
}

impl<'f> Archive<'f> {
    /// Opens and checks a file, or returns its problems. `most` is the limit of its unpacked size, in bytes.
    pub(super) fn read(file: &'f [u8], most: u64) -> Result<Self, Vec<EntryProblem>> {
        if !file.starts_with(b"PK\x03\x04") {
            let text = "this is no bundle: an `.mcpb` file is a ZIP archive with a `manifest.json`; \
                        pack the server with `npx @anthropic-ai/mcpb pack`";
            return Err(vec![EntryProblem::new("file", text)]);
        }
        let zip = ZipArchive::new(Cursor::new(file)).map_err(|error| vec![broken(&error)])?;
        if zip.len() > MAX_ENTRIES {
            let text =
                format!("it has more than {MAX_ENTRIES} entries: leave out what it does not need");
            return Err(vec![EntryProblem::new("file", text)]);
        }
        let mut archive = Self {
            zip,
            files: BTreeMap::new(),
        };
        let mut problems = archive.repeated(file);
        let most = most.min(RATIO_FROM.max((file.len() as u64).saturating_mul(MAX_RATIO)));
        let mut room = most;
        for at in 0..archive.zip.len() {
            if problems.len() >= MAX_PROBLEMS {
                break;
            }
            match archive.take_in(at, &mut room) {
                Ok(()) => {}
                Err(Wrong::Entry(problem)) => problems.push(problem),
                Err(Wrong::TooLarge) => {
                    let text = format!(
                        "it unpacks to more than {} MiB, or to more than {MAX_RATIO} times its size: \
                         leave out what it does not need; an operator can raise \
                         `sandbox.packages.size_mb`",
                        most >> 20
                    );
                    problems.push(EntryProblem::new("file", text));
                    break;
                }
            }
        }
        problems.extend(archive.collisions());
        problems.truncate(MAX_PROBLEMS);
        if problems.is_empty() {
            return Ok(archive);
        }
        Err(problems)
    }

    fn repeated(&self, file: &[u8]) -> Vec<EntryProblem> {
        let start = usize::try_from(self.zip.central_directory_start()).unwrap_or(usize::MAX);
        let directory = file.get(start..).unwrap_or_default();
        let names = repeated(directory, self.zip.len());
        let twice = |name: Vec<u8>| {
            let name = String::from_utf8_lossy(&name).into_owned();
            about(&name, "two files have this name: pack the folder again")
        };
        names.into_iter().map(twice).collect()
    }

    /// Checks an entry and reads all of its content.
    fn take_in(&mut self, at: usize, room: &mut u64) -> Result<(), Wrong> {
        let entry = self.zip.by_index_data(at).map_err(|it| broken(&it))?;
        let name = entry.name_raw().to_vec();
        let (is_dir, is_link) = (entry.is_dir(), entry.is_symlink());
        let (is_encrypted, mode) = (entry.encrypted(), entry.unix_mode().unwrap_or(0));
        drop(entry);
        let lossy = String::from_utf8_lossy(&name).into_owned();
        let path = checked(&name).map_err(|text| about(&lossy, text))?;
        let kind = mode & 0o170_000;
        let refuse = |text: &str| Err(Wrong::Entry(about(&path, text)));
        if is_link {
            return refuse("it is a link: pack the file itself in its place");
        }
        if is_dir {
            return Ok(());
        }
        if kind != 0 && kind != 0o100_000 {
            return refuse("it is a device, a pipe or a socket: a bundle has files alone");
        }
        if is_encrypted {
            return refuse("it is encrypted: pack the bundle without a password");
        }
        let mut content = self.zip.by_index(at).map_err(|it| broken(&it))?;
        let told = content.size();
        let mut content = (&mut content).take(room.saturating_add(1));
        let bytes = io::copy(&mut content, &mut io::sink());
        let bytes =
            bytes.map_err(|error| about(&path, &format!("it cannot be unpacked: {error}")))?;
        *room = room.checked_sub(bytes).ok_or(Wrong::TooLarge)?;
        if bytes != told {
            return refuse("it has another size than the archive says: pack the folder again");
        }
        let file = Packed {
            at,
            bytes,
            is_executable: mode & 0o111 != 0,
        };
        self.files.insert(path, file);
        Ok(())
    }

    /// Returns the problems of paths that are both a file and a folder, and of names that differ only in
    /// case, which some file systems do not distinguish.
    fn collisions(&self) -> Vec<EntryProblem> {
        let mut found = Vec::new();
        let mut folded = BTreeSet::new();
        for path in self.files.keys() {
            if !folded.insert(path.to_lowercase()) {
                let text = "another file has the same name but for capitals: rename one of them";
                found.push(about(path, text));
            }
            let mut above = path.as_str();
            while let Some((folder, _)) = above.rsplit_once('/') {
                above = folder;
                if self.files.contains_key(above) {
                    let text = "it is a file and a folder at once: pack the folder again";
                    found.push(about(above, text));
                }
            }
        }
        found
    }

    /// Returns the number of files, and their total size in bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        let bytes = self.files.values().map(|file| file.bytes).sum();
        (self.files.len(), bytes)
    }

    pub(super) fn has_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    pub(super) fn has_folder(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let mut after = self.files.range(below.clone()..);
        after
            .next()
            .is_some_and(|(next, _)| next.starts_with(&below))
    }

    /// Returns the content of the manifest.
    pub(super) fn manifest(&mut self) -> Result<Vec<u8>, EntryProblem> {
        let Some(file) = self.files.get(MANIFEST) else {
            let text = "it has no `manifest.json` at its top: pack the server with `npx \
                        @anthropic-ai/mcpb pack`, in the folder that holds the manifest";
            return Err(EntryProblem::new("manifest", text));
        };
        if file.bytes > MAX_MANIFEST {
            let text = "it has more than 1 MiB: shorten its texts";
            return Err(EntryProblem::new("manifest", text));
        }
        self.head(MANIFEST, MAX_MANIFEST)
    }

    /// Returns the first `most` bytes of a file; empty if there is no such file.
    pub(super) fn head(&mut self, path: &str, most: u64) -> Result<Vec<u8>, EntryProblem> {
        let Some(file) = self.files.get(path) else {
            return Ok(Vec::new());
        };
        let content = self.zip.by_index(file.at).map_err(|it| broken(&it))?;
        let mut bytes = Vec::new();
        let read = content.take(most).read_to_end(&mut bytes);
        read.map_err(|error| about(path, &format!("it cannot be unpacked: {error}")))?;
        Ok(bytes)
    }

    /// Writes all files as a tar archive. `entry_point` is made executable, whatever its mode in the bundle.
    pub(super) fn write_tar(&mut self, to: impl Write, entry_point: &str) -> io::Result<()> {
        let mut tar = tar::Builder::new(to);
        for (path, file) in &self.files {
            let content = self.zip.by_index(file.at).map_err(io::Error::other)?;
            append(&mut tar, path, file, entry_point, content)?;
        }
        tar.finish()
    }

    /// Returns the size of that archive in bytes.
    pub(super) fn tar_bytes(&self, entry_point: &str) -> io::Result<u64> {
        let mut count = Count(0);
        let mut tar = tar::Builder::new(&mut count);
        for (path, file) in &self.files {
            append(
                &mut tar,
                path,
                file,
                entry_point,
                io::repeat(0).take(file.bytes),
            )?;
        }
        tar.finish()?;
        drop(tar);
        Ok(count.0)
    }
}

fn append(
    tar: &mut tar::Builder<impl Write>,
    path: &str,
    file: &Packed,
    entry_point: &str,
    content: impl Read,
) -> io::Result<()> {
    let is_run = file.is_executable || path == entry_point;
    let mut header = tar::Header::new_gnu();
    header.set_size(file.bytes);
    header.set_mode(if is_run { 0o755 } else { 0o644 });
    header.set_mtime(0);
    // Never more than the header says.
    tar.append_data(&mut header, path, content.take(file.bytes))
}

/// A writer that counts its bytes.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The problem of an entry of the archive.
enum Wrong {
    Entry(EntryProblem),
    /// The entries up to this one exceed the limit of the unpacked size.
    TooLarge,
}

impl From<EntryProblem> for Wrong {
    fn from(problem: EntryProblem) -> Self {
        Self::Entry(problem)
    }
}

fn about(path: &str, text: &str) -> EntryProblem {
    EntryProblem::new("file", format!("`{}`: {text}", shown(path)))
}

fn broken(error: &dyn std::fmt::Display) -> EntryProblem {
    let text = format!(
        "the archive cannot be read ({}): fetch or pack the bundle again",
        shown(&error.to_string())
    );
    EntryProblem::new("file", text)
}
