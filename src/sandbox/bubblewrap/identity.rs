//! Which content stands for an image where there is none: that of the bundled server.
//!
//! The rest of what is seen inside are the machine's own folders. They have no name that could stand
//! for their content, hashing gigabytes before each start would be no help either, and whoever can
//! change them is root on this machine, as is whoever changes the kernel below an image.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sha2::{Digest, Sha256};

use crate::sandbox::ImageId;

/// Bytes of it that are read at once.
const PIECE: usize = 64 << 10;

/// The hash of the bundled server, with what tells whether it has to be computed again. Never
/// locked across an await.
#[derive(Debug, Default)]
pub(super) struct Identity(Mutex<Option<(Stamp, ImageId)>>);

/// What changes whenever a file is written or another one takes its name.
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
            // Unlike the time of the last write, nobody can set it.
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

impl Identity {
    /// As it was last looked up.
    pub(super) fn known(&self) -> Option<ImageId> {
        self.lock().as_ref().map(|(_, id)| id.clone())
    }

    /// As it is now; `None` where the server cannot be read. Reads the file only if it has changed.
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

/// Piece by piece: the room of the whole file would not be given back for as long as a start with
/// thousands of clients takes.
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
        // As a package manager does it: another file takes the name.
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
