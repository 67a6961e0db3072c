//! Why a decision about a call is refused, wherever the call stands.

use serde_json::Value;

use super::Draft;
use super::rules::ruling;
use crate::domain::{CallId, Code, Digest, GestureMeans};
use crate::session::call::Call;
use crate::session::command::{Decision, Edit, Refusal};
use crate::session::policy::PolicyEffect;

/// Whether the decision is about what the call would run with now, if it says what it is about.
pub(super) fn check_shown(would_run: Option<&Digest>, decision: &Decision) -> Result<(), Refusal> {
    let shown = decision.digest.as_ref();
    if shown.is_some_and(|shown| would_run.is_some_and(|digest| shown != digest)) {
        return Err(Refusal::of_field(
            Code::ChangedSinceShown,
            "digest",
            "what would run is no longer what was shown; read the card again",
        ));
    }
    Ok(())
}

/// Whether a person who changed arguments changed nothing else: the arguments bind to the tool of now,
/// and that has to be the one on the card.
pub(super) fn check_same_tool(shown: &Digest, edit: &Edit) -> Result<(), Refusal> {
    if edit.unedited.as_ref() == Some(shown) {
        return Ok(());
    }
    Err(Refusal::of_field(
        Code::ChangedSinceShown,
        "digest",
        "the tool, its server or its sandbox is no longer what the card shows; reject the call, and \
         the model can ask for it as it is now",
    ))
}

/// Refuses the yes to a call that wants a fresh gesture, by its card or by the rules of now, and has
/// none for what would run.
pub(super) fn check_gesture(
    draft: &Draft<'_>,
    call: &Call,
    edited: Option<&Value>,
) -> Result<(), Refusal> {
    let by_rules = || {
        let ruling = ruling(draft, call, edited.unwrap_or(&call.args));
        ruling.is_some_and(|ruling| ruling.effect == PolicyEffect::Ask && ruling.fresh_gesture)
    };
    let is_wanted = call.wants.fresh_gesture || by_rules();
    if !is_wanted || given_gesture(draft, call, edited).is_some() {
        return Ok(());
    }
    let text = format!(
        "a rule wants a fresh gesture with the yes to `{}`: your passkey or your password. One counts \
         once, for two minutes, and for what was shown",
        call.name
    );
    Err(Refusal::of_field(Code::GestureRequired, "gesture", text))
}

/// The gesture that came with the decision, if it is for this call as it would run.
pub(super) fn given_gesture(
    draft: &Draft<'_>,
    call: &Call,
    edited: Option<&Value>,
) -> Option<GestureMeans> {
    let gesture = draft.gesture.as_ref()?;
    let digest = call.digest()?;
    gesture
        .covers(&call.id, digest, edited)
        .then_some(gesture.means)
}

pub(super) fn no_such_call(id: &CallId) -> Refusal {
    let message = format!("no matching pending tool call `{id}`");
    Refusal::of_field(Code::NoSuchCall, "callId", message)
}

pub(super) fn already_decided(id: &CallId) -> Refusal {
    let message = format!("the call `{id}` was decided already, or has started");
    Refusal::of_field(Code::AlreadyDecided, "callId", message)
}
