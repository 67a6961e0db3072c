//! State and signals to frames: the queue, the totals, deltas, progress, notices.

use serde::Serialize;
use serde_json::{Value, json};

use super::card;
use super::event::event_frames;
use super::frame::frame;
use crate::agent::{
    Delta, DeltaKind, Frame, Notice, QueueState, SessionView, Signal, UsageState, What,
};

/// The frames of a signal, serialized once for all who watch.
pub fn signal_frames(signal: &Signal) -> &[Frame] {
    signal.frames.get_or_init(|| match &signal.what {
        What::Event(shown) => event_frames(shown),
        What::Delta(delta) => vec![delta_frame(delta)],
        What::Progress(call, news) => vec![frame(
            "tool:progress",
            &[&json!({
                "callId": call, "progress": news.progress, "total": news.total,
                "message": news.message,
            })],
        )],
        What::Queue(queue) => vec![queue_frame(queue)],
        What::Usage(usage) => vec![usage_frame(usage)],
        What::Notice(notice) => vec![notice_frame(notice)],
        // Who reads the last one joins anew and is told why that is refused.
        What::Moved(_) | What::Rewound | What::Damaged => Vec::new(),
        What::Deleted => vec![frame(
            "error",
            &[
                &"the session was deleted",
                &json!({ "code": "session_not_found" }),
            ],
        )],
    })
}

/// The states of a view, for a client that may have missed changes of them.
pub fn view_frames(view: &SessionView) -> [Frame; 2] {
    [queue_frame(&view.queue), usage_frame(&view.usage)]
}

/// Where a piece of an answer belongs.
#[derive(Serialize)]
struct DeltaPlace {
    turn: u64,
    iteration: u32,
    attempt: u32,
    offset: usize,
    kind: &'static str,
}

/// A piece of the running answer.
pub fn delta_frame(delta: &Delta) -> Frame {
    let kind = match delta.kind {
        DeltaKind::Text => "text",
        DeltaKind::Reasoning => "reasoning",
    };
    let rest = DeltaPlace {
        turn: delta.turn,
        iteration: delta.iteration,
        attempt: delta.attempt,
        offset: delta.offset,
        kind,
    };
    frame("agent:delta", &[&delta.text, &rest])
}

fn usage_frame(usage: &UsageState) -> Frame {
    frame("session:usage", &[&usage_value(usage)])
}

fn queue_frame(queue: &QueueState) -> Frame {
    frame("tool:queue", &[&card::Queue::of(queue)])
}

pub(super) fn usage_value(usage: &UsageState) -> Value {
    json!({
        "totalTokens": usage.totals.total_tokens,
        "totalCost": usage.totals.cost.as_usd(),
        "unpricedRequests": usage.totals.unpriced_requests,
        "budget": null,
        "context": {
            "used": usage.context_tokens,
            "window": usage.window,
            "parts": {
                "input": usage.totals.input_tokens,
                "output": usage.totals.output_tokens,
            },
            "whole": usage.reads_whole,
            "leftOut": (usage.left_out.messages > 0).then(|| json!({
                "messages": usage.left_out.messages,
                "fromSeq": usage.left_out.from_seq,
                "wholeReadsMore": usage.left_out.whole_reads_more,
            })),
        },
        "seq": usage.seq,
    })
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
