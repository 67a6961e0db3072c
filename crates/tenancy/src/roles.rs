//! Administers the custom roles of a tenant for one of its people: named sets of rights, and who has them.
//!
//! Nobody makes, changes, gives or takes a role with a right that they lack, except those who make owners.

use super::admin;
use super::{Administration, Error, Tenancy};
use sepal_core::domain::{Caller, Right, Rights, TenantId, UserId};
use sepal_store::records::{CustomRole, ListedRole, UserGroup};

/// The most custom roles of a tenant.
pub const MOST_ROLES: usize = 100;

const MAX_DESCRIPTION_CHARS: usize = 500;

const NOT_YOURS: Error = Error::Refused(
    "a role may only hold rights that you have yourself: leave the others out, or ask an owner",
);

/// A custom role as somebody describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleDraft {
    pub name: String,
    pub description: String,
    pub rights: Rights,
}

/// The sources of a person's rights.
#[derive(Debug, Clone)]
pub struct RolesOfPerson {
    /// The roles that the person was given themselves.
    pub roles: Vec<CustomRole>,
    /// The groups of the person.
    pub groups: Vec<UserGroup>,
    /// Every right that the person has, also by their built-in role.
    pub rights: Rights,
}

/// The custom roles of the caller's tenant, as far as the caller may administer them.
#[derive(Clone, Copy)]
pub struct Roles<'a> {
    tenancy: &'a Tenancy,
    caller: &'a Caller,
}

impl Roles<'_> {
    fn tenant(&self) -> &TenantId {
        &self.caller.tenant.id
    }

    /// The roles by name. For everybody who manages people, groups or roles.
    pub async fn list(self) -> Result<Vec<ListedRole>, Error> {
        check_sees(self.caller)?;
        let roles = self.tenancy.records().custom_roles();
        Ok(roles.list(self.tenant(), None).await?)
    }

    /// One of them.
    pub async fn find(self, id: &str) -> Result<ListedRole, Error> {
        check_sees(self.caller)?;
        self.tenancy.administration().role(self.tenant(), id).await
    }

    /// Makes a role.
    pub async fn add(self, draft: RoleDraft) -> Result<CustomRole, Error> {
        self.check_may_give(draft.rights)?;
        let administration = self.tenancy.administration();
        administration.add_role(self.tenant(), draft).await
    }

    /// Changes a role, for everybody who has it from their next command on.
    pub async fn change(self, id: &str, draft: RoleDraft) -> Result<(), Error> {
        let found = self.find_own(id).await?;
        self.check_may_give(found.rights.and(draft.rights))?;
        let administration = self.tenancy.administration();
        administration.change_role(self.tenant(), id, draft).await
    }

    /// Takes a role from everybody who has it, and deletes it.
    pub async fn remove(self, id: &str) -> Result<(), Error> {
        let found = self.find_own(id).await?;
        self.check_may_give(found.rights)?;
        let administration = self.tenancy.administration();
        administration.remove_role(self.tenant(), id).await
    }

    /// The roles, groups and rights of a person.
    pub async fn of_person(self, id: &UserId) -> Result<RolesOfPerson, Error> {
        check_sees(self.caller)?;
        let administration = self.tenancy.administration();
        administration.roles_of(self.tenant(), id).await
    }

    /// Gives a person exactly these roles, from their next command on. Those of their groups stay.
    pub async fn set_of_person(self, id: &UserId, roles: &[String]) -> Result<(), Error> {
        self.check_may_give(Rights::NONE)?;
        let administration = self.tenancy.administration();
        let known = administration.roles_of(self.tenant(), id).await?.roles;
        let change = administration.role_change(self.tenant(), &known, roles);
        let (given, taken) = change.await?;
        for role in given.iter().chain(&taken) {
            self.check_may_give(role.rights)?;
        }
        administration
            .give_roles(self.tenant(), id, &given, &taken)
            .await
    }

    async fn find_own(&self, id: &str) -> Result<CustomRole, Error> {
        self.check_may_give(Rights::NONE)?;
        let administration = self.tenancy.administration();
        Ok(administration.role(self.tenant(), id).await?.role)
    }

    fn check_may_give(&self, rights: Rights) -> Result<(), Error> {
        check_may_give(self.caller, rights)
    }
}

/// Checks that the caller manages roles, and has the rights that they are about to give or take.
pub(super) fn check_may_give(caller: &Caller, rights: Rights) -> Result<(), Error> {
    if !caller.may(Right::ManageRoles) {
        return Err(Error::Refused(
            "only an owner of the tenant, or somebody with the right `roles.manage`, may do this",
        ));
    }
    if caller.may_not_give(rights).is_empty() {
        return Ok(());
    }
    Err(NOT_YOURS)
}

/// Checks that the caller may see roles and groups.
pub(super) fn check_sees(caller: &Caller) -> Result<(), Error> {
    let any = [Right::ManagePeople, Right::ManageGroups, Right::ManageRoles];
    if any.iter().any(|right| caller.may(*right)) {
        return Ok(());
    }
    Err(Error::Refused(
        "only people who manage people, groups or roles of the tenant may see this",
    ))
}

impl Tenancy {
    /// Administers the custom roles of the caller's tenant, as far as the caller may.
    pub fn roles<'a>(&'a self, caller: &'a Caller) -> Roles<'a> {
        Roles {
            tenancy: self,
            caller,
        }
    }
}

impl Administration<'_> {
    /// The custom roles of a tenant by name.
    pub async fn roles(self, tenant: &TenantId) -> Result<Vec<ListedRole>, Error> {
        Ok(self.0.records().custom_roles().list(tenant, None).await?)
    }

    /// The role with this id.
    pub async fn role(self, tenant: &TenantId, id: &str) -> Result<ListedRole, Error> {
        let roles = self.0.records().custom_roles();
        let found = roles.list(tenant, Some(id)).await?.pop();
        found
            .filter(|_| !id.is_empty())
            .ok_or(Error::NotFound("role"))
    }

    /// The role of this name, in upper or lower case.
    pub async fn find_role(self, tenant: &TenantId, name: &str) -> Result<CustomRole, Error> {
        let key = name.trim().to_lowercase();
        let roles = self.roles(tenant).await?.into_iter();
        let mut roles = roles.map(|listed| listed.role);
        let found = roles.find(|role| role.name.to_lowercase() == key);
        found.ok_or(Error::NotFound("role"))
    }

    /// Makes a role.
    pub async fn add_role(self, tenant: &TenantId, draft: RoleDraft) -> Result<CustomRole, Error> {
        if self.roles(tenant).await?.len() >= MOST_ROLES {
            return Err(Error::Refused("there are 100 roles: delete some first"));
        }
        let id = format!("rol_{:032x}", rand::random::<u128>());
        let role = checked(self.0, tenant, id, &draft)?;
        self.0.records().custom_roles().add(&role).await?;
        Ok(role)
    }

    /// Changes a role, for everybody who has it from their next command on.
    pub async fn change_role(
        self,
        tenant: &TenantId,
        id: &str,
        draft: RoleDraft,
    ) -> Result<(), Error> {
        let role = checked(self.0, tenant, id.to_owned(), &draft)?;
        let is_known = self.0.records().custom_roles().change(&role).await?;
        self.0.parts.checked.forget_tenant(tenant);
        is_known.then_some(()).ok_or(Error::NotFound("role"))
    }

    /// Takes a role from everybody who has it, and deletes it.
    pub async fn remove_role(self, tenant: &TenantId, id: &str) -> Result<(), Error> {
        let is_known = self.0.records().custom_roles().remove(tenant, id).await?;
        self.0.parts.checked.forget_tenant(tenant);
        is_known.then_some(()).ok_or(Error::NotFound("role"))
    }

    /// The roles, groups and rights of a person.
    pub async fn roles_of(self, tenant: &TenantId, user: &UserId) -> Result<RolesOfPerson, Error> {
        let found = self.0.records().users().find(tenant, user).await?;
        let found = found.ok_or(Error::NotFound("person"))?;
        let roles = self.0.records().custom_roles();
        let groups = self.0.records().user_groups();
        let custom = roles.rights_of(tenant, user).await?;
        Ok(RolesOfPerson {
            roles: roles.given_to(tenant, user).await?,
            groups: groups.of_person(tenant, user).await?,
            rights: found.user.built_in_rights().and(custom),
        })
    }

    /// Gives roles to a person and takes others from them, from their next command on.
    pub async fn give_roles(
        self,
        tenant: &TenantId,
        user: &UserId,
        given: &[CustomRole],
        taken: &[CustomRole],
    ) -> Result<(), Error> {
        let found = self.0.records().users().find(tenant, user).await?;
        found.ok_or(Error::NotFound("person"))?;
        let (given, taken): (Vec<_>, Vec<_>) = (given.iter().collect(), taken.iter().collect());
        let roles = self.0.records().custom_roles();
        roles.give((tenant, user), &given, &taken).await?;
        self.0.parts.checked.forget_user(user);
        Ok(())
    }

    /// The roles to give and those to take, so that of the known ones exactly those with the wanted ids are
    /// left.
    pub(super) async fn role_change(
        self,
        tenant: &TenantId,
        known: &[CustomRole],
        wanted: &[String],
    ) -> Result<(Vec<CustomRole>, Vec<CustomRole>), Error> {
        let has = |id: &String| known.iter().any(|role| role.id == *id);
        let mut given = Vec::new();
        for id in wanted.iter().filter(|id| !has(id)) {
            given.push(self.role(tenant, id).await?.role);
        }
        let taken = known.iter().filter(|role| !wanted.contains(&role.id));
        Ok((given, taken.cloned().collect()))
    }
}

fn checked(
    tenancy: &Tenancy,
    tenant: &TenantId,
    id: String,
    draft: &RoleDraft,
) -> Result<CustomRole, Error> {
    Ok(CustomRole {
        tenant: tenant.clone(),
        id,
        name: check_name(&draft.name)?.to_owned(),
        description: check_description(&draft.description)?.to_owned(),
        rights: draft.rights,
        created_at: tenancy.now(),
    })
}

/// Checks the name of a role or group: none of a built-in role, so that nobody takes one for the other.
pub(super) fn check_name(name: &str) -> Result<&str, Error> {
    let name = admin::check_user_name(name)?;
    if sepal_core::domain::Role::parse(&name.to_lowercase()).is_some() {
        return Err(Error::Invalid {
            field: "name",
            reason: "is the name of a built-in role",
        });
    }
    Ok(name)
}

/// Checks the description of a role or group; it may be empty.
pub(super) fn check_description(text: &str) -> Result<&str, Error> {
    let text = text.trim();
    if text.chars().count() <= MAX_DESCRIPTION_CHARS && !text.chars().any(char::is_control) {
        return Ok(text);
    }
    Err(Error::Invalid {
        field: "description",
        reason: "is longer than 500 characters, or holds control characters",
    })
}

#[cfg(test)]
mod tests {
    use super::{check_description, check_name};
    use crate::admin::MAX_NAME_CHARS;

    #[test]
    fn a_role_is_not_named_like_a_built_in_one() {
        for (name, is_fine) in [
            ("Auditor", true),
            (" Budget keeper ", true),
            ("admin", false),
            ("Owner", false),
            ("", false),
            ("a\nb", false),
        ] {
            assert_eq!(check_name(name).is_ok(), is_fine, "{name:?}");
        }
        assert!(check_name(&"x".repeat(MAX_NAME_CHARS + 1)).is_err());
        assert!(check_description("").is_ok());
        assert!(check_description(&"x".repeat(501)).is_err());
    }
}
