//! Signs people in and out with name and password.

use std::net::IpAddr;

use secrecy::SecretString;

use super::credential::{AuthenticatedCaller, Revocation};
use super::refusals::Attempt;
use super::{DEFAULT_TENANT, Error, Tenancy, password, secret};
use sepal_core::domain::{Caller, CredentialId, Scope, Tenant, TenantId, User};
use sepal_store::audit::ActName;
use sepal_store::records::{NewWebSession, UserRecord};

/// A new sign-in of a browser.
pub struct SignedIn {
    /// The caller, and their sign-in.
    pub entered: AuthenticatedCaller,
    /// The secret for the cookie; stored nowhere.
    pub secret: SecretString,
    pub csrf: String,
}

impl Tenancy {
    /// Signs in by name and password. `peer` is the client's own address.
    pub async fn sign_in(
        &self,
        tenant: Option<&str>,
        name: &str,
        password: &SecretString,
        peer: IpAddr,
    ) -> Result<SignedIn, Error> {
        let tenant_name = tenant.unwrap_or(DEFAULT_TENANT);
        let name = name.trim();
        let limits = &self.parts.limits;
        if let Err(error) = limits.attempt(peer, &format!("{tenant_name}/{name}")) {
            let attempt = Attempt {
                name: ActName::SignInLimited,
                chain: Scope::Installation,
                kind: "installation",
                subject: String::new(),
                peer: None,
            };
            self.note_attempt(attempt.from(peer), None).await;
            return Err(error);
        }
        let tenant = self.records().tenants().find_by_name(tenant_name).await?;
        // An unknown tenant costs the same look-up and the same hash as a known one.
        let nowhere = TenantId::from_bits(0);
        let tenant_id = tenant.as_ref().map_or(&nowhere, |tenant| &tenant.id);
        let record = self.records().users().find_by_name(tenant_id, name).await?;
        // Names that nobody has are not told: people type passwords there.
        let attempt = Attempt {
            name: ActName::SignInFailed,
            chain: match &tenant {
                Some(tenant) => Scope::Tenant(tenant.id.clone()),
                None => Scope::Installation,
            },
            kind: "user",
            subject: record
                .as_ref()
                .map_or_else(String::new, |it| it.user.id.to_string()),
            peer: None,
        };
        let record = record.filter(UserRecord::may_sign_in);
        let hash = record.as_ref().and_then(|r| r.password_hash.clone());
        let fits = self.parts.passwords.verify(password, hash.clone()).await?;
        let admitted = match (tenant, record) {
            (Some(tenant), Some(record)) if fits => self.admit(record.user, tenant, hash).await?,
            _ => None,
        };
        if admitted.is_none() {
            self.note_attempt(attempt.from(peer), None).await;
        }
        admitted.ok_or(Error::WrongPassword)
    }

    /// Ends a sign-in and closes its sockets. Keys are revoked, not signed out.
    pub async fn sign_out(&self, entered: &AuthenticatedCaller) -> Result<(), Error> {
        if let CredentialId::SignIn(id) = &entered.credential {
            let tenant = &entered.caller.tenant.id;
            self.records().web_sessions().end(tenant, id).await?;
            self.revoke(Revocation::Credential(entered.credential.clone()));
        }
        Ok(())
    }

    /// Changes the caller's own password and ends their other sign-ins. `old` is required if they have a
    /// password.
    pub async fn change_password(
        &self,
        entered: &AuthenticatedCaller,
        old: Option<&SecretString>,
        new: &SecretString,
    ) -> Result<(), Error> {
        if matches!(entered.credential, CredentialId::ApiKey(_)) {
            return Err(Error::Refused(
                "a key cannot change the password: sign in with a browser",
            ));
        }
        password::check(new)?;
        let (tenant, user) = (&entered.caller.tenant.id, &entered.caller.user.id);
        let record = self.records().users().find(tenant, user).await?;
        let record = record.ok_or(Error::NotFound("user"))?;
        let identities = self.records().identities();
        if record.password_hash.is_none() && identities.has_any(tenant, user).await? {
            // A password would let them in after their company has closed their account.
            return Err(Error::Refused(
                "you sign in with your company's account, and need no password here",
            ));
        }
        if let Some(hash) = record.password_hash {
            self.parts.limits.attempt_of(user.as_str())?;
            let old = old.ok_or(Error::WrongPassword)?;
            if !self.parts.passwords.verify(old, Some(hash)).await? {
                return Err(Error::WrongPassword);
            }
        }
        let hash = self.parts.passwords.hash(new).await?;
        let kept = match &entered.credential {
            CredentialId::SignIn(id) => Some(id.as_str()),
            CredentialId::ApiKey(_) | CredentialId::Local(_) => None,
        };
        self.administration()
            .replace_password(tenant, user, &hash, kept)
            .await
    }

    /// The caller that a user is now, with the rights of their custom roles.
    pub(super) async fn caller_of(&self, user: User, tenant: Tenant) -> Result<Caller, Error> {
        let roles = self.records().custom_roles();
        Ok(Caller {
            custom_rights: roles.rights_of(&tenant.id, &user.id).await?,
            user,
            tenant,
            credential: None,
            grant: None,
        })
    }

    /// Stores a new sign-in; `None` if its user or password changed meanwhile.
    pub(super) async fn admit(
        &self,
        user: User,
        tenant: Tenant,
        verified: Option<String>,
    ) -> Result<Option<SignedIn>, Error> {
        let (new, secret) = new_sign_in(&user, verified);
        if !self.records().web_sessions().add(&new, self.now()).await? {
            return Ok(None);
        }
        let caller = self.caller_of(user, tenant).await?;
        Ok(Some(SignedIn::new(caller, new.id, secret)))
    }
}

impl SignedIn {
    /// A stored sign-in with its secret.
    pub(super) fn new(caller: Caller, id: String, secret: SecretString) -> Self {
        Self {
            entered: AuthenticatedCaller::new(caller, CredentialId::SignIn(id)),
            csrf: secret::csrf_of(&secret),
            secret,
        }
    }
}

/// Makes a sign-in to store, with the secret of its cookie.
pub(super) fn new_sign_in(user: &User, verified: Option<String>) -> (NewWebSession, SecretString) {
    let secret = secret::random();
    let new = NewWebSession {
        tenant: user.tenant.clone(),
        id: format!("sgn_{:032x}", rand::random::<u128>()),
        user: user.id.clone(),
        hash: secret::hash(&secret),
        verified,
    };
    (new, secret)
}
