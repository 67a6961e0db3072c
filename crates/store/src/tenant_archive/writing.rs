//! Writes the file of an export, atomically: the target either holds the whole export or does not exist.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::format::MAX_LINE;
use super::{Error, FILES, broken};

/// The size at which collected lines are handed over, in bytes.
const PIECE: usize = 256 << 10;

/// A message to the writing thread.
enum Piece {
    Lines(Vec<u8>),
    /// The last lines.
    End(Vec<u8>),
}

/// Takes the lines of an export, and hashes them.
pub(super) struct LineWriter {
    pieces: mpsc::Sender<Piece>,
    lines: Vec<u8>,
    digest: Sha256,
}

/// A complete export beside its target. It is removed unless it is put in place.
pub(super) struct Draft(Option<PathBuf>);

impl Draft {
    /// Gives the export its name.
    pub(super) async fn place(self, target: &Path) -> Result<(), Error> {
        let to = target.to_owned();
        let placed = FILES.run(move || self.rename(&to)).await;
        placed.map_err(broken(target))?
    }

    fn rename(mut self, target: &Path) -> Result<(), Error> {
        if target.exists() {
            return Err(Error::InTheWay(target.to_owned()));
        }
        if let Some(draft) = self.0.take() {
            let renamed = fs::rename(&draft, target);
            renamed.map_err(Error::disk(target, "cannot be written"))?;
        }
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(Error::disk(folder, "cannot be written"))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Half an export is useless.
            let _ = fs::remove_file(path);
        }
    }
}

/// Begins a file for `target`. The future writes it, and gives `None` if the lines ended without a last one.
pub(super) fn begin(
    target: &Path,
) -> (
    LineWriter,
    impl Future<Output = Result<Option<Draft>, Error>>,
) {
    let (pieces, taken) = mpsc::channel(2);
    let writer = LineWriter {
        pieces,
        lines: Vec::new(),
        digest: Sha256::new(),
    };
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let draft = target.with_file_name(format!(".{name}.{:016x}", rand::random::<u64>()));
    let target = target.to_owned();
    let writing = async move {
        let written = FILES.run(move || write(draft, taken)).await;
        let written = written.map_err(broken(&target))?;
        written.map_err(Error::disk(&target, "cannot be written"))
    };
    (writer, writing)
}

fn write(path: PathBuf, mut pieces: mpsc::Receiver<Piece>) -> io::Result<Option<Draft>> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    let draft = Draft(Some(path));
    let mut encoder = GzEncoder::new(file, Compression::default());
    loop {
        match pieces.blocking_recv() {
            Some(Piece::Lines(lines)) => encoder.write_all(&lines)?,
            Some(Piece::End(lines)) => {
                encoder.write_all(&lines)?;
                encoder.finish()?.sync_all()?;
                return Ok(Some(draft));
            }
            None => return Ok(None),
        }
    }
}

impl LineWriter {
    /// Adds a value as one line.
    pub(super) async fn value(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let line = serde_json::to_vec(value);
        let line = line.map_err(|error| crate::Error::corrupt("export", error.to_string()))?;
        self.line(&line).await
    }

    /// Adds a line.
    pub(super) async fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        if line.len() > MAX_LINE {
            let (bytes, limit) = (line.len(), MAX_LINE);
            return Err(crate::Error::TooLarge { bytes, limit }.into());
        }
        for bytes in [line, b"\n"] {
            self.digest.update(bytes);
            self.lines.extend_from_slice(bytes);
        }
        if self.lines.len() >= PIECE {
            let lines = std::mem::take(&mut self.lines);
            return self.send(Piece::Lines(lines)).await;
        }
        Ok(())
    }

    /// The digest of the lines so far, in hex.
    pub(super) fn digest(&self) -> String {
        hex::encode(self.digest.clone().finalize())
    }

    /// Ends the file.
    pub(super) async fn finish(mut self) -> Result<(), Error> {
        let lines = std::mem::take(&mut self.lines);
        self.send(Piece::End(lines)).await
    }

    /// The receiver ends only after an error of its own, which counts instead of this one.
    async fn send(&self, piece: Piece) -> Result<(), Error> {
        let sent = self.pieces.send(piece).await;
        sent.map_err(|_| crate::Error::NoAnswer.into())
    }
}
