//! Administers the groups of a tenant for one of its people: their members, and the custom roles that members
//! have.
//!
//! Making somebody a member gives them the roles of the group, so it needs the same rights.

use super::roles::{check_description, check_may_give, check_name, check_sees};
use super::{Administration, Error, Tenancy};
use sepal_core::domain::{Caller, Right, Rights, TenantId, UserId};
use sepal_store::records::{CustomRole, GroupMember, ListedGroup, UserGroup};

/// The most groups of a tenant.
pub const MOST_GROUPS: usize = 500;

/// A group with its members and roles.
#[derive(Debug, Clone)]
pub struct GroupView {
    pub group: UserGroup,
    pub members: Vec<GroupMember>,
    pub roles: Vec<CustomRole>,
}

/// A change of a group; `None` = it stays.
#[derive(Debug, Clone, Default)]
pub struct GroupChange {
    pub name: Option<String>,
    pub description: Option<String>,
    /// The ids of all its custom roles.
    pub roles: Option<Vec<String>>,
}

/// The groups of the caller's tenant, as far as the caller may administer them.
#[derive(Clone, Copy)]
pub struct Groups<'a> {
    tenancy: &'a Tenancy,
    caller: &'a Caller,
}

impl Groups<'_> {
    fn tenant(&self) -> &TenantId {
        &self.caller.tenant.id
    }

    /// The groups by name. For everybody who manages people, groups or roles.
    pub async fn list(self) -> Result<Vec<ListedGroup>, Error> {
        check_sees(self.caller)?;
        self.tenancy.administration().groups(self.tenant()).await
    }

    /// One of them, with its members and roles.
    pub async fn find(self, id: &str) -> Result<GroupView, Error> {
        check_sees(self.caller)?;
        self.tenancy.administration().group(self.tenant(), id).await
    }

    /// Makes a group.
    pub async fn add(self, name: &str, description: &str) -> Result<UserGroup, Error> {
        self.check_manages()?;
        let administration = self.tenancy.administration();
        administration
            .add_group(self.tenant(), name, description)
            .await
    }

    /// Changes a group. Its roles are given and taken by those who may give each of them, for the members from
    /// their next command on.
    pub async fn change(self, id: &str, change: GroupChange) -> Result<(), Error> {
        self.check_manages()?;
        let administration = self.tenancy.administration();
        let found = administration.group(self.tenant(), id).await?;
        if change.name.is_some() {
            // The groups of a provider fill the group of their name.
            self.check_may_fill(&found)?;
        }
        let roles = match &change.roles {
            Some(wanted) => {
                let roles = administration.role_change(self.tenant(), &found.roles, wanted);
                let (given, taken) = roles.await?;
                for role in given.iter().chain(&taken) {
                    check_may_give(self.caller, role.rights)?;
                }
                Some((given, taken))
            }
            None => None,
        };
        administration.describe_group(&found.group, &change).await?;
        if let Some((given, taken)) = roles {
            administration
                .give_group_roles(self.tenant(), id, &given, &taken)
                .await?;
        }
        Ok(())
    }

    /// Deletes a group; its members stay in the tenant.
    pub async fn remove(self, id: &str) -> Result<(), Error> {
        self.check_may_choose(id).await?;
        let administration = self.tenancy.administration();
        administration.remove_group(self.tenant(), id).await
    }

    /// Makes a person a member.
    pub async fn add_member(self, id: &str, user: &UserId) -> Result<(), Error> {
        self.check_may_choose(id).await?;
        let administration = self.tenancy.administration();
        administration
            .add_group_member(self.tenant(), id, user)
            .await
    }

    /// Removes a member.
    pub async fn remove_member(self, id: &str, user: &UserId) -> Result<(), Error> {
        self.check_may_choose(id).await?;
        let administration = self.tenancy.administration();
        administration
            .remove_group_member(self.tenant(), id, user)
            .await
    }

    /// Checks that the caller may give and take the membership of a group.
    async fn check_may_choose(&self, id: &str) -> Result<(), Error> {
        self.check_manages()?;
        let administration = self.tenancy.administration();
        let found = administration.group(self.tenant(), id).await?;
        self.check_may_fill(&found)
    }

    /// Checks that the caller may give the rights that members have.
    fn check_may_fill(&self, found: &GroupView) -> Result<(), Error> {
        let rights = found
            .roles
            .iter()
            .fold(Rights::NONE, |all, role| all.and(role.rights));
        if self.caller.may_not_give(rights).is_empty() {
            return Ok(());
        }
        Err(Error::Refused(
            "the roles of this group have rights that you do not have: ask an owner",
        ))
    }

    fn check_manages(&self) -> Result<(), Error> {
        if self.caller.may(Right::ManageGroups) {
            return Ok(());
        }
        Err(Error::Refused(
            "only an admin of the tenant, or somebody with the right `groups.manage`, may do this",
        ))
    }
}

impl Tenancy {
    /// Administers the groups of the caller's tenant, as far as the caller may.
    pub fn groups<'a>(&'a self, caller: &'a Caller) -> Groups<'a> {
        Groups {
            tenancy: self,
            caller,
        }
    }
}

impl Administration<'_> {
    /// The groups of a tenant by name.
    pub async fn groups(self, tenant: &TenantId) -> Result<Vec<ListedGroup>, Error> {
        Ok(self.0.records().user_groups().list(tenant, None).await?)
    }

    /// A group with its members and roles.
    pub async fn group(self, tenant: &TenantId, id: &str) -> Result<GroupView, Error> {
        let groups = self.0.records().user_groups();
        let found = groups.list(tenant, Some(id)).await?.pop();
        let found = found.filter(|_| !id.is_empty());
        Ok(GroupView {
            group: found.ok_or(Error::NotFound("group"))?.group,
            members: groups.members(tenant, id).await?,
            roles: self.0.records().custom_roles().of_group(tenant, id).await?,
        })
    }

    /// The group of this name, in upper or lower case.
    pub async fn find_group(self, tenant: &TenantId, name: &str) -> Result<UserGroup, Error> {
        let key = name.trim().to_lowercase();
        let mut groups = self.groups(tenant).await?.into_iter().map(|it| it.group);
        let found = groups.find(|group| group.name.to_lowercase() == key);
        found.ok_or(Error::NotFound("group"))
    }

    /// Makes a group.
    pub async fn add_group(
        self,
        tenant: &TenantId,
        name: &str,
        description: &str,
    ) -> Result<UserGroup, Error> {
        if self.groups(tenant).await?.len() >= MOST_GROUPS {
            return Err(Error::Refused("there are 500 groups: delete some first"));
        }
        let group = UserGroup {
            tenant: tenant.clone(),
            id: format!("grp_{:032x}", rand::random::<u128>()),
            name: check_name(name)?.to_owned(),
            description: check_description(description)?.to_owned(),
            created_at: self.0.now(),
        };
        self.0.records().user_groups().add(&group).await?;
        Ok(group)
    }

    /// Changes name and description of a group.
    pub async fn describe_group(
        self,
        known: &UserGroup,
        change: &GroupChange,
    ) -> Result<(), Error> {
        if change.name.is_none() && change.description.is_none() {
            return Ok(());
        }
        let name = change.name.as_deref().unwrap_or(&known.name);
        let description = change.description.as_deref();
        let description = description.unwrap_or(&known.description);
        let group = UserGroup {
            name: check_name(name)?.to_owned(),
            description: check_description(description)?.to_owned(),
            ..known.clone()
        };
        let is_known = self.0.records().user_groups().change(&group).await?;
        is_known.then_some(()).ok_or(Error::NotFound("group"))
    }

    /// Deletes a group; its members stay in the tenant and lose its roles from their next command on.
    pub async fn remove_group(self, tenant: &TenantId, id: &str) -> Result<(), Error> {
        let is_known = self.0.records().user_groups().remove(tenant, id).await?;
        self.0.parts.checked.forget_tenant(tenant);
        is_known.then_some(()).ok_or(Error::NotFound("group"))
    }

    /// Makes a person a member of a group.
    pub async fn add_group_member(
        self,
        tenant: &TenantId,
        id: &str,
        user: &UserId,
    ) -> Result<(), Error> {
        let found = self.0.records().users().find(tenant, user).await?;
        found.ok_or(Error::NotFound("person"))?;
        let groups = self.0.records().user_groups();
        groups.add_member(tenant, id, user).await?;
        self.0.parts.checked.forget_user(user);
        Ok(())
    }

    /// Removes a member from a group.
    pub async fn remove_group_member(
        self,
        tenant: &TenantId,
        id: &str,
        user: &UserId,
    ) -> Result<(), Error> {
        let groups = self.0.records().user_groups();
        let was_member = groups.remove_member(tenant, id, user).await?;
        self.0.parts.checked.forget_user(user);
        was_member.then_some(()).ok_or(Error::NotFound("member"))
    }

    /// Gives custom roles to the members of a group and takes others from them, from their next command on.
    pub async fn give_group_roles(
        self,
        tenant: &TenantId,
        id: &str,
        given: &[CustomRole],
        taken: &[CustomRole],
    ) -> Result<(), Error> {
        let (given, taken): (Vec<_>, Vec<_>) = (given.iter().collect(), taken.iter().collect());
        let groups = self.0.records().user_groups();
        groups.give((tenant, id), &given, &taken).await?;
        self.0.parts.checked.forget_tenant(tenant);
        Ok(())
    }
}
