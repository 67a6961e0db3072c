//! Converts shown events to frames. A replay yields the same frames as the live stream.

use serde_json::{Value, json};
use smallvec::smallvec;

use super::assistant::assistant_value;
use super::call;
use super::frame::{Frame, Frames, frame};
use super::stamp::{request_id, stamped};
use crate::agent::ShownEvent;
use crate::domain::WorkspaceCopy;
use crate::session::{
    AnsweredBy, BY_VENDOR, CompactedByVendor, CompactionReport, Event, ModelChoice, Reasoning,
    SHORTEN_RESULTS,
};

/// Returns the frames of a shown event, in order; all carry its `seq`.
pub fn event_frames(shown: &ShownEvent) -> Frames {
    match &shown.event {
        Event::Said { .. }
        | Event::Answered { .. }
        | Event::Thinking { .. }
        | Event::TurnFailed { .. }
        | Event::Cancelled { .. } => turn_frames(shown),
        Event::ViewCalled { .. }
        | Event::ApprovalAsked { .. }
        | Event::Decided { .. }
        | Event::Started { .. }
        | Event::Ended { .. } => call::frames(shown),
        Event::ElicitationAsked(_)
        | Event::ElicitationOpened { .. }
        | Event::ElicitationResolved { .. }
        | Event::SamplingMoved { .. } => call::elicitation::elicitation_frames(shown),
        Event::UserMessage { .. } => message(shown),
        Event::Settled {
            call, happened, by, ..
        } => changed(
            shown,
            json!({ "settled": { "callId": call, "happened": happened, "by": by } }),
        ),
        Event::Withdrawn { .. } => withdrawn(shown),
        Event::TitleSet { title, .. } => changed(shown, json!({ "title": title })),
        Event::AssistantUpdated { assistant, by } => changed(
            shown,
            json!({ "assistant": assistant_value(assistant), "by": by }),
        ),
        Event::ModelChosen { model } => model_frames(shown, model),
        Event::AttachmentPlaced { id, name, path } => {
            let placed = json!({ "id": id, "name": name, "path": path });
            changed(shown, json!({ "placed": placed }))
        }
        Event::WindowChosen { whole } => changed(shown, json!({ "wholeWindow": whole })),
        Event::RuleGiven { .. } | Event::RuleTakenBack { .. } | Event::HostRefused(_) => {
            rule_frames(shown)
        }
        Event::ContextReset
        | Event::ContextCut { .. }
        | Event::ContextCompacted(_)
        | Event::CompactedByVendor(_)
        | Event::ResultsShortened { .. } => context_frames(shown),
        Event::CompactionChosen { strategies } => changed(
            shown,
            json!({ "compaction": strategies.as_deref().unwrap_or_default() }),
        ),
        Event::Forked { .. } | Event::WorkspaceCopied { .. } => fork_frames(shown),
        Event::Created { .. }
        | Event::OwnerChanged { .. }
        | Event::Queued { .. }
        | Event::WantsChanged { .. }
        | Event::Consented { .. }
        | Event::ConsentWithdrawn { .. }
        | Event::Spent { .. }
        | Event::StopRequested { .. }
        | Event::CallStopRequested { .. }
        | Event::TaskCreated { .. }
        | Event::TitlingMoved { .. }
        | Event::ReviewAsked { .. }
        | Event::Reviewed { .. }
        | Event::DryRunMoved { .. } => Frames::new(),
    }
}

fn withdrawn(shown: &ShownEvent) -> Frames {
    let Event::Withdrawn {
        client_message_id,
        message_seq,
    } = &shown.event
    else {
        return Frames::new();
    };
    let what = json!({ "withdrawn": client_message_id, "messageSeq": message_seq });
    changed(shown, what)
}

fn model_frames(shown: &ShownEvent, model: &ModelChoice) -> Frames {
    let what = json!({
        "model": model.model, "provider": model.provider, "effort": model.effort,
    });
    changed(shown, what)
}

/// Returns the frames of rules given for the session or withdrawn, and of hosts refused because no rule
/// allows them.
fn rule_frames(shown: &ShownEvent) -> Frames {
    if let Event::RuleGiven { rule, by } = &shown.event {
        let sentence = sepal_policy::sentence(rule);
        let mut given = json!({ "id": rule.id, "sentence": sentence, "by": by });
        if let (Some(network), Some(given)) = (&rule.network, given.as_object_mut()) {
            given.insert("network".to_owned(), json!(network.hosts));
        }
        changed(shown, json!({ "ruleGiven": given }))
    } else if let Event::RuleTakenBack { id, by } = &shown.event {
        let taken_back = json!({ "id": id, "by": by });
        changed(shown, json!({ "ruleTakenBack": taken_back }))
    } else if let Event::HostRefused(refusal) = &shown.event {
        let told = json!({
            "host": refusal.host, "port": refusal.port, "entry": refusal.entry,
            "onRequest": refusal.on_request, "reason": refusal.reason,
        });
        changed(shown, json!({ "hostRefused": told }))
    } else {
        Frames::new()
    }
}

/// Returns the frames of a fork's origin and of the copy of its workspace.
fn fork_frames(shown: &ShownEvent) -> Frames {
    if let Event::Forked { origin, has_files } = &shown.event {
        let what = json!({
            "sessionId": origin.session, "fromSeq": origin.seq, "hasFiles": has_files,
        });
        return smallvec![frame("session:forked", &[&stamped(what, shown)])];
    }
    let Event::WorkspaceCopied { outcome } = &shown.event else {
        return Frames::new();
    };
    let what = match outcome {
        WorkspaceCopy::Copied { bytes } => json!({ "copiedBytes": bytes }),
        WorkspaceCopy::Empty(reason) => json!({ "empty": reason.as_str() }),
    };
    smallvec![frame("session:workspace", &[&stamped(what, shown)])]
}

/// Returns the frames of events that reduce the context that the model reads.
fn context_frames(shown: &ShownEvent) -> Frames {
    if let Event::ContextCut {
        strategy,
        before,
        after,
        ..
    } = &shown.event
    {
        let what = json!({ "strategy": strategy, "before": before, "after": after });
        compacted(shown, what)
    } else if let Event::ContextCompacted(made) = &shown.event {
        compacted(shown, what_was_compacted(made))
    } else if let Event::CompactedByVendor(made) = &shown.event {
        compacted(shown, compacted_by_vendor(made))
    } else if let Event::ResultsShortened { .. } = &shown.event {
        shortened(shown)
    } else {
        smallvec![frame("history:reset", &[&stamped(json!({}), shown)])]
    }
}

/// Returns the frame of a message. Optional fields are left out if they are empty.
fn message(shown: &ShownEvent) -> Frames {
    let Event::UserMessage {
        text,
        author,
        client_message_id,
        effort,
        attachments,
    } = &shown.event
    else {
        return Frames::new();
    };
    let mut rest = json!({ "author": author, "clientMessageId": client_message_id });
    if let (Some(rest), Some(effort)) = (rest.as_object_mut(), effort) {
        rest.insert("effort".to_owned(), json!(effort));
    }
    if let Some(rest) = rest.as_object_mut().filter(|_| !attachments.is_empty()) {
        rest.insert("attachments".to_owned(), json!(attachments));
    }
    smallvec![frame("user:message", &[text, &stamped(rest, shown)])]
}

fn shortened(shown: &ShownEvent) -> Frames {
    let Event::ResultsShortened {
        results,
        before,
        after,
    } = &shown.event
    else {
        return Frames::new();
    };
    let what = json!({
        "strategy": SHORTEN_RESULTS, "results": results, "before": before, "after": after,
    });
    compacted(shown, what)
}

fn compacted(shown: &ShownEvent, what: Value) -> Frames {
    smallvec![frame("context:compacted", &[&stamped(what, shown)])]
}

fn what_was_compacted(made: &CompactionReport) -> Value {
    let left = (made.left > 0).then(|| {
        json!({
            "messages": made.left, "fromSeq": made.from_seq, "toSeq": made.to_seq,
        })
    });
    let mut what = json!({
        "strategy": made.strategy, "before": made.before, "after": made.after, "left": left,
    });
    let summary = made.compaction.summary.as_ref();
    if let (Some(what), Some(summary), Some(by)) =
        (what.as_object_mut(), summary, &made.summarised_by)
    {
        what.insert("summary".into(), json!(summary));
        let by = json!({
            "provider": by.provider, "model": by.model, "tokens": by.usage.total(),
            "cost": by.cost.map(crate::domain::MicroUsd::as_usd),
        });
        what.insert("summarisedBy".into(), by);
    }
    what
}

/// Describes a compaction by the vendor, who counts tokens but not messages; some vendors do not reveal the
/// summary.
fn compacted_by_vendor(made: &CompactedByVendor) -> Value {
    let size = |tokens: Option<u64>| tokens.map(|tokens| json!({ "tokens": tokens }));
    let mut what = json!({
        "strategy": BY_VENDOR,
        "summarisedBy": {
            "provider": made.provider, "model": made.model,
            "tokens": made.usage.map(|usage| usage.total()),
            "cost": made.cost.map(crate::domain::MicroUsd::as_usd),
        },
    });
    let told = [
        ("before", size(made.before)),
        ("after", size(made.after)),
        (
            "summary",
            made.summary.as_ref().map(|summary| json!(summary)),
        ),
    ];
    if let Some(what) = what.as_object_mut() {
        let told = told
            .into_iter()
            .filter_map(|(name, it)| Some((name.to_owned(), it?)));
        what.extend(told);
    }
    what
}

fn changed(shown: &ShownEvent, what: Value) -> Frames {
    smallvec![frame("session:changed", &[&stamped(what, shown)])]
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`event_frames` is the exhaustive match"
)]
fn turn_frames(shown: &ShownEvent) -> Frames {
    match &shown.event {
        Event::Thinking {
            turn,
            iteration,
            model,
            took,
            is_retry,
        } => {
            let what = json!({
                "turn": turn, "iteration": iteration, "model": model, "took": took,
                "retry": is_retry,
            });
            smallvec![frame("agent:thinking", &[&stamped(what, shown)])]
        }
        Event::Said { .. } => smallvec![said_frame(shown)],
        Event::Answered { .. } => smallvec![answer_frame(shown)],
        Event::TurnFailed {
            turn,
            code,
            text,
            is_retryable,
        } => {
            let rest = json!({
                "code": code, "category": code.fault(), "retryable": is_retryable, "turn": turn,
                "requestId": request_id(shown),
            });
            smallvec![frame("agent:error", &[text, &stamped(rest, shown)])]
        }
        Event::Cancelled {
            turn,
            text,
            reasoning,
        } => {
            let what = json!({
                "turn": turn, "text": text, "reasoning": reasoning.as_ref().map(thought),
            });
            smallvec![frame("agent:cancelled", &[&stamped(what, shown)])]
        }
        _ => Frames::new(),
    }
}

fn answer_frame(shown: &ShownEvent) -> Frame {
    let Event::Answered {
        turn,
        text,
        model,
        usage,
        cost,
        duration_ms,
        first_token_ms,
        finish,
        stop_detail,
        dropped_calls,
        reasoning,
        answered_by,
        ..
    } = &shown.event
    else {
        return frame("agent:response", &[]);
    };
    let mut rest = json!({
        "turn": turn, "model": model, "usage": usage, "durationMs": duration_ms,
        "cost": cost.map(crate::domain::MicroUsd::as_usd), "finish": finish,
        "reasoning": reasoning.as_ref().map(thought),
    });
    if let (Some(rest), Some(first)) = (rest.as_object_mut(), first_token_ms) {
        rest.insert("firstTokenMs".to_owned(), json!(first));
    }
    let mut rest = with_ending(rest, *dropped_calls, stop_detail.as_deref());
    tell_answered_by(&mut rest, answered_by.as_deref());
    frame("agent:response", &[text, &stamped(rest, shown)])
}

/// Adds the details of an unusual ending; an answer that ends normally and drops no call has no such fields.
fn with_ending(mut rest: Value, dropped_calls: u64, stop_detail: Option<&str>) -> Value {
    if let Some(fields) = rest.as_object_mut() {
        if dropped_calls > 0 {
            fields.insert("droppedCalls".into(), dropped_calls.into());
        }
        if let Some(words) = stop_detail {
            fields.insert("stopDetail".into(), words.into());
        }
    }
    rest
}

/// Adds the fallback that answered, if it was not the requested model.
fn tell_answered_by(rest: &mut Value, by: Option<&AnsweredBy>) {
    if let (Some(by), Some(fields)) = (by, rest.as_object_mut()) {
        fields.insert("answeredBy".into(), json!(by));
    }
}

/// Returns reasoning in the page's form; `leftOutBytes` is present only if text was left out.
fn thought(reasoning: &Reasoning) -> Value {
    let mut told = serde_json::Map::new();
    told.insert("text".into(), json!(reasoning.text));
    if let Some(ms) = reasoning.duration_ms {
        told.insert("durationMs".into(), ms.into());
    }
    if reasoning.left_out_bytes > 0 {
        told.insert("leftOutBytes".into(), reasoning.left_out_bytes.into());
    }
    told.into()
}

fn said_frame(shown: &ShownEvent) -> Frame {
    let Event::Said {
        turn,
        iteration,
        text,
        calls,
        reasoning,
        answered_by,
        ..
    } = &shown.event
    else {
        return frame("agent:message", &[]);
    };

    let calls: Vec<Value> = calls
        .iter()
        .map(|call| {
            json!({
                "callId": call.id, "name": call.name, "server": call.server,
                "args": call.args,
            })
        })
        .collect();
    let mut rest = json!({
        "turn": turn, "iteration": iteration, "calls": calls,
        "reasoning": reasoning.as_ref().map(thought),
    });
    tell_answered_by(&mut rest, answered_by.as_deref());
    frame("agent:message", &[text, &stamped(rest, shown)])
}
