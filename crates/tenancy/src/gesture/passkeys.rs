//! Lists, adds, renames and removes the passkeys of a person.

use serde_json::Value;

use super::{
    GestureError, Gestures, NO_PARTY, NOT_ACCEPTED, TOO_LATE, UNREADABLE, broken, ceremony,
};
use crate::{AuthenticatedCaller, Error};
use sepal_core::domain::CredentialId;
use sepal_store::records::{GestureStage, MOST_PASSKEYS, PasskeyRow, SecretHash};

/// The most characters of a passkey's name.
const MAX_NAME_CHARS: usize = 64;

/// Changes and lists the passkeys of the authenticated person.
pub struct Passkeys<'a> {
    gestures: Gestures<'a>,
    entered: &'a AuthenticatedCaller,
}

impl<'a> Passkeys<'a> {
    pub(crate) fn new(gestures: Gestures<'a>, entered: &'a AuthenticatedCaller) -> Self {
        Self { gestures, entered }
    }
}

impl Passkeys<'_> {
    /// Returns all passkeys, oldest first, and true if the person has a password.
    pub async fn list(&self) -> Result<(Vec<PasskeyRow>, bool), GestureError> {
        let has_password = self.gestures.password_hash().await?.is_some();
        Ok((self.rows().await?, has_password))
    }

    /// Makes a challenge for a new passkey: the JSON form of `publicKey` for `navigator.credentials.create`.
    /// It requires a gesture made for changing passkeys, unless the person has nothing to make one with.
    pub async fn challenge(&self, proof: Option<&str>) -> Result<Value, GestureError> {
        let party = self.gestures.party;
        let party = party.ok_or_else(|| GestureError::new("credential", NO_PARTY))?;
        self.check_may_change(proof).await?;
        let rows = self.rows().await?;
        let asked = ceremony::ask_registration(party, self.gestures.caller, &rows);
        let asked = asked.map_err(|error| broken(&error))?;
        let stage = GestureStage::Registration(asked.ceremony);
        let hash = SecretHash::of(&asked.challenge);
        self.gestures.keep(&hash, &stage, &[]).await?;
        Ok(asked.options)
    }

    /// Stores the new passkey.
    pub async fn add(&self, name: &str, answer: &Value) -> Result<PasskeyRow, GestureError> {
        self.check_is_person()?;
        let wrong = |text| GestureError::new("credential", text);
        let name = check_name(name)?;
        let party = self.gestures.party.ok_or_else(|| wrong(NO_PARTY))?;
        let challenge = ceremony::challenge_of(answer).ok_or_else(|| wrong(UNREADABLE))?;
        let (tenant, user) = self.gestures.whose();
        let now = self.gestures.now();
        let records = self.gestures.tenancy.records();
        let hash = SecretHash::of(&challenge);
        let taken = records
            .gestures()
            .take_registration(tenant, user, &hash, now)
            .await?;
        let ceremony = taken.ok_or_else(|| wrong(TOO_LATE))?;
        let made = ceremony::check_registration(party, &ceremony, answer).map_err(|error| {
            tracing::warn!(user.id = %user, %error, "A new passkey was not accepted");
            wrong(NOT_ACCEPTED)
        })?;
        let row = PasskeyRow {
            id: made.id,
            name: name.to_owned(),
            relying_party: party.id.clone(),
            public_key: made.public_key,
            counter: made.counter,
            transports: made.transports,
            created_at: now,
            last_used_at: None,
        };
        if !records.passkeys().add(tenant, user, &row).await? {
            let text = format!(
                "the passkey is known already, or you have {MOST_PASSKEYS}; remove one first"
            );
            return Err(GestureError::new("credential", text));
        }
        tracing::info!(user.id = %user, "A passkey was added");
        Ok(row)
    }

    /// Refuses an id that is not a passkey of this person.
    pub async fn check_is_mine(&self, id: &str) -> Result<(), GestureError> {
        let rows = self.rows().await?;
        let is_there = rows.iter().any(|row| row.id == id);
        is_there.then_some(()).ok_or_else(none)
    }

    /// Renames a passkey.
    pub async fn rename(&self, id: &str, name: &str) -> Result<(), GestureError> {
        self.check_is_mine(id).await?;
        self.check_is_person()?;
        let name = check_name(name)?;
        let passkeys = self.gestures.tenancy.records().passkeys();
        let is_there = passkeys.rename(self.gestures.whose(), id, name).await?;
        is_there.then_some(()).ok_or_else(none)
    }

    /// Removes a passkey. It requires a gesture made for changing passkeys.
    pub async fn remove(&self, id: &str, proof: Option<&str>) -> Result<(), GestureError> {
        self.check_is_mine(id).await?;
        self.check_may_change(proof).await?;
        let passkeys = self.gestures.tenancy.records().passkeys();
        let (tenant, user) = self.gestures.whose();
        let is_there = passkeys.remove(tenant, user, id).await?;
        is_there.then_some(()).ok_or_else(none)
    }

    async fn rows(&self) -> Result<Vec<PasskeyRow>, GestureError> {
        let (tenant, user) = self.gestures.whose();
        let passkeys = self.gestures.tenancy.records().passkeys();
        Ok(passkeys.list(tenant, user).await?)
    }

    /// Refuses API keys: a key does not prove a person, and an agent may find it.
    fn check_is_person(&self) -> Result<(), GestureError> {
        match self.entered.credential {
            CredentialId::SignIn(_) | CredentialId::Local(_) => Ok(()),
            CredentialId::ApiKey(_) => {
                let text = "a key cannot change passkeys; sign in to the page";
                Err(Error::Refused(text).into())
            }
        }
    }

    async fn check_may_change(&self, proof: Option<&str>) -> Result<(), GestureError> {
        self.check_is_person()?;
        let (rows, has_password) = self.list().await?;
        if rows.is_empty() && !has_password {
            return Ok(());
        }
        let taken = match proof {
            Some(proof) => {
                let gestures = self.gestures.tenancy.records().gestures();
                let (tenant, user) = self.gestures.whose();
                let now = self.gestures.now();
                gestures
                    .take_change(tenant, user, &SecretHash::of(proof), now)
                    .await?
            }
            None => false,
        };
        let text =
            "passkeys are changed with a fresh gesture: your password, or a passkey that you have";
        taken
            .then_some(())
            .ok_or_else(|| GestureError::new("gesture", text))
    }
}

fn check_name(name: &str) -> Result<&str, GestureError> {
    let name = name.trim();
    let reason = if name.is_empty() {
        "is empty"
    } else if name.chars().count() > MAX_NAME_CHARS {
        "is longer than 64 characters"
    } else if name.contains(char::is_control) {
        "has characters that cannot be seen"
    } else {
        return Ok(name);
    };
    let field = "name";
    Err(Error::Invalid { field, reason }.into())
}

fn none() -> GestureError {
    Error::NotFound("passkey").into()
}
