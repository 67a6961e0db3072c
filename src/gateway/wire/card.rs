//! The card of a call, as `tool:approval_required` and `tool:queue` carry it.

use serde_json::{Value, json};

use crate::agent::QueueState;
use crate::session::{Call, CallStatus, Decider};

pub(super) fn queue_value(queue: &QueueState) -> Value {
    let total = queue.calls.len();
    let calls: Vec<Value> = queue
        .calls
        .iter()
        .enumerate()
        .map(|(index, call)| card(call, (index + 1, total), &queue.said))
        .collect();
    json!({ "calls": calls, "seq": queue.seq })
}

/// Every field of `tool:approval_required`, and where the call stands.
pub(super) fn card(call: &Call, (position, total): (usize, usize), said: &str) -> Value {
    let facts = call.facts.as_ref();
    let (status, by) = match &call.status {
        CallStatus::Pending { .. } => ("pending", None),
        CallStatus::Approved { by, .. } => ("approved", Some(by)),
        CallStatus::Executing { by, .. } => ("executing", Some(by)),
        CallStatus::Ended { status, by } => (status.as_str(), by.as_ref()),
    };
    let mut card = json!({
        "name": call.name,
        "args": call.args,
        "callId": call.id,
        "queuePosition": position,
        "totalInQueue": total,
        "server": call.server(),
        "title": facts.and_then(|facts| facts.title.as_deref()),
        "description": facts.map_or("", |facts| &facts.description),
        "schema": facts.map_or(Value::Null, |facts| facts.schema.clone()),
        "annotations": facts.map(|facts| &facts.annotations),
        "runsIn": facts.map(|facts| &facts.runs_in),
        "drift": facts.and_then(|facts| facts.drift).map(|since| json!({ "since": since.to_rfc3339() })),
        "why": call.why,
        "digest": facts.map(|facts| &facts.digest),
        "since": call.since.to_rfc3339(),
        "mayDecide": true,
        "status": status,
        "decidedBy": by.map(who),
        "edited": call.original_args.is_some(),
        "originalArgs": call.original_args,
        "said": said,
        "firstUse": call.is_first_use,
    });
    // What is not there has no field: a client asks for it once.
    if let Some(card) = card.as_object_mut() {
        card.retain(|_, value| !value.is_null());
    }
    card
}

/// Who decided, as people read it.
pub(super) fn who(by: &Decider) -> Value {
    match by {
        Decider::Person(actor) => json!(actor),
        Decider::Rule { name } => json!({ "id": "", "name": format!("rule {name}") }),
        Decider::System => json!({ "id": "", "name": "Sepal" }),
    }
}
