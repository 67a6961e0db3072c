//! Permission checks on the registry of servers.

use super::catalogue::entry::{ServerEntry, Source};
use crate::error::Error;
use sepal_core::domain::{
    AddingRoles, AllowedHost, AllowedHosts, Caller, McpNetwork, McpServerConfig, McpTransport,
    Right, Role, Scope, UserId,
};

/// The audience of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAudience {
    /// All tenants.
    Installation,
    /// Everybody in the tenant of the person who adds it.
    Tenant,
    /// The person who adds it alone.
    Person,
}

/// Returns true if the caller manages the servers of their tenant.
pub(crate) fn may_administer(caller: &Caller) -> bool {
    caller.may(Right::ManageServers)
}

pub(crate) fn administers_tenant(caller: &Caller) -> Result<(), Error> {
    if may_administer(caller) {
        return Ok(());
    }
    Err(Error::NotAllowed(
        "only owners and admins of the tenant manage MCP servers",
    ))
}

/// Returns true if the caller manages the server: they own it and their role may act, or nobody owns it and
/// they manage the servers of their tenant.
pub(crate) fn looks_after(caller: &Caller, entry: &ServerEntry) -> bool {
    match &entry.owner {
        Some(owner) => *owner == caller.user.id && caller.user.role.may_act(),
        None => may_administer(caller),
    }
}

/// Refuses a caller who does not manage the server. Required to test it, restart it, read its log and decide
/// about its tools.
pub(crate) fn must_look_after(caller: &Caller, entry: &ServerEntry) -> Result<(), Error> {
    if looks_after(caller, entry) {
        return Ok(());
    }
    administers_tenant(caller)?;
    Err(Error::NotAllowed(
        "only the person whose server it is manages it",
    ))
}

/// Returns true if the caller may change the entry.
pub(crate) fn may_change(caller: &Caller, entry: &ServerEntry) -> bool {
    match entry.source {
        Source::Bundled => false,
        Source::Settings | Source::Installation => caller.user.installation_admin,
        Source::Tenant | Source::Person => looks_after(caller, entry),
    }
}

/// Returns the transports with which the caller may add servers for that audience.
pub(crate) fn addable(
    caller: &Caller,
    roles: AddingRoles,
    audience: ServerAudience,
) -> Vec<McpTransport> {
    let mut all = McpTransport::ALL.to_vec();
    all.retain(|transport| may_add(caller, roles, audience, *transport));
    all
}

fn may_add(
    caller: &Caller,
    roles: AddingRoles,
    audience: ServerAudience,
    transport: McpTransport,
) -> bool {
    let role = caller.user.role;
    let reaches = |role: Role, lowest: Option<Role>| {
        lowest.is_some_and(|lowest| role >= lowest || caller.user.installation_admin)
    };
    match audience {
        ServerAudience::Installation => caller.user.installation_admin,
        // A custom role that manages servers counts like the role of an admin.
        ServerAudience::Tenant => {
            may_administer(caller) && reaches(role.max(Role::Admin), roles.tenant.lowest(transport))
        }
        ServerAudience::Person => role.may_act() && reaches(role, roles.person.lowest(transport)),
    }
}

/// Refuses a caller who may add no server at all.
pub(crate) fn adds_servers(caller: &Caller, roles: AddingRoles) -> Result<(), Error> {
    let whom = [
        ServerAudience::Installation,
        ServerAudience::Tenant,
        ServerAudience::Person,
    ];
    let mut whom = whom.into_iter();
    if whom.any(|whom| !addable(caller, roles, whom).is_empty()) {
        return Ok(());
    }
    Err(Error::NotAllowed(
        "your role may add no MCP servers here (`agent.mcp_roles`): ask an admin of your tenant",
    ))
}

/// Returns the audience of a new server: the wanted one, or by default the widest that the caller
/// administers.
pub(crate) fn audience_for(
    caller: &Caller,
    wanted: Option<ServerAudience>,
) -> Result<ServerAudience, Error> {
    match wanted {
        Some(ServerAudience::Installation) if !caller.user.installation_admin => Err(
            Error::NotAllowed("only installation admins add servers for all tenants"),
        ),
        Some(ServerAudience::Tenant) if !may_administer(caller) => Err(Error::NotAllowed(
            "only owners and admins of the tenant add servers for everybody in it: \
             add it for yourself (`scope: person`)",
        )),
        Some(wanted) => Ok(wanted),
        None if caller.user.installation_admin => Ok(ServerAudience::Installation),
        None if may_administer(caller) => Ok(ServerAudience::Tenant),
        None => Ok(ServerAudience::Person),
    }
}

/// Returns the audience of a stored entry.
pub(crate) fn audience_of(entry: &ServerEntry) -> ServerAudience {
    match (&entry.scope, &entry.owner) {
        (Scope::Installation, _) => ServerAudience::Installation,
        (Scope::Tenant(_), None) => ServerAudience::Tenant,
        (Scope::Tenant(_), Some(_)) => ServerAudience::Person,
    }
}

/// Refuses a transport that the caller's role may not add for that audience.
pub(crate) fn check_transport(
    caller: &Caller,
    roles: AddingRoles,
    (audience, transport): (ServerAudience, McpTransport),
) -> Result<(), Error> {
    if may_add(caller, roles, audience, transport) {
        return Ok(());
    }
    let (whom, setting) = match audience {
        ServerAudience::Installation => ("all tenants", None),
        ServerAudience::Tenant => ("everybody in your tenant", Some("tenant")),
        ServerAudience::Person => ("yourself", Some("person")),
    };
    let setting = setting.map_or_else(String::new, |audience| {
        let transport = transport.as_str().replace('-', "_");
        format!(" (`agent.mcp_roles.{audience}.{transport}`): ask who runs this installation")
    });
    Err(Error::NoTransport(format!(
        "your role may not add `{}` servers for {whom}{setting}",
        transport.as_str()
    )))
}

/// Refuses `sampling` to callers who are no admins, unless the entry had it before: an admin decides for the
/// people whom the server would ask, and for who pays.
pub(crate) fn check_sampling(
    caller: &Caller,
    config: &McpServerConfig,
    known: Option<&McpServerConfig>,
) -> Result<(), Error> {
    if !config.sampling || known.is_some_and(|known| known.sampling) || may_administer(caller) {
        return Ok(());
    }
    Err(Error::NotAllowed(
        "only owners and admins of the tenant let servers ask models (`sampling`): leave it out, or \
         ask one of them to add the server",
    ))
}

/// Refuses hosts that the caller may not open for a server of their own. Such a server runs beside the
/// session's sandbox and may see the same files, so its network access follows the caller's right to open
/// hosts for their sessions. Hosts that the entry named before remain in it; they are withheld when the
/// server starts.
pub(crate) fn check_hosts(
    caller: &Caller,
    on_request: &AllowedHosts,
    audience: ServerAudience,
    config: &McpServerConfig,
    known: Option<&McpServerConfig>,
) -> Result<(), Error> {
    if audience != ServerAudience::Person || caller.may(Right::OpenAnyHost) {
        return Ok(());
    }
    let known = known.and_then(|known| known.network.as_ref());
    let known = known.map_or(&[][..], McpNetwork::hosts);
    let mut asked = withheld_hosts(config, on_request);
    asked.retain(|host| !known.contains(host));
    if asked.is_empty() {
        return Ok(());
    }
    let asked: Vec<String> = asked.iter().map(|host| format!("`{host}`")).collect();
    let may = if on_request.is_empty() {
        "no hosts".to_owned()
    } else {
        on_request.to_string()
    };
    Err(Error::NoHosts(format!(
        "only an administrator of the tenant lets a server reach {} (`network`); people may name {may} for \
         their own servers (`sandbox.network_on_request`)",
        asked.join(", ")
    )))
}

/// Returns the hosts of an entry that only administrators may open: those that `sandbox.network_on_request`
/// does not cover.
pub(crate) fn withheld_hosts(config: &McpServerConfig, on_request: &AllowedHosts) -> Vec<String> {
    let is_open = |host: &String| {
        let host = host.parse::<AllowedHost>();
        host.is_ok_and(|host| on_request.cover(&host).is_some())
    };
    let hosts = config.network.as_ref().map_or(&[][..], McpNetwork::hosts);
    hosts
        .iter()
        .filter(|host| !is_open(host))
        .cloned()
        .collect()
}

/// Refuses changed `oauth.endpointOrigins` to callers who are no admins: a malicious server could name an
/// origin there that receives people's authorization codes.
pub(crate) fn check_endpoint_origins(
    caller: &Caller,
    config: &McpServerConfig,
    known: Option<&McpServerConfig>,
) -> Result<(), Error> {
    let origins = |config: &McpServerConfig| {
        let oauth = config.oauth.as_ref();
        oauth.map_or_else(Vec::new, |oauth| oauth.endpoint_origins.clone())
    };
    let wanted = origins(config);
    let is_known = known.is_some_and(|known| origins(known) == wanted);
    if wanted.is_empty() || is_known || may_administer(caller) {
        return Ok(());
    }
    Err(Error::NotAllowed(
        "only owners and admins of the tenant say where else endpoints of an issuer may be \
         (`oauth.endpointOrigins`): ask one of them to add the server",
    ))
}

/// Returns the scope and the owner under which a server for that audience is stored.
pub(crate) fn place_of(caller: &Caller, audience: ServerAudience) -> (Scope, Option<UserId>) {
    let tenant = || Scope::Tenant(caller.tenant.id.clone());
    match audience {
        ServerAudience::Installation => (Scope::Installation, None),
        ServerAudience::Tenant => (tenant(), None),
        ServerAudience::Person => (tenant(), Some(caller.user.id.clone())),
    }
}
