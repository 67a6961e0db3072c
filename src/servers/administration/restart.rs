//! Starting a server afresh for one tenant: what runs of it ends, and it is listed anew.

use super::permission::administers_tenant;
use super::report::TestReport;
use crate::domain::{Caller, TenantId};
use crate::servers::error::Error;
use crate::servers::monitor;
use crate::servers::news::Change;
use crate::servers::registry::Servers;

impl Servers {
    /// Ends the connections that sessions of the caller's tenant have to a server, and lists it in
    /// a place that is thrown away. A call that runs becomes unknown with words that say so; the next one
    /// starts the server anew. Other gateways are told to do the same. How many connections ended
    /// at this one, and how the start went.
    pub async fn restart(&self, caller: &Caller, name: &str) -> Result<(usize, TestReport), Error> {
        administers_tenant(caller)?;
        let tenant = &caller.tenant.id;
        let view = self.view(tenant).await?;
        let server = view.server(name);
        let server = server.ok_or_else(|| Error::NotFound(name.to_owned()))?;
        let open = self.0.running.take(tenant, name);
        futures::future::join_all(open.iter().map(|opened| opened.restart())).await;
        self.pass_on(Some(tenant), name, Change::Restarted);
        tracing::info!(mcp.server = %name, tenant.id = %tenant, user.id = %caller.user.id, ended = open.len(), "An MCP server is restarted");
        let _turn = self.0.probe_limits.turn(tenant).await;
        let mut phases = Vec::new();
        let tried = monitor::try_out(self, &server.entry, &mut phases).await;
        Ok((open.len(), TestReport::new(phases, tried)))
    }

    /// Another gateway was asked to.
    pub(crate) fn restart_here(&self, tenant: &TenantId, name: &str) {
        let open = self.0.running.take(tenant, name);
        self.0.opener.tasks.spawn(async move {
            futures::future::join_all(open.iter().map(|opened| opened.restart())).await;
        });
    }
}
