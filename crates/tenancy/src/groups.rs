//! Administers the groups of a tenant for one of its people: their members, the custom roles that members have, and
//! the models and servers that are for members alone.
//!
//! Making somebody a member gives them the roles of the group, so it needs the same rights.

use std::collections::BTreeSet;

use super::roles::{check_description, check_may_give, check_name, check_sees};
use super::{Administration, Error, Tenancy};
use sepal_core::domain::{
    AccessKind, BUNDLED_SERVER, Budget, Caller, Right, Rights, TenantId, UserId,
};
use sepal_store::records::{CustomRole, GroupMember, ListedGroup, NamedThing, UserGroup};

/// The most models, and the most servers, that a group names.
const MOST_NAMED: usize = 200;
/// The longest name of a model or server, in bytes.
const MAX_NAME_BYTES: usize = 320;
/// The most groups of a tenant.
pub const MOST_GROUPS: usize = 500;

/// A group with its members and roles.
#[derive(Debug, Clone)]
pub struct GroupView {
    pub group: UserGroup,
    pub members: Vec<GroupMember>,
    pub roles: Vec<CustomRole>,
    /// The models and servers that are open to members of this and other groups that name them alone.
    pub named: Vec<NamedThing>,
}

/// A change of what a group names; `None` = it stays.
#[derive(Debug, Clone, Default)]
pub struct AccessChange {
    /// All its models: each a provider, or `provider/model`.
    pub models: Option<Vec<String>>,
    /// The names of all its MCP servers.
    pub servers: Option<Vec<String>>,
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

    /// The groups by name. For everybody who manages people, groups or roles, and who gives groups rules or budgets.
    pub async fn list(self) -> Result<Vec<ListedGroup>, Error> {
        let gives = [Right::ManageRules, Right::ManageBudgets];
        if !gives.into_iter().any(|right| self.caller.may(right)) {
            check_sees(self.caller)?;
        }
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

    /// Changes which models and servers are for the members of a group alone, for sessions from their next step
    /// on. Models need the right to manage providers, servers that to manage servers. To name something gives the
    /// caller no use of it.
    pub async fn change_access(self, id: &str, change: AccessChange) -> Result<(), Error> {
        self.check_manages()?;
        let administration = self.tenancy.administration();
        let found = administration.group(self.tenant(), id).await?;
        let (given, taken) = found.access_change(change)?;
        for thing in given.iter().chain(&taken) {
            self.check_has(right_of(thing.kind))?;
        }
        administration
            .change_group_access(self.tenant(), id, &given, &taken)
            .await
    }

    /// Deletes a group with its rules and budgets; its members stay in the tenant. What only this group names is
    /// open to everybody from then on, so the caller needs the rights for all that the group carries.
    pub async fn remove(self, id: &str) -> Result<(), Error> {
        self.check_may_choose(id).await?;
        let administration = self.tenancy.administration();
        for right in administration.carried(self.tenant(), id).await? {
            self.check_has(right)?;
        }
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

    fn check_has(&self, right: Right) -> Result<(), Error> {
        if self.caller.may(right) {
            return Ok(());
        }
        Err(Error::Refused(if right == Right::ManageProviders {
            "models of a group need the right `providers.manage`, which you do not have"
        } else if right == Right::ManageServers {
            "servers of a group need the right `servers.manage`, which you do not have"
        } else if right == Right::ManageRules {
            "the group has rules: deleting it needs the right `rules.manage`, which you do not have"
        } else {
            "the group has budgets: deleting it needs the right `budgets.manage`, which you do not have"
        }))
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

/// The right that naming a thing needs.
fn right_of(kind: AccessKind) -> Right {
    match kind {
        AccessKind::Model => Right::ManageProviders,
        AccessKind::Server => Right::ManageServers,
    }
}

impl GroupView {
    /// What the group names from now on, and what no more.
    pub fn access_change(
        &self,
        change: AccessChange,
    ) -> Result<(Vec<NamedThing>, Vec<NamedThing>), Error> {
        let wanted = [
            (AccessKind::Model, change.models),
            (AccessKind::Server, change.servers),
        ];
        let (mut given, mut taken) = (Vec::new(), Vec::new());
        for (kind, names) in wanted {
            let Some(names) = names else { continue };
            if names.len() > MOST_NAMED {
                let (field, reason) = (field_of(kind), "may have 200 names");
                return Err(Error::Invalid { field, reason });
            }
            let wanted: BTreeSet<NamedThing> = names
                .iter()
                .map(|name| checked(kind, name))
                .collect::<Result<_, _>>()?;
            let known = self.named.iter().filter(|thing| thing.kind == kind);
            let known: BTreeSet<NamedThing> = known.cloned().collect();
            given.extend(wanted.difference(&known).cloned());
            taken.extend(known.difference(&wanted).cloned());
        }
        Ok((given, taken))
    }
}

/// Checks the name of a model or a server.
fn checked(kind: AccessKind, name: &str) -> Result<NamedThing, Error> {
    let field = field_of(kind);
    let name = name.trim();
    let is_usable = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.chars().any(char::is_control)
        && !name.starts_with('/')
        && !name.ends_with('/');
    if !is_usable {
        let reason =
            "names a model as `provider/model` or by its provider, and a server by its name";
        return Err(Error::Invalid { field, reason });
    }
    if kind == AccessKind::Server && name == BUNDLED_SERVER {
        let reason = "cannot have `sandbox`: its tools are open to everybody";
        return Err(Error::Invalid { field, reason });
    }
    Ok(NamedThing {
        kind,
        name: name.to_owned(),
    })
}

/// The field that names things of a kind.
fn field_of(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Model => "models",
        AccessKind::Server => "servers",
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
            named: self.0.records().group_access().of_group(tenant, id).await?,
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
        self.0.groups_changed(&known.tenant);
        is_known.then_some(()).ok_or(Error::NotFound("group"))
    }

    /// Deletes a group; its members stay in the tenant and lose its roles from their next command on.
    pub async fn remove_group(self, tenant: &TenantId, id: &str) -> Result<(), Error> {
        let is_known = self.0.records().user_groups().remove(tenant, id).await?;
        self.0.parts.checked.forget_tenant(tenant);
        self.0.groups_changed(tenant);
        is_known.then_some(()).ok_or(Error::NotFound("group"))
    }

    /// Lets a group name models and servers, and others no more. What a group names is open only to members of the
    /// groups that name it.
    pub async fn change_group_access(
        self,
        tenant: &TenantId,
        id: &str,
        given: &[NamedThing],
        taken: &[NamedThing],
    ) -> Result<(), Error> {
        let access = self.0.records().group_access();
        access.change((tenant, id), given, taken).await?;
        self.0.groups_changed(tenant);
        Ok(())
    }

    /// The rights for what a group carries beside its roles.
    async fn carried(self, tenant: &TenantId, id: &str) -> Result<Vec<Right>, Error> {
        let records = self.0.records();
        let named = records.group_access().of_group(tenant, id).await?;
        let mut rights: Vec<Right> = named.iter().map(|thing| right_of(thing.kind)).collect();
        let rules = records.rules().list(tenant).await?;
        if rules.iter().any(|rule| rule.group.as_deref() == Some(id)) {
            rights.push(Right::ManageRules);
        }
        let budgets = records.budgets().list(tenant, self.0.now()).await?;
        let is_of_group = |budget: &Budget| budget.level.is_of_group() && budget.subject == id;
        if budgets.iter().any(|it| is_of_group(&it.standing.budget)) {
            rights.push(Right::ManageBudgets);
        }
        Ok(rights)
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
        self.0.groups_changed(tenant);
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
        self.0.groups_changed(tenant);
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
