//! The hosts that a session was allowed, as its calls were shown with them, and those that they were refused.

use std::fmt::Write as _;

use crate::agent::effects::Outcomes;
use crate::agent::effects::tool_call::SessionTools;
use crate::domain::Timestamp;
use crate::servers::{BUNDLED, ServerEntry, Source};
use crate::session::{Call, Command, Outcome, Output, ToolFacts};

/// Hosts that the result of one call names.
const MAX_NAMED: usize = 8;

/// What a call of that server is shown with that is asked for now, beside what the settings name.
pub(in crate::agent::effects::tool_call) fn now(
    tools: &SessionTools,
    server: &ServerEntry,
) -> Vec<String> {
    if server.source != Source::Bundled {
        return Vec::new();
    }
    let mut hosts = tools.reach.hosts();
    hosts.retain(|host| !tools.place.network.hosts().contains(host));
    hosts
}

/// What a call was shown with, beside what the settings name now. It reaches no others, whatever the session
/// was allowed since, so its digest is that of these.
pub(in crate::agent::effects::tool_call) fn shown(
    tools: &SessionTools,
    facts: Option<&ToolFacts>,
) -> Vec<String> {
    let own = facts.filter(|facts| facts.tool.server == BUNDLED);
    let hosts = own.map_or(&[][..], |facts| &facts.runs_in.hosts);
    let of_settings = tools.place.network.hosts();
    let of_session = hosts.iter().filter(|host| !of_settings.contains(host));
    of_session.cloned().collect()
}

/// From now on the session is told of the hosts that its commands are refused.
pub(in crate::agent::effects) fn report(tools: &SessionTools, outcomes: &Outcomes) {
    let outcomes = outcomes.clone();
    tools.reach.report_to(move |refusal| {
        let command = Command::HostRefused(Box::new(refusal));
        outcomes.try_tell(command)
    });
}

/// Says to the model which hosts were refused while a command ran: programs tend to say no more than that
/// a proxy did.
pub(in crate::agent::effects::tool_call) fn tell_refused(
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
