//! Resolves calls that a model proposes: of a tool that it was sent, or of one that it found.

use serde_json::Value;

use super::SessionTools;
use crate::domain::{FIND_TOOLS, ToolRef, USE_TOOL};
use crate::servers::{ToolOffering, asked_for};
use crate::session::{Proposal, Resolution};

/// Resolves and validates a call, before anybody is asked. A call through `use_tool` becomes a call of the
/// tool that it names.
pub(in crate::agent::effects) fn propose(
    tools: &SessionTools,
    provider_id: String,
    name: &str,
    args: &Value,
) -> Proposal {
    let proposal = |name: &str, args: &Value, is_indirect, resolution| Proposal {
        provider_id,
        name: name.to_owned(),
        args: args.clone(),
        is_indirect,
        resolution,
    };
    match name {
        FIND_TOOLS => {
            let found = tools.offering().deferred().find(args);
            let resolution = found.map_or_else(Resolution::Invalid, Resolution::Answered);
            proposal(name, args, false, resolution)
        }
        USE_TOOL => match asked_for(args) {
            Ok((tool, inner)) => proposal(&tool, &inner, true, tools.resolve(&tool, &inner)),
            Err(problem) => proposal(name, args, false, Resolution::Invalid(problem)),
        },
        _ => proposal(name, args, false, tools.resolve(name, args)),
    }
}

/// The error for an unknown tool name, with the known names.
pub(super) fn no_tool(offering: &ToolOffering, name: &str) -> String {
    let names = offering.definitions.iter().map(|tool| tool.name.as_str());
    let known: Vec<&str> = names.collect();
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    format!("there is no tool `{name}`; there are: {known}")
}

/// Resolves a call that a view of the tool's server asks for, by the server's own name.
pub(in crate::agent) fn propose_for_view(
    tools: &SessionTools,
    at: &ToolRef,
    args: Value,
) -> Proposal {
    let offering = tools.offering();
    let found = offering.find_for_apps(at);
    let name = found.map_or(&at.tool, |found| &found.tool.name).clone();
    let resolution = match found {
        Some(found) => tools.resolve_found(&offering, found, &args),
        None => Resolution::Invalid(format!(
            "the server `{}` has no tool `{}` that its views may call: there is none, it is switched \
             off, or it is for the model alone",
            at.server, at.tool
        )),
    };
    Proposal {
        provider_id: String::new(),
        name,
        args,
        is_indirect: false,
        resolution,
    }
}
