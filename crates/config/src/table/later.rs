//! Settings of later versions, which this one refuses by name.

use super::Later;

/// Shortens [`LATER`].
const fn later(key: &'static str, env: &'static [&'static str]) -> Later {
    Later { key, env }
}

/// Settings of later versions, which this one refuses by name.
pub const LATER: &[Later] = &[
    later(
        "agent.chat.tool_result_limit",
        &["SPL_CHAT_TOOL_RESULT_LIMIT"],
    ),
    later("auth.oidc.*", &["SPL_OIDC_*"]),
];
