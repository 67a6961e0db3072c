//! Encrypts secrets at rest with XChaCha20-Poly1305. The context of a value is authenticated, so a sealed
//! value opens only where it was put. The database alone is not enough to open it.
//!
//! An installation's values are sealed with a random key. That key is in the database itself, in the
//! installation's keyring, which is sealed with the operator's secret key. So a changed secret key seals one value anew.

mod key;

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::{AeadInOut as _, XNonce};
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::{DataDir, Error};
use key::{KEY_BYTES, Key};

/// The largest value that can be sealed, in bytes.
pub const MAX_BYTES: usize = 64 * 1024;

/// The version of the format that this program writes: version, id of the key, nonce, text, tag.
const VERSION: u8 = 1;

const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// The reason a sealed value cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// `auth.secret_key` or the key file in the data folder is another one.
    #[error("the secret key is not the one that sealed this")]
    OtherKey,
    /// The value was changed, or was copied from another place.
    #[error("the sealed value was changed or belongs elsewhere")]
    Changed,
    /// A newer version of the program sealed the value, or it is not a sealed value.
    #[error("the sealed value has a form that this version does not know")]
    OtherForm,
}

/// The secret keys of the settings.
#[derive(Debug, Clone, Default)]
pub struct SecretKeys {
    /// The key that seals the keyring; `None` = the one of the data folder.
    pub current: Option<SecretString>,
    /// The key that sealed the keyring before the current one.
    pub former: Option<SecretString>,
}

impl SecretKeys {
    /// The current key, and those that may have sealed the keyring before it. Without a key in the settings, the
    /// data folder has it (`secret.key`, readable only by its owner), generated once; with one, such a file holds
    /// a former key.
    pub(crate) fn resolve(
        &self,
        dir: &DataDir,
    ) -> Result<(SecretString, Vec<SecretString>), Error> {
        let Some(current) = self.current.clone() else {
            return Ok((
                key::of_folder(dir.path())?,
                self.former.iter().cloned().collect(),
            ));
        };
        let of_folder = key::existing(dir.path())?;
        Ok((
            current,
            self.former.iter().cloned().chain(of_folder).collect(),
        ))
    }
}

/// Seals and opens secrets; clones share the keys. The first key seals, and each opens what it sealed.
#[derive(Clone)]
pub struct Sealer(Arc<Keyring>);

struct Keyring {
    first: Key,
    others: Vec<Key>,
}

impl Keyring {
    fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer(…)")
    }
}

impl Sealer {
    /// Uses one key, derived from any text that is hard to guess.
    pub fn with_key(secret: &SecretString) -> Self {
        Self::new(Key::derive(secret), Vec::new())
    }

    /// Draws the keys of a new keyring: a random one, and after it those of the secret keys, which sealed the values of
    /// earlier releases.
    pub(crate) fn draw<'a>(secrets: impl Iterator<Item = &'a SecretString>) -> Self {
        Self::new(Key::draw(), secrets.map(Key::derive).collect())
    }

    fn new(first: Key, others: Vec<Key>) -> Self {
        Self(Arc::new(Keyring { first, others }))
    }

    /// Seals these keys for the keyring with another key.
    pub(crate) fn seal_keys(&self, context: &str, with: &Self) -> Result<String, Error> {
        let count = 1 + self.0.others.len();
        let mut bits = Zeroizing::new(Vec::with_capacity(count * KEY_BYTES));
        for key in self.0.all() {
            bits.extend_from_slice(key.bits.as_slice());
        }
        with.seal(context, &bits)
    }

    /// Opens keys that [`Self::seal_keys`] sealed with this key.
    pub(crate) fn open_keys(&self, context: &str, sealed: &str) -> Result<Self, Error> {
        let bits = self.open(context, sealed)?;
        let (keys, rest) = bits.as_chunks::<KEY_BYTES>();
        let mut keys = keys.iter().map(|bits| Key::new(Zeroizing::new(*bits)));
        match (keys.next(), rest) {
            (Some(first), []) => Ok(Self::new(first, keys.collect())),
            (Some(_) | None, _) => Err(Error::corrupt("keyring", "of another length")),
        }
    }

    /// Seals a value of at most [`MAX_BYTES`]. `context` names the place of the value, such as
    /// `provider/<scope>/<id>`, and is needed to open it.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Result<String, Error> {
        let too_large = Error::TooLarge {
            bytes: plain.len(),
            limit: MAX_BYTES,
        };
        if plain.len() > MAX_BYTES {
            return Err(too_large);
        }
        let nonce = rand::random::<[u8; NONCE_BYTES]>();
        // Reserves space for the tag, so that the buffer is not reallocated and leaves no copy of the
        // secret.
        let mut text = Zeroizing::new(Vec::with_capacity(plain.len() + TAG_BYTES));
        text.extend_from_slice(plain);
        let key = &self.0.first;
        key.cipher()
            .encrypt_in_place(&XNonce::from(nonce), context.as_bytes(), &mut *text)
            .map_err(|_| too_large)?;
        let sealed = [&[VERSION], &key.id[..], &nonce[..], &text[..]].concat();
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens a value that [`Self::seal`] sealed with the same context.
    pub fn open(&self, context: &str, sealed: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
        Ok(self.try_open(context, sealed)?)
    }

    /// Returns true if one of these keys sealed the value, so that it opens where it belongs.
    pub(crate) fn has_key_of(&self, sealed: &str) -> bool {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).unwrap_or_default();
        match sealed.split_first() {
            Some((&VERSION, rest)) => self.0.all().any(|key| rest.starts_with(&key.id)),
            Some(_) | None => false,
        }
    }

    fn try_open(&self, context: &str, sealed: &str) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        let sealed = URL_SAFE_NO_PAD
            .decode(sealed)
            .map_err(|_| UnsealError::OtherForm)?;
        let Some((&VERSION, rest)) = sealed.split_first() else {
            return Err(UnsealError::OtherForm);
        };
        let (id, rest) = rest
            .split_first_chunk::<4>()
            .ok_or(UnsealError::OtherForm)?;
        let (nonce, text) = rest
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(UnsealError::OtherForm)?;
        let key = self.0.all().find(|key| key.id == *id);
        let key = key.ok_or(UnsealError::OtherKey)?;
        let mut text = Zeroizing::new(text.to_vec());
        key.cipher()
            .decrypt_in_place(&XNonce::from(*nonce), context.as_bytes(), &mut *text)
            .map_err(|_| UnsealError::Changed)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
