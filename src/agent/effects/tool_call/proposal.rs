//! A call as a model proposes it: of a tool that it was sent, or of one that it found.

use serde_json::Value;

use super::SessionTools;
use crate::domain::{FIND_TOOLS, USE_TOOL};
use crate::servers::asked_for;
use crate::session::{Proposal, Resolution};

/// Looks a call up and validates it, before anybody is asked. One that the model makes through
/// `use_tool` is a call of the tool that it names.
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
            let found = tools.view().deferred().find(args);
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
