//! `sepal admin role` and `sepal admin group`: manages custom roles and groups, beside a running server.

use anyhow::Context as _;
use clap::Subcommand;

use super::named::{Of, find};
use super::say;
use crate::domain::{AccessKind, Right, Rights, Tenant};
use crate::store::records::CustomRole;
use crate::tenancy::{AccessChange, Administration, GroupView, RoleDraft, Tenancy};

#[derive(Subcommand)]
pub(super) enum RoleCommand {
    /// Make a role.
    Add {
        /// Its name.
        name: String,
        /// A right that it gives; say it once for each. `sepal admin role rights` lists them.
        #[arg(long = "right", required = true)]
        rights: Vec<String>,
        /// What it is for.
        #[arg(long, default_value = "")]
        description: String,
        #[command(flatten)]
        of: Of,
    },
    /// Change the rights of a role, for everybody who has it.
    Set {
        /// Its name.
        name: String,
        /// A right that it gives from now on; say it once for each.
        #[arg(long = "right", required = true)]
        rights: Vec<String>,
        #[command(flatten)]
        of: Of,
    },
    /// Delete a role, and take it from everybody who has it.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        of: Of,
    },
    /// List the roles of a tenant.
    List {
        #[command(flatten)]
        of: Of,
    },
    /// Give a role to a person.
    Give {
        /// The name of the role.
        role: String,
        /// The person.
        user: String,
        #[command(flatten)]
        of: Of,
    },
    /// Take a role from a person.
    Take {
        /// The name of the role.
        role: String,
        /// The person.
        user: String,
        #[command(flatten)]
        of: Of,
    },
    /// List the rights that roles can give.
    Rights,
}

#[derive(Subcommand)]
pub(super) enum GroupCommand {
    /// Make a group.
    Add {
        /// Its name.
        name: String,
        /// What it is for.
        #[arg(long, default_value = "")]
        description: String,
        #[command(flatten)]
        of: Of,
    },
    /// Delete a group; its members stay.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        of: Of,
    },
    /// List the groups of a tenant.
    List {
        #[command(flatten)]
        of: Of,
    },
    /// Show the members and roles of a group, and what is limited to it.
    Show {
        /// Its name.
        name: String,
        #[command(flatten)]
        of: Of,
    },
    /// Make a person a member.
    Join {
        /// The name of the group.
        group: String,
        /// The person.
        user: String,
        #[command(flatten)]
        of: Of,
    },
    /// Remove a member.
    Leave {
        /// The name of the group.
        group: String,
        /// The person.
        user: String,
        #[command(flatten)]
        of: Of,
    },
    /// Give the members a role.
    Give {
        /// The name of the group.
        group: String,
        /// The name of the role.
        role: String,
        #[command(flatten)]
        of: Of,
    },
    /// Take a role from the members.
    Take {
        /// The name of the group.
        group: String,
        /// The name of the role.
        role: String,
        #[command(flatten)]
        of: Of,
    },
    /// Keep models and MCP servers for the members, and for those of other groups that limit the same.
    Limit {
        /// The name of the group.
        group: String,
        /// A model as `provider/model`, or a provider with all its models; say it once for each.
        #[arg(long = "model")]
        models: Vec<String>,
        /// An MCP server; say it once for each.
        #[arg(long = "server")]
        servers: Vec<String>,
        #[command(flatten)]
        of: Of,
    },
    /// Stop limiting models and MCP servers to the members. What no group limits is open to everybody.
    Unlimit {
        /// The name of the group.
        group: String,
        /// A model as `provider/model`, or a provider with all its models; say it once for each.
        #[arg(long = "model")]
        models: Vec<String>,
        /// An MCP server; say it once for each.
        #[arg(long = "server")]
        servers: Vec<String>,
        #[command(flatten)]
        of: Of,
    },
}

pub(super) async fn role(tenancy: &Tenancy, command: RoleCommand) -> anyhow::Result<()> {
    let admin = tenancy.administration();
    match command {
        RoleCommand::Add {
            name,
            rights,
            description,
            of,
        } => {
            let tenant = admin.find_tenant(&of.tenant).await?;
            let draft = RoleDraft {
                name,
                description,
                rights: rights_of(&rights)?,
            };
            let role = admin.add_role(&tenant.id, draft).await?;
            say(&format!("{}  {}", role.id, role.name));
        }
        RoleCommand::Set { name, rights, of } => {
            let (tenant, role) = find_role(admin, &of, &name).await?;
            let draft = RoleDraft {
                rights: rights_of(&rights)?,
                name: role.name,
                description: role.description,
            };
            admin.change_role(&tenant.id, &role.id, draft).await?;
            say("Done.");
        }
        RoleCommand::Remove { name, of } => {
            let (tenant, role) = find_role(admin, &of, &name).await?;
            admin.remove_role(&tenant.id, &role.id).await?;
            say("Done.");
        }
        RoleCommand::List { of } => {
            let tenant = admin.find_tenant(&of.tenant).await?;
            for listed in admin.roles(&tenant.id).await? {
                let role = listed.role;
                let rights = role.rights.to_text();
                say(&format!("{}  {}  {rights}", role.id, role.name));
            }
        }
        RoleCommand::Give { role, user, of } => {
            let (tenant, role) = find_role(admin, &of, &role).await?;
            let user = find(tenancy, &of, &user).await?;
            admin.give_roles(&tenant.id, &user.id, &[role], &[]).await?;
            say("Done.");
        }
        RoleCommand::Take { role, user, of } => {
            let (tenant, role) = find_role(admin, &of, &role).await?;
            let user = find(tenancy, &of, &user).await?;
            admin.give_roles(&tenant.id, &user.id, &[], &[role]).await?;
            say("Done.");
        }
        RoleCommand::Rights => {
            for right in Right::ALL {
                say(right.as_str());
            }
        }
    }
    Ok(())
}

pub(super) async fn group(tenancy: &Tenancy, command: GroupCommand) -> anyhow::Result<()> {
    let admin = tenancy.administration();
    let find_group = async |of: &Of, name: &str| {
        let tenant = admin.find_tenant(&of.tenant).await?;
        let group = admin.find_group(&tenant.id, name).await?;
        anyhow::Ok((tenant, group))
    };
    match command {
        GroupCommand::Add {
            name,
            description,
            of,
        } => {
            let tenant = admin.find_tenant(&of.tenant).await?;
            let group = admin.add_group(&tenant.id, &name, &description).await?;
            say(&format!("{}  {}", group.id, group.name));
        }
        GroupCommand::Remove { name, of } => {
            let (tenant, group) = find_group(&of, &name).await?;
            admin.remove_group(&tenant.id, &group.id).await?;
            say("Done.");
        }
        GroupCommand::List { of } => {
            let tenant = admin.find_tenant(&of.tenant).await?;
            for listed in admin.groups(&tenant.id).await? {
                let group = listed.group;
                let members = listed.members;
                say(&format!("{}  {}  {members} members", group.id, group.name));
            }
        }
        GroupCommand::Show { name, of } => {
            let (tenant, group) = find_group(&of, &name).await?;
            let view = admin.group(&tenant.id, &group.id).await?;
            for role in view.roles {
                say(&format!("role    {}", role.name));
            }
            for thing in &view.named {
                say(&format!("{:<7} {}", thing.kind.as_str(), thing.name));
            }
            for member in view.members {
                let source = member
                    .issuer
                    .map_or(String::new(), |it| format!("  by {it}"));
                say(&format!("member  {}{source}", member.name));
            }
        }
        GroupCommand::Join { group, user, of } => {
            change_member(tenancy, &of, [&group, &user], true).await?;
        }
        GroupCommand::Leave { group, user, of } => {
            change_member(tenancy, &of, [&group, &user], false).await?;
        }
        GroupCommand::Give { group, role, of } => {
            change_role(admin, &of, [&group, &role], true).await?;
        }
        GroupCommand::Take { group, role, of } => {
            change_role(admin, &of, [&group, &role], false).await?;
        }
        GroupCommand::Limit {
            group,
            models,
            servers,
            of,
        } => {
            let (tenant, group) = find_group(&of, &group).await?;
            limit(admin, &tenant, &group.id, [models, servers]).await?;
        }
        GroupCommand::Unlimit {
            group,
            models,
            servers,
            of,
        } => {
            let (tenant, group) = find_group(&of, &group).await?;
            unlimit(admin, &tenant, &group.id, [models, servers]).await?;
        }
    }
    Ok(())
}

/// Adds a user to a group, or removes them.
async fn change_member(
    tenancy: &Tenancy,
    of: &Of,
    [group, user]: [&str; 2],
    joins: bool,
) -> anyhow::Result<()> {
    let admin = tenancy.administration();
    let tenant = admin.find_tenant(&of.tenant).await?.id;
    let group = admin.find_group(&tenant, group).await?.id;
    let user = find(tenancy, of, user).await?.id;
    if joins {
        admin.add_group_member(&tenant, &group, &user).await?;
    } else {
        admin.remove_group_member(&tenant, &group, &user).await?;
    }
    say("Done.");
    Ok(())
}

/// Gives a custom role to a group, or takes it.
async fn change_role(
    admin: Administration<'_>,
    of: &Of,
    [group, role]: [&str; 2],
    adds: bool,
) -> anyhow::Result<()> {
    let tenant = admin.find_tenant(&of.tenant).await?.id;
    let group = admin.find_group(&tenant, group).await?.id;
    let role = [admin.find_role(&tenant, role).await?];
    let (given, taken): (&[_], &[_]) = if adds { (&role, &[]) } else { (&[], &role) };
    admin
        .give_group_roles(&tenant, &group, given, taken)
        .await?;
    say("Done.");
    Ok(())
}

/// Adds models and servers to those that a group names.
async fn limit(
    admin: Administration<'_>,
    tenant: &Tenant,
    group: &str,
    [models, servers]: [Vec<String>; 2],
) -> anyhow::Result<()> {
    let view = admin.group(&tenant.id, group).await?;
    let all = |kind, more: Vec<String>| {
        let known = view.named.iter().filter(move |thing| thing.kind == kind);
        let known = known.map(|thing| thing.name.clone());
        Some(known.chain(more).collect())
    };
    let change = AccessChange {
        models: all(AccessKind::Model, models),
        servers: all(AccessKind::Server, servers),
    };
    change_access(admin, (tenant, &view), change).await
}

/// Removes models and servers from those that a group names.
async fn unlimit(
    admin: Administration<'_>,
    tenant: &Tenant,
    group: &str,
    [models, servers]: [Vec<String>; 2],
) -> anyhow::Result<()> {
    let view = admin.group(&tenant.id, group).await?;
    let all = |kind, less: &[String]| {
        let known = view.named.iter().filter(|thing| thing.kind == kind);
        let kept = known.filter(|thing| !less.contains(&thing.name));
        Some(kept.map(|thing| thing.name.clone()).collect())
    };
    let change = AccessChange {
        models: all(AccessKind::Model, &models),
        servers: all(AccessKind::Server, &servers),
    };
    change_access(admin, (tenant, &view), change).await
}

async fn change_access(
    admin: Administration<'_>,
    (tenant, view): (&Tenant, &GroupView),
    change: AccessChange,
) -> anyhow::Result<()> {
    let (given, taken) = view.access_change(change)?;
    let changed = admin.change_group_access(&tenant.id, &view.group.id, &given, &taken);
    changed.await?;
    say("Done.");
    Ok(())
}

async fn find_role(
    admin: Administration<'_>,
    of: &Of,
    name: &str,
) -> anyhow::Result<(Tenant, CustomRole)> {
    let tenant = admin.find_tenant(&of.tenant).await?;
    let role = admin.find_role(&tenant.id, name).await?;
    Ok((tenant, role))
}

fn rights_of(names: &[String]) -> anyhow::Result<Rights> {
    let rights = names.iter().map(|name| {
        Right::parse(name)
            .with_context(|| format!("there is no right `{name}`: see `sepal admin role rights`"))
    });
    rights.collect()
}
