//! Reads the stop reason of a Messages answer and its explanation.

use serde_json::value::RawValue;

use crate::Finish;
use crate::anthropic::wire::StopDetails;
use crate::transport::endpoint::Origin;
use crate::transport::quote;

/// The [`Finish`] of a `stop_reason`; `None` if the answer has not ended.
pub(super) fn finish_of(reason: &str) -> Option<Finish> {
    Some(match reason {
        "" => return None,
        "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_use" => Finish::Calls,
        "max_tokens" => Finish::Length,
        "model_context_window_exceeded" => Finish::WindowFull,
        "pause_turn" | "compaction" => Finish::Paused,
        "refusal" => Finish::Refused,
        _ => Finish::Other,
    })
}

/// The category and explanation of a refusal, if the vendor gives them.
pub(super) fn details(raw: Option<&RawValue>, origin: Origin<'_>) -> Option<String> {
    let details: StopDetails<'_> = serde_json::from_str(raw?.get()).ok()?;
    let words = [details.category.0, details.explanation.0];
    let words = words.iter().filter(|words| !words.is_empty());
    let words = words.map(AsRef::as_ref).collect::<Vec<&str>>().join(": ");
    (!words.is_empty()).then(|| quote(&words, origin.key))
}
