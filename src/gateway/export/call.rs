//! A call in an exported document.

use serde_json::Value;

use crate::domain::{Attachment, CallId};
use crate::session::SaidCall;

/// A call with its decision and outcome.
#[derive(Debug)]
pub(super) struct CallPart {
    pub(super) id: CallId,
    pub(super) name: String,
    pub(super) server: String,
    /// The tool of the call whose view requested this call; `None` if the model requested it.
    pub(super) asked_by: Option<String>,
    /// The arguments that ran or would run.
    pub(super) args: Value,
    /// The proposed arguments, if a person changed them.
    pub(super) proposed: Option<Value>,
    /// The decision in words.
    pub(super) decided: Option<String>,
    /// The outcome, such as `completed` or `failed`; `None` while the call has not ended.
    pub(super) status: Option<&'static str>,
    pub(super) duration_ms: u64,
    pub(super) output: String,
    pub(super) attachments: Vec<Attachment>,
}

pub(super) fn call_part(call: &SaidCall, asked_by: Option<String>) -> CallPart {
    CallPart {
        id: call.id.clone(),
        name: call.name.clone(),
        server: call.server.clone(),
        asked_by,
        args: call.args.clone(),
        proposed: None,
        decided: None,
        status: None,
        duration_ms: 0,
        output: String::new(),
        attachments: Vec::new(),
    }
}

/// The line above the proposed arguments, which follow the arguments that ran.
pub(super) const PROPOSED: &str = "Before a person changed them, the arguments were:";

impl CallPart {
    /// Replaces the arguments, and keeps the first ones as proposed.
    pub(super) fn edit(&mut self, args: &Value) {
        let before = std::mem::replace(&mut self.args, args.clone());
        let first = self.proposed.take().unwrap_or(before);
        self.proposed = (first != self.args).then_some(first);
    }
}

/// Describes the end of a call in a few words: outcome, duration, decision.
pub(super) fn ending(call: &CallPart) -> String {
    let mut words = vec![call.status.unwrap_or("not ended").to_owned()];
    if call.duration_ms > 0 {
        let tenths = call.duration_ms.div_ceil(100);
        words.push(format!("{}.{} s", tenths / 10, tenths % 10));
    }
    words.extend(call.decided.clone());
    words.join(" · ")
}

/// Returns the tool's name with its server.
pub(super) fn tool(call: &CallPart) -> String {
    let tool = if call.server.is_empty() {
        call.name.clone()
    } else {
        format!("{}/{}", call.server, call.name)
    };
    match &call.asked_by {
        None => tool,
        Some(of) => format!("{tool} (asked for by the view of {of})"),
    }
}

/// Formats arguments as indented JSON.
pub(super) fn arguments(args: &Value) -> String {
    serde_json::to_string_pretty(args).unwrap_or_default()
}
