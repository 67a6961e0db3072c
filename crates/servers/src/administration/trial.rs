//! Tests servers and restarts them; each test runs in a temporary sandbox.

use std::collections::BTreeMap;

use secrecy::ExposeSecret as _;

use super::entries::check_new;
use super::fitness::{NewServer, still_fits};
use super::report::TestReport;
use super::unknown;
use crate::catalogue::entry::Source;
use crate::connections::opening::{Phase, ServerLocation};
use crate::error::Error;
use crate::news::Change;
use crate::permission::{adds_servers, must_look_after};
use crate::registry::Servers;
use crate::try_out::try_out;
use sepal_core::domain::{Caller, SandboxId, Scope};

/// The operations of a caller that test servers.
pub struct Trials<'a> {
    pub(super) servers: &'a Servers,
    pub(super) caller: &'a Caller,
}

impl Trials<'_> {
    /// Starts a server in a temporary sandbox, and reports each phase.
    pub async fn test(&self, name: &str) -> Result<TestReport, Error> {
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name).ok_or_else(|| unknown(name))?;
        must_look_after(self.caller, &server.entry)?;
        still_fits(&server.entry)?;
        let _turn = self
            .servers
            .0
            .probe_limits
            .turn(&self.caller.tenant.id)
            .await;
        let mut phases = Vec::new();
        let holder = self.caller.holder();
        let person = server.entry.is_remote().then_some(&holder);
        let tried = try_out(self.servers, &server.entry, person, &mut phases).await;
        Ok(TestReport::new(phases, tried))
    }

    /// Tests an entry that is not stored.
    pub async fn test_new(&self, new: NewServer) -> Result<TestReport, Error> {
        adds_servers(self.caller, self.servers.0.roles)?;
        let (scope, owner) = check_new(self.servers, self.caller, &new).await?;
        let source = match (&scope, &owner) {
            (Scope::Installation, _) => Source::Installation,
            (Scope::Tenant(_), None) => Source::Tenant,
            (Scope::Tenant(_), Some(_)) => Source::Person,
        };
        let mut entry = self.servers.entry(new.name, source, scope, new.config);
        // Only entries that operators stored read the environment, not trials.
        entry.is_trial = true;
        entry.owner = owner;
        let sandbox = SandboxId::from_bits(rand::random());
        let secrets = new.secrets.iter();
        let secrets = secrets.map(|(name, value)| (name.clone(), value.expose_secret().to_owned()));
        let secrets: BTreeMap<String, String> = secrets.collect();
        let holder = self.caller.holder();
        let place = ServerLocation {
            tenant: Some(&self.caller.tenant.id),
            holder: Some(&holder),
            person: None,
            sandbox: &sandbox,
            secrets: Some(&secrets),
            reach: None,
        };
        let _turn = self
            .servers
            .0
            .probe_limits
            .turn(&self.caller.tenant.id)
            .await;
        let mut phases: Vec<Phase> = Vec::new();
        let opening = &self.servers.0.opener;
        let tried = match opening.open(&entry, place, &mut phases).await {
            Ok(server) => {
                let listed = opening.list(&entry, &server, &mut phases).await;
                server.kill().await;
                listed.map(|tools| (tools, server.last_words()))
            }
            Err(failure) => Err(failure),
        };
        self.servers.0.place.discard(&sandbox).await;
        Ok(TestReport::new(phases, tried))
    }

    /// Restarts a server: ends the connections of the tenant's sessions to it, here and at the other
    /// gateways, and lists it in a temporary sandbox. A running call becomes unknown, with a message that
    /// says so; the next call starts the server again. Returns the number of connections that ended here, and
    /// the report of the start.
    pub async fn restart(&self, name: &str) -> Result<(usize, TestReport), Error> {
        let tenant = &self.caller.tenant.id;
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name);
        let server = server.ok_or_else(|| Error::NotFound(name.to_owned()))?;
        must_look_after(self.caller, &server.entry)?;
        let open = self.servers.0.running.take(tenant, name);
        futures::future::join_all(open.iter().map(|opened| opened.restart())).await;
        self.servers.pass_on(Some(tenant), name, Change::Restarted);
        tracing::info!(mcp.server = %name, tenant.id = %tenant, user.id = %self.caller.user.id, ended = open.len(), "An MCP server is restarted");
        let _turn = self.servers.0.probe_limits.turn(tenant).await;
        let mut phases = Vec::new();
        let holder = self.caller.holder();
        let person = server.entry.is_remote().then_some(&holder);
        let tried = try_out(self.servers, &server.entry, person, &mut phases).await;
        Ok((open.len(), TestReport::new(phases, tried)))
    }
}
