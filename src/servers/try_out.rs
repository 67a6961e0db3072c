//! Opens servers and lists them: for a session, or in a place that is thrown away, to see what one offers.

use std::sync::Arc;
use std::time::Instant;

use super::catalogue::entry::{ServerEntry, Source};
use super::connections::opening::{Failure, Opened, Phase, ServerLocation};
use super::connections::session_reach::SessionReach;
use super::health::{Seen, Status};
use super::offers;
use super::registry::Servers;
use crate::domain::{Code, Holder, SandboxId, Tool};

/// Opens a server in a place that is thrown away, lists it, and closes it; with a person's own
/// tokens, if it is for one. What it offers, and its last words on stderr.
pub(crate) async fn try_out(
    servers: &Servers,
    (entry, person): (&ServerEntry, Option<&Holder>),
    phases: &mut Vec<Phase>,
) -> Result<(Vec<Tool>, Vec<String>), Failure> {
    let sandbox = SandboxId::from_bits(rand::random());
    let place = ServerLocation {
        tenant: person.map(|person| &person.tenant).or(entry.tenant()),
        person,
        // Looks have turns of their own, for tenants too.
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

/// Opens a server for a session, and compares what it offers with what is known of it. With its `reach`
/// the session's own sandbox reaches what the session was allowed.
pub(crate) async fn open_for(
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

/// Opens a server, lists it, and notes how that went.
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
