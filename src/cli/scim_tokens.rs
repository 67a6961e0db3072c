//! `sepal admin scim-token`: manages the tokens of directories (SCIM), beside a running server.

use clap::{Subcommand, ValueEnum};
use secrecy::ExposeSecret as _;

use super::named::Of;
use super::say;
use crate::domain::{Role, Timestamp};
use crate::tenancy::{NewScimToken, Tenancy};

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum MadeAs {
    Viewer,
    Member,
}

#[derive(Subcommand)]
pub(super) enum ScimTokenCommand {
    /// Make a token; it is printed once.
    Add {
        /// The directory that uses it.
        #[arg(default_value = "")]
        name: String,
        /// The role of people whom the directory makes.
        #[arg(long, value_enum, default_value = "member")]
        role: MadeAs,
        /// Delete people for good when the directory deletes them; otherwise they are disabled.
        #[arg(long)]
        deletes: bool,
        #[command(flatten)]
        of: Of,
    },
    /// List the tokens of a tenant.
    List {
        #[command(flatten)]
        of: Of,
    },
    /// End a token; the people and groups of the directory stay.
    Revoke {
        /// Its id, `sct_…`.
        id: String,
        #[command(flatten)]
        of: Of,
    },
}

pub(super) async fn run(tenancy: &Tenancy, command: ScimTokenCommand) -> anyhow::Result<()> {
    let admin = tenancy.administration();
    match command {
        ScimTokenCommand::Add {
            name,
            role,
            deletes,
            of,
        } => {
            let tenant = admin.find_tenant(&of.tenant).await?;
            let role = match role {
                MadeAs::Viewer => Role::Viewer,
                MadeAs::Member => Role::Member,
            };
            let new = NewScimToken {
                name,
                role,
                deletes,
            };
            let created = admin.add_scim_token(&tenant.id, None, new).await?;
            say(&format!(
                "{}  shown only now:\n{}",
                created.token.id,
                created.secret.expose_secret()
            ));
        }
        ScimTokenCommand::List { of } => {
            let tenant = admin.find_tenant(&of.tenant).await?;
            for token in admin.scim_tokens(&tenant.id).await? {
                let used = token
                    .last_used_at
                    .map_or_else(|| "never used".to_owned(), Timestamp::to_rfc3339);
                let deletes = if token.deletes { "  deletes" } else { "" };
                let role = token.role.as_str();
                say(&format!(
                    "{}  {}  {role}{deletes}  {used}",
                    token.id, token.name
                ));
            }
        }
        ScimTokenCommand::Revoke { id, of } => {
            let tenant = admin.find_tenant(&of.tenant).await?;
            admin.revoke_scim_token(&tenant.id, &id).await?;
            say("Done. The people and groups of the directory stay.");
        }
    }
    Ok(())
}
