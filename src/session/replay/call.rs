//! What led to the calls of views, and to the ends of calls.

use std::sync::Arc;

use crate::domain::Actor;
use crate::session::call::{Call, Proposal, Resolution, ViewCall};
use crate::session::command::Command;
use crate::session::event::Event;
use crate::session::state::Control;

/// A view asked for it.
pub(super) fn called_by_view(call: &Arc<Call>, by: &Actor) -> Option<Command> {
    Some(Command::CallByView(Box::new(ViewCall {
        origin: call.origin.clone()?,
        proposal: Proposal {
            provider_id: call.provider_id.clone(),
            name: call.name.clone(),
            args: call.args.clone(),
            is_indirect: call.is_indirect,
            resolution: Resolution::Ready(Arc::clone(call.facts.as_ref()?)),
        },
        by: by.clone(),
    })))
}

/// A call ended, or its view was closed before anybody let it run.
pub(super) fn ended(control: &Control, event: &Event) -> Vec<Command> {
    let Event::Ended {
        call,
        outcome,
        duration_ms,
        ..
    } = event
    else {
        return Vec::new();
    };
    let waits = control.call(call).filter(|call| !call.is_executing());
    let origin = waits.and_then(|call| call.origin.as_ref());
    if let Some(origin) = origin {
        let (view, request) = (&origin.view, &origin.request);
        return [None, Some(request.clone())]
            .map(|request| Command::CloseView {
                view: view.clone(),
                request,
            })
            .into();
    }
    vec![Command::CallEnded {
        call: call.clone(),
        outcome: outcome.clone(),
        duration_ms: *duration_ms,
    }]
}
