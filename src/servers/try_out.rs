//! Opens a server in a place that is thrown away, to see what it offers.

use super::catalogue::entry::ServerEntry;
use super::connections::opening::{Failure, Phase, ServerLocation};
use super::offers;
use super::registry::Servers;
use crate::domain::{Holder, SandboxId, Tool};

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
    };
    let opened = servers.open_and_list(entry, place, phases).await;
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
