//! Unpacks an untrusted archive. It accepts only regular files, in the order and with the size and content
//! that the manifest states. A name in the archive is never used as a path.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use flate2::bufread::GzDecoder;
use sha2::{Digest as _, Sha256};

use super::manifest::{self, MAX_MANIFEST, Manifest, ManifestError, Part};
use super::{Error, db};

type Entries<'a> = tar::Entries<'a, GzDecoder<BufReader<File>>>;
type Entry<'a> = tar::Entry<'a, GzDecoder<BufReader<File>>>;

/// Unpacks and verifies the archive at `path` into `folder`, which must be empty and private.
pub(super) fn unpack(path: &Path, folder: &Path) -> Result<Manifest, Error> {
    let file = File::open(path).map_err(Error::disk(path, "cannot be read"))?;
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    let reading = Reading { path, folder };
    // An archive whose start cannot be read is not a backup.
    let mut entries = archive
        .entries()
        .map_err(|_| reading.foreign("it is no tar archive"))?
        // Without `raw`, tar would read GNU long names into memory without a size limit.
        .raw(true);
    let manifest = reading.manifest(&mut entries)?;
    for part in &manifest.files {
        reading.part(&mut entries, part)?;
    }
    match entries.next() {
        None => {}
        Some(Ok(entry)) => {
            let reason = format!("its manifest does not name `{}`", shown(&entry));
            return Err(reading.foreign(reason));
        }
        Some(Err(error)) => return Err(reading.damaged(&error)),
    }
    // Reads to the end of the gzip stream, so that its checksum is verified.
    io::copy(&mut archive.into_inner(), &mut io::sink())
        .map_err(|error| reading.damaged(&error))?;
    Ok(manifest)
}

struct Reading<'a> {
    path: &'a Path,
    folder: &'a Path,
}

impl Reading<'_> {
    fn manifest(&self, entries: &mut Entries<'_>) -> Result<Manifest, Error> {
        let first = entries.next().and_then(Result::ok);
        let first = first.ok_or_else(|| self.foreign("it is no tar archive within gzip"))?;
        if !is_plain(&first, manifest::NAME) || first.size() > MAX_MANIFEST {
            let reason = format!("it begins with `{}`", shown(&first));
            return Err(self.foreign(reason));
        }
        let mut text = Vec::new();
        first
            .take(MAX_MANIFEST)
            .read_to_end(&mut text)
            .map_err(|error| self.damaged(&error))?;
        Manifest::read(&text, db::newest_schema()).map_err(|unfit| match unfit {
            ManifestError::Foreign(reason) => self.foreign(reason),
            ManifestError::Newer(program) => Error::Newer { program },
        })
    }

    fn part(&self, entries: &mut Entries<'_>, part: &Part) -> Result<(), Error> {
        let mut entry = match entries.next() {
            Some(entry) => entry.map_err(|error| self.damaged(&error))?,
            None => return Err(self.damaged(&format!("`{}` is missing", part.name))),
        };
        if !is_plain(&entry, &part.name) {
            let reason = format!("`{}` stands in the place of `{}`", shown(&entry), part.name);
            return Err(self.foreign(reason));
        }
        if entry.size() != part.bytes {
            return Err(self.damaged(&format!("`{}` has another size", part.name)));
        }
        let to = self.folder.join(manifest::file_name(&part.name));
        let unwritten = || Error::disk(&to, "cannot be written");
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&to)
            .map_err(unwritten())?;
        let digest = self.copy(&mut entry, &mut file, unwritten)?;
        file.sync_all().map_err(unwritten())?;
        if digest != part.sha256 {
            return Err(self.damaged(&format!("`{}` is not what was kept", part.name)));
        }
        Ok(())
    }

    /// Copies the content and returns its SHA-256 digest in hex. A read error means a damaged archive; a
    /// write error is a disk error.
    fn copy<E: FnOnce(io::Error) -> Error>(
        &self,
        from: &mut impl Read,
        to: &mut impl io::Write,
        unwritten: impl Fn() -> E,
    ) -> Result<String, Error> {
        let (mut digest, mut piece) = (Sha256::new(), vec![0; 64 * 1024]);
        loop {
            let read = from
                .read(&mut piece)
                .map_err(|error| self.damaged(&error))?;
            let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
                return Ok(hex::encode(digest.finalize()));
            };
            digest.update(bytes);
            to.write_all(bytes).map_err(unwritten())?;
        }
    }

    fn foreign(&self, reason: impl Into<String>) -> Error {
        Error::Foreign {
            path: self.path.to_owned(),
            reason: reason.into(),
        }
    }

    fn damaged(&self, reason: &impl ToString) -> Error {
        Error::Damaged {
            path: self.path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

/// Returns true if the entry is a regular file with exactly this name: no link, folder or device.
fn is_plain(entry: &Entry<'_>, name: &str) -> bool {
    entry.header().entry_type() == tar::EntryType::Regular
        && *entry.path_bytes() == *name.as_bytes()
}

/// An entry's name, shortened and escaped for display.
fn shown(entry: &Entry<'_>) -> String {
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    name.chars()
        .take(80)
        .collect::<String>()
        .escape_debug()
        .to_string()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::unpack;

    #[test]
    fn a_long_name_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.tar.gz");
        let mut header = tar::Header::new_gnu();
        header.set_path("@LongLink").unwrap();
        header.set_entry_type(tar::EntryType::GNULongName);
        // The parser must refuse the header before it reads the content, so the content is absent.
        header.set_size(1 << 40);
        header.set_cksum();
        let mut encoder = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        std::io::Write::write_all(&mut encoder, header.as_bytes()).unwrap();
        encoder.finish().unwrap();
        let stage = folder.path().join("stage");
        fs::create_dir(&stage).unwrap();
        let refused = unpack(&path, &stage).unwrap_err().to_string();
        assert!(refused.contains("begins with `@LongLink`"), "{refused}");
    }
}
