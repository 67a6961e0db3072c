//! Signs people in by a passkey alone: the authenticator names the person, and verifies that it is them.

use serde_json::Value;

use super::{LIFE_MS, RelyingParty, ceremony};
use crate::device::Visitor;
use crate::identity::NotLetIn;
use crate::refusals::Attempt;
use crate::sign_in::SignedIn;
use crate::{Error, Tenancy};
use sepal_core::domain::{Scope, Timestamp};
use sepal_store::audit::ActName;
use sepal_store::records::{OwnedPasskey, SecretHash};

const NO_PARTY: Error = Error::Refused(
    "passkeys need a host name: open Sepal at `localhost` or at its public address, or sign in another way",
);

impl Tenancy {
    /// Makes a challenge for a browser in which somebody signs in: the JSON form of `publicKey` for
    /// `navigator.credentials.get`. `party` is `None` if browsers offer no passkeys at the requested address.
    pub async fn ask_passkey(
        &self,
        party: Option<&RelyingParty>,
        visitor: Visitor<'_>,
    ) -> Result<Value, Error> {
        let party = party.ok_or(NO_PARTY)?;
        self.count_begun(visitor)?;
        let asked = ceremony::ask_sign_in(party).map_err(|error| {
            tracing::error!(%error, "A challenge for a passkey could not be made");
            Error::WrongPasskey
        })?;
        let now = self.now();
        let expires_at = Timestamp(now.0.saturating_add(i64::from(LIFE_MS)));
        let hash = SecretHash::of(&asked.challenge);
        let passkeys = self.records().passkeys();
        passkeys
            .add_challenge(&hash, &asked.ceremony, expires_at, now)
            .await?;
        Ok(asked.options)
    }

    /// Signs in by the answer of a passkey to such a challenge.
    pub async fn sign_in_by_passkey(
        &self,
        party: Option<&RelyingParty>,
        answer: &Value,
        visitor: Visitor<'_>,
    ) -> Result<SignedIn, Error> {
        let party = party.ok_or(NO_PARTY)?;
        let challenge = ceremony::challenge_of(answer).ok_or(Error::WrongPasskey)?;
        let passkeys = self.records().passkeys();
        let hash = SecretHash::of(&challenge);
        let Some(ceremony) = passkeys.take_challenge(&hash, self.now()).await? else {
            // Whoever answers without a challenge was not counted yet.
            self.count_begun(visitor)?;
            return Err(Error::WrongPasskey);
        };
        let id = ceremony::passkey_of(answer).unwrap_or_default();
        let candidates = passkeys.find(id, &party.id).await?;
        let mut subject = None;
        let entered = match self.proven(party, &candidates, &ceremony, answer).await? {
            Some(owned) => {
                subject = Some(owned);
                self.enter_by_passkey(owned).await
            }
            None => Err(Error::WrongPasskey),
        };
        if let Err(Error::WrongPasskey | Error::NotLetIn(_)) = &entered {
            let attempt = Attempt {
                name: ActName::SignInFailed,
                chain: subject.map_or(Scope::Installation, |it| Scope::Tenant(it.tenant.clone())),
                kind: "user",
                subject: subject.map_or_else(String::new, |it| it.user.to_string()),
                peer: None,
            };
            self.note_attempt(attempt.from(visitor.peer), None).await;
        }
        entered
    }

    /// The passkey that made the answer; `None` if it is of none of them, or a copy of it answered before.
    async fn proven<'p>(
        &self,
        party: &RelyingParty,
        candidates: &'p [OwnedPasskey],
        ceremony: &str,
        answer: &Value,
    ) -> Result<Option<&'p OwnedPasskey>, Error> {
        for owned in candidates {
            let OwnedPasskey { tenant, user, row } = owned;
            match ceremony::check_sign_in(party, owned, ceremony, answer) {
                Ok(counter) => {
                    let passkeys = self.records().passkeys();
                    let is_first = passkeys.used(tenant, user, row, &counter, self.now());
                    return Ok(is_first.await?.then_some(owned));
                }
                Err(error) => {
                    tracing::warn!(user.id = %user, %error, "A passkey was not accepted");
                }
            }
        }
        Ok(None)
    }

    async fn enter_by_passkey(&self, owned: &OwnedPasskey) -> Result<SignedIn, Error> {
        let tenant = self.records().tenants().find(&owned.tenant).await?;
        let users = self.records().users();
        let record = users.find(&owned.tenant, &owned.user).await?;
        let (Some(tenant), Some(record)) = (tenant, record) else {
            return Err(Error::WrongPasskey);
        };
        if record.is_suspended {
            return Err(NotLetIn::Suspended.into());
        }
        if record.is_disabled {
            return Err(NotLetIn::Disabled.into());
        }
        let admitted = self.admit_by_passkey(record.user, tenant).await?;
        admitted.ok_or(Error::WrongPasskey)
    }
}
