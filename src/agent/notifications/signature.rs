//! Signs webhook messages as specified by [Standard Webhooks](https://www.standardwebhooks.com), so that
//! receivers can check them with an existing library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::SecretString;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The prefix of a secret; the rest is Base64.
const PREFIX: &str = "whsec_";
/// The specification allows 24 to 64.
const SECRET_BYTES: usize = 32;

/// Generates a secret.
pub(super) fn new_secret() -> SecretString {
    let bytes = Zeroizing::new(rand::random::<[u8; SECRET_BYTES]>());
    format!("{PREFIX}{}", STANDARD.encode(*bytes)).into()
}

/// Returns the value of `webhook-signature`; `None` if the secret has another form. `at` is the time of the
/// attempt in seconds since 1970.
pub(in crate::agent) fn sign(secret: &str, id: &str, at: i64, body: &str) -> Option<String> {
    let bytes = STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&Zeroizing::new(bytes)).ok()?;
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    Some(format!(
        "v1,{}",
        STANDARD.encode(mac.finalize().into_bytes())
    ))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::{new_secret, sign};

    /// The test vector of the Standard Webhooks libraries.
    #[test]
    fn it_signs_as_others_do() {
        let signed = sign(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(
            signed.as_deref(),
            Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
        );
    }

    #[test]
    fn no_secret_is_drawn_twice_and_each_signs() {
        let (one, other) = (new_secret(), new_secret());
        assert_ne!(one.expose_secret(), other.expose_secret());
        assert!(sign(one.expose_secret(), "msg_1", 1, "{}").is_some());
        for wrong in ["whsec_*", "hush", ""] {
            assert_eq!(sign(wrong, "msg_1", 1, "{}"), None, "{wrong}");
        }
    }
}
