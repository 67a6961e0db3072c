//! Converts the events of calls to frames. Every turn with calls has many of them, so they are serialized
//! without an intermediate `Value`.

pub(super) mod card;
mod dry_run;
pub(super) mod elicitation;
mod review;
mod view;

use crate::gateway::wire::frame::Frames;
use serde::Serialize;
use serde_json::{Value, json};
use smallvec::smallvec;

use self::card::{DeciderName, card_frame};
use self::review::ReviewShown;
use super::frame::frame;
use super::stamp::{StampedPayload, request_id, stamped};
use crate::agent::ShownEvent;
use crate::domain::{Actor, Attachment, CallId, Digest, GestureMeans, ResultBlock};
use crate::session::{Decider, Event, Outcome, Verdict};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DecidedPayload<'a> {
    call_id: &'a CallId,
    approved: bool,
    by: DeciderName<'a>,
    scope: &'static str,
    edited: bool,
    /// The person who changed the arguments, if it was not the decider.
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_by: Option<&'a Actor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_id: Option<&'a str>,
    /// The gesture with which the person proved their presence.
    #[serde(skip_serializing_if = "Option::is_none")]
    gesture: Option<&'static str>,
    /// The result of the call's dry run that replaces running it.
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<&'a Digest>,
    /// The review by the model that approved the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<ReviewShown<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StartedPayload<'a> {
    call_id: &'a CallId,
    name: &'a str,
    server: &'a str,
    digest: &'a Digest,
    /// The address of the tool's view at its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputPayload<'a> {
    call_id: &'a CallId,
    name: &'a str,
    server: &'a str,
    status: &'static str,
    content: [Content<'a>; 1],
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<TruncationFacts>,
    /// Pictures and other files that the tool returned.
    #[serde(skip_serializing_if = "<[Attachment]>::is_empty")]
    attachments: &'a [Attachment],
    /// All blocks that the tool returned, if they are more than a text and pictures.
    #[serde(skip_serializing_if = "<[ResultBlock]>::is_empty")]
    blocks: &'a [ResultBlock],
    /// The reason the end of the call was not seen, for calls with an unknown outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct TruncationFacts {
    bytes: u64,
}

/// Returns the frames of an event of a call; empty for other events.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`event_frames` is the exhaustive match"
)]
pub(super) fn frames(shown: &ShownEvent) -> Frames {
    match &shown.event {
        Event::ViewCalled { call, by } => view::called(call, by, shown),
        Event::ApprovalAsked {
            call,
            position,
            total,
            said,
        } => {
            smallvec![card_frame(call, (*position, *total), said, shown)]
        }
        Event::Decided {
            call,
            verdict,
            by,
            reason,
            edited,
            edited_by,
            gesture,
            dry_run,
            expires_after_ms: _,
        } => {
            let rule = match by {
                Decider::Rule { name, id } => Some((name.as_str(), id.as_deref())),
                Decider::Person(_) | Decider::Reviewer { .. } | Decider::System => None,
            };
            let what = DecidedPayload {
                call_id: call,
                approved: *verdict == Verdict::Approved,
                by: DeciderName::of(by),
                scope: if *verdict == Verdict::TakenBack {
                    "taken_back"
                } else {
                    "once"
                },
                edited: edited.is_some(),
                edited_by: edited_by.as_ref(),
                reason: reason.as_deref(),
                args: there(edited.as_ref().map(|edited| &edited.args)),
                rule: rule.map(|(name, _)| name),
                rule_id: rule.and_then(|(_, id)| id),
                gesture: gesture.map(GestureMeans::as_str),
                dry_run: dry_run.as_ref(),
                review: ReviewShown::of_decider(by),
            };
            smallvec![frame("tool:decided", &[&StampedPayload::of(what, shown)])]
        }
        Event::Started { .. } => started(shown),
        Event::Ended { outcome, .. } => ended(shown, outcome),
        _ => Frames::new(),
    }
}

fn started(shown: &ShownEvent) -> Frames {
    let Event::Started {
        call,
        name,
        server,
        digest,
        view,
    } = &shown.event
    else {
        return Frames::new();
    };
    let what = StartedPayload {
        call_id: call,
        name,
        server,
        digest,
        view: view.as_deref(),
    };
    smallvec![frame("tool:started", &[&StampedPayload::of(what, shown)])]
}

/// Returns the output, and for a failed call also its `agent:error` with the same `seq` (S2.41, S2.42).
fn ended(shown: &ShownEvent, outcome: &Outcome) -> Frames {
    let Event::Ended {
        call,
        name,
        server,
        duration_ms,
        ..
    } = &shown.event
    else {
        return Frames::new();
    };
    let output = match outcome {
        Outcome::Completed { output } | Outcome::Failed { output, .. } => Some(output),
        Outcome::Rejected { .. } | Outcome::Cancelled | Outcome::Unknown { .. } => None,
    };
    let text = outcome.text();
    let structured = output.and_then(|output| output.structured.as_ref());
    let what = OutputPayload {
        call_id: call,
        name,
        server,
        status: outcome.status(),
        content: [Content {
            kind: "text",
            text: &text,
        }],
        duration_ms: *duration_ms,
        structured: there(structured),
        exit_code: there(structured.and_then(|value| value.get("exit_code"))),
        truncated: output
            .and_then(|output| output.truncated_bytes)
            .map(|bytes| TruncationFacts { bytes }),
        attachments: outcome.attachments(),
        blocks: output.map_or(&[], |output| &output.blocks),
        cause: match outcome {
            Outcome::Unknown { cause } => cause.as_deref(),
            Outcome::Completed { .. }
            | Outcome::Failed { .. }
            | Outcome::Rejected { .. }
            | Outcome::Cancelled => None,
        },
    };
    let mut frames = smallvec![frame(
        "tool:output",
        &[&text, &StampedPayload::of(what, shown)]
    )];
    if let Outcome::Failed { code, .. } = outcome {
        let rest = json!({
            "code": code, "category": code.fault(), "retryable": false, "callId": call,
            "name": name, "requestId": request_id(shown),
        });
        frames.push(frame("agent:error", &[&text, &stamped(rest, shown)]));
    }
    frames
}

/// Returns a value unless it is null.
fn there(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}
