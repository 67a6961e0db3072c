//! The agent as an MCP server with one tool (S0.32), on standard input and output, streamable HTTP at
//! `/mcp`, and the HTTP with SSE of old clients at `/sse` and `/message` (D10). A call of the tool is a
//! session like any other, reached through [`crate::agent::Sessions`].

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

pub use approval::{DoorReply, Verdict};
pub use http::routes;
pub use missing::Missing;
pub use question::{Door, Ending, News, Question, QuestionText};
pub use shown::shown;
pub use stdio::serve_stdio;

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config;

/// The configuration of the agent as an MCP server.
#[derive(Debug, Clone)]
pub struct Exposure {
    /// The agent's name and version.
    pub agent: config::Agent,
    pub tool: config::Tool,
    /// The ways to decide about calls; the first possible one is used.
    pub approval: Vec<config::ApprovalWay>,
    /// True if people have a page where they can decide.
    pub has_page: bool,
    /// True if each message of a client and its answer are logged.
    pub logs_messages: bool,
    /// The time limit of a question, including approvals.
    pub turn_limit: Option<Duration>,
    /// True if a client on this machine needs no key.
    pub admits_local: bool,
}

/// The running tasks of clients, and the token that ends them.
#[derive(Debug, Clone)]
pub struct Life {
    /// The tasks of questions that are being answered.
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
}
