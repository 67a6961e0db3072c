//! Finds the request parameter that an error message refuses. Pure.

use super::{Part, Plan};
use crate::anthropic::wire::Thinking;

/// Parameters that were sent beside those of the plan.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::anthropic) struct Sent {
    pub(in crate::anthropic) has_ttl: bool,
    pub(in crate::anthropic) is_searching: bool,
    /// True if the request asked the vendor to compact and does not resume from an earlier compaction.
    pub(in crate::anthropic) is_compacting: bool,
}

/// The sent parameter that an error message names; `None` if the error is about something else.
pub(in crate::anthropic) fn refused_part(words: &str, plan: &Plan, sent: Sent) -> Option<Part> {
    let words = words.to_ascii_lowercase();
    let names = |part: &str| words.contains(part);
    // The vendor may also refuse a tool reference inside the conversation.
    if sent.is_searching
        && [
            "tool_search",
            "defer_loading",
            "tool reference",
            "tool_reference",
        ]
        .iter()
        .any(|part| names(part))
    {
        return Some(Part::ToolSearch);
    }
    if sent.has_ttl && names("ttl") {
        return Some(Part::CacheTtl);
    }
    if sent.is_compacting && (names("context_management") || names("compact")) {
        return Some(Part::Compaction);
    }
    // An error about the conversation is not about a parameter.
    if words.starts_with("messages") {
        return None;
    }
    if plan.temperature.is_some() && names("temperature") {
        return Some(Part::Temperature);
    }
    let is_about_effort = names("effort") && !names("thinking.type");
    match (&plan.thinking, plan.effort) {
        (_, Some("max")) if is_about_effort && names("max") => Some(Part::MaxEffort),
        (_, Some(_)) if is_about_effort => Some(Part::Effort),
        (Some(Thinking::Adaptive { display: Some(_) }), _) if names("display") => {
            Some(Part::Display)
        }
        (Some(Thinking::Adaptive { .. }), _) if names("thinking") => Some(Part::Adaptive),
        (Some(Thinking::Enabled { .. }), _) if names("thinking") => Some(Part::Budget),
        (Some(Thinking::Disabled | Thinking::BetweenTools), _) if names("thinking") => {
            Some(Part::Off)
        }
        (Some(_) | None, _) => None,
    }
}
