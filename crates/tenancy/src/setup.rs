//! Handles the first start, and single-use links that sign a person in without a password.

use secrecy::{ExposeSecret as _, SecretString};

use super::credential::{ABSOLUTE_MS, AuthenticatedCaller, IDLE_MS};
use super::sign_in::SignedIn;
use super::{DEFAULT_TENANT, Error, Tenancy, admin, password, secret};
use sepal_core::domain::{CredentialId, Role, Tenant, TenantId, Timestamp, User, UserId};
use sepal_store::records::{FirstOwner, NewUser, UserRecord};

/// The file of the data folder that holds the setup link until it is used.
const LINK_FILE: &str = "setup-link";

const LINK_LIFE_MS: u64 = 30 * 60_000;

/// The user name in the mode `auth.mode none`.
const LOCAL_NAME: &str = "local";

/// A single-use link. Its secret is in the fragment, so no server or log sees it.
pub struct Link {
    /// The whole address, which only the operator may see.
    pub address: SecretString,
    /// True if it opens the setup instead of signing in.
    pub is_setup: bool,
    pub expires_at: Timestamp,
}

/// Sets up an installation, and issues links.
#[derive(Clone, Copy)]
pub struct Setup<'a>(pub(super) &'a Tenancy);

impl Setup<'_> {
    /// Creates the default tenant. While there are no users, makes a new setup link, which is also written to
    /// the data folder; those of earlier starts become invalid.
    pub async fn start(self, base_url: &str) -> Result<Option<Link>, Error> {
        self.default_tenant().await?;
        self.forget_old().await?;
        self.0.records().links().remove_setup().await?;
        if !self.check_needed().await? {
            self.0.parts.dir.remove(LINK_FILE)?;
            return Ok(None);
        }
        Ok(Some(self.setup_link(base_url).await?))
    }

    /// Returns true if there are no users yet; the page then shows the setup instead of the sign-in.
    pub async fn check_needed(self) -> Result<bool, Error> {
        Ok(!self.0.records().users().exist().await?)
    }

    /// Creates the first owner, who also administers the installation. If two try at once, one wins and the
    /// other's link is `NotValid`.
    pub async fn complete(
        self,
        secret: &SecretString,
        name: &str,
        password: &SecretString,
    ) -> Result<SignedIn, Error> {
        let name = admin::check_user_name(name)?;
        password::check(password)?;
        let link = secret::hash(secret);
        let is_open = self
            .0
            .records()
            .links()
            .opens_setup(&link, self.0.now())
            .await?;
        if !is_open {
            return Err(Error::NotValid);
        }
        let tenant = self.default_tenant().await?;
        let first = FirstOwner {
            user: User {
                id: UserId::from_bits(rand::random()),
                tenant: tenant.id.clone(),
                name: name.to_owned(),
                role: Role::Owner,
                installation_admin: true,
            },
            password_hash: self.0.parts.passwords.hash(password).await?,
            link,
        };
        if !self
            .0
            .records()
            .users()
            .add_first(&first, self.0.now())
            .await?
        {
            return Err(Error::NotValid);
        }
        self.0.parts.dir.remove(LINK_FILE)?;
        let record = self
            .0
            .records()
            .users()
            .find_by_name(&tenant.id, name)
            .await?;
        let user = record.ok_or(Error::NotFound("user"))?.user;
        self.0.parts.checked.forget_user(&user.id);
        let admitted = self.0.admit(user, tenant, None).await?;
        admitted.ok_or(Error::NotValid)
    }

    /// Makes a link: to the setup if there are no users, otherwise for the named user or the first owner.
    pub async fn link(
        self,
        base_url: &str,
        tenant: Option<&str>,
        user: Option<&str>,
    ) -> Result<Link, Error> {
        if self.check_needed().await? {
            self.default_tenant().await?;
            return self.setup_link(base_url).await;
        }
        let tenant = self
            .0
            .administration()
            .find_tenant(tenant.unwrap_or(DEFAULT_TENANT))
            .await?;
        let users = self.0.records().users();
        let record = match user {
            Some(name) => users.find_by_name(&tenant.id, name).await?,
            None => users.first_owner(&tenant.id).await?,
        };
        let record = record.filter(UserRecord::may_sign_in);
        let user = record.ok_or(Error::NotFound("user"))?.user;
        self.new_link(base_url, &tenant.id, Some(&user.id)).await
    }

    /// Signs in by a link, which is used up.
    pub async fn sign_in_by_link(self, secret: &SecretString) -> Result<SignedIn, Error> {
        let link = secret::hash(secret);
        let target = self.0.records().links().open(&link, self.0.now()).await?;
        let target = target.ok_or(Error::NotValid)?;
        let tenant = self.0.records().tenants().find(&target.tenant).await?;
        let users = self.0.records().users();
        let user = users.find(&target.tenant, &target.user).await?;
        let user = user.filter(UserRecord::may_sign_in);
        match (tenant, user) {
            (Some(tenant), Some(record)) => {
                let admitted = self.0.admit(record.user, tenant, None).await?;
                admitted.ok_or(Error::NotValid)
            }
            _ => Err(Error::NotValid),
        }
    }

    /// Returns the caller in the mode `auth.mode none`: the first owner of the default tenant, created on
    /// demand. Only for requests from this machine, which the gateway has to check.
    pub async fn anonymous_caller(self) -> Result<AuthenticatedCaller, Error> {
        let tenant = self.default_tenant().await?;
        let users = self.0.records().users();
        let mut owner = users.first_owner(&tenant.id).await?;
        if owner.is_none() {
            let new = NewUser {
                user: User {
                    id: UserId::from_bits(rand::random()),
                    tenant: tenant.id.clone(),
                    name: LOCAL_NAME.into(),
                    role: Role::Owner,
                    installation_admin: true,
                },
                password_hash: None,
                is_local: true,
            };
            match users.add(&new, self.0.now()).await {
                // Another request was faster.
                Ok(()) | Err(sepal_store::Error::Taken(_)) => {}
                Err(error) => return Err(error.into()),
            }
            owner = users.first_owner(&tenant.id).await?;
        }
        let no_owner = Error::Refused("every owner of the default tenant is disabled");
        let user = owner.ok_or(no_owner)?.user;
        let credential = CredentialId::Local(user.id.clone());
        let caller = self.0.caller_of(user, tenant).await?;
        Ok(AuthenticatedCaller::new(caller, credential))
    }

    /// Removes expired links and sign-ins; for the janitor.
    pub async fn forget_old(self) -> Result<(), Error> {
        let now = self.0.now();
        let before = |ms: u64| Timestamp(now.0.saturating_sub_unsigned(ms));
        self.0.records().links().remove_old(now).await?;
        self.0.records().invitations().remove_old(now).await?;
        self.0.records().oidc_flows().remove_old(now).await?;
        self.0.records().session_readings().remove_old(now).await?;
        let sign_ins = self.0.records().web_sessions();
        sign_ins
            .end_old(before(IDLE_MS), before(ABSOLUTE_MS))
            .await?;
        Ok(())
    }

    async fn default_tenant(self) -> Result<Tenant, Error> {
        let tenants = self.0.records().tenants();
        if let Some(tenant) = tenants.find_by_name(DEFAULT_TENANT).await? {
            return Ok(tenant);
        }
        let tenant = Tenant {
            id: TenantId::from_bits(rand::random()),
            name: DEFAULT_TENANT.into(),
        };
        Ok(tenants.find_or_add(tenant, self.0.now()).await?)
    }

    async fn setup_link(self, base_url: &str) -> Result<Link, Error> {
        let tenant = self.default_tenant().await?;
        let link = self.new_link(base_url, &tenant.id, None).await?;
        let text = format!("{}\n", link.address.expose_secret());
        self.0.parts.dir.write_private(LINK_FILE, text.as_bytes())?;
        Ok(link)
    }

    async fn new_link(
        self,
        base_url: &str,
        tenant: &TenantId,
        user: Option<&UserId>,
    ) -> Result<Link, Error> {
        let secret = secret::random();
        let expires_at = Timestamp(self.0.now().0.saturating_add_unsigned(LINK_LIFE_MS));
        let links = self.0.records().links();
        links
            .add(&secret::hash(&secret), tenant, user, expires_at)
            .await?;
        let is_setup = user.is_none();
        let page = if is_setup { "welcome" } else { "sign-in" };
        let base = base_url.trim_end_matches('/');
        Ok(Link {
            address: format!("{base}/{page}#{}", secret.expose_secret()).into(),
            is_setup,
            expires_at,
        })
    }
}
