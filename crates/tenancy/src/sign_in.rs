//! Signs people in and out with name and password.

use secrecy::SecretString;

use super::credential::{AuthenticatedCaller, Revocation};
use super::device::Visitor;
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

/// The tenant and the person of a sign-in form, as far as they exist.
struct Named {
    tenant: Option<Tenant>,
    record: Option<UserRecord>,
}

impl Tenancy {
    /// Signs in by name and password.
    pub async fn sign_in(
        &self,
        tenant: Option<&str>,
        name: &str,
        password: &SecretString,
        visitor: Visitor<'_>,
    ) -> Result<SignedIn, Error> {
        let tenant_name = tenant.unwrap_or(DEFAULT_TENANT);
        let (name, peer) = (name.trim(), visitor.peer);
        let device = self.device(visitor.device);
        let known = match &device {
            // Whose browser it is has to be known before the attempt is counted.
            Some(device) => {
                let named = self.find_named(tenant_name, name).await?;
                let record = named.record.as_ref();
                let is_theirs = record.is_some_and(|it| it.user.id == device.user);
                is_theirs.then_some((named, device))
            }
            None => None,
        };
        let limits = &self.parts.limits;
        let counted = match &known {
            Some((_, device)) => limits.attempt_from(device),
            None => limits.attempt(peer, &format!("{tenant_name}/{name}")),
        };
        if let Err(error) = counted {
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
        let Named { tenant, record } = match known {
            Some((named, _)) => named,
            None => self.find_named(tenant_name, name).await?,
        };
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
        // Whoever signs in by passkeys alone is refused as if the password were wrong.
        let hash = record.as_ref().and_then(UserRecord::usable_password);
        let hash = hash.map(str::to_owned);
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

    /// Looks up whom a tenant's name and a name mean.
    async fn find_named(&self, tenant: &str, name: &str) -> Result<Named, Error> {
        let tenant = self.records().tenants().find_by_name(tenant).await?;
        // An unknown tenant costs the same look-up and the same hash as a known one.
        let nowhere = TenantId::from_bits(0);
        let tenant_id = tenant.as_ref().map_or(&nowhere, |tenant| &tenant.id);
        let record = self.records().users().find_by_name(tenant_id, name).await?;
        Ok(Named { tenant, record })
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
        if record.is_passkey_only {
            return Err(Error::Refused(
                "you sign in by passkeys alone: allow your password again in the settings first",
            ));
        }
        if let Some(hash) = record.password_hash {
            self.parts.limits.attempt_of(&format!("{user} browser"))?;
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
        let new = new_sign_in(&user, verified);
        self.admit_new(user, tenant, new).await
    }

    /// The same for a user who signed in by a passkey.
    pub(super) async fn admit_by_passkey(
        &self,
        user: User,
        tenant: Tenant,
    ) -> Result<Option<SignedIn>, Error> {
        let (new, secret) = new_sign_in(&user, None);
        let by_passkey = true;
        let new = NewWebSession { by_passkey, ..new };
        self.admit_new(user, tenant, (new, secret)).await
    }

    async fn admit_new(
        &self,
        user: User,
        tenant: Tenant,
        (new, secret): (NewWebSession, SecretString),
    ) -> Result<Option<SignedIn>, Error> {
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
        by_passkey: false,
    };
    (new, secret)
}
