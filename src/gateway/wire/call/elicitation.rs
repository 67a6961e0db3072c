//! What servers ask while their calls run, as clients read it.

use serde_json::{Value, json};
use smallvec::smallvec;

use super::super::frame::{Frames, frame};
use super::super::stamp::stamped;
use crate::agent::ShownEvent;
use crate::session::{Elicitation, Event};

/// A question, or what became of it.
pub(in crate::gateway::wire) fn elicitation_frames(shown: &ShownEvent) -> Frames {
    if let Event::ElicitationAsked(asked) = &shown.event {
        return smallvec![frame(
            "elicitation:required",
            &[&stamped(elicitation_value(asked), shown)]
        )];
    }
    if let Event::ElicitationOpened { id, call, by } = &shown.event {
        let what = json!({ "elicitationId": id, "callId": call, "by": by });
        return smallvec![frame("elicitation:opened", &[&stamped(what, shown)])];
    }
    let Event::ElicitationResolved {
        id,
        call,
        answer,
        by,
        end,
    } = &shown.event
    else {
        return Frames::new();
    };
    let what = json!({
        "elicitationId": id, "callId": call, "action": answer.action, "content": answer.content,
        "by": by, "reason": end,
    });
    smallvec![frame("elicitation:resolved", &[&stamped(what, shown)])]
}

/// A question that waits.
pub(super) fn elicitation_value(asked: &Elicitation) -> Value {
    let (id, call, server) = (&asked.id, &asked.call, &asked.server);
    let (message, asked_at) = (&asked.message, asked.asked_at.to_rfc3339());
    if let Some(url) = &asked.url {
        return json!({
            "elicitationId": id, "callId": call, "server": server, "message": message,
            "askedAt": asked_at, "mode": "url", "url": url.as_str(), "opened": asked.is_opened,
        });
    }
    json!({
        "elicitationId": id, "callId": call, "server": server, "message": message,
        "askedAt": asked_at, "mode": "form", "schema": asked.schema, "order": asked.order,
    })
}
