//! Parses decisions about calls.

use serde::Deserialize;
use serde_json::Value;

use super::{MAX_TEXT_BYTES, Parsed, body, bounded};
use crate::agent::{SessionAction, SessionRequest, SubmitOptions};
use crate::domain::{CallId, Caller, Code, Digest};
use crate::session::{Command, Decision, Refusal};
use crate::store::records::SecretHash;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Approval {
    call_id: String,
    approved: bool,
    #[serde(default)]
    take_back: bool,
    reason: Option<String>,
    args: Option<Value>,
    /// Replaces `args` for clients whose language rounds whole numbers.
    args_text: Option<String>,
    digest: Option<String>,
    /// The digest of a dry run's result that the call takes instead of running.
    dry_run: Option<String>,
    scope: Option<String>,
    rule: Option<Value>,
    gesture: Option<String>,
}

pub(super) fn approval(caller: &Caller, args: &[Value]) -> Result<Parsed, Refusal> {
    let body: Approval = body(args)?;
    let other_scope = body.scope.filter(|scope| scope != "once");
    if let Some(field) = other_scope
        .map(|_| "scope")
        .or(body.rule.as_ref().map(|_| "rule"))
    {
        let message = "a decision is about one call (`scope` is `once`): to create a rule, send `POST \
                       /api/rules` with `session` and `callId`; if the rule allows, the call is approved too";
        return Err(Refusal::of_field(Code::InvalidArguments, field, message));
    }
    let args = match (body.args, body.args_text) {
        (args, None) => args,
        (None, Some(text)) => {
            let parsed = serde_json::from_str(&text);
            Some(parsed.map_err(|error| {
                let message = format!("changed arguments are JSON: {error}");
                Refusal::of_field(Code::InvalidArguments, "argsText", message)
            })?)
        }
        (Some(_), Some(_)) => {
            let message = "either `args` or `argsText`";
            return Err(Refusal::of_field(
                Code::InvalidArguments,
                "argsText",
                message,
            ));
        }
    };
    if args.as_ref().is_some_and(|args| !args.is_object()) {
        let message = "changed arguments are an object";
        return Err(Refusal::of_field(Code::InvalidArguments, "args", message));
    }
    bounded(
        "reason",
        body.reason.as_deref().unwrap_or_default(),
        MAX_TEXT_BYTES,
    )?;
    let decision = Decision {
        call: CallId::from_wire(body.call_id),
        approved: body.approved,
        take_back: body.take_back && !body.approved,
        reason: body.reason.filter(|reason| !reason.trim().is_empty()),
        edit: None,
        dry_run: body
            .dry_run
            .filter(|_| body.approved)
            .map(Digest::from_wire),
        digest: body.digest.map(Digest::from_wire),
        by: caller.actor(),
        role: Some(caller.user.role),
    };
    let decision = SessionAction::Decide { decision, args };
    Ok(Parsed::Tell(Box::new(with_proof(decision, body.gesture))))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApprovalAll {
    call_ids: Option<Vec<String>>,
    approved: bool,
    reason: Option<String>,
    gesture: Option<String>,
}

/// Attaches the fresh gesture that was sent with a decision.
fn with_proof(decision: SessionAction, gesture: Option<String>) -> SessionRequest {
    let gesture = gesture.filter(|gesture| !gesture.is_empty());
    SessionRequest {
        action: decision,
        options: SubmitOptions {
            proof: gesture.map(|gesture| SecretHash::of(&gesture)),
            ..SubmitOptions::default()
        },
    }
}

pub(super) fn approval_all(caller: &Caller, args: &[Value]) -> Result<Parsed, Refusal> {
    let body: ApprovalAll = body(args)?;
    bounded(
        "reason",
        body.reason.as_deref().unwrap_or_default(),
        MAX_TEXT_BYTES,
    )?;
    let ids = |ids: Vec<String>| ids.into_iter().map(CallId::from_wire).collect();
    let decision = SessionAction::Command(Command::DecideAll {
        call_ids: body.call_ids.map(ids),
        approved: body.approved,
        reason: body.reason,
        by: caller.actor(),
        role: Some(caller.user.role),
    });
    Ok(Parsed::Tell(Box::new(with_proof(decision, body.gesture))))
}
