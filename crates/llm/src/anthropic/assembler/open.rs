//! Blocks of an answer that have begun.

use std::collections::VecDeque;

use crate::ModelEvent;

/// The kind of a block that stands for all that was said before it.
pub(in crate::anthropic) const COMPACTION: &str = "compaction";

/// A block that has begun.
#[derive(Debug)]
pub(super) enum Open {
    Call(Call),
    /// The number of a native block that grows.
    Thinking(usize),
    /// The same for a call that the vendor runs itself, with its arguments so far.
    ServerCall(usize, String),
    /// The number of what stands for all that was said before.
    Compaction(usize),
    /// Text, or something that we do not know.
    Other,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) index: usize,
    /// Arguments that came with the beginning; they count if no others follow.
    pub(super) whole: Option<String>,
}

/// Whether a block tells of what the vendor's own tools did, which it wants back.
pub(super) fn is_of_server(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use") || kind.ends_with("_tool_result")
}

/// Shows a piece of what the model thinks.
pub(super) fn think(piece: &str, out: &mut VecDeque<ModelEvent>) {
    if !piece.is_empty() {
        out.push_back(ModelEvent::Reasoning(piece.to_owned()));
    }
}
