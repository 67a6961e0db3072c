//! The settings of later versions, which this version refuses by name.

use super::Later;

/// Builds a [`Later`].
const fn later(key: &'static str, env: &'static [&'static str]) -> Later {
    Later { key, env }
}

/// The settings of later versions, which this version refuses by name.
pub const LATER: &[Later] = &[later(
    "agent.chat.tool_result_limit",
    &["SPL_CHAT_TOOL_RESULT_LIMIT"],
)];
