//! Makes gestures by a new sign-in at the OpenID provider of the person's account, for people who have neither a
//! passkey nor a password here.
//!
//! The confirmation is bound to the calls, to the person, and to the browser that began it. The provider has to check
//! the person anew (`auth_time`), and in the way that the operator wants (`acr`).

use secrecy::SecretString;

use super::{GestureError, Gestures, Proof};
use crate::identity::{BegunSignIn, FlowSecrets};
use crate::{Error, secret};
use sepal_core::domain::{CredentialId, GestureCall, GestureMeans};
use sepal_store::records::{AccountName, StepUp};

/// The age, in seconds, above which the provider's check of the person is too old.
const MAX_AGE_S: i64 = 120;

/// The difference, in seconds, by which the provider's clock may be ahead.
const SKEW_S: i64 = 60;

/// What a provider says about somebody who confirmed something there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    pub account: AccountName,
    /// When the provider checked who they are, in seconds since 1970.
    pub auth_time_s: Option<i64>,
    /// The way of the check.
    pub acr: Option<String>,
}

/// A confirmation whose browser came back.
pub struct ResumedStepUp {
    /// The provider's name in the settings.
    pub provider: String,
    pub secrets: FlowSecrets,
    pub calls: Vec<GestureCall>,
}

impl Gestures<'_> {
    /// True if the person has neither a passkey nor a password here.
    pub(super) async fn has_nothing(&self) -> Result<bool, GestureError> {
        let (tenant, user) = self.whose();
        let passkeys = self.tenancy.records().passkeys();
        let has_passkey = !passkeys.list(tenant, user).await?.is_empty();
        Ok(!has_passkey && self.password_hash().await?.is_none())
    }

    /// The accounts by which the person signs in.
    pub(super) async fn accounts(&self) -> Result<Vec<AccountName>, GestureError> {
        let (tenant, user) = self.whose();
        let identities = self.tenancy.records().identities();
        Ok(identities.of_user(tenant, user).await?)
    }

    /// The issuer at which the person can confirm, because they have neither a passkey nor a password. `knows` tells whether people can be sent to an issuer.
    pub async fn issuer(
        &self,
        knows: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<String, GestureError> {
        self.check_is_browser()?;
        if !self.has_nothing().await? {
            let text = "you have a passkey or a password here: confirm with it";
            return Err(GestureError::new("provider", text));
        }
        let accounts = self.accounts().await?.into_iter();
        let issuer = accounts.map(|it| it.issuer).find(|issuer| knows(issuer));
        issuer.ok_or_else(|| GestureError::new("provider", NO_ACCOUNT))
    }

    /// Begins a confirmation of these calls at a provider. `browser` is the cookie of another flow that this browser
    /// began.
    pub async fn begin_at_provider(
        &self,
        provider: &str,
        browser: Option<SecretString>,
        calls: Vec<GestureCall>,
    ) -> Result<BegunSignIn, GestureError> {
        self.check_is_browser()?;
        if calls.is_empty() {
            return Err(GestureError::new("calls", "no call is named"));
        }
        let (tenant, user) = self.whose();
        let limits = &self.tenancy.parts.limits;
        limits.attempt_of(&format!("{user} provider"))?;
        let step_up = StepUp {
            tenant: tenant.clone(),
            user: user.clone(),
            calls,
        };
        let begun = self
            .tenancy
            .begin_flow(provider, browser, String::new(), Some(step_up));
        Ok(begun.await?)
    }

    /// Uses up a confirmation that this browser began.
    pub async fn resume_at_provider(
        &self,
        browser: &SecretString,
        state: SecretString,
    ) -> Result<ResumedStepUp, GestureError> {
        self.check_is_browser()?;
        let (of_state, of_browser) = (secret::hash(&state), secret::hash(browser));
        let flows = self.tenancy.records().oidc_flows();
        let taken = flows.take_step_up(&of_state, &of_browser, self.now());
        let expired = || GestureError::new("state", TOO_LATE);
        let (provider, step_up) = taken.await?.ok_or_else(expired)?;
        if (&step_up.tenant, &step_up.user) != self.whose() {
            return Err(expired());
        }
        Ok(ResumedStepUp {
            provider,
            secrets: FlowSecrets::of(browser, state),
            calls: step_up.calls,
        })
    }

    /// Makes the gesture of a confirmation, if the provider has just checked that it is this person, in one of the
    /// ways `acr_values`; empty = in any.
    pub async fn by_provider(
        &self,
        confirmation: &Confirmation,
        acr_values: &[String],
        calls: &[GestureCall],
    ) -> Result<Vec<Proof>, GestureError> {
        let wrong = |text: &str| {
            tracing::warn!(user.id = %self.caller.user.id, "A confirmation did not count: {text}");
            Err(GestureError::new("provider", text))
        };
        if !self.accounts().await?.contains(&confirmation.account) {
            return wrong(OTHER_ACCOUNT);
        }
        let now_s = self.now().0.div_euclid(1_000);
        let is_fresh = confirmation.auth_time_s.is_some_and(|at| {
            at >= now_s.saturating_sub(MAX_AGE_S) && at <= now_s.saturating_add(SKEW_S)
        });
        if !is_fresh {
            return wrong(NOT_ANEW);
        }
        let acr = confirmation.acr.as_ref();
        if !acr_values.is_empty() && !acr.is_some_and(|it| acr_values.contains(it)) {
            return wrong(OTHER_WAY);
        }
        self.prove(GestureMeans::Provider, calls).await
    }

    /// Refuses API keys: only a browser can be sent to a provider.
    fn check_is_browser(&self) -> Result<(), GestureError> {
        match self.caller.credential {
            Some(CredentialId::SignIn(_)) => Ok(()),
            Some(CredentialId::ApiKey(_) | CredentialId::Local(_)) | None => {
                let text = "only a person who is signed in to the page can confirm at a provider";
                Err(Error::Refused(text).into())
            }
        }
    }
}

const NO_ACCOUNT: &str =
    "you have no account at a provider that this installation knows: add a passkey in the settings";
const TOO_LATE: &str = "the confirmation was begun in another browser, has been used, or took longer than 10 minutes: \
     begin again";
const OTHER_ACCOUNT: &str =
    "another account confirmed at the provider: confirm with the account by which you sign in";
const NOT_ANEW: &str = "the provider did not check anew who you are: try again, and sign in there again; if that \
     does not help, add a passkey in the settings";
const OTHER_WAY: &str = "the provider did not check you in the way that this installation requires: sign in there with \
     your strongest factor, or ask your administrator";
