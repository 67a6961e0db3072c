//! Identifies the content of a bubblewrap sandbox, which has no image, by the hash of the bundled server.
//!
//! Everything else that is visible inside are the machine's own folders. No name could identify their
//! content, hashing gigabytes before each start is not feasible, and whoever can change them is root on this
//! machine, as is whoever can change the kernel below an image.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sha2::{Digest, Sha256};

use crate::ImageId;

/// Bytes of the server that are read at once.
const PIECE: usize = 64 << 10;

/// The hash of the bundled server, with the file metadata for which it is valid. Never locked across an
/// await.
#[derive(Debug, Default)]
pub(super) struct Identity(Mutex<Option<(Stamp, ImageId)>>);

/// File metadata that change whenever a file is written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    file: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            file: about.ino(),
            bytes: about.size(),
            // Unlike the modification time, the change time cannot be set.
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

impl Identity {
    /// Returns the hash of the last look-up.
    pub(super) fn known(&self) -> Option<ImageId> {
        self.lock().as_ref().map(|(_, id)| id.clone())
    }

    /// Returns the current hash; `None` if the server cannot be read. Reads the file only if it has changed.
    pub(super) fn look_up(&self, server: &Path) -> Option<ImageId> {
        let stamp = Stamp::of(&fs::metadata(server).ok()?);
        if let Some((of, id)) = &*self.lock()
            && *of == stamp
        {
            return Some(id.clone());
        }
        let id = hash(server).ok()?;
        *self.lock() = Some((stamp, id.clone()));
        Some(id)
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Stamp, ImageId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hashes the file in pieces: memory for the whole file would stay allocated while thousands of clients
/// start.
fn hash(file: &Path) -> io::Result<ImageId> {
    let (mut file, mut hash) = (File::open(file)?, Sha256::new());
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => hash.update(piece.get(..read).unwrap_or_default()),
        }
    }
    let hash = hex::encode(hash.finalize());
    Ok(ImageId::new(format!("sha256:{hash}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_server_has_another_identity_and_the_same_has_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (server, identity) = (folder.path().join("server"), Identity::default());
        assert_eq!(identity.look_up(&server), None);
        fs::write(&server, "one").unwrap();
        let one = identity.look_up(&server);
        assert!(one.is_some());
        assert_eq!(
            (identity.known(), identity.look_up(&server)),
            (one.clone(), one.clone())
        );
        // Replaces the file as a package manager does: another file takes the name.
        let next = folder.path().join("next");
        fs::write(&next, "two").unwrap();
        fs::rename(&next, &server).unwrap();
        assert_eq!(identity.known(), one);
        let two = identity.look_up(&server);
        assert_ne!(two, one);
        fs::write(&next, "one").unwrap();
        fs::rename(&next, &server).unwrap();
        assert_eq!(identity.look_up(&server), one);
    }
}
