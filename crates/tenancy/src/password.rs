//! Hashes passwords: argon2id off the async threads, a few at a time, and with equal work for unknown names.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use secrecy::{ExposeSecret as _, SecretString};
use std::time::Duration;

use super::Error;
use sepal_jobs::{self as jobs, Pool};
use sepal_store as store;

const MIN_CHARS: usize = 10;
const MAX_BYTES: usize = 1_024;

/// The most hashes computed at once. Each takes 19 MiB and some 20 ms of a processor.
const AT_ONCE: usize = 2;

/// The most hashes that wait; a flood is refused before it costs work.
const WAITING: usize = 64;

/// Verified for unknown names, with the parameters of all our hashes.
const DECOY: &str = "$argon2id$v=19$m=19456,t=2,p=1$c2VwYWwgZGVjb3kgc2FsdA\
    $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Hashes and verifies passwords.
pub(super) struct Passwords {
    turns: Pool,
}

impl Passwords {
    pub(super) fn new() -> Self {
        Self {
            turns: Pool::new("passwords", AT_ONCE).with_queue(WAITING),
        }
    }

    /// Returns the PHC string to store.
    pub(super) async fn hash(&self, password: &SecretString) -> Result<String, Error> {
        let password = password.clone();
        self.run(move || {
            let hash = Argon2::default().hash_password(password.expose_secret().as_bytes());
            hash.map(|hash| hash.to_string())
                .map_err(|_| Error::Hashing)
        })
        .await
    }

    /// Returns true if the password matches; without a hash always false, after the same work.
    pub(super) async fn verify(
        &self,
        password: &SecretString,
        hash: Option<String>,
    ) -> Result<bool, Error> {
        if password.expose_secret().len() > MAX_BYTES {
            return Ok(false);
        }
        let password = password.clone();
        self.run(move || {
            let is_real = hash.is_some();
            let hash = hash.as_deref().unwrap_or(DECOY);
            let hash = PasswordHash::new(hash).map_err(|_| store::Error::Corrupt {
                what: "password hash",
                value: "…".into(),
            })?;
            let verified =
                Argon2::default().verify_password(password.expose_secret().as_bytes(), &hash);
            Ok(verified.is_ok() && is_real)
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.turns.run(work).await.map_err(|error| match error {
            jobs::Error::Full(_) => Error::TooManyAttempts(Duration::from_secs(1)),
            jobs::Error::Broken(_) => Error::Hashing,
        })?
    }
}

/// Accepts long passwords, and requires no particular characters (NIST SP 800-63B).
pub(super) fn check(password: &SecretString) -> Result<(), Error> {
    let text = password.expose_secret();
    let reason = if text.len() > MAX_BYTES {
        "is longer than 1024 bytes"
    } else if text.chars().count() < MIN_CHARS {
        "needs at least 10 characters"
    } else {
        return Ok(());
    };
    Err(Error::Invalid {
        field: "password",
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::{DECOY, Passwords, check};

    #[test]
    fn the_policy_counts_characters_and_bytes() {
        let accepts = |text: &str| check(&text.into()).is_ok();
        assert!(!accepts("ninechars"));
        assert!(accepts("ten chars."));
        assert!(!accepts("öööööööö"));
        assert!(accepts("öööööööööö"));
        assert!(accepts(&"x".repeat(1_024)));
        assert!(!accepts(&"x".repeat(1_025)));
    }

    #[tokio::test]
    async fn the_decoy_costs_what_a_real_hash_costs() {
        let passwords = Passwords::new();
        let real = passwords.hash(&"correct horse".into()).await.unwrap();
        let parameters = |hash: &str| hash.split('$').take(4).collect::<Vec<_>>().join("$");
        let lengths = |hash: &str| hash.split('$').map(str::len).collect::<Vec<_>>();
        assert_eq!(parameters(&real), parameters(DECOY));
        assert_eq!(lengths(&real), lengths(DECOY));
        let verify = async |text: &str, hash| passwords.verify(&text.into(), hash).await.unwrap();
        assert!(verify("correct horse", Some(real.clone())).await);
        assert!(!verify("wrong horse", Some(real)).await);
        assert!(!verify("correct horse", None).await);
    }

    #[tokio::test]
    async fn a_hash_that_cannot_be_read_is_our_fault() {
        let passwords = Passwords::new();
        let verified = passwords.verify(&"x".into(), Some("plain".into())).await;
        let error = verified.unwrap_err();
        assert_eq!(error.fault(), sepal_core::domain::Fault::Internal);
    }
}
