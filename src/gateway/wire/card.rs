//! The card of a call, as `tool:approval_required` and `tool:queue` carry it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::agent::QueueState;
use crate::domain::{Actor, CallId, Digest, RunsIn, Schema, ToolAnnotations};
use crate::session::{Call, CallStatus, Decider};

/// All calls of a turn. Written without a `Value` between, and each card only once for each change of
/// its call: the queue goes out with every change of any of them.
#[derive(Serialize)]
pub(super) struct Queue<'a> {
    calls: Vec<&'a RawValue>,
    seq: u64,
}

impl<'a> Queue<'a> {
    pub(super) fn of(queue: &'a QueueState) -> Self {
        let total = queue.calls.len();
        let calls = queue.calls.iter().enumerate();
        // Its place and what was said with it are the same as long as it is in the queue.
        let cards = calls.map(|(index, call)| {
            let card = || written(&Card::of(call, (index + 1, total), &queue.said));
            &**call.card.get(card)
        });
        Self {
            calls: cards.collect(),
            seq: queue.seq,
        }
    }
}

fn written(card: &Card<'_>) -> Box<RawValue> {
    // Only maps with keys that are no strings fail; a card has none.
    to_raw_value(card).unwrap_or_else(|error| {
        tracing::error!(%error, "A card does not serialize");
        RawValue::NULL.to_owned()
    })
}

/// Every field of `tool:approval_required`, and where the call stands. What is not there has no
/// field: a client asks for it once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Card<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: &'a Value,
    call_id: &'a CallId,
    queue_position: usize,
    total_in_queue: usize,
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a Schema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a ToolAnnotations>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs_in: Option<&'a RunsIn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Drift>,
    why: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a Digest>,
    since: String,
    may_decide: bool,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<Who<'a>>,
    edited: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_args: Option<&'a Value>,
    said: &'a str,
    first_use: bool,
}

/// The definition of the tool changed.
#[derive(Serialize)]
struct Drift {
    since: String,
}

impl<'a> Card<'a> {
    pub(super) fn of(call: &'a Call, (position, total): (usize, usize), said: &'a str) -> Self {
        let facts = call.facts.as_deref();
        let (status, by) = match &call.status {
            CallStatus::Pending { .. } => ("pending", None),
            CallStatus::Approved { by, .. } => ("approved", Some(by)),
            CallStatus::Executing { by, .. } => ("executing", Some(by)),
            CallStatus::Ended { status, by } => (status.as_str(), by.as_ref()),
        };
        let drift = facts.and_then(|facts| facts.drift);
        Self {
            name: &call.name,
            args: &call.args,
            call_id: &call.id,
            queue_position: position,
            total_in_queue: total,
            server: call.server(),
            title: facts.and_then(|facts| facts.title.as_deref()),
            description: facts.map_or("", |facts| &facts.description),
            schema: facts
                .map(|facts| &*facts.schema)
                .filter(|schema| !schema.value().is_null()),
            annotations: facts.map(|facts| &facts.annotations),
            runs_in: facts.map(|facts| &facts.runs_in),
            drift: drift.map(|since| Drift {
                since: since.to_rfc3339(),
            }),
            why: &call.why,
            digest: facts.map(|facts| &facts.digest),
            since: call.since.to_rfc3339(),
            may_decide: true,
            status,
            decided_by: by.map(Who::of),
            edited: call.original_args.is_some(),
            original_args: call.original_args.as_ref().filter(|args| !args.is_null()),
            said,
            first_use: call.is_first_use,
        }
    }
}

/// Who decided, as people read it.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Who<'a> {
    Person(&'a Actor),
    /// Nobody has its id.
    Program {
        id: &'static str,
        name: Cow<'static, str>,
    },
}

impl<'a> Who<'a> {
    pub(super) fn of(by: &'a Decider) -> Self {
        let name = match by {
            Decider::Person(actor) => return Self::Person(actor),
            Decider::Rule { name } => Cow::Owned(format!("rule {name}")),
            Decider::System => Cow::Borrowed("Sepal"),
        };
        Self::Program { id: "", name }
    }
}
