//! Converts states and signals to frames: the queue, the totals, deltas, progress, notices.

use serde_json::{Value, json};
use smallvec::smallvec;

use super::call::card::queue_frame;
use super::event::event_frames;
use super::frame::{Frame, Frames, Json, frame, frame_with, write_fields};
use crate::agent::{Delta, DeltaKind, FeedItem, Notice, SessionView, Signal, UsageState};
use crate::domain::MicroUsd;
use crate::session::RequestFacts;

/// Returns the frames of a signal, which are serialized once for all clients.
pub fn signal_frames(signal: &Signal) -> &[Frame] {
    let frames = signal.rendered(|item| match item {
        FeedItem::Event(shown) => event_frames(shown),
        FeedItem::Delta(delta) => smallvec![delta_frame(delta)],
        FeedItem::Progress(call, news) => smallvec![frame(
            "tool:progress",
            &[&json!({
                "callId": call, "progress": news.progress, "total": news.total,
                "message": news.message,
            })],
        )],
        FeedItem::Copying(bytes) => {
            smallvec![frame(
                "session:copying",
                &[&json!({ "copiedBytes": bytes })]
            )]
        }
        FeedItem::ResourceChanged(resource) => {
            smallvec![frame("session:resource_changed", &[resource])]
        }
        FeedItem::Queue(queue) => smallvec![queue_frame(queue)],
        FeedItem::Usage(usage) => smallvec![usage_frame(usage)],
        FeedItem::Notice(notice) => smallvec![notice_frame(notice)],
        // These have no frames. After `Damaged`, a client that joins again is refused with the reason.
        FeedItem::Moved(_) | FeedItem::Rewound | FeedItem::Damaged => Frames::new(),
        FeedItem::Deleted => smallvec![frame(
            "error",
            &[
                &"the session was deleted",
                &json!({ "code": "session_not_found" }),
            ],
        )],
    });
    // Only this door renders signals, so the rendered form always has this type.
    frames.map_or(&[], |frames: &Frames| frames.as_slice())
}

/// Returns the states of a view, for a client that may have missed changes of them.
pub fn view_frames(view: &SessionView) -> [Frame; 2] {
    [queue_frame(&view.queue), usage_frame(&view.usage)]
}

/// Builds the frame of a delta. Most frames are deltas, so the field names, which need no escaping, are
/// written as literal text.
pub fn delta_frame(delta: &Delta) -> Frame {
    let kind = match delta.kind {
        DeltaKind::Text => "text",
        DeltaKind::Reasoning => "reasoning",
    };
    frame_with("agent:delta", |packet| {
        delta.text.write(packet);
        let place: [(&str, &dyn Json); 4] = [
            (",{\"turn\":", &delta.turn),
            (",\"iteration\":", &delta.iteration),
            (",\"attempt\":", &delta.attempt),
            (",\"offset\":", &delta.offset),
        ];
        write_fields(packet, &place);
        packet.extend_from_slice(b",\"kind\":\"");
        packet.extend_from_slice(kind.as_bytes());
        packet.extend_from_slice(b"\"}");
    })
}

fn usage_frame(usage: &UsageState) -> Frame {
    frame("session:usage", &[&usage_value(usage)])
}

pub(super) fn usage_value(usage: &UsageState) -> Value {
    json!({
        "totalTokens": usage.totals.total_tokens,
        "totalCost": usage.totals.cost.as_usd(),
        "unpricedRequests": usage.totals.unpriced_requests,
        "budget": null,
        "context": {
            "used": usage.context_tokens,
            "nextInput": usage.next_input,
            "window": usage.window,
            "windowAssumed": usage.is_window_assumed,
            "parts": {
                "input": usage.totals.input_tokens,
                "output": usage.totals.output_tokens,
            },
            "counted": {
                "method": usage.counter.method().as_str(),
                "error": usage.counter.error().map(thousandths),
            },
            "whole": usage.reads_whole,
            "leftOut": (usage.left_out.messages > 0).then(|| json!({
                "messages": usage.left_out.messages,
                "fromSeq": usage.left_out.from_seq,
                "wholeReadsMore": usage.left_out.whole_reads_more,
            })),
            "request": usage.last_request.as_deref().map(request_value),
        },
        "goingOn": usage.going_on.map(|next| json!({
            "tokens": next.tokens,
            "cachedTokens": next.cached_tokens,
            "cost": next.cost.map(MicroUsd::as_usd),
        })),
        "seq": usage.seq,
    })
}

/// Returns the parts that the tokens of the last request were used for.
fn request_value(request: &RequestFacts) -> Value {
    let parts = &request.parts;
    json!({
        "provider": request.provider,
        "model": request.model,
        "parts": {
            "system": parts.system,
            "tools": parts.tools,
            "context": parts.context,
            "history": parts.history,
            "results": parts.results,
            "message": parts.message,
            "attachments": parts.attachments,
            "reasoning": parts.reasoning,
        },
    })
}

/// Converts thousandths to a fraction, as clients read it.
#[expect(clippy::cast_precision_loss, reason = "shown, never summed; small")]
pub(in crate::gateway) fn thousandths(share: u64) -> f64 {
    share as f64 / 1_000.0
}

fn notice_frame(notice: &Notice) -> Frame {
    let mut rest = json!({ "code": notice.code, "turn": notice.turn });
    if let (Some((attempt, max_attempts, delay, cause)), Some(map)) =
        (notice.retry, rest.as_object_mut())
    {
        map.insert("attempt".into(), attempt.into());
        map.insert("maxAttempts".into(), max_attempts.into());
        map.insert("delayMs".into(), json!(delay.as_millis()));
        map.insert("cause".into(), json!(cause));
    }
    frame("system:message", &[&notice.text, &rest])
}
