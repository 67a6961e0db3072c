//! Writes the archive, a gzipped tar, atomically: `target` either holds the whole archive or does not exist.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::manifest::{KeyPlace, MAX_MANIFEST, Manifest, NAME, Part};
use super::{Error, parent, sync_folder};

/// The size limit of a file that the operator wrote, in bytes.
const MAX_SMALL: u64 = 16 << 20;

/// One file to be archived.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) content: Content,
}

/// The source of a file's content, which does not change while the archive is written.
pub(super) enum Content {
    File(PathBuf),
    Bytes(Zeroizing<Vec<u8>>),
}

impl Content {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            Self::File(path) => Box::new(File::open(path)?),
            Self::Bytes(bytes) => Box::new(bytes.as_slice()),
        })
    }
}

/// Reads a small file into memory, so that an edit during the backup cannot mix two versions. Returns `None`
/// if the file does not exist. A larger file is an error, because half of it would be useless: it is damaged,
/// or not the file that the operator meant.
pub(super) fn read(name: &'static str, path: &Path) -> Result<Option<Source>, Error> {
    let unreadable = || Error::disk(path, "cannot be read");
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(unreadable())?,
    };
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(MAX_SMALL + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable())?;
    if bytes.len() as u64 > MAX_SMALL {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            limit_mib: MAX_SMALL >> 20,
        });
    }
    let content = Content::Bytes(bytes);
    Ok(Some(Source {
        name: name.to_owned(),
        content,
    }))
}

/// Writes all sources into `target`, readable only by its owner.
pub(super) fn write(
    target: &Path,
    schema: i64,
    key: KeyPlace,
    sources: &[Source],
) -> Result<Manifest, Error> {
    let mut files = Vec::new();
    for source in sources {
        files.push(part(source).map_err(Error::disk(target, "cannot be prepared"))?);
    }
    let manifest = Manifest::new(schema, key, files);
    let text = serde_json::to_vec_pretty(&manifest)
        .map_err(|error| Error::disk(target, "cannot be prepared")(error.into()))?;
    if text.len() as u64 > MAX_MANIFEST {
        return Err(Error::TooMany {
            files: manifest.files.len(),
        });
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let draft = target.with_file_name(format!(".{name}.{:016x}", rand::random::<u64>()));
    let written =
        archive(&draft, &manifest, &text, sources).and_then(|()| fs::rename(&draft, target));
    if let Err(source) = written {
        // A partial archive is useless.
        let _ = fs::remove_file(&draft);
        return Err(Error::disk(target, "cannot be written")(source));
    }
    sync_folder(parent(target))?;
    Ok(manifest)
}

fn part(source: &Source) -> io::Result<Part> {
    let (mut content, mut digest) = (source.content.open()?, Sha256::new());
    let bytes = io::copy(&mut content, &mut Hashing(&mut digest))?;
    Ok(Part {
        name: source.name.clone(),
        bytes,
        sha256: hex::encode(digest.finalize()),
    })
}

fn archive(path: &Path, manifest: &Manifest, text: &[u8], sources: &[Source]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut archive = tar::Builder::new(GzEncoder::new(&mut file, Compression::default()));
    append(&mut archive, NAME, text.len() as u64, text)?;
    for (source, part) in sources.iter().zip(&manifest.files) {
        append(
            &mut archive,
            &source.name,
            part.bytes,
            source.content.open()?,
        )?;
    }
    archive.into_inner()?.finish()?.flush()?;
    file.sync_all()
}

fn append(
    archive: &mut tar::Builder<impl io::Write>,
    name: &str,
    bytes: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o600);
    header.set_size(bytes);
    let now = jiff::Timestamp::now().as_second();
    header.set_mtime(u64::try_from(now).unwrap_or(0));
    archive.append_data(&mut header, name, content)
}

/// A writer that feeds a digest.
pub(super) struct Hashing<'a>(pub(super) &'a mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::super::manifest;
    use super::{Content, MAX_SMALL, read};

    #[test]
    fn a_file_that_is_too_large_is_refused_by_name_and_never_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp-config.json");
        let file = File::create(&path).unwrap();
        file.set_len(MAX_SMALL).unwrap();
        let source = read(manifest::SERVERS, &path).unwrap().unwrap();
        let Content::Bytes(bytes) = source.content else {
            panic!("read into memory");
        };
        assert_eq!(bytes.len() as u64, MAX_SMALL);

        file.set_len(MAX_SMALL + 1).unwrap();
        let refused = read(manifest::SERVERS, &path).err().unwrap().to_string();
        for words in ["mcp-config.json` is larger than 16 MiB", "make it smaller"] {
            assert!(refused.contains(words), "{refused}");
        }
        let missing = read(manifest::SERVERS, &folder.path().join("missing"));
        assert!(missing.unwrap().is_none());
    }
}
