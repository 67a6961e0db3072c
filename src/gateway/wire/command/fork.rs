//! Parses the command `session:fork`.

use serde::Deserialize;
use serde_json::Value;

use super::{Parsed, message, optional_body};
use crate::agent::{ForkRequest, SessionAction};
use crate::domain::{Caller, Code};
use crate::providers::{Wanted, WantedEffort};
use crate::session::Refusal;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ForkBody {
    from_seq: Option<u64>,
    text: Option<String>,
    attachments: Option<Vec<String>>,
    /// A message may have resources and contexts of views; the message of a fork may not.
    resources: Option<Vec<Value>>,
    view_contexts: Option<Vec<Value>>,
    model: Option<String>,
    provider: Option<String>,
    /// `null` selects the effort that the settings define for the model.
    #[serde(default)]
    effort: WantedEffort,
}

/// Parses `{ fromSeq?, text?, attachments?, clientMessageId?, model?, provider?, effort? }`; the text and
/// attachments have the form of a message. The message has no resources and no contexts of views.
pub(super) fn fork(caller: &Caller, args: &[Value]) -> Result<Parsed, Refusal> {
    let body: ForkBody = optional_body(args)?;
    for (field, values) in [
        ("resources", &body.resources),
        ("viewContexts", &body.view_contexts),
    ] {
        if values.as_ref().is_some_and(|values| !values.is_empty()) {
            let message = format!(
                "the message of a fork has no `{field}`: send them with a message to the new session"
            );
            return Err(Refusal::of_field(Code::InvalidArguments, field, message));
        }
    }
    let mut then = Vec::new();
    let wanted = Wanted::new(body.provider, body.model).with_effort(body.effort);
    if !wanted.is_empty() {
        then.push(SessionAction::Choose(wanted).into());
    }
    let says = body.text.is_some() || body.attachments.is_some_and(|ids| !ids.is_empty());
    if says {
        let mut said = args.first().cloned().unwrap_or_default();
        // In a fork, `effort` belongs to the session and not to the message.
        if let Some(fields) = said.as_object_mut() {
            fields.remove("effort");
        }
        if let Parsed::Tell(say) = message::message(caller, &[said])? {
            then.push(*say);
        }
    }
    let from_seq = body.from_seq;
    Ok(Parsed::Fork(ForkRequest { from_seq, then }))
}
