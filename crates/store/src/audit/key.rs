//! The key that signs the audit (Ed25519). It can lie outside of the installation; its public half alone checks
//! everything.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, Verifier as _, VerifyingKey};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use zeroize::Zeroizing;

use super::canonical;
use crate::{Error, Sealer};

/// A private key in PKCS#8 is this, then its 32 bytes.
const PRIVATE_DER: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// A public key in X.509's form (SPKI) is this, then its 32 bytes.
const PUBLIC_DER: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// The context in which the key of the store is sealed.
const CONTEXT: &str = "audit/key";

/// The reason a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "the private key of the audit is neither Ed25519 in PEM (PKCS#8) nor 64 hex digits; \
         `openssl genpkey -algorithm ed25519` makes one"
    )]
    Private,
    #[error("the public key is neither Ed25519 in PEM nor 43 characters of base64url")]
    Public,
}

/// The private key. Clones share nothing but the bytes.
#[derive(Clone)]
pub struct AuditKey(SigningKey);

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuditKey({})", self.public())
    }
}

impl AuditKey {
    /// Reads a private key: PEM (PKCS#8), as `openssl genpkey -algorithm ed25519` writes it, or 64 hex digits.
    pub fn parse(text: &SecretString) -> Result<Self, KeyError> {
        let text = text.expose_secret().trim();
        let bytes = match pem(text, "PRIVATE KEY") {
            Some(der) => der.strip_prefix(&PRIVATE_DER[..]).map(<[u8]>::to_vec),
            None => hex::decode(text).ok(),
        };
        let bytes = Zeroizing::new(bytes.ok_or(KeyError::Private)?);
        let bits = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| KeyError::Private)?;
        Ok(Self(SigningKey::from_bytes(&bits)))
    }

    /// Draws a key.
    pub(crate) fn draw() -> Self {
        let bits = Zeroizing::new(rand::random::<[u8; 32]>());
        Self(SigningKey::from_bytes(&bits))
    }

    /// The key sealed for the store.
    pub(crate) fn seal(&self, sealer: &Sealer) -> Result<String, Error> {
        let bits = Zeroizing::new(self.0.to_bytes());
        sealer.seal(CONTEXT, bits.as_slice())
    }

    /// Opens what [`Self::seal`] sealed.
    pub(crate) fn open(sealer: &Sealer, text: &str) -> Result<Self, Error> {
        let opened = sealer.open(CONTEXT, text)?;
        let bits = <[u8; 32]>::try_from(opened.as_slice());
        let bits = bits.map_err(|_| Error::corrupt("key of the audit", "of another length"))?;
        Ok(Self(SigningKey::from_bytes(&bits)))
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs the canonical JSON of a value; the signature is in base64url.
    pub fn sign(&self, value: &Value) -> String {
        let signature = self.0.sign(canonical(value).as_bytes());
        URL_SAFE_NO_PAD.encode(signature.to_bytes())
    }
}

/// A public key, which checks signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads a public key: PEM (SPKI), or its 32 bytes in base64url.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let bytes = match pem(text, "PUBLIC KEY") {
            Some(der) => der.strip_prefix(&PUBLIC_DER[..]).map(<[u8]>::to_vec),
            None => URL_SAFE_NO_PAD.decode(text).ok(),
        };
        let bytes = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let key = bytes.and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
        key.map(Self).ok_or(KeyError::Public)
    }

    /// The key in PEM (SPKI), as other programs read it.
    pub fn to_pem(self) -> String {
        let der = [&PUBLIC_DER[..], self.0.as_bytes()].concat();
        let text = STANDARD.encode(der);
        format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    }

    /// Checks a signature of the canonical JSON of a value.
    pub fn has_signed(&self, value: &Value, signature: &str) -> bool {
        let bytes = URL_SAFE_NO_PAD.decode(signature).ok();
        let signature = bytes.and_then(|bytes| Signature::from_slice(&bytes).ok());
        signature.is_some_and(|it| self.0.verify(canonical(value).as_bytes(), &it).is_ok())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0.as_bytes()))
    }
}

/// The bytes of a PEM text with this label.
fn pem(text: &str, label: &str) -> Option<Vec<u8>> {
    let begin = format!("-----BEGIN {label}-----");
    let end = format!("-----END {label}-----");
    let inner = text.strip_prefix(&begin)?.trim_end().strip_suffix(&end)?;
    let digits: String = inner.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{AuditKey, KeyError, PublicKey};
    use crate::Sealer;

    /// The first key of the tests in RFC 8032, as `openssl` writes it.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
        -----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n\
        -----END PUBLIC KEY-----\n";

    #[test]
    fn keys_are_read_as_other_programs_write_them() {
        let key = AuditKey::parse(&PRIVATE.into()).unwrap();
        assert_eq!(key.public().to_pem(), PUBLIC);
        assert_eq!(PublicKey::parse(PUBLIC).unwrap(), key.public());
        assert_eq!(
            PublicKey::parse(&key.public().to_string()).unwrap(),
            key.public()
        );
        let hex = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        assert_eq!(AuditKey::parse(&hex.into()).unwrap().public(), key.public());
        for wrong in ["", "9d61", PUBLIC, "no key"] {
            assert_eq!(
                AuditKey::parse(&wrong.into()).unwrap_err(),
                KeyError::Private
            );
            if wrong != PUBLIC {
                assert_eq!(PublicKey::parse(wrong).unwrap_err(), KeyError::Public);
            }
        }
    }

    #[test]
    fn a_signature_fits_its_text_and_key_alone() {
        let (key, other) = (AuditKey::draw(), AuditKey::draw());
        let signature = key.sign(&json!({ "b": 1, "a": 2 }));
        assert!(
            key.public()
                .has_signed(&json!({ "a": 2, "b": 1 }), &signature)
        );
        assert!(
            !key.public()
                .has_signed(&json!({ "a": 2, "b": 2 }), &signature)
        );
        assert!(
            !other
                .public()
                .has_signed(&json!({ "a": 2, "b": 1 }), &signature)
        );
        assert!(!key.public().has_signed(&json!({ "a": 2, "b": 1 }), ""));
        let sealer = Sealer::with_key(&"one".into());
        let kept = key.seal(&sealer).unwrap();
        assert_eq!(
            AuditKey::open(&sealer, &kept).unwrap().public(),
            key.public()
        );
        assert!(AuditKey::open(&Sealer::with_key(&"two".into()), &kept).is_err());
    }
}
