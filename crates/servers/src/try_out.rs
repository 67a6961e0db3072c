//! Opens servers and lists their tools: for a session, or as a probe in a temporary sandbox.

use std::sync::Arc;
use std::time::Instant;

use super::catalogue::entry::{ServerEntry, Source};
use super::connections::opening::{Failure, Opened, Phase, ServerLocation};
use super::connections::session_reach::SessionReach;
use super::health::{Seen, Status};
use super::offers;
use super::registry::Servers;
use sepal_core::domain::{Code, Holder, SandboxId, Tool};

/// Opens a server in a temporary sandbox, lists its tools, and closes it. With `person`, it uses that
/// person's tokens. Returns the tools and the last lines of stderr.
pub(crate) async fn try_out(
    servers: &Servers,
    entry: &ServerEntry,
    person: Option<&Holder>,
    phases: &mut Vec<Phase>,
) -> Result<(Vec<Tool>, Vec<String>), Failure> {
    let sandbox = SandboxId::from_bits(rand::random());
    let place = ServerLocation {
        tenant: person.map(|person| &person.tenant).or(entry.tenant()),
        person,
        // Probes have limits of their own, so they count against nobody's share of sandboxes.
        holder: None,
        sandbox: &sandbox,
        secrets: None,
        reach: None,
    };
    let opened = open_and_list(servers, entry, place, phases).await;
    let result = match opened {
        Ok((opened, tools)) => {
            offers::note(servers, entry, &opened).await;
            opened.kill().await;
            let said = opened.last_words();
            Ok((tools, said))
        }
        Err(failure) => Err(failure),
    };
    if !entry.is_remote() {
        servers.0.place.discard(&sandbox).await;
    }
    result
}

/// Opens a server for a session, and stores its tools if they have changed. With `reach`, the session's own
/// sandbox may reach the hosts that the session was allowed.
pub async fn open_for(
    servers: &Servers,
    entry: &ServerEntry,
    (holder, sandbox): (&Holder, &SandboxId),
    reach: Option<&Arc<SessionReach>>,
) -> Result<Opened, Failure> {
    let place = ServerLocation {
        tenant: Some(&holder.tenant),
        holder: Some(holder),
        person: Some(holder),
        sandbox,
        secrets: None,
        reach,
    };
    let mut phases = Vec::new();
    let opened = open_and_list(servers, entry, place, &mut phases).await;
    opened.map(|(opened, _)| opened)
}

/// Opens a server, lists its tools, and records the result as the server's health.
async fn open_and_list(
    servers: &Servers,
    entry: &ServerEntry,
    place: ServerLocation<'_>,
    phases: &mut Vec<Phase>,
) -> Result<(Opened, Vec<Tool>), Failure> {
    let begun = Instant::now();
    let result: Result<(Opened, Vec<Tool>), Failure> = async {
        let opened = servers.0.opener.open(entry, place, phases).await?;
        if entry.source == Source::Bundled {
            return Ok((opened, Vec::new()));
        }
        let tools = servers.0.opener.list(entry, &opened, phases).await?;
        servers.offers(entry, &tools).await;
        Ok((opened, tools))
    }
    .await;
    match &result {
        Ok(_) => servers.saw(entry, place.tenant, Seen::Well(begun.elapsed())),
        Err(failure) if failure.code == Code::AuthorizationRequired => {
            servers.wants_people(entry, place.tenant, &failure.text);
        }
        Err(failure) => {
            let seen = Seen::Badly(Status::Unhealthy, failure.text.clone());
            servers.saw(entry, place.tenant, seen);
        }
    }
    result
}
