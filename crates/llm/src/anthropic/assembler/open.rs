//! The open blocks of an answer.

use std::collections::VecDeque;

use crate::ModelEvent;

/// The kind of a block that summarizes everything before it.
pub(in crate::anthropic) const COMPACTION: &str = "compaction";

/// A block that has started and not yet ended.
#[derive(Debug)]
pub(super) enum Open {
    Call(Call),
    /// The index of a stored thinking block.
    Thinking(usize),
    /// The index of a stored call that the vendor runs itself, and its arguments so far.
    ServerCall(usize, String),
    /// The index of a stored compaction block.
    Compaction(usize),
    /// Text or an unknown block.
    Other,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) index: usize,
    /// Arguments that came with the start of the block; used if no others follow.
    pub(super) whole: Option<String>,
}

/// Returns true for the call or result of a vendor-run tool, which the vendor wants back.
pub(super) fn is_of_server(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use") || kind.ends_with("_tool_result")
}

/// Emits a piece of the model's reasoning.
pub(super) fn think(piece: &str, out: &mut VecDeque<ModelEvent>) {
    if !piece.is_empty() {
        out.push_back(ModelEvent::Reasoning(piece.to_owned()));
    }
}
