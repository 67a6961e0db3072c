//! `sepal admin`: manages tenants, people and keys, beside a running server.

use std::collections::BTreeSet;
use std::io::{BufRead as _, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use crate::app;
use crate::config::LoadedSettings;
use crate::domain::{ApiKeyId, KeyGrant, KeyScope, KeyScopes, Role, SessionId, Timestamp};
use crate::store::records::TenantStanding;
use crate::tenancy::{NewInvitation, NewKey, NewPerson, Tenancy};
use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use secrecy::{ExposeSecret as _, SecretString};

use super::named::{Of, find};
use super::roles::{self, GroupCommand, RoleCommand};
use super::scim_tokens::{self, ScimTokenCommand};
use super::{Beside, complain, say, tenant_archive};

#[derive(Subcommand)]
pub(super) enum AdminCommand {
    /// Tenants: isolated groups of people.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// People of a tenant.
    #[command(subcommand)]
    User(UserCommand),
    /// API keys of a tenant.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Service accounts of a tenant: users for programs, who have keys and no other way in.
    #[command(subcommand)]
    ServiceAccount(ServiceAccountCommand),
    /// Custom roles of a tenant: named sets of rights.
    #[command(subcommand)]
    Role(RoleCommand),
    /// Groups of people of a tenant.
    #[command(subcommand)]
    Group(GroupCommand),
    /// Tokens by which a company's directory manages people and groups of a tenant (SCIM).
    #[command(subcommand)]
    ScimToken(ScimTokenCommand),
    /// Give up the secret key, if it is lost. Stored keys and secrets stay closed and have to be given again, and a
    /// new key signs the audit. Does nothing while the secret key of the settings or the data folder fits.
    ForgetSecretKey {
        /// Do not ask once more.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Subcommand)]
pub(super) enum TenantCommand {
    /// Create a tenant.
    Add {
        /// Its name, which people sign in with.
        name: String,
    },
    /// List all tenants.
    List,
    /// Lock a tenant out; everything of it stays.
    Suspend {
        /// Its name.
        name: String,
    },
    /// Let a tenant in again.
    Resume {
        /// Its name.
        name: String,
    },
    /// Delete a tenant with everything of it, for good.
    Delete {
        /// Its name.
        name: String,
        /// Do not ask for the name once more.
        #[arg(long)]
        yes: bool,
    },
    /// Write everything of a suspended tenant into one file, for `import`; the server may run.
    Export {
        /// Its name.
        name: String,
        /// The file to write, for example `acme.tenant.gz`. It holds every conversation of the tenant.
        file: PathBuf,
    },
    /// Bring a tenant in from the file of an export; it is suspended afterwards.
    Import {
        /// The file that `export` wrote.
        file: PathBuf,
        /// Another name for the tenant.
        #[arg(long)]
        name: Option<String>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RoleName {
    Viewer,
    Member,
    Admin,
    Owner,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Whether {
    Yes,
    No,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Viewer => Self::Viewer,
            RoleName::Member => Self::Member,
            RoleName::Admin => Self::Admin,
            RoleName::Owner => Self::Owner,
        }
    }
}

#[derive(Subcommand)]
pub(super) enum UserCommand {
    /// Create a person; without a password they enter by `sepal link --user NAME`.
    Add {
        /// Sign-in name.
        name: String,
        #[command(flatten)]
        of: Of,
        /// The role of the person.
        #[arg(long, value_enum, default_value = "member")]
        role: RoleName,
        /// They administer the installation too: servers, providers and settings of all tenants.
        #[arg(long)]
        installation_admin: bool,
        /// Read a password from standard input.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Invite a person by a link that works once; they give themselves a name and a password.
    Invite {
        #[command(flatten)]
        of: Of,
        /// The role of the person.
        #[arg(long, value_enum, default_value = "member")]
        role: RoleName,
        /// Days until the link ends, 30 at most.
        #[arg(long, default_value_t = 7)]
        days: u32,
        /// For whom it is meant, as a reminder.
        #[arg(long, default_value = "")]
        note: String,
    },
    /// List the people of a tenant.
    List {
        #[command(flatten)]
        of: Of,
    },
    /// Give a person another role.
    Role {
        /// Sign-in name.
        name: String,
        /// The role.
        #[arg(value_enum)]
        role: RoleName,
        #[command(flatten)]
        of: Of,
    },
    /// Let a person administer the installation, or no longer.
    InstallationAdmin {
        /// Sign-in name.
        name: String,
        /// `yes` or `no`.
        #[arg(value_enum)]
        whether: Whether,
        #[command(flatten)]
        of: Of,
    },
    /// Lock a person out; their sessions stay.
    Disable {
        /// Sign-in name.
        name: String,
        #[command(flatten)]
        of: Of,
    },
    /// Let a person in again.
    Enable {
        /// Sign-in name.
        name: String,
        #[command(flatten)]
        of: Of,
    },
    /// Delete a person with their sessions, files, keys, rules and servers, for good.
    Delete {
        /// Sign-in name.
        name: String,
        #[command(flatten)]
        of: Of,
        /// Do not ask for the name once more.
        #[arg(long)]
        yes: bool,
    },
    /// Set a password, read from standard input; ends their sign-ins.
    Password {
        /// Sign-in name.
        name: String,
        #[command(flatten)]
        of: Of,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum ScopeName {
    /// See.
    Read,
    /// Begin sessions, send messages, and change own sessions.
    Message,
    /// Decide calls, and give rules of one's own.
    Decide,
    /// Change servers, providers, people and settings.
    Administer,
}

impl From<ScopeName> for KeyScope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Read => Self::Read,
            ScopeName::Message => Self::Message,
            ScopeName::Decide => Self::Decide,
            ScopeName::Administer => Self::Administer,
        }
    }
}

#[derive(Subcommand)]
pub(super) enum ServiceAccountCommand {
    /// Create a service account. Its keys are made by `sepal admin key add`; `sepal admin user` disables and deletes
    /// it.
    Add {
        /// Its name.
        name: String,
        #[command(flatten)]
        of: Of,
        /// Its role, never `owner`.
        #[arg(long, value_enum, default_value = "member")]
        role: RoleName,
    },
    /// Rename a service account.
    Rename {
        /// Its name.
        name: String,
        /// The new name.
        new: String,
        #[command(flatten)]
        of: Of,
    },
    /// List the service accounts of a tenant.
    List {
        #[command(flatten)]
        of: Of,
    },
}

#[derive(Subcommand)]
pub(super) enum KeyCommand {
    /// Create a key with the rights of a person or service account, or fewer; it is printed once.
    Add {
        /// The purpose of the key.
        label: String,
        /// The person or service account whose rights the key has.
        #[arg(long)]
        user: String,
        /// What the key may do; say it once for each. Without it, the key may do everything that its limits
        /// allow.
        #[arg(long = "scope", value_enum)]
        scopes: Vec<ScopeName>,
        /// A session of theirs, `ses_…`, that the key may use; say it once for each. Without it, the key may use
        /// all of theirs.
        #[arg(long = "session")]
        sessions: Vec<String>,
        /// An MCP server whose tools the key's sessions may use; say it once for each. Without it, they may use
        /// all of theirs.
        #[arg(long = "server")]
        servers: Vec<String>,
        /// Days until the key ends; without it, the key is valid until it is revoked.
        #[arg(long)]
        days: Option<u32>,
        #[command(flatten)]
        of: Of,
    },
    /// List the keys of a tenant.
    List {
        #[command(flatten)]
        of: Of,
    },
    /// End a key.
    Revoke {
        /// Its id, `key_…`.
        id: String,
        #[command(flatten)]
        of: Of,
    },
}

pub(super) async fn run(
    command: AdminCommand,
    loaded: &LoadedSettings,
) -> anyhow::Result<ExitCode> {
    let beside = Beside::open(loaded).await?;
    let done = match command {
        AdminCommand::Tenant(command) => tenant(&beside, loaded, command).await,
        AdminCommand::User(command) => user(&beside, loaded, command).await,
        AdminCommand::Key(command) => key(&beside.tenancy, command).await,
        AdminCommand::ServiceAccount(command) => service_account(&beside.tenancy, command).await,
        AdminCommand::Role(command) => roles::role(&beside.tenancy, command).await,
        AdminCommand::Group(command) => roles::group(&beside.tenancy, command).await,
        AdminCommand::ScimToken(command) => scim_tokens::run(&beside.tenancy, command).await,
        AdminCommand::ForgetSecretKey { yes } => forget_secret_key(&beside, loaded, yes).await,
    };
    beside.close().await;
    done.map(|()| ExitCode::SUCCESS)
}

async fn forget_secret_key(
    beside: &Beside,
    loaded: &LoadedSettings,
    is_sure: bool,
) -> anyhow::Result<()> {
    // It would go on with the keys that it has.
    anyhow::ensure!(
        beside.store.dir().holder().is_none(),
        "a gateway uses this data folder: stop all gateways first"
    );
    if !is_sure {
        confirm("secret key", "the", "every stored secret that it opens")?;
    }
    let keys = app::secret_keys(&loaded.settings.auth);
    let is_forgotten = beside.store.forget_secret_key(&keys).await?;
    say(if is_forgotten {
        "Done. Start the gateways anew, then give providers and servers their keys again."
    } else {
        "The secret key fits: nothing was forgotten."
    });
    Ok(())
}

async fn tenant(
    beside: &Beside,
    loaded: &LoadedSettings,
    command: TenantCommand,
) -> anyhow::Result<()> {
    let tenancy = &beside.tenancy;
    match command {
        TenantCommand::Export { name, file } => {
            Box::pin(tenant_archive::export(beside, loaded, &name, &file)).await?;
        }
        TenantCommand::Import { file, name } => {
            Box::pin(tenant_archive::import(
                beside,
                loaded,
                &file,
                name.as_deref(),
            ))
            .await?;
        }
        TenantCommand::Add { name } => {
            let tenant = tenancy.administration().create_tenant(&name).await?;
            say(&format!(
                "Created tenant `{}`. Next: sepal admin user add NAME --tenant {} --role owner",
                tenant.name, tenant.name
            ));
        }
        TenantCommand::List => {
            let admin = tenancy.administration();
            for tenant in admin.tenants().await? {
                let state = match admin.standing(&tenant.id).await? {
                    TenantStanding::Active => "",
                    TenantStanding::Suspended => "  suspended",
                    TenantStanding::GivenUp => "  being deleted",
                };
                say(&format!("{}  {}{state}", tenant.id, tenant.name));
            }
        }
        TenantCommand::Suspend { name } => {
            let tenant = tenancy.administration().find_tenant(&name).await?;
            tenancy.administration().suspend_tenant(&tenant.id).await?;
            say("Done. Open connections and turns end within seconds.");
        }
        TenantCommand::Resume { name } => {
            let tenant = tenancy.administration().find_tenant(&name).await?;
            tenancy.administration().resume_tenant(&tenant.id).await?;
            say("Done.");
        }
        TenantCommand::Delete { name, yes } => {
            let tenant = tenancy.administration().find_tenant(&name).await?;
            if !yes {
                confirm(
                    &tenant.name,
                    "the tenant",
                    "its people, sessions, files, servers and keys",
                )?;
            }
            tenancy.administration().delete_tenant(&tenant.id).await?;
            say(
                "The tenant is locked out. A running gateway deletes everything of it within seconds; \
                 if none runs, the next start does. Backups keep what they have.",
            );
        }
    }
    Ok(())
}

async fn user(
    beside: &Beside,
    loaded: &LoadedSettings,
    command: UserCommand,
) -> anyhow::Result<()> {
    let tenancy = &beside.tenancy;
    let admin = tenancy.administration();
    match command {
        UserCommand::Add {
            name,
            of,
            role,
            installation_admin,
            password_stdin,
        } => {
            let password = if password_stdin {
                Some(read_password()?)
            } else {
                None
            };
            let person = NewPerson {
                name,
                role: role.into(),
                installation_admin,
                password,
            };
            add_user(tenancy, &of.tenant, person).await?;
        }
        UserCommand::Invite {
            of,
            role,
            days,
            note,
        } => {
            let tenant = admin.find_tenant(&of.tenant).await?;
            let role = role.into();
            let new = NewInvitation { role, note, days };
            let created = admin.invite(&tenant.id, None, new).await?;
            say(&format!(
                "{}  lets one person into `{}` as {} for {days} days; shown only now:\n{}",
                created.invitation.id,
                tenant.name,
                created.invitation.role.as_str(),
                created.link(&beside.url(loaded)).expose_secret()
            ));
        }
        UserCommand::List { of } => list_users(tenancy, &of.tenant).await?,
        UserCommand::Role { name, role, of } => {
            let user = find(tenancy, &of, &name).await?;
            admin.set_role(&user.tenant, &user.id, role.into()).await?;
            say("Done.");
        }
        UserCommand::InstallationAdmin { name, whether, of } => {
            let user = find(tenancy, &of, &name).await?;
            let is_admin = whether == Whether::Yes;
            admin
                .set_installation_admin(&user.tenant, &user.id, is_admin)
                .await?;
            say("Done.");
        }
        UserCommand::Disable { name, of } => {
            let user = find(tenancy, &of, &name).await?;
            admin.disable_user(&user.tenant, &user.id).await?;
            say("Done. Open connections end within seconds.");
        }
        UserCommand::Enable { name, of } => {
            let user = find(tenancy, &of, &name).await?;
            admin.enable_user(&user.tenant, &user.id).await?;
            say("Done.");
        }
        UserCommand::Delete { name, of, yes } => {
            let user = find(tenancy, &of, &name).await?;
            if !yes {
                confirm(
                    &user.name,
                    "the person",
                    "their sessions, files, keys, rules, skills and servers",
                )?;
            }
            admin.delete_user(&user.tenant, &user.id).await?;
            say(
                "Nobody can enter as this person any more. A running server deletes everything of theirs within seconds.",
            );
        }
        UserCommand::Password { name, of } => {
            let user = find(tenancy, &of, &name).await?;
            admin
                .set_password(&user.tenant, &user.id, &read_password()?)
                .await?;
            say("Done. Earlier sign-ins have ended.");
        }
    }
    Ok(())
}

async fn list_users(tenancy: &Tenancy, tenant: &str) -> anyhow::Result<()> {
    let tenant = tenancy.administration().find_tenant(tenant).await?;
    for person in tenancy.administration().users(&tenant.id).await? {
        let state = if person.is_disabled { "  disabled" } else { "" };
        let user = person.user;
        let more = if user.installation_admin {
            "  installation admin"
        } else if person.is_service {
            "  service account"
        } else {
            ""
        };
        say(&format!(
            "{}  {}  {}{more}{state}",
            user.id,
            user.name,
            user.role.as_str()
        ));
    }
    Ok(())
}

async fn add_user(tenancy: &Tenancy, tenant: &str, person: NewPerson) -> anyhow::Result<()> {
    let tenant = tenancy.administration().find_tenant(tenant).await?;
    let has_password = person.password.is_some();
    let user = tenancy
        .administration()
        .create_user(&tenant.id, person)
        .await?;
    say(&format!(
        "Created `{}` in tenant `{}`.",
        user.name, tenant.name
    ));
    if !has_password {
        say(&format!(
            "They enter by: sepal link --user {} --tenant {}",
            user.name, tenant.name
        ));
    }
    Ok(())
}

async fn key(tenancy: &Tenancy, command: KeyCommand) -> anyhow::Result<()> {
    match command {
        KeyCommand::Add {
            label,
            user,
            scopes,
            sessions,
            servers,
            days,
            of,
        } => {
            let user = find(tenancy, &of, &user).await?;
            let new = NewKey {
                name: label,
                expires_at: days.map(|days| expiry(tenancy.now(), days)),
                grant: grant(&scopes, &sessions, servers)?,
            };
            let administration = tenancy.administration();
            let key = administration.add_key(&user.tenant, &user.id, new).await?;
            say(&format!(
                "{}  shown only now:\n{}",
                key.id,
                key.secret.expose_secret()
            ));
        }
        KeyCommand::List { of } => {
            let tenant = tenancy.administration().find_tenant(&of.tenant).await?;
            for key in tenancy.administration().keys(&tenant.id).await? {
                let state = if key.revoked_at.is_some() {
                    "  revoked"
                } else {
                    ""
                };
                let scopes = key.grant.scopes.names().join(",");
                let limits = if key.grant.is_confined() {
                    "  limited"
                } else {
                    ""
                };
                say(&format!(
                    "{}  {}  {scopes}{limits}{state}",
                    key.id, key.name
                ));
            }
        }
        KeyCommand::Revoke { id, of } => {
            let tenant = tenancy.administration().find_tenant(&of.tenant).await?;
            let id = ApiKeyId::parse(&id)
                .context("an id looks like `key_…`; see `sepal admin key list`")?;
            tenancy.administration().revoke_key(&tenant.id, &id).await?;
            say("Done. Open connections end within seconds.");
        }
    }
    Ok(())
}

async fn service_account(tenancy: &Tenancy, command: ServiceAccountCommand) -> anyhow::Result<()> {
    let admin = tenancy.administration();
    match command {
        ServiceAccountCommand::Add { name, of, role } => {
            let tenant = admin.find_tenant(&of.tenant).await?;
            let role = role.into();
            let user = admin
                .create_service_account(&tenant.id, &name, role)
                .await?;
            say(&format!(
                "Created the service account `{}` in tenant `{}`. Next: sepal admin key add PURPOSE --user '{}' \
                 --tenant {}",
                user.name, tenant.name, user.name, tenant.name
            ));
        }
        ServiceAccountCommand::Rename { name, new, of } => {
            let user = find(tenancy, &of, &name).await?;
            admin
                .rename_service_account(&user.tenant, &user.id, &new)
                .await?;
            say("Done.");
        }
        ServiceAccountCommand::List { of } => {
            let tenant = admin.find_tenant(&of.tenant).await?;
            let users = admin.users(&tenant.id).await?.into_iter();
            for account in users.filter(|user| user.is_service) {
                let state = if account.is_disabled {
                    "  disabled"
                } else {
                    ""
                };
                let user = account.user;
                say(&format!(
                    "{}  {}  {}{state}",
                    user.id,
                    user.name,
                    user.role.as_str()
                ));
            }
        }
    }
    Ok(())
}

/// What a key may do, from the options of the command line.
fn grant(
    scopes: &[ScopeName],
    sessions: &[String],
    servers: Vec<String>,
) -> anyhow::Result<KeyGrant> {
    let parse = |id: &String| {
        SessionId::parse(id).with_context(|| format!("`{id}` is no id of a session (`ses_…`)"))
    };
    let sessions: BTreeSet<SessionId> = sessions.iter().map(parse).collect::<Result<_, _>>()?;
    let scopes: KeyScopes = scopes.iter().map(|scope| KeyScope::from(*scope)).collect();
    let servers: BTreeSet<String> = servers.into_iter().collect();
    Ok(KeyGrant::within(
        Some(scopes).filter(|scopes| !scopes.is_empty()),
        Some(sessions).filter(|sessions| !sessions.is_empty()),
        Some(servers)
            .filter(|servers| !servers.is_empty())
            .map(Arc::new),
    ))
}

/// The time that many days from now.
fn expiry(now: Timestamp, days: u32) -> Timestamp {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    Timestamp(now.0.saturating_add(i64::from(days).saturating_mul(DAY_MS)))
}

/// Asks for a name to be typed before what has it is deleted with all its data.
fn confirm(name: &str, what: &str, with: &str) -> anyhow::Result<()> {
    complain(&format!(
        "This deletes {what} `{name}` with {with}. It cannot be taken back.\nType the name to go on: "
    ));
    let mut typed = String::new();
    std::io::stdin().lock().take(4096).read_line(&mut typed)?;
    anyhow::ensure!(
        typed.trim() == name,
        "the name does not match: nothing was deleted"
    );
    Ok(())
}

/// Reads a password from standard input, because arguments are visible in the process list.
fn read_password() -> anyhow::Result<SecretString> {
    let mut text = String::new();
    std::io::stdin().take(4096).read_to_string(&mut text)?;
    Ok(SecretString::from(
        text.trim_end_matches(['\r', '\n']).to_owned(),
    ))
}
