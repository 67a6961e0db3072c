//! The command `message`.

use serde::Deserialize;
use serde_json::Value;

use super::{MAX_ID_BYTES, MAX_TEXT_BYTES, Parsed, bounded, read, tell};
use crate::agent::SessionRequest;
use crate::domain::{BlobId, Caller, Code, Effort, ResourceRef};
use crate::session::{Command, Refusal};

/// Resources that one message may name.
const MAX_RESOURCES: usize = 10;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct MessageRest {
    client_message_id: Option<String>,
    text: Option<String>,
    attachments: Option<Vec<String>>,
    resources: Option<Vec<ResourceRef>>,
    images: Option<Vec<Value>>,
    effort: Option<Effort>,
}

/// `"text"` with an optional second argument, or one object.
pub(super) fn message(caller: &Caller, args: &[Value]) -> Result<Parsed, Refusal> {
    let (text, rest) = match args.first() {
        Some(Value::String(text)) => (
            Some(text.clone()),
            // `undefined` arrives as null.
            args.get(1)
                .filter(|rest| !rest.is_null())
                .map_or(Ok(MessageRest::default()), read)?,
        ),
        Some(object @ Value::Object(_)) => (None, read::<MessageRest>(object)?),
        Some(_) | None => {
            let message = "a message is a text, or an object with `text`";
            return Err(Refusal::of_field(Code::InvalidArguments, "text", message));
        }
    };
    if rest.images.is_some_and(|images| !images.is_empty()) {
        let message = "images are uploaded first, and named in `attachments`";
        return Err(Refusal::of_field(Code::InvalidArguments, "images", message));
    }
    let text = text.or(rest.text).unwrap_or_default();
    bounded("text", &text, MAX_TEXT_BYTES)?;
    // An empty id names nothing: two messages with it are not the same.
    let client_message_id = rest.client_message_id.filter(|id| !id.is_empty());
    bounded(
        "clientMessageId",
        client_message_id.as_deref().unwrap_or_default(),
        MAX_ID_BYTES,
    )?;
    let say = Command::Say {
        text,
        author: caller.actor(),
        client_message_id,
        effort: rest.effort,
        attachments: vec![],
    };
    let resources = rest.resources.unwrap_or_default();
    if resources.len() > MAX_RESOURCES {
        let message = format!("a message may name {MAX_RESOURCES} resources");
        return Err(Refusal::of_field(
            Code::InvalidArguments,
            "resources",
            message,
        ));
    }
    let ids = rest.attachments.unwrap_or_default();
    if ids.is_empty() && resources.is_empty() {
        return Ok(tell(say));
    }
    let attached: Option<Vec<BlobId>> = ids.iter().map(|id| BlobId::parse(id)).collect();
    let wrong = || {
        let message = "`attachments` are ids that an upload gave";
        Refusal::of_field(Code::InvalidArguments, "attachments", message)
    };
    let attached = attached.ok_or_else(wrong)?;
    let request = SessionRequest::Say {
        say,
        attached,
        resources,
    };
    Ok(Parsed::Tell(Box::new(request)))
}
