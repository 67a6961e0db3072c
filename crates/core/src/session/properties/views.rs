//! Makes random calls of views, and closes the views.

use serde_json::json;

use super::TOOLS;
use super::world::{World, proposal};
use crate::domain::CallId;
use crate::session::{Command, Resolution, ViewCall, ViewOrigin};

/// One of three showings requests a call, sometimes repeating a request.
pub(super) fn asks(seed: u8) -> Command {
    let mut proposal = proposal(
        TOOLS[usize::from(seed) % TOOLS.len()],
        json!({"n": seed % 5}),
    );
    if seed % 17 == 0 {
        proposal.resolution = Resolution::Invalid("`n` is missing".into());
    }
    Command::CallByView(Box::new(ViewCall {
        origin: ViewOrigin {
            call: CallId::from_wire("call_1_0"),
            tool: "chart".into(),
            view: format!("v{}", seed % 3),
            request: format!("r{seed}"),
        },
        proposal,
        by: World::person(),
    }))
}

/// The person closes one of three showings.
pub(super) fn closed(seed: u8) -> Command {
    Command::CloseView {
        view: format!("v{}", seed % 3),
        request: None,
    }
}

/// One of three showings stops waiting for a request.
pub(super) fn waits_no_more(seed: u8) -> Command {
    Command::CloseView {
        view: format!("v{}", seed % 3),
        request: Some(format!("r{}", seed / 3)),
    }
}
