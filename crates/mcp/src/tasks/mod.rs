//! Tasks: calls that a server runs on its own and whose result is asked for, so that it reaches whoever
//! runs the session by then.
//!
//! In 2025-11-25 the client asks for a task (`task` beside the arguments) and for its result
//! (`tasks/result`). In 2026-07-28 tasks are an extension (SEP-2663): the server decides, and `tasks/get`
//! has the result.

mod state;

use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub(super) use self::state::{TaskState, related, relation};
use sepal_core::domain::Digest;

/// How a call runs that its server may make a task of.
#[derive(Debug, Clone)]
pub struct TaskTerms {
    /// Whether a task is asked for. A server of 2026-07-28 decides for itself.
    pub is_asked: bool,
    /// How long the task may take, in the place of [`ToolCall::limit`](super::ToolCall::limit).
    pub limit: Duration,
    /// How long the server is asked to keep the task, from its creation.
    pub ttl: Duration,
    /// Where the call is cancelled after this, nobody wants its end: the task is left to whoever goes on
    /// with the session.
    pub let_go: CancellationToken,
    /// Given back with the task: what the server is known by.
    pub server: Digest,
    /// The task that a call before this one created: it is followed, and nothing is called.
    pub picked_up: Option<String>,
}

/// A server made a task of a call. Nothing waits for the result before it is kept.
#[derive(Debug)]
pub struct NewTask {
    /// The server's id of it.
    pub id: String,
    /// How long the server keeps it, in milliseconds from its creation, where it says so.
    pub ttl_ms: Option<u64>,
    /// What the server is known by, from [`TaskTerms::server`].
    pub server: Digest,
    /// Told once the journal has the task. Whoever drops it does not want to follow the task.
    pub kept: oneshot::Sender<()>,
}

/// How a task ends without a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskEnd {
    /// The server does not know it, or not any more.
    #[error("the server does not know the task of this call any more")]
    Forgotten,
    /// The server ended it, and nobody here had asked for that.
    #[error("the server cancelled the task{}", after(.0))]
    Cancelled(String),
    /// The server says that it failed.
    #[error("the task failed{}", after(.0))]
    Failed(String),
    /// It is over, and what it gave cannot be read.
    #[error("the task is done, but its result cannot be had: {0}")]
    Unreadable(String),
    /// The server says things of it that cannot be followed.
    #[error("the task cannot be followed: {0}")]
    Odd(String),
}

fn after(words: &str) -> String {
    if words.is_empty() {
        String::new()
    } else {
        format!(": {words}")
    }
}
