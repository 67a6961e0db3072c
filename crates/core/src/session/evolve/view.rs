//! The part of the fold that takes in what views ask for. Their calls move along like those of a turn.

use std::sync::Arc;

use crate::domain::Timestamp;
use crate::session::call::Call;
use crate::session::state::Control;

/// A view asked for a call. Those that have ended go; what people decided about them may be sent again.
pub(super) fn called(control: &mut Control, call: &Arc<Call>, at: Timestamp) {
    let ended: Vec<Arc<Call>> = control.views.calls.clone();
    for ended in ended.iter().filter(|call| call.is_ended()) {
        control.keep_decision(ended);
    }
    control.views.take(call, at);
    control.keep_stamp(call);
}
