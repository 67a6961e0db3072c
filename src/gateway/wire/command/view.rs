//! Parses the requests of views, which the page forwards.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{MAX_ID_BYTES, Parsed, body, bounded, tell};
use crate::agent::{SessionAction, ViewRequest};
use crate::domain::{CallId, Caller, Code, ToolRef};
use crate::session::{Command, Refusal, ViewOrigin};

/// The maximum size of the arguments of a view's call, in bytes.
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    call_id: String,
    view_id: String,
    request_id: String,
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

pub(super) fn call(caller: &Caller, args: &[Value]) -> Result<Parsed, Refusal> {
    let body: Asked = body(args)?;
    for (field, id) in [
        ("viewId", &body.view_id),
        ("requestId", &body.request_id),
        ("name", &body.name),
    ] {
        named(field, id)?;
    }
    let arguments = Value::Object(body.arguments);
    bounded("arguments", &arguments.to_string(), MAX_ARGUMENT_BYTES)?;
    let asked = ViewRequest {
        at: ToolRef {
            server: String::new(),
            tool: body.name,
        },
        args: arguments,
        origin: ViewOrigin {
            call: CallId::from_wire(body.call_id),
            tool: String::new(),
            view: body.view_id,
            request: body.request_id,
        },
        by: caller.actor(),
    };
    let asked = SessionAction::CallByView(Box::new(asked));
    Ok(Parsed::Tell(Box::new(asked.into())))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Close {
    view_id: String,
    request_id: Option<String>,
}

pub(super) fn close(_: &Caller, args: &[Value]) -> Result<Parsed, Refusal> {
    let Close {
        view_id,
        request_id,
    } = body(args)?;
    named("viewId", &view_id)?;
    if let Some(request) = &request_id {
        named("requestId", request)?;
    }
    Ok(tell(Command::CloseView {
        view: view_id,
        request: request_id,
    }))
}

fn named(field: &'static str, id: &str) -> Result<(), Refusal> {
    if id.is_empty() {
        let text = format!("`{field}` is empty");
        return Err(Refusal::of_field(Code::InvalidArguments, field, text));
    }
    bounded(field, id, MAX_ID_BYTES)
}
