//! Encrypts secrets at rest with XChaCha20-Poly1305. The context of a value is authenticated, so a sealed
//! value opens only where it was put. The database alone is not enough to open it.

mod key;

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::{AeadInOut as _, KeyInit as _, XChaCha20Poly1305, XNonce};
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::{DataDir, Error};
use key::Key;

/// The largest value that can be sealed, in bytes.
pub const MAX_BYTES: usize = 64 * 1024;

/// The version of the format that this program writes: version, id of the key, nonce, text, tag.
const VERSION: u8 = 1;

const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// The reason a sealed value cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// `auth.secret_key` or the key file in the data folder has changed.
    #[error("the secret key is not the one that sealed this")]
    OtherKey,
    /// The value was changed, or was copied from another place.
    #[error("the sealed value was changed or belongs elsewhere")]
    Changed,
    /// A newer version of the program sealed the value, or it is not a sealed value.
    #[error("the sealed value has a form that this version does not know")]
    OtherForm,
}

/// Seals and opens secrets; clones share one key.
#[derive(Clone)]
pub struct Sealer(Arc<Key>);

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer(…)")
    }
}

impl Sealer {
    /// Uses the key of the settings, or else the one of the data folder, which is generated once
    /// (`secret.key`, readable only by its owner).
    pub fn new(dir: &DataDir, secret_key: Option<&SecretString>) -> Result<Self, Error> {
        match secret_key {
            Some(secret) => Ok(Self::with_key(secret)),
            None => Ok(Self::with_key(&key::of_folder(dir.path())?)),
        }
    }

    /// Uses the key of the settings, which is any text that is hard to guess.
    pub fn with_key(secret: &SecretString) -> Self {
        Self(Arc::new(Key::derive(secret)))
    }

    /// A short id of the key, for comparing keys. It reveals nothing about the key.
    pub fn key_name(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.id)
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
        self.cipher()
            .encrypt_in_place(&XNonce::from(nonce), context.as_bytes(), &mut *text)
            .map_err(|_| too_large)?;
        let sealed = [&[VERSION], &self.0.id[..], &nonce[..], &text[..]].concat();
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens a value that [`Self::seal`] sealed with the same context.
    pub fn open(&self, context: &str, sealed: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
        Ok(self.try_open(context, sealed)?)
    }

    fn try_open(&self, context: &str, sealed: &str) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        let sealed = URL_SAFE_NO_PAD
            .decode(sealed)
            .map_err(|_| UnsealError::OtherForm)?;
        let Some((&VERSION, rest)) = sealed.split_first() else {
            return Err(UnsealError::OtherForm);
        };
        let (id, rest) = rest.split_first_chunk().ok_or(UnsealError::OtherForm)?;
        let (nonce, text) = rest
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(UnsealError::OtherForm)?;
        if *id != self.0.id {
            return Err(UnsealError::OtherKey);
        }
        let mut text = Zeroizing::new(text.to_vec());
        self.cipher()
            .decrypt_in_place(&XNonce::from(*nonce), context.as_bytes(), &mut *text)
            .map_err(|_| UnsealError::Changed)?;
        Ok(text)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.0.bits).into())
    }
}

#[cfg(test)]
mod tests;
