//! Who may do what to the registry.

use crate::domain::{Caller, Role, Scope};
use crate::servers::error::Error;

/// Whether somebody manages the servers of their tenant.
pub(crate) fn may_administer(caller: &Caller) -> bool {
    caller.user.role >= Role::Admin || caller.user.installation_admin
}

pub(crate) fn administers_tenant(caller: &Caller) -> Result<(), Error> {
    if may_administer(caller) {
        return Ok(());
    }
    Err(Error::NotAllowed(
        "only owners and admins of the tenant manage MCP servers",
    ))
}

/// Where a new entry goes.
pub(crate) fn scope_for(caller: &Caller, for_everybody: Option<bool>) -> Result<Scope, Error> {
    administers_tenant(caller)?;
    match for_everybody {
        Some(true) if !caller.user.installation_admin => Err(Error::NotAllowed(
            "only installation admins add servers for all tenants",
        )),
        Some(true) | None if caller.user.installation_admin => Ok(Scope::Installation),
        Some(_) | None => Ok(Scope::Tenant(caller.tenant.id.clone())),
    }
}
