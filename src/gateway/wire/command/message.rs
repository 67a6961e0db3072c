//! Parses the command `message`.

use serde::Deserialize;
use serde_json::Value;

use super::{MAX_ID_BYTES, MAX_TEXT_BYTES, Parsed, bounded, read, tell};
use crate::agent::{SessionAction, SessionRequest, SubmitOptions, ViewContext};
use crate::domain::{BlobId, CallId, Caller, Code, Effort, ResourceRef};
use crate::session::{Command, Refusal};

/// The maximum number of resources in one message.
const MAX_RESOURCES: usize = 10;

/// The maximum number of views whose context may accompany one message.
const MAX_VIEWS: usize = 4;
/// The maximum size of the text of one view, in bytes.
const MAX_VIEW_BYTES: usize = 16 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ViewWords {
    call_id: String,
    text: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct MessageRest {
    client_message_id: Option<String>,
    text: Option<String>,
    attachments: Option<Vec<String>>,
    resources: Option<Vec<ResourceRef>>,
    view_contexts: Option<Vec<ViewWords>>,
    images: Option<Vec<Value>>,
    effort: Option<Effort>,
}

/// Parses `"text"` with an optional second argument, or one object.
pub(super) fn message(caller: &Caller, args: &[Value]) -> Result<Parsed, Refusal> {
    let (text, rest) = read_args(args)?;
    if rest.images.is_some_and(|images| !images.is_empty()) {
        let message = "images are uploaded first, and named in `attachments`";
        return Err(Refusal::of_field(Code::InvalidArguments, "images", message));
    }
    let text = text.or(rest.text).unwrap_or_default();
    bounded("text", &text, MAX_TEXT_BYTES)?;
    // An empty id is no id: two messages with it are not the same.
    let client_message_id = rest.client_message_id.filter(|id| !id.is_empty());
    bounded(
        "clientMessageId",
        client_message_id.as_deref().unwrap_or_default(),
        MAX_ID_BYTES,
    )?;
    let is_blank = text.trim().is_empty();
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
    let views = views(rest.view_contexts.unwrap_or_default())?;
    if ids.is_empty() && resources.is_empty() {
        if views.is_empty() {
            return Ok(tell(say));
        }
        if is_blank {
            let message = "what a view adds goes with a message, and is none";
            return Err(Refusal::of_field(Code::InvalidArguments, "text", message));
        }
    }
    let attached: Option<Vec<BlobId>> = ids.iter().map(|id| BlobId::parse(id)).collect();
    let wrong = || {
        let message = "`attachments` are ids that an upload gave";
        Refusal::of_field(Code::InvalidArguments, "attachments", message)
    };
    let attached = attached.ok_or_else(wrong)?;
    let request = SessionRequest {
        action: SessionAction::Command(say),
        options: SubmitOptions {
            attached,
            resources,
            views,
            proof: None,
        },
    };
    Ok(Parsed::Tell(Box::new(request)))
}

fn read_args(args: &[Value]) -> Result<(Option<String>, MessageRest), Refusal> {
    match args.first() {
        Some(Value::String(text)) => {
            // JavaScript's `undefined` arrives as null.
            let rest = args.get(1).filter(|rest| !rest.is_null());
            let rest = rest.map_or(Ok(MessageRest::default()), read)?;
            Ok((Some(text.clone()), rest))
        }
        Some(object @ Value::Object(_)) => Ok((None, read::<MessageRest>(object)?)),
        Some(_) | None => {
            let message = "a message is a text, or an object with `text`";
            Err(Refusal::of_field(Code::InvalidArguments, "text", message))
        }
    }
}

/// Parses the contexts of views, one text for each view.
fn views(words: Vec<ViewWords>) -> Result<Vec<ViewContext>, Refusal> {
    let wrong =
        |message: String| Refusal::of_field(Code::InvalidArguments, "viewContexts", message);
    if words.len() > MAX_VIEWS {
        return Err(wrong(format!("{MAX_VIEWS} views may add to a message")));
    }
    let mut views: Vec<ViewContext> = Vec::with_capacity(words.len());
    for ViewWords { call_id, text } in words {
        bounded("viewContexts", &call_id, MAX_ID_BYTES)?;
        bounded("viewContexts", &text, MAX_VIEW_BYTES)?;
        let call = CallId::from_wire(call_id);
        if text.trim().is_empty() || text.contains('\0') {
            return Err(wrong("what a view adds is a text".to_owned()));
        }
        if views.iter().any(|view| view.call == call) {
            return Err(wrong(format!("the view of `{call}` is named twice")));
        }
        views.push(ViewContext { call, text });
    }
    Ok(views)
}
