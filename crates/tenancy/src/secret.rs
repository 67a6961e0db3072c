//! Makes random secrets of 256 bits, and derives values from them. They are stored only as hashes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use sepal_core::domain::ApiKeyId;
use sepal_store::records::SecretHash;

/// The beginning of every token of a directory.
const SCIM: &str = "scim_";

/// Makes a secret for cookies, links and tickets: 43 characters that need no escaping anywhere.
pub fn random() -> SecretString {
    let bits = Zeroizing::new(rand::random::<[u8; 32]>());
    URL_SAFE_NO_PAD.encode(bits.as_slice()).into()
}

/// Makes a secret of an API key: `spl_<part of its id>_<64 hex digits>`.
pub(super) fn api_key(id: &ApiKeyId) -> SecretString {
    let bits = Zeroizing::new(rand::random::<[u8; 32]>());
    let digits = Zeroizing::new(hex::encode(bits.as_slice()));
    format!("{}_{}", key_prefix(id), digits.as_str()).into()
}

/// Makes the secret of a directory's token: `scim_<64 hex digits>`.
pub(super) fn scim_token() -> SecretString {
    let bits = Zeroizing::new(rand::random::<[u8; 32]>());
    let digits = Zeroizing::new(hex::encode(bits.as_slice()));
    format!("{SCIM}{}", digits.as_str()).into()
}

/// Returns true if a text has the form of a directory's token.
pub(super) fn is_scim_token(text: &str) -> bool {
    let digits = text.strip_prefix(SCIM).unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The part of a key by which people recognise it; not secret.
pub fn key_prefix(id: &ApiKeyId) -> String {
    let bits = id.as_str().strip_prefix(ApiKeyId::PREFIX);
    let part: String = bits.unwrap_or_default().chars().take(8).collect();
    format!("spl_{part}")
}

/// The hash under which a secret is stored.
pub fn hash(secret: &SecretString) -> SecretHash {
    SecretHash::of(secret.expose_secret())
}

/// The CSRF token that a page sends with its cookie. It is derived from the cookie's secret, so nothing is
/// stored, and does not reveal it.
pub fn csrf_of(secret: &SecretString) -> String {
    let mut digest = Sha256::new_with_prefix(b"sepal csrf token\0");
    digest.update(secret.expose_secret().as_bytes());
    hex::encode(digest.finalize())
}

/// Derives a secret from two others, for one purpose. Nobody who lacks one of them can tell it.
pub(super) fn derive(purpose: &str, one: &SecretString, other: &SecretString) -> SecretString {
    let mut digest = Sha256::new_with_prefix(purpose.as_bytes());
    for part in [one, other] {
        digest.update(b"\0");
        digest.update(part.expose_secret().as_bytes());
    }
    URL_SAFE_NO_PAD.encode(digest.finalize()).into()
}

/// Returns true if a text has the form of [`random`].
pub(super) fn is_random(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.len() == 43 && text.bytes().all(is_letter)
}

/// Compares in constant time.
pub(super) fn is_csrf(secret: &SecretString, token: &str) -> bool {
    csrf_of(secret).as_bytes().ct_eq(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::{api_key, csrf_of, is_csrf, random};
    use sepal_core::domain::ApiKeyId;

    #[test]
    fn secrets_have_their_form_and_never_repeat() {
        let (one, two) = (random(), random());
        assert_eq!(one.expose_secret().len(), 43);
        assert_ne!(one.expose_secret(), two.expose_secret());
        let key = api_key(&ApiKeyId::from_bits(0xfeed << 100));
        let (prefix, digits) = key.expose_secret().rsplit_once('_').unwrap();
        assert_eq!((prefix, digits.len()), ("spl_000feed0", 64));
        assert!(!format!("{one:?}").contains(one.expose_secret()));
    }

    #[test]
    fn a_csrf_token_fits_one_secret() {
        let (one, two) = (random(), random());
        assert!(is_csrf(&one, &csrf_of(&one)));
        assert!(!is_csrf(&one, &csrf_of(&two)));
        assert!(!is_csrf(&one, ""));
    }
}
