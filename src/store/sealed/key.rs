//! The key under which secrets lie: from the settings, or drawn once into the data folder.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::super::Error;

/// The file in the data folder.
pub(super) const FILE: &str = "secret.key";

/// Hex digits of a drawn key.
const DIGITS: usize = 64;

/// A key of 256 bits, and a short name that tells keys apart without leading back to one.
pub(super) struct Key {
    pub(super) bits: Zeroizing<[u8; 32]>,
    pub(super) id: [u8; 4],
}

impl Key {
    /// Derives the key from a secret of any form.
    pub(super) fn derive(secret: &SecretString) -> Self {
        let mut digest = Sha256::new_with_prefix(b"sepal sealed secrets\0");
        digest.update(secret.expose_secret().as_bytes());
        let bits = Zeroizing::new(<[u8; 32]>::from(digest.finalize()));
        let mut digest = Sha256::new_with_prefix(b"sepal name of a key\0");
        digest.update(bits.as_slice());
        let [a, b, c, d, ..] = <[u8; 32]>::from(digest.finalize());
        Self {
            bits,
            id: [a, b, c, d],
        }
    }
}

/// The secret of the folder, drawn at the first call. Of several programs that start at once, one
/// draws it and all read it.
pub(super) fn of_folder(folder: &Path) -> Result<SecretString, Error> {
    let file = folder.join(FILE);
    if !file.exists() {
        draw(folder, &file).map_err(|error| Error::unusable(&file, "it cannot be made", error))?;
    }
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

/// A whole file under its final name, or none: a link never replaces what is there.
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
    // A draft that stays behind holds a key that nothing uses.
    let _ = fs::remove_file(&draft);
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => fs::File::open(folder)?.sync_all(),
    }
}
