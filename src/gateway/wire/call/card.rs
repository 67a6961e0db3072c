//! Encodes the card of a call, as `tool:approval_required` and `tool:queue` carry it.
//!
//! A turn with five calls sends about twenty cards: one for each change of each call. So cards are written
//! as text, and the part that never changes, which is most of a card, is encoded once.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::dry_run::DryRunShown;
use super::elicitation::elicitation_value;
use super::review::ReviewShown;
use super::view::AskedBy;
use crate::agent::{QueueState, ShownEvent};
use crate::domain::{
    Actor, CallId, Digest, FileFacts, GestureMeans, RunsIn, Schema, Timestamp, ToolAnnotations,
};
use crate::gateway::wire::frame::{Frame, Json, SMALL, frame_with, write_fields};
use crate::session::{Approver, Call, CallStatus, Decider, NoDryRun, ToolFacts};

/// The initial capacity for a card.
const CARD: usize = 2048;

/// `Number.MAX_SAFE_INTEGER` (ECMA-262, 21.1.2.6).
const MOST_EXACT: u64 = (1 << 53) - 1;

/// Builds the frame with all calls of a turn.
pub(in crate::gateway::wire) fn queue_frame(queue: &QueueState) -> Frame {
    frame_with("tool:queue", |packet| write_queue(queue, packet))
}

/// Returns the queue as a value, to be part of another frame.
pub fn queue_value(queue: &QueueState) -> Value {
    let mut text = Vec::new();
    write_queue(queue, &mut text);
    // The text was written as JSON.
    serde_json::from_slice(&text).unwrap_or_default()
}

fn write_queue(queue: &QueueState, to: &mut Vec<u8>) {
    let of_model = queue.calls.iter().filter(|call| call.origin.is_none());
    let total = of_model.count();
    let calls = queue.calls.iter().enumerate();
    // A call's place and the text said with it do not change while it is in the queue.
    let cards = calls.map(|(index, call)| {
        let card = || match &call.origin {
            None => written(call, (index + 1, total), &queue.said),
            // A view's call is asked about alone, and no text is said with it.
            Some(_) => written(call, (1, 1), ""),
        };
        call.card.get(card)
    });
    to.reserve(cards.clone().map(|card| card.len() + 1).sum::<usize>() + SMALL);
    to.extend_from_slice(b"{\"calls\":[");
    for (index, card) in cards.enumerate() {
        if index > 0 {
            to.push(b',');
        }
        to.extend_from_slice(card);
    }
    to.push(b']');
    if !queue.elicitations.is_empty() {
        let asked = queue.elicitations.iter();
        let asked: Vec<Value> = asked.map(|asked| elicitation_value(asked)).collect();
        write_fields(to, &[(",\"elicitations\":", &asked)]);
    }
    write_fields(to, &[(",\"seq\":", &queue.seq)]);
    to.push(b'}');
}

/// Builds the frame of a card that asks for a decision.
pub(in crate::gateway::wire) fn card_frame(
    call: &Call,
    place: (usize, usize),
    said: &str,
    shown: &ShownEvent,
) -> Frame {
    frame_with("tool:approval_required", |packet| {
        write(call, place, said, packet);
        let at = shown.at.to_rfc3339();
        go_on(packet);
        write_fields(packet, &[("\"seq\":", &shown.seq), (",\"at\":", &at)]);
        packet.push(b'}');
    })
}

fn written(call: &Call, place: (usize, usize), said: &str) -> Box<[u8]> {
    let mut card = Vec::with_capacity(CARD);
    write(call, place, said, &mut card);
    card.into_boxed_slice()
}

fn write(call: &Call, place: (usize, usize), said: &str, to: &mut Vec<u8>) {
    Moving::of(call, place, said).write(to);
    if let Some(facts) = call.facts.as_deref() {
        let fixed = facts.card.get(|| {
            let mut fixed = Vec::with_capacity(CARD);
            ToolDetails::of(facts).write(&mut fixed);
            fixed.into_boxed_slice()
        });
        go_on(to);
        to.extend_from_slice(fixed.strip_prefix(b"{").unwrap_or_default());
    }
}

/// Reopens a written, nonempty object, so that more fields can be added.
fn go_on(object: &mut Vec<u8>) {
    object.pop();
    object.push(b',');
}

/// The fields of a card that may change or that are specific to its call. A missing value has no field, so
/// that clients test only for absence and not for null.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a field on the wire")]
struct Moving<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: &'a Value,
    /// The arguments as text, if a browser would round a number in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    args_text: Option<String>,
    call_id: &'a CallId,
    queue_position: usize,
    total_in_queue: usize,
    server: &'a str,
    /// Empty for a call without facts, which could not be valid: every card has a description.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'static str>,
    why: &'a str,
    since: String,
    /// The people whose approval is needed, unless the owner's alone suffices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    approvers: Vec<String>,
    /// The people who have approved, while other approvals are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    consents: Vec<&'a Actor>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    fresh_gesture: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// The state of a model's review.
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<ReviewShown<'a>>,
    /// The dry run in a copy of the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<DryRunShown<'a>>,
    may_decide: bool,
    status: &'a str,
    /// The beginning of a completed call's result (S2.28).
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
    /// The beginning of the reason a call has no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<DeciderName<'a>>,
    /// The gesture with which the person proved their presence.
    #[serde(skip_serializing_if = "Option::is_none")]
    gesture: Option<&'static str>,
    edited: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_args: Option<&'a Value>,
    /// The person who changed the arguments last.
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_by: Option<&'a Actor>,
    said: &'a str,
    first_use: bool,
    /// The view that asks for the call; `None` if the model asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_by: Option<AskedBy<'a>>,
}

/// The facts about the tool when the call was asked for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolDetails<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a Schema>,
    annotations: &'a ToolAnnotations,
    runs_in: &'a RunsIn,
    /// The reason a call cannot have a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_dry_run: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Drift>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<FileFacts>,
    digest: &'a Digest,
}

/// The definition of the tool changed.
#[derive(Serialize)]
struct Drift {
    since: String,
}

impl<'a> Moving<'a> {
    fn of(call: &'a Call, (position, total): (usize, usize), said: &'a str) -> Self {
        let (status, by) = match &call.status {
            CallStatus::Pending { .. } => ("pending", None),
            CallStatus::Approved { by, .. } => ("approved", Some(by)),
            CallStatus::Executing { by, .. } => ("executing", Some(by)),
            CallStatus::Ended { status, by } => (status.as_str(), by.as_ref()),
        };
        Self {
            name: &call.name,
            args: &call.args,
            args_text: is_inexact(&call.args)
                .then(|| serde_json::to_string_pretty(&call.args).unwrap_or_default()),
            call_id: &call.id,
            queue_position: position,
            total_in_queue: total,
            server: call.server(),
            description: call.facts.is_none().then_some(""),
            why: &call.why,
            since: call.since.to_rfc3339(),
            approvers: call
                .wants
                .approvers
                .iter()
                .map(Approver::to_string)
                .collect(),
            consents: call.consents.iter().map(|consent| &consent.by).collect(),
            fresh_gesture: call.wants.fresh_gesture,
            expires_at: call
                .wants
                .expires_at
                .filter(|_| call.is_pending())
                .map(Timestamp::to_rfc3339),
            review: call.review.as_ref().map(ReviewShown::of),
            dry_run: call.dry_run.as_deref().map(DryRunShown::of),
            may_decide: true,
            status,
            result: call.result.as_deref().filter(|_| status == "completed"),
            error: call.result.as_deref().filter(|_| status != "completed"),
            decided_by: by.map(DeciderName::of),
            gesture: call.gesture.map(GestureMeans::as_str),
            edited: call.original_args.is_some(),
            original_args: call.original_args.as_ref().filter(|args| !args.is_null()),
            edited_by: call.edited_by.as_ref(),
            said,
            first_use: call.is_first_use,
            asked_by: call.origin.as_ref().map(AskedBy::of),
        }
    }
}

impl<'a> ToolDetails<'a> {
    fn of(facts: &'a ToolFacts) -> Self {
        Self {
            title: facts.title.as_deref(),
            description: &facts.description,
            schema: Some(&*facts.schema).filter(|schema| !schema.value().is_null()),
            annotations: &facts.annotations,
            runs_in: &facts.runs_in,
            no_dry_run: facts.no_dry_run().map(NoDryRun::as_str),
            drift: facts.drift.map(|since| Drift {
                since: since.to_rfc3339(),
            }),
            file: facts.file,
            digest: &facts.digest,
        }
    }
}

/// The decider of a call, in a form for people.
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::gateway::wire) enum DeciderName<'a> {
    Person(&'a Actor),
    /// A decider that is not a person: the id is a rule's, or empty.
    Program {
        id: &'a str,
        name: Cow<'static, str>,
    },
}

/// True if the arguments contain whole numbers that a browser rounds, because all of its numbers are
/// floating-point.
fn is_inexact(args: &Value) -> bool {
    match args {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.unsigned_abs() > MOST_EXACT,
            (None, whole) => whole.is_some(),
        },
        Value::Array(items) => items.iter().any(is_inexact),
        Value::Object(fields) => fields.values().any(is_inexact),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

impl<'a> DeciderName<'a> {
    pub(in crate::gateway::wire) fn of(by: &'a Decider) -> Self {
        let (id, name) = match by {
            Decider::Person(actor) => return Self::Person(actor),
            Decider::Rule { name, id } => {
                let id = id.as_deref().unwrap_or_default();
                (id, Cow::Owned(format!("rule {name}")))
            }
            Decider::Reviewer { model, .. } => ("", Cow::Owned(model.clone())),
            Decider::System => ("", Cow::Borrowed("Sepal")),
        };
        Self::Program { id, name }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_inexact;

    #[test]
    fn numbers_that_a_browser_rounds_are_found_wherever_they_are() {
        let most = 9_007_199_254_740_991_i64;
        for exact in [json!(most), json!(-most), json!(1e300), json!(0.1)] {
            assert!(!is_inexact(&json!({ "a": [exact] })), "{exact}");
        }
        for inexact in [json!(most + 1), json!(-most - 1), json!(u64::MAX)] {
            assert!(is_inexact(&json!({ "a": [{ "b": inexact }] })), "{inexact}");
        }
    }
}
