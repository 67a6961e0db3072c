//! Reads uploaded skills: a ZIP or tar.gz archive of a skill's folder, or only its `SKILL.md`. The unpacked
//! size is bounded, whatever the archive claims, and nothing is written to disk.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};

use flate2::read::GzDecoder;
use zip::ZipArchive;

use super::bundle::{Bundle, SKILL_FILE};
use super::path;
use super::problem::Problem;

/// The size limits of one skill.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most bytes of all files together.
    pub bytes: u64,
    /// The most files.
    pub files: usize,
}

/// The most archive entries per allowed file: folders, and files that packers add.
const ENTRIES_PER_FILE: usize = 4;
/// Bytes of a tar archive besides the contents, per entry.
const TAR_ROOM: u64 = 2_048;
/// Files that macOS packers add.
const LEFT_OUT: [&str; 2] = ["__MACOSX", ".DS_Store"];
/// The most problems reported for one archive.
const MAX_PROBLEMS: usize = 50;

/// An uploaded skill.
#[derive(Debug)]
pub struct Upload {
    pub bundle: Bundle,
    /// The folder that it was packed in, which must have the skill's name.
    pub folder: Option<String>,
}

/// Reads an upload, or reports everything that is wrong with it.
pub fn read_upload(file: &[u8], limits: Limits) -> Result<Upload, Vec<Problem>> {
    let mut unpacking = Unpacking::new(limits);
    let read = if file.starts_with(b"PK\x03\x04") || file.starts_with(b"PK\x05\x06") {
        unpacking.zip(file)
    } else if file.starts_with(&[0x1f, 0x8b]) {
        unpacking.tar(file)
    } else {
        if file.len() as u64 > limits.bytes {
            return Err(vec![unpacking.too_large(SKILL_FILE)]);
        }
        let bundle = Bundle::of_document(file.to_vec());
        return Ok(Upload {
            bundle,
            folder: None,
        });
    };
    match read {
        Ok(()) => unpacking.finish(),
        // Reading stopped early, so nothing is known about the rest.
        Err(problem) => {
            unpacking.problems.push(problem);
            Err(unpacking.problems)
        }
    }
}

/// Unpacks an archive entry by entry.
struct Unpacking {
    limits: Limits,
    /// The bytes left of the limit.
    room: u64,
    entries: usize,
    names: BTreeSet<String>,
    bundle: Bundle,
    problems: Vec<Problem>,
}

impl Unpacking {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            room: limits.bytes,
            entries: 0,
            names: BTreeSet::new(),
            bundle: Bundle::default(),
            problems: Vec::new(),
        }
    }

    fn too_large(&self, at: &str) -> Problem {
        let most = self.limits.bytes / 1024;
        let message = format!("the files have more than {most} KiB together");
        let remedy = "Leave out what the skill does not need; an operator can raise \
                      `agent.skills.max_kb`.";
        Problem::new(at, message, remedy)
    }

    fn too_many(&self) -> Problem {
        let message = format!("there are more than {} files", self.limits.files);
        let remedy = "Leave some of them out; an operator can raise `agent.skills.max_files`.";
        Problem::new("archive", message, remedy)
    }

    /// Counts an entry; an error stops the reading.
    fn count(&mut self) -> Result<(), Problem> {
        self.entries += 1;
        let most = self.limits.files.saturating_mul(ENTRIES_PER_FILE);
        if self.entries > most || self.problems.len() >= MAX_PROBLEMS {
            return Err(self.too_many());
        }
        Ok(())
    }

    /// Returns the path of an entry, if it is wanted; records what is wrong with it.
    fn path(&mut self, name: &[u8]) -> Option<String> {
        // The archive's own folder, as `tar -C folder .` writes it.
        if name == b"." || name == b"./" {
            return None;
        }
        match path::checked(name) {
            Ok(path) => {
                let is_left_out = path.split('/').any(|part| LEFT_OUT.contains(&part));
                (!is_left_out).then_some(path)
            }
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    /// Reads the content of a file.
    fn file(&mut self, path: String, content: impl Read, is_run: bool) -> Result<(), Problem> {
        if self.names.len() >= self.limits.files {
            return Err(self.too_many());
        }
        let mut bytes = Vec::new();
        // Read one byte more, to detect a larger file.
        let mut content = content.take(self.room.saturating_add(1));
        let read = content.read_to_end(&mut bytes);
        let read = read.map_err(|error| broken(path::shown(&path), &error))?;
        let left = self.room.checked_sub(read as u64);
        self.room = left.ok_or_else(|| self.too_large(&path::shown(&path)))?;
        if !self.names.insert(path.clone()) {
            let remedy = "Pack the folder again, with one file of each name.";
            self.problems
                .push(Problem::new(path, "two files have this name", remedy));
            return Ok(());
        }
        self.bundle.insert(path, bytes, is_run);
        Ok(())
    }

    fn refuse_kind(&mut self, path: String, kind: &str) {
        let remedy = "A skill has files and folders alone; put the content itself there.";
        self.problems
            .push(Problem::new(path, format!("it is {kind}"), remedy));
    }

    fn zip(&mut self, file: &[u8]) -> Result<(), Problem> {
        let wrong = |error: zip::result::ZipError| broken("archive".to_owned(), &error);
        let mut archive = ZipArchive::new(Cursor::new(file)).map_err(wrong)?;
        if archive.len() > self.limits.files.saturating_mul(ENTRIES_PER_FILE) {
            return Err(self.too_many());
        }
        let start = usize::try_from(archive.central_directory_start()).unwrap_or(usize::MAX);
        // The ZIP reader keeps only one entry of each name, without reporting the others.
        for name in repeated(file.get(start..).unwrap_or_default(), archive.len()) {
            let remedy = "Pack the folder again, with one file of each name.";
            let at = path::shown(&String::from_utf8_lossy(&name));
            self.problems
                .push(Problem::new(at, "two files have this name", remedy));
        }
        for at in 0..archive.len() {
            self.count()?;
            let entry = archive.by_index_data(at).map_err(wrong)?;
            let name = entry.name_raw().to_vec();
            let (is_dir, is_link) = (entry.is_dir(), entry.is_symlink());
            let mode = entry.unix_mode().unwrap_or(0);
            let is_encrypted = entry.encrypted();
            let Some(path) = self.path(&name) else {
                continue;
            };
            let kind = mode & 0o170_000;
            if is_link {
                self.refuse_kind(path, "a link");
            } else if is_dir {
                // Folders follow from the files in them.
            } else if kind != 0 && kind != 0o100_000 {
                self.refuse_kind(path, "a device, a pipe or a socket");
            } else if is_encrypted {
                self.refuse_kind(path, "encrypted");
            } else {
                let packed = archive.by_index(at).map_err(wrong)?;
                self.file(path, packed, mode & 0o111 != 0)?;
            }
        }
        Ok(())
    }

    fn tar(&mut self, file: &[u8]) -> Result<(), Problem> {
        let wrong = |error: std::io::Error| broken("archive".to_owned(), &error);
        let entries = self.limits.files.saturating_mul(ENTRIES_PER_FILE) as u64;
        let most = self
            .limits
            .bytes
            .saturating_add(entries.saturating_mul(TAR_ROOM));
        let mut archive = tar::Archive::new(GzDecoder::new(file).take(most));
        for entry in archive.entries().map_err(wrong)? {
            self.count()?;
            let entry = entry.map_err(wrong)?;
            let kind = entry.header().entry_type();
            if kind == tar::EntryType::XGlobalHeader {
                continue;
            }
            let name = entry.path_bytes().into_owned();
            let mode = entry.header().mode().unwrap_or(0);
            let Some(path) = self.path(&name) else {
                continue;
            };
            if kind.is_symlink() || kind.is_hard_link() {
                self.refuse_kind(path, "a link");
            } else if kind.is_dir() {
                // Folders follow from the files in them.
            } else if kind.is_file() || kind.is_contiguous() {
                self.file(path, entry, mode & 0o111 != 0)?;
            } else {
                self.refuse_kind(path, "a device, a pipe or a file of another kind");
            }
        }
        Ok(())
    }

    /// Returns the skill, with paths relative to its folder if there is one.
    fn finish(mut self) -> Result<Upload, Vec<Problem>> {
        for path in &self.names {
            let mut above = path.as_str();
            while let Some((folder, _)) = above.rsplit_once('/') {
                above = folder;
                if self.names.contains(above) {
                    let message = "it is a file and a folder at once";
                    let remedy = "Pack the folder again, with one of the two.";
                    self.problems
                        .push(Problem::new(path::shown(above), message, remedy));
                }
            }
        }
        let folder = match self.folder() {
            Ok(folder) => folder,
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        };
        if !self.problems.is_empty() {
            self.problems.truncate(MAX_PROBLEMS);
            return Err(self.problems);
        }
        let Some(folder) = folder else {
            return Ok(Upload {
                bundle: self.bundle,
                folder: None,
            });
        };
        let mut bundle = Bundle::default();
        for (path, file) in self.bundle.files() {
            if let Some(below) = path.strip_prefix(&format!("{folder}/")) {
                bundle.insert(below.to_owned(), file.content.clone(), file.is_executable);
            }
        }
        Ok(Upload {
            bundle,
            folder: Some(folder),
        })
    }

    /// Returns the one folder that contains everything; `None` = `SKILL.md` is at the top.
    fn folder(&self) -> Result<Option<String>, Problem> {
        if self.names.contains(SKILL_FILE) || self.names.is_empty() {
            return Ok(None);
        }
        let tops = self.names.iter();
        let tops: BTreeSet<&str> = tops
            .map(|path| path.split('/').next().unwrap_or(path))
            .collect();
        let with_skill = |top: &&&str| self.names.contains(&format!("{top}/{SKILL_FILE}"));
        let skills: Vec<&&str> = tops.iter().filter(with_skill).collect();
        match skills.as_slice() {
            [one] if tops.len() == 1 => Ok(Some((**one).to_owned())),
            [] => {
                let message = "it is neither at the top nor in the one folder of the archive";
                let remedy = "Pack the skill's folder, with `SKILL.md` at its top.";
                Err(Problem::new(SKILL_FILE, message, remedy))
            }
            _ => {
                let message = "the archive holds more than one folder";
                let remedy = "Upload one skill at a time: the folder that holds its `SKILL.md`.";
                Err(Problem::new("archive", message, remedy))
            }
        }
    }
}

fn broken(at: String, error: &dyn std::fmt::Display) -> Problem {
    let said: String = error.to_string().chars().take(200).collect();
    let message = format!("it cannot be unpacked: {}", path::shown(&said));
    Problem::new(at, message, "Pack the folder again, as ZIP or tar.gz.")
}

/// Returns names that occur twice in the directory of a ZIP archive: the reader keeps one of each.
pub fn repeated(mut directory: &[u8], entries: usize) -> Vec<Vec<u8>> {
    const HEADER: usize = 46;
    let mut names = BTreeSet::new();
    let mut repeated = BTreeSet::new();
    // The reader's count excludes the repeated ones.
    for _ in 0..entries.saturating_mul(2).saturating_add(1) {
        let Some(header) = directory.get(..HEADER) else {
            break;
        };
        if !header.starts_with(b"PK\x01\x02") {
            break;
        }
        let length = |at: usize| {
            let bytes = header.get(at..at + 2).and_then(|it| it.try_into().ok());
            usize::from(u16::from_le_bytes(bytes.unwrap_or_default()))
        };
        let (name, more) = (length(28), length(30) + length(32));
        let Some(found) = directory.get(HEADER..HEADER + name) else {
            break;
        };
        if !names.insert(found.to_vec()) {
            repeated.insert(found.to_vec());
        }
        directory = directory.get(HEADER + name + more..).unwrap_or_default();
    }
    repeated.into_iter().collect()
}
