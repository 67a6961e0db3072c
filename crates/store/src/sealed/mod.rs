//! Encrypts secrets at rest with XChaCha20-Poly1305. The context of a value is authenticated, so a sealed
//! value opens only where it was put. The database alone is not enough to open it.
//!
//! An installation's values are sealed with a random key. That key is in the database itself, in the
//! installation's keyring, which is sealed with the operator's secret key. So a changed secret key seals one value anew.
//! With that a new random key is drawn, which seals from a later start on, when all gateways have it.

mod key;

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::{AeadInOut as _, XNonce};
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::{DataDir, Error};
use key::{KEY_BYTES, KEY_ID_BYTES, Key};

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
        let former = self.former.iter().cloned().chain(of_folder(dir));
        Ok((current, former.collect()))
    }

    /// Every secret key that is given or in the data folder, without generating one.
    pub(crate) fn known(&self, dir: &DataDir) -> Vec<SecretString> {
        let given = self.current.iter().chain(&self.former).cloned();
        given.chain(of_folder(dir)).collect()
    }
}

/// The secret key of the folder, if it has a readable one: a former key may be gone.
fn of_folder(dir: &DataDir) -> Option<SecretString> {
    key::existing(dir.path()).unwrap_or_else(|error| {
        tracing::warn!(
            ?error,
            "The former secret key in the data folder is not used"
        );
        None
    })
}

/// Seals and opens secrets; clones share the keys. One key seals, and each opens what it sealed.
#[derive(Clone)]
pub struct Sealer(Arc<Keyring>);

struct Keyring {
    /// The key that seals.
    sealing: Key,
    /// Keys that sealed earlier.
    others: Vec<Key>,
    /// The key that seals next.
    next: Option<Key>,
}

impl Keyring {
    fn all(&self) -> impl Iterator<Item = &Key> {
        let before = std::iter::once(&self.sealing).chain(&self.others);
        before.chain(&self.next)
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
        Self::new(Key::derive(secret), Vec::new(), None)
    }

    /// Draws the keys of a new keyring: a random one, and after it those of the secret keys, which sealed the values of
    /// earlier releases.
    pub(crate) fn draw<'a>(secrets: impl Iterator<Item = &'a SecretString>) -> Self {
        Self::new(Key::draw(), secrets.map(Key::derive).collect(), None)
    }

    fn new(sealing: Key, others: Vec<Key>, next: Option<Key>) -> Self {
        Self(Arc::new(Keyring {
            sealing,
            others,
            next,
        }))
    }

    /// These keys with one that seals next.
    pub(crate) fn with_next(&self) -> Self {
        let Keyring {
            sealing,
            others,
            next,
        } = &*self.0;
        let next = next.clone().unwrap_or_else(Key::draw);
        Self::new(sealing.clone(), others.clone(), Some(next))
    }

    /// These keys, of which the one that seals next seals now; `None` if there is none.
    pub(crate) fn advanced(&self) -> Option<Self> {
        let next = self.0.next.clone()?;
        let others = std::iter::once(&self.0.sealing).chain(&self.0.others);
        Some(Self::new(next, others.cloned().collect(), None))
    }

    /// Seals these keys for the keyring with another key.
    pub(crate) fn seal_keys(&self, context: &str, with: &Self) -> Result<String, Error> {
        let count = self.0.all().count();
        let mut bits = Zeroizing::new(Vec::with_capacity(1 + count * KEY_BYTES));
        bits.push(u8::from(self.0.next.is_some()));
        for key in self.0.all() {
            bits.extend_from_slice(key.bits.as_slice());
        }
        with.seal(context, &bits)
    }

    /// Opens keys that [`Self::seal_keys`] sealed with this key.
    pub(crate) fn open_keys(&self, context: &str, sealed: &str) -> Result<Self, Error> {
        let bits = self.open(context, sealed)?;
        let corrupt = || Error::corrupt("keyring", "of another form");
        let (has_next, bits) = bits.split_first().ok_or_else(corrupt)?;
        let (keys, []) = bits.as_chunks::<KEY_BYTES>() else {
            return Err(corrupt());
        };
        let mut keys = keys.iter().map(|bits| Key::new(Zeroizing::new(*bits)));
        let sealing = keys.next().ok_or_else(corrupt)?;
        let next = match has_next {
            0 => None,
            1 => Some(keys.next_back().ok_or_else(corrupt)?),
            _ => return Err(corrupt()),
        };
        Ok(Self::new(sealing, keys.collect(), next))
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
        let key = &self.0.sealing;
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

    /// Returns true for a sealed value that another key sealed, so that it opens nowhere.
    pub(crate) fn is_closed(&self, text: &str) -> bool {
        let sealed = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        match sealed.split_first() {
            Some((&VERSION, rest)) if rest.len() >= KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES => {
                !self.0.all().any(|key| rest.starts_with(&key.id))
            }
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
            .split_first_chunk::<KEY_ID_BYTES>()
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
