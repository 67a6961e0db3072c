//! Administers the people of a tenant for one of them: who may enter, in which role, and with which keys.
//!
//! Whoever administers sees names, roles and times, and nothing of a conversation.

use secrecy::SecretString;

use super::admin::{self, CreatedInvitation, CreatedKey, NewInvitation, NewKey, NewPerson};
use super::credential::Revocation;
use super::sign_in::SignedIn;
use super::{Error, Tenancy, password, secret};
use sepal_core::domain::{
    ApiKeyId, Caller, CredentialId, Right, Role, TenantId, Timestamp, User, UserId,
};
use sepal_store::records::{ApiKey, Invitation, ListedUser, NewUser, SignIn, UserRecord};

/// The most valid keys of a person.
const MOST_KEYS: usize = 100;

const ONLY_OWNERS: Error =
    Error::Refused("only an owner of the tenant may make or change admins and owners");

/// The facts of an invitation that its holder is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationFacts {
    /// The name of the tenant.
    pub tenant: String,
    pub role: Role,
    /// The name of the person who invites; `None` = the operator.
    pub invited_by: Option<String>,
    pub expires_at: Timestamp,
}

/// The people of the caller's tenant, as far as the caller may administer them.
#[derive(Clone, Copy)]
pub struct People<'a> {
    tenancy: &'a Tenancy,
    caller: &'a Caller,
}

impl<'a> People<'a> {
    pub(super) fn new(tenancy: &'a Tenancy, caller: &'a Caller) -> Self {
        Self { tenancy, caller }
    }

    fn tenant(&self) -> &'a TenantId {
        &self.caller.tenant.id
    }

    /// The people by name. Only for admins.
    pub async fn list(self) -> Result<Vec<ListedUser>, Error> {
        self.check(Right::ManagePeople)?;
        let users = self.tenancy.records().users();
        Ok(users.list_with_use(self.tenant(), None).await?)
    }

    /// One of them. Only for admins.
    pub async fn find(self, id: &UserId) -> Result<ListedUser, Error> {
        self.check(Right::ManagePeople)?;
        let users = self.tenancy.records().users();
        let found = users.list_with_use(self.tenant(), Some(id)).await?.pop();
        found.ok_or(Error::NotFound("person"))
    }

    /// Adds a person. Admins add viewers, approvers and members, owners anybody.
    pub async fn add(self, new: NewPerson) -> Result<User, Error> {
        self.check_may_give(new.role)?;
        let new = NewPerson {
            installation_admin: false,
            ..new
        };
        let administration = self.tenancy.administration();
        administration.create_user(self.tenant(), new).await
    }

    /// The service accounts by name. Only for admins.
    pub async fn service_accounts(self) -> Result<Vec<ListedUser>, Error> {
        let mut listed = self.list().await?;
        listed.retain(|it| it.record.is_service());
        Ok(listed)
    }

    /// Adds a service account. Admins give it the role of a viewer or member, owners also of an admin.
    pub async fn add_service_account(self, name: &str, role: Role) -> Result<User, Error> {
        self.check_may_give(role)?;
        let administration = self.tenancy.administration();
        administration
            .create_service_account(self.tenant(), name, role)
            .await
    }

    /// Renames a service account. People keep their names.
    pub async fn rename(self, id: &UserId, name: &str) -> Result<(), Error> {
        self.find_below(id, Right::ManagePeople).await?;
        let administration = self.tenancy.administration();
        administration
            .rename_service_account(self.tenant(), id, name)
            .await
    }

    /// Changes the role of a person, from their next command on.
    pub async fn set_role(self, id: &UserId, role: Role) -> Result<(), Error> {
        self.find_below(id, Right::ManagePeople).await?;
        self.check_may_give(role)?;
        let administration = self.tenancy.administration();
        administration.set_role(self.tenant(), id, role).await
    }

    /// Ends or restores the access of a person: disabled, they are signed out, and their keys are refused.
    pub async fn set_disabled(self, id: &UserId, is_disabled: bool) -> Result<(), Error> {
        self.find_below(id, Right::ManagePeople).await?;
        if is_disabled && *id == self.caller.user.id {
            return Err(Error::Refused("nobody can lock themselves out"));
        }
        let administration = self.tenancy.administration();
        if is_disabled {
            administration.disable_user(self.tenant(), id).await
        } else {
            administration.enable_user(self.tenant(), id).await
        }
    }

    /// Deletes a person with everything of theirs, for good. `name` is theirs, as whoever deletes them has typed it.
    pub async fn delete(self, id: &UserId, name: &str) -> Result<(), Error> {
        let found = self.find_below(id, Right::ManagePeople).await?;
        if *id == self.caller.user.id {
            return Err(Error::Refused("nobody can delete themselves"));
        }
        if name != found.user.name {
            return Err(Error::Invalid {
                field: "name",
                reason: "is not the person's name: nothing was deleted",
            });
        }
        let administration = self.tenancy.administration();
        administration.delete_user(self.tenant(), id).await
    }

    /// Finds the person whose archive the caller may have: themselves, or somebody whose access has ended, if the
    /// caller administers them and may read the sessions of others.
    pub async fn find_archived(self, id: &UserId) -> Result<Caller, Error> {
        if *id == self.caller.user.id {
            return Ok(self.caller.clone());
        }
        let found = self.find_left(id).await?;
        self.tenancy
            .caller_of(found.user, self.caller.tenant.clone())
            .await
    }

    /// Finds who gets the sessions of a person whose access has ended. The caller administers that person and may
    /// read the sessions of others, because whoever gets a session reads it.
    pub async fn find_recipient(self, from: &UserId, to: &UserId) -> Result<Caller, Error> {
        self.find_left(from).await?;
        let to = self
            .tenancy
            .records()
            .users()
            .find(self.tenant(), to)
            .await?;
        let to = to.filter(|to| to.may_enter() && to.user.role.may_act());
        let to = to.ok_or(Error::Invalid {
            field: "to",
            reason: "is nobody of this tenant who may enter and have sessions",
        })?;
        self.tenancy
            .caller_of(to.user, self.caller.tenant.clone())
            .await
    }

    /// Signs a person out of every browser. Their keys stay.
    pub async fn sign_out(self, id: &UserId) -> Result<(), Error> {
        self.find_below(id, Right::ManagePeople).await?;
        let sign_ins = self.tenancy.records().web_sessions();
        let ended = sign_ins.of_user(self.tenant(), id).await?;
        let users = self.tenancy.records().users();
        if !users.sign_out_everywhere(self.tenant(), id).await? {
            return Err(Error::NotFound("person"));
        }
        for sign_in in ended {
            let ended = CredentialId::SignIn(sign_in.id);
            self.tenancy.revoke(Revocation::Credential(ended));
        }
        Ok(())
    }

    /// Lets a person sign in by their password again who chose to sign in by passkeys alone.
    pub async fn reset_passkey_only(self, id: &UserId) -> Result<(), Error> {
        self.find_below(id, Right::ManagePeople).await?;
        let users = self.tenancy.records().users();
        if users
            .set_passkey_only((self.tenant(), id), false, 0)
            .await?
        {
            return Ok(());
        }
        Err(Error::NotFound("person"))
    }

    /// The caller's own sign-ins, the last seen first.
    pub async fn sign_ins(self) -> Result<Vec<SignIn>, Error> {
        let sign_ins = self.tenancy.records().web_sessions();
        let user = &self.caller.user.id;
        Ok(sign_ins.of_user(self.tenant(), user).await?)
    }

    /// Signs the caller out of one browser.
    pub async fn end_sign_in(self, id: &str) -> Result<(), Error> {
        let own = self.sign_ins().await?;
        if !own.iter().any(|sign_in| sign_in.id == id) {
            return Err(Error::NotFound("sign-in"));
        }
        let sign_ins = self.tenancy.records().web_sessions();
        sign_ins.end(self.tenant(), id).await?;
        let ended = CredentialId::SignIn(id.to_owned());
        self.tenancy.revoke(Revocation::Credential(ended));
        Ok(())
    }

    /// The invitations, newest first: open ones, and those of the last month that were used or have expired.
    pub async fn invitations(self) -> Result<Vec<Invitation>, Error> {
        self.check(Right::ManagePeople)?;
        let invitations = self.tenancy.records().invitations();
        Ok(invitations.list(self.tenant()).await?)
    }

    /// Invites a person, who gives themselves a name and a password.
    pub async fn invite(self, new: NewInvitation) -> Result<CreatedInvitation, Error> {
        self.check_may_give(new.role)?;
        let administration = self.tenancy.administration();
        let by = Some(&self.caller.user.id);
        administration.invite(self.tenant(), by, new).await
    }

    /// Takes back an invitation that nobody has used.
    pub async fn withdraw(self, id: &str) -> Result<(), Error> {
        let all = self.invitations().await?;
        let found = all.iter().find(|it| it.id == id);
        let found = found.ok_or(Error::NotFound("invitation"))?;
        self.check_may_give(found.role)?;
        if found.used.is_some() {
            return Err(Error::Refused("somebody has used the invitation"));
        }
        let invitations = self.tenancy.records().invitations();
        if invitations.withdraw(self.tenant(), id).await? {
            return Ok(());
        }
        Err(Error::NotFound("invitation"))
    }

    /// Keys, newest first, without those that were revoked: the caller's, or for admins of the whole tenant.
    pub async fn keys(self, is_of_tenant: bool) -> Result<Vec<ApiKey>, Error> {
        if is_of_tenant {
            self.check(Right::ManageKeys)?;
        }
        let mut keys = self.tenancy.administration().keys(self.tenant()).await?;
        keys.retain(|key| {
            key.revoked_at.is_none() && (is_of_tenant || key.user == self.caller.user.id)
        });
        Ok(keys)
    }

    /// Makes a key with the caller's rights. A key makes no keys.
    pub async fn add_key(self, new: NewKey) -> Result<CreatedKey, Error> {
        self.check_makes_keys()?;
        self.add_key_of(&self.caller.user.id, new).await
    }

    /// Makes a key of a service account that the caller administers and whose rights they have. A key makes no keys.
    pub async fn add_service_key(self, id: &UserId, new: NewKey) -> Result<CreatedKey, Error> {
        let found = self.find_below(id, Right::ManageKeys).await?;
        if !found.is_service() {
            return Err(Error::NotFound("service account"));
        }
        self.check_makes_keys()?;
        let roles = self.tenancy.administration();
        let rights = roles.roles_of(self.tenant(), id).await?.rights;
        let is_higher =
            found.user.role > self.caller.user.role && !self.caller.may(Right::ManageAdmins);
        if is_higher || !self.caller.may_not_give(rights).is_empty() {
            return Err(Error::Refused(
                "the service account may do more than you: somebody who may as much makes its keys",
            ));
        }
        self.add_key_of(id, new).await
    }

    async fn add_key_of(&self, user: &UserId, new: NewKey) -> Result<CreatedKey, Error> {
        let now = self.tenancy.now();
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(Error::Invalid {
                field: "expiresAt",
                reason: "has passed",
            });
        }
        let administration = self.tenancy.administration();
        let keys = administration.keys(self.tenant()).await?.into_iter();
        let valid = keys.filter(|key| {
            let is_open = key.expires_at.is_none_or(|at| at > now);
            key.user == *user && key.revoked_at.is_none() && is_open
        });
        if valid.count() >= MOST_KEYS {
            return Err(Error::Refused("there are 100 keys: revoke some first"));
        }
        administration.add_key(self.tenant(), user, new).await
    }

    fn check_makes_keys(&self) -> Result<(), Error> {
        if matches!(self.caller.credential, Some(CredentialId::ApiKey(_))) {
            return Err(Error::Refused(
                "a key cannot make keys: sign in with a browser",
            ));
        }
        Ok(())
    }

    /// Revokes a key and closes its sockets: an own one, or for admins one of somebody whom they administer.
    pub async fn revoke_key(self, id: &ApiKeyId) -> Result<(), Error> {
        let keys = self.keys(self.caller.may(Right::ManageKeys)).await?;
        let key = keys.iter().find(|key| key.id == *id);
        let key = key.ok_or(Error::NotFound("key"))?;
        if key.user != self.caller.user.id {
            self.find_below(&key.user, Right::ManageKeys).await?;
        }
        let administration = self.tenancy.administration();
        administration.revoke_key(self.tenant(), id).await
    }

    /// Finds a person whose access has ended, for somebody who administers them and may read the sessions of others.
    async fn find_left(&self, id: &UserId) -> Result<UserRecord, Error> {
        let found = self.find_below(id, Right::ManagePeople).await?;
        if !self.caller.may(Right::ReadSessions) {
            return Err(Error::Refused(
                "whoever gets the sessions of others reads them: this needs the right \
                 `sessions.read_content` too",
            ));
        }
        if !found.is_disabled {
            return Err(Error::Refused(
                "the sessions of somebody who may enter are theirs alone: end their access first",
            ));
        }
        Ok(found)
    }

    /// Finds a person whom the caller may administer by a right.
    pub(super) async fn find_below(&self, id: &UserId, right: Right) -> Result<UserRecord, Error> {
        self.check(right)?;
        let users = self.tenancy.records().users();
        let found = users.find(self.tenant(), id).await?;
        let found = found.ok_or(Error::NotFound("person"))?;
        if found.user.role >= Role::Admin && !self.caller.may(Right::ManageAdmins) {
            return Err(ONLY_OWNERS);
        }
        if found.user.installation_admin && !self.caller.user.installation_admin {
            return Err(Error::Refused(
                "only an administrator of the installation may change another one",
            ));
        }
        Ok(found)
    }

    fn check(&self, right: Right) -> Result<(), Error> {
        if self.caller.may(right) {
            return Ok(());
        }
        Err(Error::Refused(
            "only an admin of the tenant, or somebody whose roles give the right, may do this",
        ))
    }

    /// Checks that the caller may give a role, or change somebody who has it: admins viewers, approvers and members,
    /// owners everybody.
    fn check_may_give(&self, role: Role) -> Result<(), Error> {
        self.check(Right::ManagePeople)?;
        if role < Role::Admin || self.caller.may(Right::ManageAdmins) {
            return Ok(());
        }
        Err(ONLY_OWNERS)
    }
}

impl Tenancy {
    /// Administers the people of the caller's tenant, as far as the caller may.
    pub fn people<'a>(&'a self, caller: &'a Caller) -> People<'a> {
        People::new(self, caller)
    }

    /// Reads the facts that the holder of an invitation is shown; `NotValid` if it lets nobody in any more.
    pub async fn read_invitation(&self, secret: &SecretString) -> Result<InvitationFacts, Error> {
        let invitation = self.find_invitation(secret).await?;
        let tenant = self.records().tenants().find(&invitation.tenant).await?;
        let tenant = tenant.ok_or(Error::NotValid)?;
        let invited_by = match &invitation.invited_by {
            Some(id) => {
                let found = self.records().users().find(&tenant.id, id).await?;
                found.map(|record| record.user.name)
            }
            None => None,
        };
        Ok(InvitationFacts {
            tenant: tenant.name,
            role: invitation.role,
            invited_by,
            expires_at: invitation.expires_at,
        })
    }

    /// Uses an invitation up: makes the person and signs them in. Of two who try at once, one comes in.
    pub async fn accept_invitation(
        &self,
        secret: &SecretString,
        name: &str,
        password: &SecretString,
    ) -> Result<SignedIn, Error> {
        let name = admin::check_user_name(name)?;
        password::check(password)?;
        let invitation = self.find_invitation(secret).await?;
        let tenant = self.records().tenants().find(&invitation.tenant).await?;
        let tenant = tenant.ok_or(Error::NotValid)?;
        let new = NewUser {
            user: User {
                id: UserId::from_bits(rand::random()),
                tenant: tenant.id.clone(),
                name: name.to_owned(),
                role: invitation.role,
                installation_admin: false,
            },
            password_hash: Some(self.parts.passwords.hash(password).await?),
            is_local: false,
        };
        let invitations = self.records().invitations();
        if !invitations.accept(&invitation, &new, self.now()).await? {
            return Err(Error::NotValid);
        }
        let admitted = self.admit(new.user, tenant, None).await?;
        admitted.ok_or(Error::NotValid)
    }

    async fn find_invitation(&self, secret: &SecretString) -> Result<Invitation, Error> {
        let invitations = self.records().invitations();
        let found = invitations.find(&secret::hash(secret), self.now()).await?;
        found.ok_or(Error::NotValid)
    }
}
