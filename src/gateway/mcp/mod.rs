//! The agent as an MCP server with one tool (S0.32): standard input and output, streamable HTTP at
//! `/mcp`, and the HTTP with SSE of old clients at `/sse` and `/message` (D10). A call of the tool is
//! a session like any other, told and watched through [`crate::agent::Sessions`].

mod approval;
mod asking;
mod http;
mod logged;
mod missing;
mod notices;
mod question;
mod server;
mod shown;
mod stdio;
mod tasks;
mod visible;

pub use approval::{Heard, Verdict};
pub use http::routes;
pub use missing::Missing;
pub use question::{Door, Ending, News, Question};
pub use shown::shown;
pub use stdio::serve_stdio;

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config;

/// How the agent shows itself to MCP clients.
#[derive(Debug, Clone)]
pub struct Exposure {
    /// The agent's name and version.
    pub agent: config::Agent,
    pub tool: config::Tool,
    /// Who decides about calls, the first way that is possible.
    pub approval: Vec<config::ApprovalWay>,
    /// Whether people have a page where they can decide.
    pub has_page: bool,
    /// Whether each message of a client and its answer are logged.
    pub logs_messages: bool,
    /// How long a question may take, approvals included.
    pub turn_limit: Option<Duration>,
    /// Whether a client of this very machine needs no key.
    pub admits_local: bool,
}

/// What runs on behalf of clients, and how it is ended.
#[derive(Debug, Clone)]
pub struct Life {
    /// Questions that are being answered.
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
}
