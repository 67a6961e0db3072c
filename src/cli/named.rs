//! Finds tenants and people by their names on the command line.

use clap::Args;

use crate::domain::User;
use crate::tenancy::{DEFAULT_TENANT, Tenancy};

#[derive(Args)]
pub(super) struct Of {
    /// The tenant.
    #[arg(long, default_value = DEFAULT_TENANT)]
    pub(super) tenant: String,
}

/// Finds a person by name, even if disabled.
pub(super) async fn find(tenancy: &Tenancy, of: &Of, name: &str) -> anyhow::Result<User> {
    let tenant = tenancy.administration().find_tenant(&of.tenant).await?;
    Ok(tenancy.administration().find_user(&tenant.id, name).await?)
}
