//! Folds the calls that views request. Later events of those calls fold like those of a turn's calls.

use std::sync::Arc;

use crate::domain::Timestamp;
use crate::session::call::Call;
use crate::session::state::Control;

/// Adds a view's call and drops ended ones. People's decisions about these may be sent again, so they are
/// remembered.
pub(super) fn called(control: &mut Control, call: &Arc<Call>, at: Timestamp) {
    let ended: Vec<Arc<Call>> = control.views.calls.clone();
    for ended in ended.iter().filter(|call| call.is_ended()) {
        control.keep_decision(ended);
    }
    control.views.take(call, at);
    control.keep_stamp(call);
}
