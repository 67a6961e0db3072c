//! Administers tenants, users and keys. The door checks who may do this: the command line may do everything,
//! the gateway checks the caller's role.

use secrecy::{ExposeSecret as _, SecretString};

use super::credential::Revocation;
use super::{Error, Tenancy, password, secret};
use sepal_core::domain::{
    ApiKeyId, CredentialId, KeyGrant, KeyScope, Role, SessionKey, Tenant, TenantId, Timestamp,
    User, UserId,
};
use sepal_store::records::{
    ApiKey, Invitation, ListedTenant, NewApiKey, NewUser, SignIn, TenantStanding,
};

pub(super) const MAX_NAME_CHARS: usize = 64;

const DAY_MS: i64 = 24 * 60 * 60_000;

/// The longest life of an invitation, in days.
const MOST_INVITATION_DAYS: u32 = 30;

/// The most open invitations of a tenant.
const MOST_INVITATIONS: usize = 1_000;

/// The most sessions, and the most servers, to which a key is limited.
const MOST_LIMITS: usize = 20;

const NEVER_OWNER: Error = Error::Refused("a service account is never an owner of the tenant");

const NO_BROWSER: Error =
    Error::Refused("a service account signs in with no browser: it has keys, and nothing else");

const LAST_OWNER: Error = Error::Refused("a tenant needs an owner who may enter");

/// A user to create.
pub struct NewPerson {
    pub name: String,
    /// Their role.
    pub role: Role,
    /// True if they also administer the installation.
    pub installation_admin: bool,
    /// Without a password they sign in by a link, or use a key.
    pub password: Option<SecretString>,
}

/// A user as administrators see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub user: User,
    /// True if they may not sign in.
    pub is_disabled: bool,
    /// True if they can sign in by password.
    pub has_password: bool,
    /// True for a service account.
    pub is_service: bool,
}

/// An invitation to make.
pub struct NewInvitation {
    /// The role that the new person gets.
    pub role: Role,
    /// For whom it is meant, in the words of who invites; may be empty.
    pub note: String,
    /// Its life in days, from 1 to 30.
    pub days: u32,
}

/// A new invitation; its secret is shown once.
pub struct CreatedInvitation {
    pub invitation: Invitation,
    /// The part of the link that lets the person in; stored nowhere.
    pub secret: SecretString,
}

impl CreatedInvitation {
    /// The link at this address of the installation. Its secret is in the fragment, so no server or log sees it.
    pub fn link(&self, base_url: &str) -> SecretString {
        let base = base_url.trim_end_matches('/');
        format!("{base}/join#{}", self.secret.expose_secret()).into()
    }
}

/// A key to create.
pub struct NewKey {
    /// Its purpose.
    pub name: String,
    /// The time from which it is not valid any more; `None` = it is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// What it may do beyond what its user may.
    pub grant: KeyGrant,
}

impl NewKey {
    /// A key that may whatever its user may, until it is revoked.
    pub fn unlimited(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            expires_at: None,
            grant: KeyGrant::unlimited(),
        }
    }
}

/// A new key; its secret is shown once.
pub struct CreatedKey {
    pub id: ApiKeyId,
    /// `spl_…`; stored nowhere.
    pub secret: SecretString,
}

/// Changes tenants, people and keys for administrators.
#[derive(Clone, Copy)]
pub struct Administration<'a>(pub(super) &'a Tenancy);

impl Administration<'_> {
    /// Creates a tenant.
    pub async fn create_tenant(self, name: &str) -> Result<Tenant, Error> {
        let tenant = Tenant {
            id: TenantId::from_bits(rand::random()),
            name: check_tenant_name(name)?.to_owned(),
        };
        self.0
            .records()
            .tenants()
            .add(&tenant, self.0.now())
            .await?;
        Ok(tenant)
    }

    /// All tenants by name.
    pub async fn tenants(self) -> Result<Vec<Tenant>, Error> {
        Ok(self.0.records().tenants().list().await?)
    }

    /// All tenants by name, with what administrators of the installation see of them.
    pub async fn tenants_with_use(self) -> Result<Vec<ListedTenant>, Error> {
        Ok(self.0.records().tenants().list_with_use().await?)
    }

    /// The tenant with that id.
    pub async fn tenant(self, id: &TenantId) -> Result<Tenant, Error> {
        let found = self.0.records().tenants().find(id).await?;
        found.ok_or(Error::NotFound("tenant"))
    }

    /// The tenant of that name.
    pub async fn find_tenant(self, name: &str) -> Result<Tenant, Error> {
        let found = self.0.records().tenants().find_by_name(name).await?;
        found.ok_or(Error::NotFound("tenant"))
    }

    /// Suspends a tenant: nobody can sign in, sockets and turns end within seconds, and keys are refused.
    pub async fn suspend_tenant(self, tenant: &TenantId) -> Result<(), Error> {
        let tenants = self.0.records().tenants();
        tenants.suspend(tenant, self.0.now()).await?;
        self.0.revoke(Revocation::Tenant(tenant.clone()));
        Ok(())
    }

    /// Ends the suspension of a tenant.
    pub async fn resume_tenant(self, tenant: &TenantId) -> Result<(), Error> {
        if self.0.records().tenants().resume(tenant).await? {
            return Ok(());
        }
        Err(Error::Refused(
            "the tenant is being deleted, which cannot be taken back",
        ))
    }

    /// Deletes a tenant: nobody can enter any more, and a running gateway, or the next one that starts,
    /// deletes all its data within seconds.
    pub async fn delete_tenant(self, tenant: &TenantId) -> Result<(), Error> {
        let tenants = self.0.records().tenants();
        tenants.give_up(tenant, self.0.now()).await?;
        self.0.revoke(Revocation::Tenant(tenant.clone()));
        Ok(())
    }

    /// The standing of a tenant.
    pub async fn standing(self, tenant: &TenantId) -> Result<TenantStanding, Error> {
        Ok(self.0.records().tenants().standing(tenant).await?)
    }

    /// Returns true if people of a tenant may share sessions by link.
    pub async fn allows_links(self, tenant: &TenantId) -> Result<bool, Error> {
        Ok(self.0.records().tenants().allows_links(tenant).await?)
    }

    /// Allows or forbids sharing by link; existing links stop working when it is forbidden.
    pub async fn set_allows_links(
        self,
        tenant: &TenantId,
        allows_links: bool,
    ) -> Result<(), Error> {
        let tenants = self.0.records().tenants();
        Ok(tenants.set_allows_links(tenant, allows_links).await?)
    }

    /// Creates a user.
    pub async fn create_user(self, tenant: &TenantId, new: NewPerson) -> Result<User, Error> {
        let name = check_user_name(&new.name)?;
        let password_hash = match &new.password {
            Some(password) => {
                password::check(password)?;
                Some(self.0.parts.passwords.hash(password).await?)
            }
            None => None,
        };
        let user = User {
            id: UserId::from_bits(rand::random()),
            tenant: tenant.clone(),
            name: name.to_owned(),
            role: new.role,
            installation_admin: new.installation_admin,
        };
        let record = NewUser {
            user: user.clone(),
            password_hash,
            is_local: false,
        };
        self.0.records().users().add(&record, self.0.now()).await?;
        Ok(user)
    }

    /// Creates a service account, which has keys and no other way in.
    pub async fn create_service_account(
        self,
        tenant: &TenantId,
        name: &str,
        role: Role,
    ) -> Result<User, Error> {
        if role == Role::Owner {
            return Err(NEVER_OWNER);
        }
        let user = User {
            id: UserId::from_bits(rand::random()),
            tenant: tenant.clone(),
            name: check_user_name(name)?.to_owned(),
            role,
            installation_admin: false,
        };
        let users = self.0.records().users();
        users.add_service(&user, self.0.now()).await?;
        Ok(user)
    }

    /// Renames a service account, from its next command on.
    pub async fn rename_service_account(
        self,
        tenant: &TenantId,
        user: &UserId,
        name: &str,
    ) -> Result<(), Error> {
        let name = check_user_name(name)?;
        let users = self.0.records().users();
        if !users.rename_service(tenant, user, name).await? {
            return Err(Error::Refused("only service accounts are renamed"));
        }
        self.0.parts.checked.forget_user(user);
        Ok(())
    }

    /// Refuses what only people who sign in have.
    async fn check_is_person(self, tenant: &TenantId, user: &UserId) -> Result<(), Error> {
        let found = self.0.records().users().find(tenant, user).await?;
        if found.is_some_and(|record| record.is_service()) {
            return Err(NO_BROWSER);
        }
        Ok(())
    }

    /// Invites a person, who gives themselves a name and a password. `by` is the user who invites; `None` = the
    /// operator.
    pub async fn invite(
        self,
        tenant: &TenantId,
        by: Option<&UserId>,
        new: NewInvitation,
    ) -> Result<CreatedInvitation, Error> {
        if new.days == 0 || new.days > MOST_INVITATION_DAYS {
            return Err(Error::Invalid {
                field: "days",
                reason: "is a number from 1 to 30",
            });
        }
        let now = self.0.now();
        let invitations = self.0.records().invitations();
        let known = invitations.list(tenant).await?;
        let open = known
            .iter()
            .filter(|it| it.used.is_none() && it.expires_at > now);
        if open.count() >= MOST_INVITATIONS {
            return Err(Error::Refused(
                "there are 1000 open invitations: take some back first",
            ));
        }
        let secret = secret::random();
        let life = i64::from(new.days).saturating_mul(DAY_MS);
        let invitation = Invitation {
            tenant: tenant.clone(),
            id: format!("inv_{:032x}", rand::random::<u128>()),
            role: new.role,
            note: check_label("note", &new.note)?.to_owned(),
            invited_by: by.cloned(),
            created_at: now,
            expires_at: Timestamp(now.0.saturating_add(life)),
            used: None,
        };
        invitations.add(&invitation, &secret::hash(&secret)).await?;
        Ok(CreatedInvitation { invitation, secret })
    }

    /// The users of a tenant by name.
    pub async fn users(self, tenant: &TenantId) -> Result<Vec<Person>, Error> {
        let records = self.0.records().users().list(tenant).await?;
        let person = |record: sepal_store::records::UserRecord| Person {
            is_service: record.is_service(),
            has_password: record.password_hash.is_some(),
            is_disabled: record.is_disabled,
            user: record.user,
        };
        Ok(records.into_iter().map(person).collect())
    }

    /// The user of that name, disabled or not.
    pub async fn find_user(self, tenant: &TenantId, name: &str) -> Result<User, Error> {
        let found = self.0.records().users().find_by_name(tenant, name).await?;
        Ok(found.ok_or(Error::NotFound("user"))?.user)
    }

    /// Changes a user's role, from their next command on.
    pub async fn set_role(self, tenant: &TenantId, user: &UserId, role: Role) -> Result<(), Error> {
        if !self
            .0
            .records()
            .users()
            .set_role(tenant, user, role)
            .await?
        {
            return Err(self.missing_or_last_owner(tenant, user).await?);
        }
        self.0.parts.checked.forget_user(user);
        Ok(())
    }

    /// Sets whether a user administers the installation, from their next command on.
    pub async fn set_installation_admin(
        self,
        tenant: &TenantId,
        user: &UserId,
        is_admin: bool,
    ) -> Result<(), Error> {
        self.check_is_person(tenant, user).await?;
        let users = self.0.records().users();
        if !users.set_installation_admin(tenant, user, is_admin).await? {
            return Err(Error::NotFound("user"));
        }
        self.0.parts.checked.forget_user(user);
        Ok(())
    }

    /// Disables a user, with their sign-ins, keys and sockets.
    pub async fn disable_user(self, tenant: &TenantId, user: &UserId) -> Result<(), Error> {
        if !self.0.records().users().disable(tenant, user).await? {
            return Err(self.missing_or_last_owner(tenant, user).await?);
        }
        self.0.revoke(Revocation::User(user.clone()));
        Ok(())
    }

    /// Enables a user again; keys work again, sign-ins do not.
    pub async fn enable_user(self, tenant: &TenantId, user: &UserId) -> Result<(), Error> {
        if self.0.records().users().enable(tenant, user).await? {
            return Ok(());
        }
        Err(Error::NotFound("user"))
    }

    /// Deletes a user: they cannot enter any more, and a running gateway, or the next one that starts, deletes
    /// everything of theirs within seconds.
    pub async fn delete_user(self, tenant: &TenantId, user: &UserId) -> Result<(), Error> {
        let users = self.0.records().users();
        if !users.give_up(tenant, user, self.0.now()).await? {
            return Err(self.missing_or_last_owner(tenant, user).await?);
        }
        self.0.revoke(Revocation::User(user.clone()));
        Ok(())
    }

    /// Sets a password without knowing the old one and ends the user's sign-ins.
    pub async fn set_password(
        self,
        tenant: &TenantId,
        user: &UserId,
        new: &SecretString,
    ) -> Result<(), Error> {
        password::check(new)?;
        self.check_is_person(tenant, user).await?;
        let hash = self.0.parts.passwords.hash(new).await?;
        self.replace_password(tenant, user, &hash, None).await
    }

    /// Creates a key with the rights of a user, valid until it is revoked.
    pub async fn create_key(
        self,
        tenant: &TenantId,
        user: &UserId,
        name: &str,
    ) -> Result<CreatedKey, Error> {
        self.add_key(tenant, user, NewKey::unlimited(name)).await
    }

    /// Creates a key with the rights of a user.
    pub async fn add_key(
        self,
        tenant: &TenantId,
        user: &UserId,
        new: NewKey,
    ) -> Result<CreatedKey, Error> {
        let name = check_label("name", &new.name)?;
        let found = self.0.records().users().find(tenant, user).await?;
        found.ok_or(Error::NotFound("user"))?;
        self.check_grant(tenant, user, &new.grant).await?;
        let id = ApiKeyId::from_bits(rand::random());
        let secret = secret::api_key(&id);
        let key = NewApiKey {
            tenant: tenant.clone(),
            id: id.clone(),
            user: user.clone(),
            name: name.to_owned(),
            hash: secret::hash(&secret),
            expires_at: new.expires_at,
            grant: new.grant,
        };
        self.0.records().api_keys().add(&key, self.0.now()).await?;
        Ok(CreatedKey { id, secret })
    }

    /// Checks that a grant allows something, and that its limits are of the key's user.
    async fn check_grant(
        self,
        tenant: &TenantId,
        user: &UserId,
        grant: &KeyGrant,
    ) -> Result<(), Error> {
        let invalid = |field, reason| Error::Invalid { field, reason };
        if grant.scopes.is_empty() {
            return Err(invalid(
                "scopes",
                "names no scope: the key could do nothing",
            ));
        }
        if grant.is_confined() && grant.scopes.has(KeyScope::Administer) {
            let reason =
                "has `administer`, which a key that is limited to sessions or servers cannot have";
            return Err(invalid("scopes", reason));
        }
        if let Some(servers) = &grant.servers {
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            let is_name = |name: &String| {
                (1..=MAX_NAME_CHARS).contains(&name.len()) && name.bytes().all(is_letter)
            };
            if !(1..=MOST_LIMITS).contains(&servers.len()) || !servers.iter().all(is_name) {
                return Err(invalid("servers", "has 1 to 20 names of MCP servers"));
            }
        }
        let Some(sessions) = &grant.sessions else {
            return Ok(());
        };
        if !(1..=MOST_LIMITS).contains(&sessions.len()) {
            return Err(invalid("sessions", "has 1 to 20 ids of sessions"));
        }
        let keys: Vec<SessionKey> = sessions
            .iter()
            .map(|session| SessionKey {
                tenant: tenant.clone(),
                session: session.clone(),
            })
            .collect();
        let found = self.0.records().sessions().find_all(keys.iter()).await?;
        let own = found.iter().filter(|row| row.owner == *user);
        if own.count() < sessions.len() {
            let reason = "names a session that is not one of the person whose rights the key has";
            return Err(invalid("sessions", reason));
        }
        Ok(())
    }

    /// The keys of a tenant, newest first, revoked ones included.
    pub async fn keys(self, tenant: &TenantId) -> Result<Vec<ApiKey>, Error> {
        Ok(self.0.records().api_keys().list(tenant).await?)
    }

    /// Revokes a key and closes its sockets.
    pub async fn revoke_key(self, tenant: &TenantId, id: &ApiKeyId) -> Result<(), Error> {
        let keys = self.0.records().api_keys();
        if !keys.revoke(tenant, id, self.0.now()).await? {
            return Err(Error::NotFound("key"));
        }
        self.0
            .revoke(Revocation::Credential(CredentialId::ApiKey(id.clone())));
        Ok(())
    }

    /// Stores a hash, and ends the user's sign-ins except `kept`.
    pub(super) async fn replace_password(
        self,
        tenant: &TenantId,
        user: &UserId,
        hash: &str,
        kept: Option<&str>,
    ) -> Result<(), Error> {
        let sign_ins = self
            .0
            .records()
            .web_sessions()
            .of_user(tenant, user)
            .await?;
        let users = self.0.records().users();
        if !users.set_password(tenant, user, hash, kept).await? {
            return Err(Error::NotFound("user"));
        }
        for SignIn { id, .. } in sign_ins {
            if Some(id.as_str()) != kept {
                let ended = CredentialId::SignIn(id);
                self.0.revoke(Revocation::Credential(ended));
            }
        }
        Ok(())
    }

    async fn missing_or_last_owner(self, tenant: &TenantId, user: &UserId) -> Result<Error, Error> {
        let found = self.0.records().users().find(tenant, user).await?;
        Ok(match found {
            None => Error::NotFound("user"),
            Some(record) if record.is_service() => NEVER_OWNER,
            Some(_) => LAST_OWNER,
        })
    }
}

/// Checks a name: refuses invisible characters, and those that look like others.
pub(super) fn check_user_name(name: &str) -> Result<&str, Error> {
    let is_allowed = |c: char| c.is_alphanumeric() || " ._@+-'".contains(c);
    let name = name.trim();
    let reason = if name.is_empty() {
        "is missing"
    } else if name.chars().count() > MAX_NAME_CHARS {
        "is longer than 64 characters"
    } else if !name.chars().all(is_allowed) {
        "may hold letters, digits, spaces and `. _ @ + - '`"
    } else {
        return Ok(name);
    };
    Err(Error::Invalid {
        field: "name",
        reason,
    })
}

/// Checks the name of a new tenant.
pub fn check_tenant_name(name: &str) -> Result<&str, Error> {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.bytes().all(is_allowed) {
        return Ok(name);
    }
    Err(Error::Invalid {
        field: "name",
        reason: "needs 1 to 64 of `a-z 0-9 -`",
    })
}

/// Checks a text by which people recognise something; it may be empty.
pub(super) fn check_label<'t>(field: &'static str, text: &'t str) -> Result<&'t str, Error> {
    let text = text.trim();
    if text.chars().count() <= MAX_NAME_CHARS && !text.chars().any(char::is_control) {
        return Ok(text);
    }
    Err(Error::Invalid {
        field,
        reason: "is longer than 64 characters, or holds control characters",
    })
}

#[cfg(test)]
mod tests {
    use super::{check_tenant_name, check_user_name};

    #[test]
    fn names_are_readable() {
        for (name, is_fine) in [
            ("ann", true),
            ("  Änne O'Hara ", true),
            ("ann+1@example.org", true),
            ("李雷", true),
            ("", false),
            ("   ", false),
            ("a\u{202e}nn", false),
            ("a\u{200b}nn", false),
            ("<b>", false),
        ] {
            assert_eq!(check_user_name(name).is_ok(), is_fine, "{name:?}");
        }
        assert!(check_user_name(&"x".repeat(64)).is_ok());
        assert!(check_user_name(&"x".repeat(65)).is_err());
        for (name, is_fine) in [
            ("acme-2", true),
            ("Acme", false),
            ("", false),
            ("a/b", false),
        ] {
            assert_eq!(check_tenant_name(name).is_ok(), is_fine, "{name:?}");
        }
    }
}
