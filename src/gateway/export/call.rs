//! A call, as it is written.

use serde_json::Value;

use crate::domain::{Attachment, CallId};
use crate::session::SaidCall;

/// A call with all that became of it.
#[derive(Debug)]
pub(super) struct CallPart {
    pub(super) id: CallId,
    pub(super) name: String,
    pub(super) server: String,
    /// The tool of the call whose view asked for it; none = the model did.
    pub(super) asked_by: Option<String>,
    /// Those that ran, or would run.
    pub(super) args: Value,
    /// Those that were proposed, where a person put others in their place.
    pub(super) proposed: Option<Value>,
    /// In words.
    pub(super) decided: Option<String>,
    /// `completed`, `failed`, …; none = it has not ended.
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

/// The line above the arguments that were proposed, beside those that ran.
pub(super) const PROPOSED: &str = "Before a person changed them, the arguments were:";

impl CallPart {
    /// Others stand in the place of the arguments.
    pub(super) fn edit(&mut self, args: &Value) {
        let before = std::mem::replace(&mut self.args, args.clone());
        let first = self.proposed.take().unwrap_or(before);
        self.proposed = (first != self.args).then_some(first);
    }
}

/// How a call ended, in a few words.
pub(super) fn ending(call: &CallPart) -> String {
    let mut words = vec![call.status.unwrap_or("not ended").to_owned()];
    if call.duration_ms > 0 {
        let tenths = call.duration_ms.div_ceil(100);
        words.push(format!("{}.{} s", tenths / 10, tenths % 10));
    }
    words.extend(call.decided.clone());
    words.join(" · ")
}

/// The tool with its server.
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

/// Arguments as people read them.
pub(super) fn arguments(args: &Value) -> String {
    serde_json::to_string_pretty(args).unwrap_or_default()
}
