//! Provides the key that seals secrets, from the settings or from a file generated once in the data folder.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::super::Error;

/// The name of the file in the data folder.
pub(super) const FILE: &str = "secret.key";

/// The number of hex digits in a generated key.
const DIGITS: usize = 64;

/// The size of a key, in bytes.
pub(super) const KEY_BYTES: usize = 32;

/// The size of a key's id, in bytes.
pub(super) const KEY_ID_BYTES: usize = 4;

/// A key of 256 bits, with a short id that distinguishes keys without revealing them.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) bits: Zeroizing<[u8; KEY_BYTES]>,
    pub(super) id: [u8; KEY_ID_BYTES],
}

impl Key {
    /// Derives the key from a secret of any form.
    pub(super) fn derive(secret: &SecretString) -> Self {
        let mut digest = Sha256::new_with_prefix(b"sepal sealed secrets\0");
        digest.update(secret.expose_secret().as_bytes());
        Self::new(Zeroizing::new(digest.finalize().into()))
    }

    /// Draws a key.
    pub(super) fn draw() -> Self {
        Self::new(Zeroizing::new(rand::random()))
    }

    pub(super) fn new(bits: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let mut digest = Sha256::new_with_prefix(b"sepal name of a key\0");
        digest.update(bits.as_slice());
        let [a, b, c, d, ..] = <[u8; 32]>::from(digest.finalize());
        Self {
            bits,
            id: [a, b, c, d],
        }
    }

    pub(super) fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.bits).into())
    }
}

/// Reads the secret of the folder, which the first call generates. If several programs start at once, one
/// generates it and all read the same.
pub(super) fn of_folder(folder: &Path) -> Result<SecretString, Error> {
    let file = folder.join(FILE);
    if !file.exists() {
        draw(folder, &file).map_err(|error| Error::unusable(&file, "it cannot be made", error))?;
    }
    read(file)
}

/// Reads the secret of the folder, if it has one.
pub(super) fn existing(folder: &Path) -> Result<Option<SecretString>, Error> {
    let file = folder.join(FILE);
    file.exists().then(|| read(file)).transpose()
}

fn read(file: PathBuf) -> Result<SecretString, Error> {
    let unreadable = |error| Error::unusable(&file, "it cannot be read", error);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).map_err(unreadable)?;
    let text = Zeroizing::new(fs::read_to_string(&file).map_err(unreadable)?);
    let digits = text.trim();
    if digits.len() != DIGITS || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Error::Unusable {
            path: file,
            reason: "it holds no key of 64 hex digits",
            source: None,
        });
    }
    Ok(digits.into())
}

/// Creates the file atomically. The hard link fails if the file exists, so it never replaces a key.
fn draw(folder: &Path, file: &Path) -> std::io::Result<()> {
    let bits = Zeroizing::new(rand::random::<[u8; 32]>());
    let digits = Zeroizing::new(hex::encode(bits.as_slice()));
    let draft = folder.join(format!(".{FILE}.{:016x}", rand::random::<u64>()));
    let write = || {
        let mut draft = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        draft.write_all(digits.as_bytes())?;
        draft.write_all(b"\n")?;
        draft.sync_all()
    };
    let linked = write().and_then(|()| fs::hard_link(&draft, file));
    // A draft that stays behind holds an unused key.
    let _ = fs::remove_file(&draft);
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => fs::File::open(folder)?.sync_all(),
    }
}
