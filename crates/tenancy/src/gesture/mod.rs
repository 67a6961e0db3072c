//! Verifies fresh gestures: a person proves right now, by a passkey, their password or a new sign-in at their
//! provider, that they are the one who decides, and about what. Access to the page or to one of their keys is not enough.

mod ceremony;
mod entering;
mod passkeys;
mod stepping_up;

use secrecy::SecretString;
use serde_json::Value;

pub use ceremony::RelyingParty;
pub use passkeys::{ListedPasskeys, Passkeys};
pub use stepping_up::{Confirmation, ResumedStepUp};

use super::{Tenancy, secret};
use sepal_core::domain::{
    Caller, Code, CredentialId, GestureCall, GestureMeans, SessionId, Timestamp,
};
use sepal_store::records::{GestureStage, NewGesture, PasskeyRow, SecretHash, UserRecord};

/// The time for which a challenge may be answered, and a gesture used.
pub const LIFE_MS: u32 = 120_000;

/// The most calls that one gesture may approve.
pub const MOST_CALLS: usize = 256;

/// The reason there is no gesture.
#[derive(Debug, thiserror::Error)]
pub enum GestureError {
    /// The proof is missing or invalid; the text says what to do instead.
    #[error("{text}")]
    Wrong {
        /// The invalid field.
        field: &'static str,
        text: String,
    },
    /// An error that signing in could cause, too.
    #[error(transparent)]
    Tenancy(#[from] super::Error),
}

impl GestureError {
    fn new(field: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Wrong { field, text }
    }

    /// The code for clients.
    pub fn code(&self) -> Code {
        match self {
            Self::Wrong { .. } => Code::GestureRequired,
            Self::Tenancy(error) => error.code(),
        }
    }
}

impl From<sepal_store::Error> for GestureError {
    fn from(error: sepal_store::Error) -> Self {
        Self::Tenancy(error.into())
    }
}

/// The ways in which a person can make a gesture here.
pub struct Ways {
    /// `publicKey` of `navigator.credentials.get`, as its JSON form; `None` = they have no passkey that works
    /// at this address.
    pub passkey: Option<Value>,
    /// True if they have a password.
    pub has_password: bool,
    /// The issuer at which they can confirm; only if they have nothing else.
    pub issuer: Option<String>,
}

/// A gesture, to be sent with a decision.
pub struct Proof {
    /// The session of the calls; `None` = the gesture changes the person's own passkeys.
    pub session: Option<SessionId>,
    /// The single-use secret; stored nowhere.
    pub secret: SecretString,
}

/// Makes gestures of the authenticated person.
pub struct Gestures<'a> {
    tenancy: &'a Tenancy,
    caller: &'a Caller,
    /// `None` = browsers offer no passkeys at the requested address.
    party: Option<&'a RelyingParty>,
}

impl<'a> Gestures<'a> {
    pub(super) fn new(
        tenancy: &'a Tenancy,
        caller: &'a Caller,
        party: Option<&'a RelyingParty>,
    ) -> Self {
        Self {
            tenancy,
            caller,
            party,
        }
    }
}

impl Gestures<'_> {
    /// Makes a challenge for a gesture that approves these calls, or, without calls, one that changes the
    /// person's own passkeys. `knows` tells whether people can be sent to an issuer.
    pub async fn challenge(
        &self,
        calls: &[GestureCall],
        knows: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Ways, GestureError> {
        let mut ways = self.ways(calls).await?;
        if ways.passkey.is_none() && !ways.has_password && !calls.is_empty() {
            if self.has_nothing().await? {
                let accounts = self.accounts().await?.into_iter();
                ways.issuer = accounts.map(|it| it.issuer).find(|issuer| knows(issuer));
            }
            if ways.issuer.is_some() {
                return Ok(ways);
            }
            let text = if self.party.is_none() {
                "you have no password, and passkeys need a host name: open Sepal at \
                 `localhost` or at its public address (`runtime.http.public_url`, SPL_PUBLIC_URL), \
                 and add a passkey in the settings"
            } else {
                "you have neither a passkey that works at this address nor a password: add a passkey \
                 in the settings"
            };
            return Err(GestureError::new("gesture", text));
        }
        Ok(ways)
    }

    async fn ways(&self, calls: &[GestureCall]) -> Result<Ways, GestureError> {
        let usable = self.usable().await?;
        let passkey = match self.party.filter(|_| !usable.is_empty()) {
            Some(party) => {
                let asked =
                    ceremony::ask_assertion(party, &usable).map_err(|error| broken(&error))?;
                let stage = GestureStage::Challenge(asked.ceremony);
                let hash = SecretHash::of(&asked.challenge);
                self.keep(&hash, &stage, calls).await?;
                Some(asked.options)
            }
            None => None,
        };
        Ok(Ways {
            passkey,
            has_password: self.password_hash().await?.is_some(),
            issuer: None,
        })
    }

    /// Verifies a passkey's answer, and returns the gesture.
    pub async fn by_passkey(&self, answer: &Value) -> Result<Vec<Proof>, GestureError> {
        let wrong = |text| GestureError::new("credential", text);
        let party = self.party.ok_or_else(|| wrong(NO_PARTY))?;
        let challenge = ceremony::challenge_of(answer).ok_or_else(|| wrong(UNREADABLE))?;
        let taken = self.tenancy.records().gestures();
        let hash = SecretHash::of(&challenge);
        let (tenant, user) = self.whose();
        let taken = taken
            .take_challenge(tenant, user, &hash, self.now())
            .await?;
        let (ceremony, calls) = taken.ok_or_else(|| wrong(TOO_LATE))?;
        let usable = self.usable().await?;
        let id = ceremony::passkey_of(answer).unwrap_or_default();
        let row = usable.iter().find(|row| row.id == id);
        let row = row.ok_or_else(|| wrong(NOT_YOURS))?;
        let checked = ceremony::check_assertion(party, self.caller, &ceremony, answer, row);
        let counter = checked.map_err(|error| {
            tracing::warn!(user.id = %self.caller.user.id, %error, "A passkey was not accepted");
            wrong(NOT_ACCEPTED)
        })?;
        let passkeys = self.tenancy.records().passkeys();
        let (tenant, user) = self.whose();
        let is_first = passkeys.used(tenant, user, row, counter.as_str(), self.now());
        if !is_first.await? {
            return Err(wrong(NOT_ACCEPTED));
        }
        self.prove(GestureMeans::Passkey, &calls).await
    }

    /// Verifies a password, and returns the gesture for these calls.
    pub async fn by_password(
        &self,
        password: &SecretString,
        calls: &[GestureCall],
    ) -> Result<Vec<Proof>, GestureError> {
        let parts = &self.tenancy.parts;
        let Caller {
            user, credential, ..
        } = self.caller;
        // Strangers at the same address do not count, and a program with a key locks nobody out of their browser.
        let door = match credential {
            Some(CredentialId::ApiKey(_)) => "key",
            Some(CredentialId::SignIn(_) | CredentialId::Local(_)) | None => "browser",
        };
        parts.limits.attempt_of(&format!("{} {door}", user.id))?;
        let hash = self.password_hash().await?;
        if !parts.passwords.verify(password, hash).await? {
            let text = "the password is wrong, or you have none; a passkey counts too";
            return Err(GestureError::new("password", text));
        }
        self.prove(GestureMeans::Password, calls).await
    }

    async fn prove(
        &self,
        means: GestureMeans,
        calls: &[GestureCall],
    ) -> Result<Vec<Proof>, GestureError> {
        let mut sessions: Vec<Option<&SessionId>> =
            calls.iter().map(|call| Some(&call.session)).collect();
        sessions.sort();
        sessions.dedup();
        if sessions.is_empty() {
            sessions.push(None);
        }
        let mut proofs = Vec::with_capacity(sessions.len());
        for session in sessions {
            let of_session = calls.iter().filter(|call| Some(&call.session) == session);
            let of_session: Vec<GestureCall> = of_session.cloned().collect();
            let proof = secret::random();
            let stage = GestureStage::Proof(means);
            self.keep(&secret::hash(&proof), &stage, &of_session)
                .await?;
            proofs.push(Proof {
                session: session.cloned(),
                secret: proof,
            });
        }
        Ok(proofs)
    }

    /// Returns the passkeys that browsers offer at the requested address.
    async fn usable(&self) -> Result<Vec<PasskeyRow>, GestureError> {
        let (tenant, user) = self.whose();
        let mut rows = self.tenancy.records().passkeys().list(tenant, user).await?;
        let party = self.party.map(|party| party.id.as_str());
        rows.retain(|row| Some(row.relying_party.as_str()) == party);
        Ok(rows)
    }

    async fn password_hash(&self) -> Result<Option<String>, GestureError> {
        let (tenant, user) = self.whose();
        let record = self.tenancy.records().users().find(tenant, user).await?;
        let record = record.as_ref();
        let hash = record.and_then(UserRecord::usable_password);
        Ok(hash.map(str::to_owned))
    }

    async fn keep(
        &self,
        hash: &SecretHash,
        stage: &GestureStage,
        calls: &[GestureCall],
    ) -> Result<(), GestureError> {
        let now = self.now();
        let (tenant, user) = self.whose();
        let gesture = NewGesture {
            tenant,
            user,
            hash,
            stage,
            calls,
            expires_at: Timestamp(now.0.saturating_add(i64::from(LIFE_MS))),
        };
        let gestures = self.tenancy.records().gestures();
        gestures.add(gesture, now).await?;
        Ok(())
    }

    fn whose(&self) -> (&sepal_core::domain::TenantId, &sepal_core::domain::UserId) {
        (&self.caller.tenant.id, &self.caller.user.id)
    }

    fn now(&self) -> Timestamp {
        self.tenancy.now()
    }
}

/// The texts about a passkey's refused answer.
const NO_PARTY: &str =
    "passkeys need a host name: open Sepal at `localhost` or at its public address";
const UNREADABLE: &str = "the answer of the passkey cannot be read";
const TOO_LATE: &str =
    "the challenge is used up or older than two minutes, or was not for you; try again";
const NOT_YOURS: &str = "the passkey is none of yours; use one of those in your settings";
const NOT_ACCEPTED: &str =
    "the passkey's answer was not accepted; try again, or take another passkey or your password";

/// Converts a failure of our own side of a ceremony.
fn broken(error: &ceremony::Wrong) -> GestureError {
    GestureError::new("credential", error.to_string())
}
