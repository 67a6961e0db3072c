//! Encodes a call that a view asks for, for its frame and card.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use smallvec::smallvec;

use crate::agent::ShownEvent;
use crate::domain::{Actor, CallId};
use crate::gateway::wire::frame::{Frames, frame};
use crate::gateway::wire::stamp::StampedPayload;
use crate::session::{Call, ViewOrigin};

/// The view that asks for a call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskedBy<'a> {
    /// The call that the view belongs to.
    call_id: &'a CallId,
    /// The name of that call's tool.
    name: &'a str,
    /// The page's own id of this instance of the view.
    view_id: &'a str,
    /// The page's own id of the request.
    request_id: &'a str,
}

impl<'a> AskedBy<'a> {
    pub(super) fn of(origin: &'a ViewOrigin) -> Self {
        Self {
            call_id: &origin.call,
            name: &origin.tool,
            view_id: &origin.view,
            request_id: &origin.request,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ViewCallPayload<'a> {
    call_id: &'a CallId,
    name: &'a str,
    server: &'a str,
    args: &'a Value,
    asked_by: Option<AskedBy<'a>>,
    by: &'a Actor,
}

pub(super) fn called(call: &Arc<Call>, by: &Actor, shown: &ShownEvent) -> Frames {
    let what = ViewCallPayload {
        call_id: &call.id,
        name: &call.name,
        server: call.server(),
        args: &call.args,
        asked_by: call.origin.as_ref().map(AskedBy::of),
        by,
    };
    smallvec![frame("tool:view_call", &[&StampedPayload::of(what, shown)])]
}
