//! Computes the hosts that a session's calls are shown with, and reports the hosts that they were refused.

use std::fmt::Write as _;

use super::SessionTools;
use crate::agent::effects::Outcomes;
use crate::domain::Timestamp;
use crate::servers::{BUNDLED, ServerEntry, Source};
use crate::session::{Call, Command, Outcome, Output, ToolFacts};

/// The most hosts named in the result of one call.
const MAX_NAMED: usize = 8;

/// Returns the allowed hosts to show with a new call of that server, without those of the settings.
pub(super) fn now(tools: &SessionTools, server: &ServerEntry) -> Vec<String> {
    if server.source != Source::Bundled {
        return Vec::new();
    }
    let mut hosts = tools.reach.hosts();
    hosts.retain(|host| !tools.place.network.hosts().contains(host));
    hosts
}

/// Returns the allowed hosts that a call was shown with, without those of the settings now. The call reaches
/// no others, whatever the session was allowed since, so its digest covers these.
pub(super) fn shown(tools: &SessionTools, facts: Option<&ToolFacts>) -> Vec<String> {
    let own = facts.filter(|facts| facts.tool.server == BUNDLED);
    let hosts = own.map_or(&[][..], |facts| &facts.runs_in.hosts);
    let of_settings = tools.place.network.hosts();
    let of_session = hosts.iter().filter(|host| !of_settings.contains(host));
    of_session.cloned().collect()
}

/// From now on reports hosts that the session's commands are refused to the session.
pub(in crate::agent::effects) fn report(tools: &SessionTools, outcomes: &Outcomes) {
    let outcomes = outcomes.clone();
    tools.reach.report_to(move |refusal| {
        let command = Command::HostRefused(Box::new(refusal));
        outcomes.try_tell(command)
    });
}

/// Adds the hosts that were refused while a command ran to its result: programs tend to say only that a proxy
/// refused.
pub(super) fn tell_refused(
    tools: &SessionTools,
    call: &Call,
    since: Timestamp,
    outcome: &mut Outcome,
) {
    if call.server() != BUNDLED {
        return;
    }
    let refused = tools.reach.refused_since(since);
    let (Some(output), false) = (output_of(outcome), refused.is_empty()) else {
        return;
    };
    let text = &mut output.text;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str("--- refused by the sandbox's proxy ---\n");
    for refused in refused.iter().rev().take(MAX_NAMED) {
        let (host, port) = (&refused.host, refused.port);
        let _ = writeln!(text, "{host}:{port}: {}", refused.reason);
    }
    text.push_str(
        "People see this in the session, with who can allow a host for it; try again once they have.\n",
    );
}

fn output_of(outcome: &mut Outcome) -> Option<&mut Output> {
    match outcome {
        Outcome::Completed { output } | Outcome::Failed { output, .. } => Some(output),
        Outcome::Rejected { .. } | Outcome::Cancelled | Outcome::Unknown { .. } => None,
    }
}
