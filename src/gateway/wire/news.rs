//! Converts news of a tenant's MCP servers, and of the sandbox, to frames.

use serde::Serialize;
use serde_json::json;

use super::frame::{Frame, frame};
use crate::servers::{News, NewsKind};

/// Builds the frame of one piece of news, which is not part of a session's stream.
pub fn news_frame(news: &News) -> Frame {
    match &news.kind {
        NewsKind::Installation(state) => frame(
            "mcp:installation",
            &[&json!({ "server": news.server, "state": state })],
        ),
        NewsKind::Added => frame("mcpAdded", &[&json!({ "name": news.server })]),
        NewsKind::Removed => frame("mcpRemoved", &[&json!({ "name": news.server })]),
        NewsKind::Connection(_) => frame("mcpConnection", &[&json!({ "name": news.server })]),
        NewsKind::Health(status, error) => {
            let mut what = json!({ "server": news.server, "status": status });
            if let (Some(what), Some(error)) = (what.as_object_mut(), error) {
                what.insert("error".into(), error.as_str().into());
            }
            frame("mcp:health", &[&what])
        }
    }
}

/// Builds the frame with the current state of the sandbox, which is not part of a session's stream.
pub fn sandbox_frame(sandbox: &impl Serialize) -> Frame {
    frame("system:sandbox", &[&json!({ "sandbox": sandbox })])
}
