//! Defines tasks: calls that a server runs on its own and whose result is fetched later, so that the result
//! reaches the gateway that runs the session by then.
//!
//! In 2025-11-25 the client requests a task (`task` beside the arguments) and its result (`tasks/result`). In
//! 2026-07-28 tasks are an extension (SEP-2663): the server decides, and `tasks/get` returns the result.

mod state;

use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub(super) use self::state::{TaskState, related, relation};
use sepal_core::domain::Digest;

/// The terms for a call that its server may run as a task.
#[derive(Debug, Clone)]
pub struct TaskTerms {
    /// True if a task is requested. A server of 2026-07-28 decides by itself.
    pub is_asked: bool,
    /// The time limit of the task, replacing [`ToolCall::limit`](super::ToolCall::limit).
    pub limit: Duration,
    /// The time for which the server is asked to keep the task, from its creation.
    pub ttl: Duration,
    /// If the call is cancelled after this token, its task is left running for the gateway that continues the
    /// session.
    pub let_go: CancellationToken,
    /// The identity of the server, which is returned with the task.
    pub server: Digest,
    /// The task that an earlier call created: it is followed, and the tool is not called.
    pub picked_up: Option<String>,
}

/// A task that a server created for a call. The result is not awaited before the journal has the task.
#[derive(Debug)]
pub struct NewTask {
    /// The server's id of the task.
    pub id: String,
    /// The time for which the server keeps the task, in milliseconds from its creation; `None` if it does not
    /// say.
    pub ttl_ms: Option<u64>,
    /// The identity of the server, from [`TaskTerms::server`].
    pub server: Digest,
    /// Signals that the journal has the task. Dropping the sender means that the task is not followed.
    pub kept: oneshot::Sender<()>,
}

/// The end of a task without a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskEnd {
    /// The server does not know the task, or no longer knows it.
    #[error("the server does not know the task of this call any more")]
    Forgotten,
    /// The server cancelled the task without a request from us.
    #[error("the server cancelled the task{}", after(.0))]
    Cancelled(String),
    /// The server reports that the task failed.
    #[error("the task failed{}", after(.0))]
    Failed(String),
    /// The task is over, but its result cannot be read.
    #[error("the task is done, but its result cannot be had: {0}")]
    Unreadable(String),
    /// The server's messages about the task make no sense.
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
