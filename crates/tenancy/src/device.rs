//! Recognises browsers in which a person signed in before ("device cookies", as OWASP describes them).
//!
//! Attempts to sign in are limited, so that nobody guesses passwords. A stranger who shares the address of
//! others, behind a proxy or a company's router, could use up all attempts of that address. A browser in which
//! the person signed in before therefore has attempts of its own. It proves that by a cookie: the person's id and
//! a random id of the browser, with a code (HMAC-SHA-256) that only this installation can make. The cookie lets
//! nobody in.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;

use super::Tenancy;
use sepal_core::domain::UserId;

/// The longest cookie that is read, in bytes.
const MAX_COOKIE: usize = 256;

/// The version of the form: version, person, browser and code, with dots between them.
const VERSION: &str = "1";

/// The client who asks to be let in.
#[derive(Debug, Clone, Copy)]
pub struct Visitor<'a> {
    /// The client's own address.
    pub peer: std::net::IpAddr,
    /// The cookie of [`Tenancy::device_cookie`], if the client has one.
    pub device: Option<&'a SecretString>,
}

/// A browser in which a person signed in before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) user: UserId,
    /// The random id of the browser.
    pub(super) id: String,
}

/// The key of the installation's device cookies.
pub(super) struct DeviceKey(SecretString);

impl DeviceKey {
    pub(super) fn new(secret: SecretString) -> Self {
        Self(secret)
    }

    /// The cookie of a browser.
    fn write(&self, device: &Device) -> Option<SecretString> {
        let text = device.text();
        let code = self.mac(&text)?.finalize().into_bytes();
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(code)).into())
    }

    /// Reads a cookie; `None` if this installation did not make it.
    fn read(&self, cookie: &str) -> Option<Device> {
        if cookie.len() > MAX_COOKIE {
            return None;
        }
        let (text, code) = cookie.rsplit_once('.')?;
        let code = URL_SAFE_NO_PAD.decode(code).ok()?;
        self.mac(text)?.verify_slice(&code).ok()?;
        let mut parts = text.split('.');
        let (version, user, id) = (parts.next()?, parts.next()?, parts.next()?);
        if version != VERSION || parts.next().is_some() {
            return None;
        }
        Some(Device {
            user: UserId::parse(user)?,
            id: id.to_owned(),
        })
    }

    fn mac(&self, text: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret().as_bytes()).ok()?;
        mac.update(b"sepal device cookie\0");
        mac.update(text.as_bytes());
        Some(mac)
    }
}

impl Device {
    fn text(&self) -> String {
        format!("{VERSION}.{}.{}", self.user, self.id)
    }
}

impl Tenancy {
    /// Sets the key of the device cookies. Without one, as in commands beside the server, no browser is known.
    pub fn set_device_key(&self, key: SecretString) {
        // The first key stays: a process sets it once.
        let _ = self.parts.device_key.set(DeviceKey::new(key));
    }

    /// The cookie for a browser in which this person has just signed in. `known` is the cookie that it has, which
    /// stays if it is of the same person.
    pub fn device_cookie(
        &self,
        user: &UserId,
        known: Option<&SecretString>,
    ) -> Option<SecretString> {
        let key = self.parts.device_key.get()?;
        let known = self.device(known).filter(|device| device.user == *user);
        let device = known.unwrap_or_else(|| Device {
            user: user.clone(),
            id: format!("{:032x}", rand::random::<u128>()),
        });
        key.write(&device)
    }

    /// The browser that a cookie proves.
    pub(super) fn device(&self, cookie: Option<&SecretString>) -> Option<Device> {
        let key = self.parts.device_key.get()?;
        key.read(cookie?.expose_secret())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::{Device, DeviceKey};
    use sepal_core::domain::UserId;

    #[test]
    fn a_cookie_proves_its_person_and_no_other() {
        let key = DeviceKey::new("k".repeat(43).into());
        let device = Device {
            user: UserId::from_bits(7),
            id: "a".repeat(32),
        };
        let cookie = key.write(&device).unwrap();
        let cookie = cookie.expose_secret();
        assert_eq!(key.read(cookie), Some(device.clone()));
        let other = DeviceKey::new("l".repeat(43).into());
        assert_eq!(other.read(cookie), None);
        let ann = UserId::from_bits(7).to_string();
        let bob = UserId::from_bits(8).to_string();
        for forged in [
            cookie.replace(&ann, &bob),
            cookie.replace("aaaa", "aaab"),
            cookie.replacen('1', "2", 1),
            cookie[..cookie.len() - 2].to_owned(),
            format!("{}.", device.text()),
            device.text(),
            String::new(),
            "x".repeat(1_000),
        ] {
            assert_eq!(key.read(&forged), None, "{forged}");
        }
    }
}
