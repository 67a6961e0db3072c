//! Holds the files of one skill, and packs them into the archive in which they are stored and downloaded.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read as _, Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::document::{Document, read_document};
use super::problem::Problem;

/// The most bytes that a stored skill unpacks to: far more than one may have when it is added.
const MAX_UNPACKED: u64 = 256 << 20;

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleFile {
    pub content: Vec<u8>,
    /// True if its owner may execute it, in the sandbox.
    pub is_executable: bool,
}

/// The listed facts about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileFacts {
    /// The path below the skill's folder.
    pub path: String,
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_executable: bool,
}

/// The files of one skill, by their paths below its folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    files: BTreeMap<String, BundleFile>,
}

impl Bundle {
    /// Makes a bundle of only a `SKILL.md`.
    pub fn of_document(document: Vec<u8>) -> Self {
        let mut bundle = Self::default();
        bundle.insert(SKILL_FILE.to_owned(), document, false);
        bundle
    }

    /// Adds a file. Returns false if there was one with that path.
    pub(super) fn insert(&mut self, path: String, content: Vec<u8>, is_executable: bool) -> bool {
        let file = BundleFile {
            content,
            is_executable,
        };
        self.files.insert(path, file).is_none()
    }

    /// All files, by their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &BundleFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Returns the file with that path.
    pub fn file(&self, path: &str) -> Option<&BundleFile> {
        self.files.get(path)
    }

    /// Returns the listed facts about all files.
    pub fn facts(&self) -> Vec<FileFacts> {
        let facts = self.files().map(|(path, file)| FileFacts {
            path: path.to_owned(),
            bytes: file.content.len() as u64,
            is_executable: file.is_executable,
        });
        facts.collect()
    }

    /// SHA-256 of paths, modes and contents, in hex; it does not depend on the archive format.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for (path, file) in self.files() {
            hash.update((path.len() as u64).to_be_bytes());
            hash.update(path);
            hash.update([u8::from(file.is_executable)]);
            hash.update((file.content.len() as u64).to_be_bytes());
            hash.update(&file.content);
        }
        hex::encode(hash.finalize())
    }

    /// Reads and checks its `SKILL.md`.
    pub fn document(&self, folder: Option<&str>) -> Result<Document, Vec<Problem>> {
        let missing = || {
            let remedy = "Pack the skill's folder, with `SKILL.md` at its top.";
            vec![Problem::new(SKILL_FILE, "there is no such file", remedy)]
        };
        let file = self.file(SKILL_FILE).ok_or_else(missing)?;
        read_document(&file.content, folder)
    }

    /// Packs all files into a ZIP archive, below a folder of that name, if there is one.
    pub fn to_zip(&self, folder: Option<&str>) -> Result<Vec<u8>, zip::result::ZipError> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, file) in self.files() {
            let mode = if file.is_executable { 0o755 } else { 0o644 };
            let options = SimpleFileOptions::default().unix_permissions(mode);
            let path = folder.map_or_else(|| path.to_owned(), |folder| format!("{folder}/{path}"));
            archive.start_file(path, options)?;
            archive.write_all(&file.content)?;
        }
        Ok(archive.finish()?.into_inner())
    }

    /// Reads an archive that [`Self::to_zip`] wrote without a folder.
    pub fn from_zip(archive: &[u8]) -> Result<Self, zip::result::ZipError> {
        let mut archive = ZipArchive::new(Cursor::new(archive))?;
        let mut bundle = Self::default();
        let mut left = MAX_UNPACKED;
        for at in 0..archive.len() {
            let mut file = archive.by_index(at)?;
            let path = file.name()?.into_owned();
            let is_executable = file.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
            let mut content = Vec::new();
            // One more byte tells a larger file.
            let bytes = file.by_ref().take(left + 1).read_to_end(&mut content)?;
            left = left
                .checked_sub(bytes as u64)
                .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
            bundle.insert(path, content, is_executable);
        }
        Ok(bundle)
    }
}
