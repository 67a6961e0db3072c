//! Derives the work that has to run from the control state. The shell compares the result with the running
//! work, and starts and stops tasks accordingly.

use std::sync::Arc;

use super::call::{Call, CallStatus, Elicitation, SamplingStage};
use super::state::{Control, Phase};
use super::title::Titling;
use crate::domain::{CallId, ElicitationId, ModelRequestId};

/// One piece of work that has to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Ask the model.
    AskModel(ModelRequestId),
    /// Run an approved call.
    RunCall {
        call: CallId,
        /// True if the running call has to be stopped.
        is_stopping: bool,
    },
    /// Ask a model for a title.
    MakeTitle,
    /// Ask a model to review a waiting call.
    Review(CallId),
    /// Run a waiting call in a copy of the workspace.
    DryRun(CallId),
    /// Ask the model for a completion that a server requested.
    Sample(ElicitationId),
    /// Copy the workspace of the session that this one was forked from.
    CopyWorkspace,
}

/// Returns all work that has to run in this state.
pub fn effects(control: &Control) -> Vec<Effect> {
    let is_asked = matches!(control.title.titling, Titling::Asked(_));
    let mut effects = if control.awaits_workspace {
        // A model asked now would be told of files that are not copied yet.
        vec![Effect::CopyWorkspace]
    } else {
        let mut effects = of_turn(control);
        effects.extend(running(&control.views.calls, false));
        effects.extend(sampling(control));
        effects
    };
    effects.extend(is_asked.then_some(Effect::MakeTitle));
    let review = control.reviewing.running.as_ref();
    effects.extend(review.map(|running| Effect::Review(running.call.clone())));
    effects
}

fn of_turn(control: &Control) -> Vec<Effect> {
    let Some(turn) = &control.turn else {
        return Vec::new();
    };
    if turn.phase == Phase::Asking {
        return vec![Effect::AskModel(turn.request())];
    }
    running(&turn.queue, turn.is_stopping).collect()
}

/// Returns the open completions that servers requested and a model has to answer.
fn sampling(control: &Control) -> impl Iterator<Item = Effect> {
    let asks = |asked: &&Arc<Elicitation>| {
        let stage = asked.sampling.as_ref().map(|sampling| &sampling.stage);
        asked.is_open() && matches!(stage, Some(SamplingStage::Asking { .. }))
    };
    let asked = control.elicitations().filter(asks);
    asked.map(|asked| Effect::Sample(asked.id.clone()))
}

fn running(calls: &[Arc<Call>], is_turn_stopping: bool) -> impl Iterator<Item = Effect> {
    calls.iter().filter_map(move |call| match &call.status {
        CallStatus::Executing { is_stopping, .. } => Some(Effect::RunCall {
            call: call.id.clone(),
            is_stopping: *is_stopping || is_turn_stopping,
        }),
        CallStatus::Pending { .. } => call
            .is_dry_running()
            .then(|| Effect::DryRun(call.id.clone())),
        CallStatus::Approved { .. } | CallStatus::Ended { .. } => None,
    })
}
