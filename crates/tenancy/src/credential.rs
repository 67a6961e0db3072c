//! Authenticates a cookie, key or ticket, and checks before each command that it is still valid.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use secrecy::SecretString;
use tokio::sync::broadcast;

use super::{Error, Tenancy, secret};
use sepal_core::domain::{ApiKeyId, Caller, CredentialId, TenantId, Timestamp, UserId};
use sepal_store::records::{AccountName, Admission, SecretHash, UserRecord};

/// The time for which a result of the database is cached.
const BELIEF_MS: u64 = 2_000;

/// The number of cached results above which old ones are dropped.
const MAX_CHECKED: usize = 10_000;

/// "Last used" is written at most this often.
pub(super) const TOUCH_MS: u64 = 5 * 60_000;

const DAY_MS: u64 = 24 * 60 * 60_000;

/// A browser that was not seen for this long has to sign in again.
pub(super) const IDLE_MS: u64 = 30 * DAY_MS;

/// Every browser has to sign in again after this time.
pub(super) const ABSOLUTE_MS: u64 = 90 * DAY_MS;

/// The begin of the issuer of accounts at the sign-in proxy. No provider's address begins with it.
const PROXY_ISSUER: &str = "proxy:";

/// The issuer of the accounts at the sign-in proxy of this name.
pub fn proxy_issuer(name: &str) -> String {
    format!("{PROXY_ISSUER}{name}")
}

/// A credential that a client presents.
pub enum Credential {
    /// The secret of a browser's cookie.
    Cookie(SecretString),
    /// An API key, `spl_…`.
    ApiKey(SecretString),
    /// A single-use ticket from the address.
    Ticket(SecretString),
}

/// An authenticated caller, and their credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticatedCaller {
    pub caller: Caller,
    /// The credential; for a ticket, the one that it was issued for.
    pub credential: CredentialId,
    /// The account at the sign-in proxy to which the sign-in is bound; `None` = to none.
    pub proxied: Option<AccountName>,
}

impl AuthenticatedCaller {
    /// Combines a caller with the credential.
    pub(super) fn new(caller: Caller, credential: CredentialId) -> Self {
        let caller = Caller {
            credential: Some(credential.clone()),
            ..caller
        };
        Self {
            caller,
            credential,
            proxied: None,
        }
    }

    /// Binds the sign-in to its account, if that is one at the sign-in proxy.
    pub(super) fn by_account(mut self, account: Option<AccountName>) -> Self {
        self.proxied = account.filter(|it| it.issuer.starts_with(PROXY_ISSUER));
        self
    }
}

/// An access that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// Every access of this tenant.
    Tenant(TenantId),
    /// Every access of this user.
    User(UserId),
    /// One sign-in or key.
    Credential(CredentialId),
}

impl Revocation {
    /// Returns true if this access is affected.
    pub fn concerns(&self, entered: &AuthenticatedCaller) -> bool {
        match self {
            Self::Tenant(tenant) => *tenant == entered.caller.tenant.id,
            Self::User(user) => *user == entered.caller.user.id,
            Self::Credential(credential) => *credential == entered.credential,
        }
    }
}

impl Tenancy {
    /// Authenticates a credential.
    pub async fn authenticate(
        &self,
        credential: &Credential,
    ) -> Result<AuthenticatedCaller, Error> {
        let now = self.now();
        let (secret, is_key) = match credential {
            Credential::Cookie(secret) => (secret, false),
            Credential::ApiKey(secret) => (secret, true),
            Credential::Ticket(ticket) => {
                let holder = self
                    .parts
                    .tickets
                    .take(ticket, now)
                    .ok_or(Error::NotValid)?;
                return self.refresh(&holder).await;
            }
        };
        let hash = secret::hash(secret);
        if let Some(known) = self.parts.checked.find_hash(&hash, now) {
            return Ok(known);
        }
        let entered = if is_key {
            let admission = self.records().api_keys().open(&hash, now).await?;
            self.admit_key(admission).await?
        } else {
            let admission = self.records().web_sessions().open(&hash).await?;
            self.admit_sign_in(admission).await?
        };
        self.parts
            .checked
            .remember(entered.clone(), Some(hash), now);
        Ok(entered)
    }

    /// Returns the same access with its current rights (at most 2 s old); `NotValid` if it was ended, also by
    /// a command beside the server.
    pub async fn refresh(
        &self,
        entered: &AuthenticatedCaller,
    ) -> Result<AuthenticatedCaller, Error> {
        let now = self.now();
        if let Some(known) = self.parts.checked.find(&entered.credential, now) {
            return Ok(known);
        }
        // Boxed: this is called before each command, but reads the database only every two seconds.
        match Box::pin(self.look_up(entered)).await {
            Ok(checked) => {
                self.parts.checked.remember(checked.clone(), None, now);
                Ok(checked)
            }
            Err(Error::NotValid) => {
                let ended = Revocation::Credential(entered.credential.clone());
                // Each socket that is told looks its access up as well: if every look told the sockets
                // again, they would keep each other busy for ever.
                if self.parts.checked.forget(&ended) {
                    self.tell(ended);
                }
                Err(Error::NotValid)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the access from the database.
    async fn look_up(&self, entered: &AuthenticatedCaller) -> Result<AuthenticatedCaller, Error> {
        let tenant = &entered.caller.tenant.id;
        match &entered.credential {
            CredentialId::SignIn(id) => {
                let admission = self.records().web_sessions().check(tenant, id).await?;
                self.admit_sign_in(admission).await
            }
            CredentialId::ApiKey(id) => {
                let admission = self
                    .records()
                    .api_keys()
                    .check(tenant, id, self.now())
                    .await?;
                self.admit_key(admission).await
            }
            CredentialId::Local(id) => self.admit_local(entered, id).await,
        }
    }

    /// Returns true if the access is still valid with exactly the same rights; called before each command.
    pub async fn check_still_valid(&self, entered: &AuthenticatedCaller) -> Result<bool, Error> {
        match self.refresh(entered).await {
            Ok(fresh) => Ok(fresh == *entered),
            Err(Error::NotValid) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Issues a ticket for an authenticated caller: single use, valid for one minute.
    pub fn issue_ticket(&self, holder: &AuthenticatedCaller) -> SecretString {
        self.parts.tickets.issue(holder, self.now())
    }

    /// Refuses a request of a page whose token does not match its cookie.
    pub fn check_csrf(&self, cookie: &SecretString, token: &str) -> Result<(), Error> {
        if secret::is_csrf(cookie, token) {
            return Ok(());
        }
        Err(Error::Refused("the CSRF token does not fit the sign-in"))
    }

    /// Drops cached results and tells the sockets.
    pub(super) fn revoke(&self, revoked: Revocation) {
        self.parts.checked.forget(&revoked);
        self.tell(revoked);
    }

    fn tell(&self, revoked: Revocation) {
        // It is fine if nobody listens.
        let _: Result<usize, broadcast::error::SendError<_>> = self.parts.revoked.send(revoked);
    }

    async fn admit_sign_in(
        &self,
        admission: Option<Admission>,
    ) -> Result<AuthenticatedCaller, Error> {
        let (admission, now) = (admission.ok_or(Error::NotValid)?, self.now());
        let unused_ms = now.since_ms(admission.used_at);
        if unused_ms >= IDLE_MS || now.since_ms(admission.created_at) >= ABSOLUTE_MS {
            return Err(Error::NotValid);
        }
        if unused_ms >= TOUCH_MS {
            let tenant = &admission.caller.tenant.id;
            let sign_ins = self.records().web_sessions();
            sign_ins.touch(tenant, &admission.credential, now).await?;
        }
        let credential = CredentialId::SignIn(admission.credential);
        let entered = AuthenticatedCaller::new(admission.caller, credential);
        Ok(entered.by_account(admission.account))
    }

    async fn admit_key(&self, admission: Option<Admission>) -> Result<AuthenticatedCaller, Error> {
        let (admission, now) = (admission.ok_or(Error::NotValid)?, self.now());
        let id = ApiKeyId::parse(&admission.credential).ok_or(Error::NotValid)?;
        if now.since_ms(admission.used_at) >= TOUCH_MS {
            let tenant = &admission.caller.tenant.id;
            self.records().api_keys().touch(tenant, &id, now).await?;
        }
        let credential = CredentialId::ApiKey(id);
        Ok(AuthenticatedCaller::new(admission.caller, credential))
    }

    async fn admit_local(
        &self,
        entered: &AuthenticatedCaller,
        id: &UserId,
    ) -> Result<AuthenticatedCaller, Error> {
        let tenant: &TenantId = &entered.caller.tenant.id;
        let found = self.records().users().find(tenant, id).await?;
        let found = found.filter(UserRecord::may_enter);
        let user = found.ok_or(Error::NotValid)?.user;
        let caller = self.caller_of(user, entered.caller.tenant.clone()).await?;
        Ok(AuthenticatedCaller::new(caller, entered.credential.clone()))
    }
}

/// Caches results of the database, so that a check per command costs no query.
#[derive(Default)]
pub(super) struct CredentialCache {
    /// Never held across an await.
    known: Mutex<CachedCredentials>,
}

#[derive(Default)]
struct CachedCredentials {
    entries: HashMap<CredentialId, (AuthenticatedCaller, Timestamp)>,
    hashes: HashMap<SecretHash, CredentialId>,
}

impl CredentialCache {
    fn find(&self, credential: &CredentialId, now: Timestamp) -> Option<AuthenticatedCaller> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.find(credential, now)
    }

    fn find_hash(&self, hash: &SecretHash, now: Timestamp) -> Option<AuthenticatedCaller> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.find(known.hashes.get(hash)?, now)
    }

    fn remember(&self, entered: AuthenticatedCaller, hash: Option<SecretHash>, now: Timestamp) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.entries.len() >= MAX_CHECKED || known.hashes.len() >= MAX_CHECKED {
            *known = CachedCredentials::default();
        }
        if let Some(hash) = hash {
            known.hashes.insert(hash, entered.credential.clone());
        }
        known
            .entries
            .insert(entered.credential.clone(), (entered, now));
    }

    /// Drops the cached results of access that ended. Returns false if there was none.
    fn forget(&self, revoked: &Revocation) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.entries.len();
        known
            .entries
            .retain(|_, (entered, _)| !revoked.concerns(entered));
        known.entries.len() < before
    }

    /// Drops one user's cached results without ending anything, so that new rights apply at once.
    pub(super) fn forget_user(&self, user: &UserId) {
        self.forget(&Revocation::User(user.clone()));
    }

    /// The same for everybody in a tenant.
    pub(super) fn forget_tenant(&self, tenant: &TenantId) {
        self.forget(&Revocation::Tenant(tenant.clone()));
    }
}

impl CachedCredentials {
    fn find(&self, credential: &CredentialId, now: Timestamp) -> Option<AuthenticatedCaller> {
        let (entered, since) = self.entries.get(credential)?;
        // A clock that was set back must not make results fresh again.
        let is_fresh = now >= *since && now.since_ms(*since) < BELIEF_MS;
        is_fresh.then(|| entered.clone())
    }
}
