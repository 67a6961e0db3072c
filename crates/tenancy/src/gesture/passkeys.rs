//! Lists, adds, renames and removes the passkeys of a person.

use serde_json::Value;

use super::{
    GestureError, Gestures, NO_PARTY, NOT_ACCEPTED, TOO_LATE, UNREADABLE, broken, ceremony,
};
use crate::{AuthenticatedCaller, Error};
use sepal_core::domain::{CredentialId, GestureMeans};
use sepal_store::records::{GestureStage, MOST_PASSKEYS, PasskeyRow, SecretHash};

/// The most characters of a passkey's name.
const MAX_NAME_CHARS: usize = 64;

const NEEDS_SECOND: &str = "add a second passkey first, or confirm that an administrator would let you in by a link \
     if you lose this one";

/// The passkeys of a person, and how they sign in besides.
pub struct ListedPasskeys {
    /// The passkeys, oldest first.
    pub rows: Vec<PasskeyRow>,
    /// True if the person has a password that counts.
    pub has_password: bool,
    /// True if they sign in by passkeys alone.
    pub is_passkey_only: bool,
}

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
    /// Returns all passkeys, oldest first, and how the person signs in besides.
    pub async fn list(&self) -> Result<ListedPasskeys, GestureError> {
        let (tenant, user) = self.gestures.whose();
        let users = self.gestures.tenancy.records().users();
        let record = users.find(tenant, user).await?;
        Ok(ListedPasskeys {
            rows: self.rows().await?,
            has_password: record
                .as_ref()
                .is_some_and(|it| it.usable_password().is_some()),
            is_passkey_only: record.is_some_and(|it| it.is_passkey_only),
        })
    }

    /// Sets whether the person signs in by passkeys alone, so that their password counts nowhere. It requires a
    /// gesture by passkey. The choice requires two passkeys that work at this address, or one if the person confirms
    /// that an administrator would let them in by a link (`has_help`).
    pub async fn set_passkey_only(
        &self,
        is_passkey_only: bool,
        has_help: bool,
        proof: Option<&str>,
    ) -> Result<(), GestureError> {
        self.check_is_person()?;
        let wrong = |text| GestureError::new("passkeyOnly", text);
        if is_passkey_only {
            match self.gestures.usable().await?.len() {
                0 => return Err(wrong("add a passkey first, better two")),
                1 if !has_help => return Err(wrong(NEEDS_SECOND)),
                _ => {}
            }
        }
        let means = self.taken(proof).await?;
        if means != Some(GestureMeans::Passkey) {
            let text = "this choice is changed with a fresh gesture by passkey";
            return Err(GestureError::new("gesture", text));
        }
        let users = self.gestures.tenancy.records().users();
        let least = if is_passkey_only && !has_help {
            2
        } else {
            i64::from(is_passkey_only)
        };
        let whose = self.gestures.whose();
        let is_set = users.set_passkey_only(whose, is_passkey_only, least);
        if !is_set.await? {
            return Err(wrong(NEEDS_SECOND));
        }
        tracing::info!(user.id = %whose.1, is_passkey_only, "A person chose how they sign in");
        Ok(())
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
        let listed = self.list().await?;
        if listed.is_passkey_only && listed.rows.len() < 2 {
            let text = "you sign in by passkeys alone, and this is your last one: add another first, \
                        or allow your password again";
            return Err(Error::Refused(text).into());
        }
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

    /// Uses up a gesture for changes, and returns its means.
    async fn taken(&self, proof: Option<&str>) -> Result<Option<GestureMeans>, GestureError> {
        let Some(proof) = proof else {
            return Ok(None);
        };
        let gestures = self.gestures.tenancy.records().gestures();
        let (tenant, user) = self.gestures.whose();
        let (hash, now) = (SecretHash::of(proof), self.gestures.now());
        Ok(gestures.take_change(tenant, user, &hash, now).await?)
    }

    async fn check_may_change(&self, proof: Option<&str>) -> Result<(), GestureError> {
        self.check_is_person()?;
        let listed = self.list().await?;
        if listed.rows.is_empty() && !listed.has_password {
            return Ok(());
        }
        let taken = self.taken(proof).await?.is_some();
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
