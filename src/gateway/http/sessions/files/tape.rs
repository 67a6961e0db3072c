//! Writes a compressed tar archive piece by piece, and keeps only the bytes that were not taken yet.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

/// The size of an archive's blocks in bytes (POSIX, pax: ustar interchange format).
const BLOCK: usize = 512;
/// The longest name in a header, in bytes; a longer one is in an entry before it, as in GNU tar.
const MAX_NAME: usize = 100;

/// An archive that is being written.
pub(super) struct Tape(GzEncoder<Vec<u8>>);

impl Tape {
    pub(super) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Takes the compressed bytes that were written since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.0.get_mut())
    }

    /// The number of compressed bytes that were not taken yet.
    pub(super) fn len(&self) -> usize {
        self.0.get_ref().len()
    }

    pub(super) fn folder(&mut self, name: &[u8], modified_ms: i64) -> io::Result<()> {
        let mut name = name.to_vec();
        name.push(b'/');
        let mut header = header(EntryType::Directory, 0, modified_ms);
        header.set_mode(0o755);
        self.entry(header, &name)
    }

    /// Writes the header of a file; exactly `bytes` bytes of content have to follow.
    pub(super) fn file(&mut self, name: &[u8], bytes: u64, modified_ms: i64) -> io::Result<()> {
        self.entry(header(EntryType::Regular, bytes, modified_ms), name)
    }

    /// Writes content of the file whose header came last.
    pub(super) fn content(&mut self, data: &[u8]) -> io::Result<()> {
        self.0.write_all(data)
    }

    /// Ends a file of that many bytes: fills up its last block.
    pub(super) fn pad(&mut self, bytes: u64) -> io::Result<()> {
        let over = usize::try_from(bytes % BLOCK as u64).unwrap_or(0);
        if over == 0 {
            return Ok(());
        }
        self.zeros(BLOCK - over)
    }

    pub(super) fn zeros(&mut self, mut count: usize) -> io::Result<()> {
        let zeros = [0; BLOCK];
        while let Some(some) = zeros
            .get(..count.min(BLOCK))
            .filter(|some| !some.is_empty())
        {
            self.0.write_all(some)?;
            count -= some.len();
        }
        Ok(())
    }

    /// Ends the archive.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.zeros(2 * BLOCK)?;
        self.0.try_finish()
    }

    fn entry(&mut self, mut header: Header, name: &[u8]) -> io::Result<()> {
        if name.len() > MAX_NAME {
            let length = name.len() as u64 + 1;
            let mut before = self::header(EntryType::GNULongName, length, 0);
            write_name(&mut before, b"././@LongLink");
            before.set_cksum();
            self.0.write_all(before.as_bytes())?;
            self.0.write_all(name)?;
            self.zeros(1)?;
            self.pad(length)?;
        }
        write_name(&mut header, name);
        header.set_cksum();
        self.0.write_all(header.as_bytes())
    }
}

fn header(kind: EntryType, bytes: u64, modified_ms: i64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(u64::try_from(modified_ms / 1000).unwrap_or(0));
    header
}

/// Writes as much of the name as the header takes, byte for byte.
fn write_name(header: &mut Header, name: &[u8]) {
    if let Some(gnu) = header.as_gnu_mut() {
        for (place, byte) in gnu.name.iter_mut().zip(name) {
            *place = *byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::Tape;

    #[test]
    fn what_is_written_is_read_again_whatever_its_name() {
        let long = [b'x'; 300].to_vec();
        let names: Vec<Vec<u8>> = vec![
            b"w/a".to_vec(),
            b"w/-rf".to_vec(),
            b"w/two\nlines\xff".to_vec(),
            [b"w/".to_vec(), long].concat(),
        ];
        let mut tape = Tape::new();
        let mut written = Vec::new();
        tape.folder(b"w", 1_000).unwrap();
        for (number, name) in names.iter().enumerate() {
            let content = vec![b'c'; number * 511];
            let bytes = content.len() as u64;
            tape.file(name, bytes, 5_000).unwrap();
            tape.content(&content).unwrap();
            tape.pad(bytes).unwrap();
            written.extend(tape.take());
        }
        tape.finish().unwrap();
        written.extend(tape.take());
        let mut archive = tar::Archive::new(GzDecoder::new(&written[..]));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            found.push((entry.path_bytes().into_owned(), content.len()));
        }
        assert_eq!(found[0], (b"w/".to_vec(), 0));
        for (number, name) in names.into_iter().enumerate() {
            assert_eq!(found[number + 1], (name, number * 511));
        }
    }
}
