//! Parses the commands for dry runs of calls in a copy of the workspace.

use serde::Deserialize;
use serde_json::Value;

use super::{ParsedCommand, body, submit};
use crate::domain::{CallId, Caller, Digest};
use crate::session::{Command, Refusal};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DryRun {
    call_id: String,
    /// The digest of the call as it was shown.
    digest: Option<String>,
}

/// Begins a dry run.
pub(super) fn dry_run(caller: &Caller, args: &[Value]) -> Result<ParsedCommand, Refusal> {
    let body: DryRun = body(args)?;
    Ok(submit(Command::DryRun {
        call: CallId::from_wire(body.call_id),
        digest: body.digest.map(Digest::from_wire),
        by: caller.actor(),
        role: Some(caller.user.role),
    }))
}

/// Ends a dry run, or discards its result.
pub(super) fn drop_dry_run(caller: &Caller, args: &[Value]) -> Result<ParsedCommand, Refusal> {
    let body: DryRun = body(args)?;
    Ok(submit(Command::DropDryRun {
        call: CallId::from_wire(body.call_id),
        by: caller.actor(),
        role: Some(caller.user.role),
    }))
}
